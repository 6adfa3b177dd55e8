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
Outputs ConvertQGemm(Node& n) {
  Expr a = n.In(0), b = n.In(3), scale = n.In(1);
  double alpha = n.Float("alpha", 1);
  if (n.Int("transA", 0)) a = Transposed(n, a, {1, 0});
  if (n.Int("transB", 0)) b = Transposed(n, b, {1, 0});
  Expr sum = IntegerProduct(n, a, b, ZeroOffset(n, 2), ZeroOffset(n, 5));
  if (n.Has(6)) sum = n("add", sum, n.In(6));
  if (alpha != 1) scale = n("multiply", scale, n.Scalar(alpha, DataType::Float(32)));
  scale = n("multiply", scale, n.In(4));
  if (n.Has(7)) return Requantized(n, sum, scale, 7, 8, Node::TypeOf(n.In(0)));
  return n("multiply", n.Cast(sum, DataType::Float(32)), scale);
}
/// Sums in float, scaled, and the bias that may be an input.
Outputs Rescaled(Node& n, const Expr& sum, const Expr& scale, size_t bias) {
  Expr y = n("multiply", n.Cast(sum, DataType::Float(32)), scale);
  return n.Has(bias) ? n("add", y, n.In(bias)) : y;
}
Outputs ConvertMatMulIntegerToFloat(Node& n) {
  Expr sum = IntegerProduct(n, n.In(0), n.In(1), ZeroOffset(n, 4), ZeroOffset(n, 5));
  return Rescaled(n, sum, n("multiply", n.In(2), n.In(3)), 6);
}
Outputs ConvertDynamicQuantizeMatMul(Node& n) {
  DynamicNumbers a = DynamicallyQuantized(n, n.In(0));
  Expr zero = n.Cast(a.zero, DataType::Int(32));
  Expr sum = IntegerProduct(n, a.data, n.In(1), zero, ZeroOffset(n, 3));
  return Rescaled(n, sum, n("multiply", a.scale, n.In(2)), 4);
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({
      {"DynamicQuantizeMatMul", &ConvertDynamicQuantizeMatMul, kDomain},
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
