// SPDX-License-Identifier: Apache-2.0
// Random numbers. The format fixes their distribution, not their values.
#include <bit>

#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
/// Numbers of a distribution in float32 or float64.
Expr RandomNumbers(Node& n, const char* distribution, const Dims& shape, DataType dtype) {
  bool is_double = dtype.bits() == 64 && dtype.is_float();
  Value none;
  Expr seed =
      n.HasAttr("seed")
          ? Expr(relax::PrimValue(Num(std::bit_cast<int32_t>(static_cast<float>(n.Float("seed"))))))
          : n.importer.ObjectOf(&none);
  return n.importer.CallRuntime(
      std::string("random.") + distribution,
      {relax::ShapeExpr(shape), relax::PrimValue(IntImm::Bool(is_double)), seed,
       relax::PrimValue(Num(n.importer.NextSerial()))},
      relax::TensorStructInfo(shape, DataType::Float(is_double ? 64 : 32)));
}
/// first + second * (a number of the distribution).
Expr Scaled(Node& n, const char* distribution, const Dims& shape, DataType dtype, double first,
            double second) {
  Expr x = RandomNumbers(n, distribution, shape, dtype);
  DataType t = Node::TypeOf(x);
  x = n("add", n("multiply", x, n.Scalar(second, t)), n.Scalar(first, t));
  return n.Cast(x, dtype);
}
Dims ShapeAttr(Node& n) {
  Dims shape;
  for (int64_t d : n.Ints("shape")) shape.push_back(Num(d));
  return shape;
}

Expr UniformOf(Node& n, const Dims& shape, DataType dtype) {
  double low = n.Float("low", 0), high = n.Float("high", 1);
  return Scaled(n, "uniform", shape, dtype, low, high - low);
}
Expr NormalOf(Node& n, const Dims& shape, DataType dtype) {
  double mean = n.Float("mean", 0);
  return Scaled(n, "normal", shape, dtype, mean, n.Float("scale", 1));
}
template <Expr (*of)(Node&, const Dims&, DataType)>
Outputs ConvertRandom(Node& n) {
  return of(n, ShapeAttr(n), n.Type("dtype", kSingle));
}
template <Expr (*of)(Node&, const Dims&, DataType)>
Outputs ConvertRandomLike(Node& n) {
  Expr x = n.In(0);
  return of(n, Node::Shape(x), n.Type("dtype", Node::TypeOf(x)));
}
Outputs ConvertBernoulli(Node& n) {
  Expr p = n.In(0);
  DataType t = Node::TypeOf(p), to = n.Type("dtype", t);
  Expr u = RandomNumbers(n, "uniform", Node::Shape(p), t);
  return n.Cast(n("less", u, n.Cast(p, Node::TypeOf(u))), to);
}
/// The class at which the sum of probabilities passes a number in [0, 1).
Outputs ConvertMultinomial(Node& n) {
  Expr x = n.In(0);
  int64_t samples = n.Int("sample_size", 1);
  DataType to = n.Type("dtype", DataType::Int(32));
  if (Node::Rank(x) != 2) n.Fail("a matrix of logits", "rank " + std::to_string(Node::Rank(x)));
  Expr sums = n("cumsum", n("nn.softmax", n.Cast(x, kSingle), -1), 1);
  Dims shape{Node::Shape(x)[0], Num(samples)};
  Expr u = RandomNumbers(n, "uniform", shape, kSingle);
  Te te(n);
  te::Tensor cdf = te(sums), number = te(u);
  PrimExpr classes = cdf->shape[1];
  te::Tensor passed = topi::Compute(
      number->shape,
      [&](const Index& i) {
        te::IterVar c = topi::Along(classes, "c");
        PrimExpr below = cdf(i[0], c->var) <= number(i[0], i[1]);
        return te::sum(tir::Select(below, Num(1), Num(0)), {c});
      },
      "passed", topi::kCommReduce);
  return ComputeElements(n, "multinomial", te, number->shape, [&](const Index& i) {
    return tvm::cast(to, min(topi::At(passed, i), classes - Num(1)));  // rounding of the last sum
  });
}
/// While training, elements become 0 with the probability `ratio` and the others larger.
Outputs ConvertDropout(Node& n) {
  Expr x = n.In(0);
  DataType t = Node::TypeOf(x);
  auto training = n.Has(2) ? n.ScalarOf(2) : std::optional<PrimExpr>(Num(0));
  if (training && AsConstInt(*training) == 0) {
    n.Ignore("seed");
    if (n.Has(1)) n.Input(1);
    if (!n.Wants(1)) return x;
    return std::vector<Expr>{
        x, n("full", relax::ShapeExpr(Node::Shape(x)), n.Scalar(1, DataType::Bool()))};
  }
  Expr u = RandomNumbers(n, "uniform", Node::Shape(x), t);
  DataType real = Node::TypeOf(u);
  Expr ratio = n.Has(1) ? n.Cast(n.Reshape(n.In(1), {}), real) : n.Scalar(0.5, real);
  Expr off = n("logical_not", n.Reshape(n.In(2), {}));
  ratio = n("where", off, n.Scalar(0, real), ratio);
  Expr kept = n("greater_equal", u, ratio);
  Expr larger = n("divide", n.Cast(x, real), n("subtract", n.Scalar(1, real), ratio));
  Expr y = n.Cast(n("where", kept, larger, n.Scalar(0, real)), t);
  return std::vector<Expr>{y, kept};
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Bernoulli", &ConvertBernoulli},
      {"Dropout", &ConvertDropout},
      {"Multinomial", &ConvertMultinomial},
      {"RandomNormal", &ConvertRandom<&NormalOf>},
      {"RandomNormalLike", &ConvertRandomLike<&NormalOf>},
      {"RandomUniform", &ConvertRandom<&UniformOf>},
      {"RandomUniformLike", &ConvertRandomLike<&UniformOf>},
  });
}

}  // namespace tvm::frontend::onnx
