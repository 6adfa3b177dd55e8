// SPDX-License-Identifier: Apache-2.0
// Normalisation.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
std::vector<int64_t> AxesFrom(int64_t axis, int64_t rank) {
  std::vector<int64_t> axes;
  for (; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}
Outputs ConvertBatchNormalization(Node& n) {
  Expr x = n.In(0);
  double epsilon = n.Float("epsilon", 1e-5F), momentum = n.Float("momentum", 0.9F);
  bool training = n.Int("training_mode", 0) != 0;
  if (n.Int("spatial", 1) != 1) n.Unsupported("spatial=0");
  Dims shape = Node::Shape(x), channels = Node::Shape(n.In(1));
  if (shape.size() > 1 && channels.size() == 1 && AsConstInt(channels[0])) {
    shape.Set(1, channels[0]);
    x = n.Fitted(x, shape);
  }
  std::vector<Expr> of_channels;
  for (size_t i = 1; i < 5; ++i)
    of_channels.push_back(shape.size() > 1 ? n.Fitted(n.In(i), {shape[1]}) : n.In(i));
  // The factor of the new values here is that of the old ones there.
  Expr all = n("nn.batch_norm", x, of_channels[0], of_channels[1], of_channels[2], of_channels[3],
               1, epsilon, true, true, 1 - momentum, training);
  if (!training) return n.Item(all, 0);
  return std::vector<Expr>{n.Item(all, 0), n.Item(all, 1), n.Item(all, 2)};
}
Outputs ConvertInstanceNormalization(Node& n) {
  Expr x = n.In(0);
  return n("nn.instance_norm", x, n.In(1), n.In(2), 1, List(AxesFrom(2, Node::Rank(x))),
           n.Float("epsilon", 1e-5F));
}
Outputs ConvertGroupNormalization(Node& n) {
  Expr x = n.In(0);
  n.Ignore("stash_type");
  return n("nn.group_norm", x, n.In(1), n.In(2), n.Int("num_groups"), 1,
           List(AxesFrom(2, Node::Rank(x))), n.Float("epsilon", 1e-5F));
}
/// Scale and shift of the normalised axes; they may broadcast to them.
Expr NormParameter(Node& n, const Expr& p, const Expr& x, int64_t axis) {
  Dims shape = Node::Shape(x);
  Dims wanted(shape.begin() + axis, shape.end());
  Dims own = Node::Shape(p);
  auto* analyzer = n.importer.builder()->analyzer();
  bool same = own.size() == wanted.size();
  for (size_t i = 0; same && i < own.size(); ++i) same = analyzer->CanProveEqual(own[i], wanted[i]);
  if (same) return p;
  if (own.size() > wanted.size()) n.Unsupported("a scale of more axes than are normalised");
  return n("broadcast_to", p, relax::ShapeExpr(wanted));
}
Outputs ConvertLayerNormalization(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", -1), Node::Rank(x));
  double epsilon = n.Float("epsilon", 1e-5F);
  n.Ignore("stash_type");  // float16 is summed up in float32 here, too
  Expr scale = NormParameter(n, n.In(1), x, axis);
  Expr shift = n.Has(2) ? NormParameter(n, n.In(2), x, axis)
                        : n("zeros", relax::ShapeExpr(Node::Shape(scale)), Node::TypeOf(scale));
  auto axes = AxesFrom(axis, Node::Rank(x));
  Expr y = n("nn.layer_norm", x, scale, shift, List(axes), epsilon);
  if (!n.Wants(1) && !n.Wants(2)) return y;
  Expr mean = n("mean", x, List(axes), true), variance = n("variance", x, List(axes), true);
  Expr inverse = n("rsqrt", n("add", variance, n.Scalar(epsilon, Node::TypeOf(x))));
  return std::vector<Expr>{y, mean, inverse};
}
Outputs ConvertRMSNormalization(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", -1), Node::Rank(x));
  n.Ignore("stash_type");
  double epsilon = n.Float("epsilon", 1e-5F);
  return n("nn.rms_norm", x, NormParameter(n, n.In(1), x, axis),
           List(AxesFrom(axis, Node::Rank(x))), epsilon);
}
Outputs ConvertLRN(Node& n) {
  Expr x = n.In(0);
  double alpha = n.Float("alpha", 1e-4F), beta = n.Float("beta", 0.75), bias = n.Float("bias", 1);
  int64_t size = n.Int("size");
  Te te(n);
  te::Tensor t = te(x);
  PrimExpr first = Num((size - 1) / 2);
  te::Tensor squares = topi::Compute(
      t->shape,
      [&](const Index& i) {
        te::IterVar k = topi::Along(Num(size), "k");
        Index at = i;
        at[1] = i[1] + k->var - first;
        PrimExpr inside = at[1] >= Num(0) && at[1] < t->shape[1];
        PrimExpr e = topi::At(t, at);
        return te::sum(if_then_else(inside, e * e, MakeZero(t->dtype)), {k});
      },
      "lrn_sum", topi::kCommReduce);
  return ComputeElements(n, "lrn", te, t->shape, [&](const Index& i) {
    DataType d = t->dtype;
    PrimExpr scale =
        Num(d, bias) + Num(d, alpha / static_cast<double>(size)) * topi::At(squares, i);
    return div(topi::At(t, i), pow(scale, Num(d, beta)));
  });
}
Outputs ConvertLpNormalization(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", -1), Node::Rank(x)), p = n.Int("p", 2);
  if (p != 1 && p != 2) n.Fail("p to be 1 or 2", std::to_string(p));
  Expr zero = n.Scalar(0, Node::TypeOf(x));
  Expr sum = n("sum", p == 1 ? n("abs", x) : n("multiply", x, x), axis, true);
  if (p == 2) sum = n("sqrt", sum);
  return n("where", n("equal", sum, zero), zero, n("divide", x, sum));
}
Outputs ConvertMeanVarianceNormalization(Node& n) {
  Expr x = n.In(0);
  Array<int64_t> axes = List(n.Ints("axes", {0, 2, 3}));
  Expr centred = n("subtract", x, n("mean", x, axes, true));
  Expr variance = n("mean", n("multiply", centred, centred), axes, true);
  Expr deviation = n("sqrt", variance);
  return n("divide", centred, n("add", deviation, n.Scalar(1e-9, Node::TypeOf(x))));
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"BatchNormalization", &ConvertBatchNormalization},
      {"GroupNormalization", &ConvertGroupNormalization},
      {"InstanceNormalization", &ConvertInstanceNormalization},
      {"LRN", &ConvertLRN},
      {"LayerNormalization", &ConvertLayerNormalization},
      {"LpNormalization", &ConvertLpNormalization},
      {"MeanVarianceNormalization", &ConvertMeanVarianceNormalization},
      {"RMSNormalization", &ConvertRMSNormalization},
  });
}

}  // namespace tvm::frontend::onnx
