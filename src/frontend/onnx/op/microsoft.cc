// SPDX-License-Identifier: Apache-2.0
// Operators of the domain com.microsoft, which optimisers and quantisers write.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kMicrosoft = "com.microsoft";

Outputs ConvertFastGelu(Node& n) {
  Expr x = n.In(0);
  if (n.Has(1)) x = n("add", x, n.In(1));
  return n("nn.gelu_tanh", x);
}
Outputs ConvertBiasGelu(Node& n) { return n("nn.gelu", n("add", n.In(0), n.In(1))); }
Outputs ConvertQuickGelu(Node& n) {
  Expr x = n.In(0);
  double alpha = n.Float("alpha", 1.702F);
  return n("multiply", x, n("sigmoid", n("multiply", x, n.Scalar(alpha, Node::TypeOf(x)))));
}
Outputs ConvertFusedMatMul(Node& n) {
  Expr a = n.In(0), b = n.In(1);
  double alpha = n.Float("alpha", 1);
  auto turned = [&](const Expr& e, bool batches, bool matrix) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < Node::Rank(e); ++i) axes.push_back(i);
    // Rows, or with both columns, lie before the batches.
    if (batches && axes.size() > 2) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
    if (matrix && axes.size() > 1) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return batches || matrix ? Transposed(n, e, axes) : e;
  };
  a = turned(a, n.Int("transBatchA", 0), n.Int("transA", 0));
  b = turned(b, n.Int("transBatchB", 0), n.Int("transB", 0));
  Expr y = n("matmul", a, b);
  return alpha == 1 ? y : n("multiply", y, n.Scalar(alpha, Node::TypeOf(y)));
}
/// Normalises the sum of the input, what was skipped and a bias; the sum is the last output.
template <bool is_simple>
Outputs SkipNormalization(Node& n) {
  size_t bias = is_simple ? 3 : 4;
  Expr sum = n("add", n.In(0), n.In(1));
  if (n.Has(bias)) sum = n("add", sum, n.In(bias));
  double epsilon = n.Float("epsilon", 1e-12F);
  int64_t axis = Node::Rank(sum) - 1;
  Expr gamma = n.In(2), y;
  if (is_simple) {
    y = n("nn.rms_norm", sum, gamma, List({axis}), epsilon);
  } else {
    Expr beta =
        n.Has(3) ? n.In(3) : n("zeros", relax::ShapeExpr(Node::Shape(gamma)), Node::TypeOf(gamma));
    y = n("nn.layer_norm", sum, gamma, beta, List({axis}), epsilon);
  }
  std::vector<Value> outputs{y, Value(), Value(), sum};
  return outputs;
}
Outputs ConvertSimplifiedLayerNormalization(Node& n) {
  Expr x = n.In(0);
  n.Ignore("stash_type");
  double epsilon = n.Float("epsilon", 1e-5F);
  std::vector<int64_t> axes;
  for (int64_t i = n.Axis(n.Int("axis", -1), Node::Rank(x)); i < Node::Rank(x); ++i)
    axes.push_back(i);
  return n("nn.rms_norm", x, n.In(1), List(axes), epsilon);
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"BiasGelu", &ConvertBiasGelu, kMicrosoft},
      {"FastGelu", &ConvertFastGelu, kMicrosoft},
      {"FusedMatMul", &ConvertFusedMatMul, kMicrosoft},
      {"Gelu", &SameOp<"nn.gelu">, kMicrosoft},
      {"QuickGelu", &ConvertQuickGelu, kMicrosoft},
      {"SimplifiedLayerNormalization", &ConvertSimplifiedLayerNormalization},
      {"SimplifiedLayerNormalization", &ConvertSimplifiedLayerNormalization, kMicrosoft},
      {"SkipLayerNormalization", &SkipNormalization<false>, kMicrosoft},
      {"SkipSimplifiedLayerNormalization", &SkipNormalization<true>, kMicrosoft},
  });
}

}  // namespace tvm::frontend::onnx
