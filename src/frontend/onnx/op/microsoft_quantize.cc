// SPDX-License-Identifier: Apache-2.0
// Operators on quantised numbers of the domain com.microsoft.
#include "frontend/onnx/op/quantize.h"
#include "frontend/onnx/op/window.h"

namespace tvm::frontend::onnx {
namespace {
/// The operator on the numbers that the quantised ones mean.
template <Text op>
Outputs QLinearBinary(Node& n) {
  Expr a = DequantizedInput(n, 0), b = DequantizedInput(n, 3);
  return QuantizedOutput(n, n(op.value, a, b), 6, Node::TypeOf(n.In(0)));
}
template <class F>
Outputs QLinearUnary(Node& n, F f) {
  return QuantizedOutput(n, f(DequantizedInput(n, 0)), 3, Node::TypeOf(n.In(0)));
}
Outputs ConvertQLinearSigmoid(Node& n) {
  return QLinearUnary(n, [&](const Expr& x) { return n("sigmoid", x); });
}
Outputs ConvertQLinearLeakyRelu(Node& n) {
  double alpha = n.Float("alpha", 0.01F);
  return QLinearUnary(n, [&](const Expr& x) { return n("nn.leakyrelu", x, alpha); });
}
Outputs ConvertQLinearSoftmax(Node& n) {
  int64_t axis = n.Int("axis", -1), version = n.Int("opset", 13);
  if (version < 13 && axis != -1 && axis != Node::Rank(n.In(0)) - 1)
    n.Unsupported("softmax over several axes");
  return QLinearUnary(n, [&](const Expr& x) { return n("nn.softmax", x, axis); });
}
Outputs ConvertQLinearGlobalAveragePool(Node& n) {
  bool last = n.Int("channels_last", 0) != 0;
  return QLinearUnary(n, [&](const Expr& x) {
    std::vector<int64_t> axes;
    for (int64_t i = last ? 1 : 2; i < Node::Rank(x) - (last ? 1 : 0); ++i) axes.push_back(i);
    return n("mean", x, List(axes), true);
  });
}
Outputs ConvertQLinearAveragePool(Node& n) {
  if (n.Int("channels_last", 0)) n.Unsupported("channels_last");
  bool include = n.Int("count_include_pad", 0) != 0;
  return QLinearUnary(n, [&](const Expr& x) {
    Window w = ReadWindow(n, x);
    auto pads = w.ConstPads();
    if (!pads || w.size() < 1 || w.size() > 3) n.Unsupported("this pool");
    std::string name = "nn.avg_pool" + std::to_string(w.size()) + "d";
    return n(name.c_str(), x, List(w.kernel), List(w.strides), List(*pads), List(w.dilations),
             w.ceil_mode, include);
  });
}
Outputs ConvertQLinearConcat(Node& n) {
  Array<Expr> parts;
  for (size_t i = 2; i + 2 < n.NumInputs(); i += 3) parts.push_back(DequantizedInput(n, i));
  if (parts.empty()) n.Fail("tensors to join", "none");
  int64_t axis = n.Axis(n.Int("axis"), Node::Rank(parts[0]));
  Expr all = parts.size() == 1 ? parts[0] : n("concat", relax::Tuple(parts), axis);
  return QuantizedOutput(n, all, 0, Node::TypeOf(n.In(2)));
}
Outputs ConvertQLinearWhere(Node& n) {
  Expr y = n("where", n.In(0), DequantizedInput(n, 1), DequantizedInput(n, 4));
  return QuantizedOutput(n, y, 7, Node::TypeOf(n.In(1)));
}
Expr WithoutZero(Node& n, const Expr& x, size_t zero) {
  Expr wide = n.Cast(x, DataType::Int(32));
  return n.Has(zero) ? n("subtract", wide, n.Cast(n.In(zero), DataType::Int(32))) : wide;
}
Outputs ConvertQGemm(Node& n) {
  Expr a = WithoutZero(n, n.In(0), 2), b = WithoutZero(n, n.In(3), 5);
  double alpha = n.Float("alpha", 1);
  if (n.Int("transA", 0)) a = Transposed(n, a, {1, 0});
  if (n.Int("transB", 0)) b = Transposed(n, b, {1, 0});
  Expr sum = n("matmul", a, b);
  if (n.Has(6)) sum = n("add", sum, n.In(6));
  Expr scale = n("multiply", n.In(1), n.In(4));
  Expr y = n("multiply", n.Cast(sum, DataType::Float(32)), scale);
  if (alpha != 1) y = n("multiply", y, n.Scalar(alpha, DataType::Float(32)));
  return n.Has(7) ? QuantizedOutput(n, y, 7, Node::TypeOf(n.In(0))) : y;
}
Outputs ConvertMatMulIntegerToFloat(Node& n) {
  Expr sum = n("matmul", WithoutZero(n, n.In(0), 4), WithoutZero(n, n.In(1), 5));
  Expr y = n("multiply", n.Cast(sum, DataType::Float(32)), n("multiply", n.In(2), n.In(3)));
  return n.Has(6) ? n("add", y, n.In(6)) : y;
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({
      {"MatMulIntegerToFloat", &ConvertMatMulIntegerToFloat, kDomain},
      {"QGemm", &ConvertQGemm, kDomain},
      {"QLinearAdd", &QLinearBinary<"add">, kDomain},
      {"QLinearAveragePool", &ConvertQLinearAveragePool, kDomain},
      {"QLinearConcat", &ConvertQLinearConcat, kDomain},
      {"QLinearGlobalAveragePool", &ConvertQLinearGlobalAveragePool, kDomain},
      {"QLinearLeakyRelu", &ConvertQLinearLeakyRelu, kDomain},
      {"QLinearMul", &QLinearBinary<"multiply">, kDomain},
      {"QLinearSigmoid", &ConvertQLinearSigmoid, kDomain},
      {"QLinearSoftmax", &ConvertQLinearSoftmax, kDomain},
      {"QLinearWhere", &ConvertQLinearWhere, kDomain},
  });
}

}  // namespace tvm::frontend::onnx
