// SPDX-License-Identifier: Apache-2.0
// Operators on the elements of one tensor: a row each.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

/// A scalar operand gives a scalar of unknown value.
StructInfo OfElements(Infer& in, DataType dtype) {
  return in.AsTensor(0) ? in.WithType(0, dtype) : PrimStructInfo(dtype);
}
StructInfo InferAny(Infer& in) { return OfElements(in, in.TypeOf(0)); }
StructInfo InferFloat(Infer& in) {
  DataType dtype = in.TypeOf(0);
  if (!dtype.is_void() && !dtype.is_float()) {
    TVM_RAISE_TYPE(in) << "expected operands of a floating-point type, got " << dtype;
  }
  return OfElements(in, dtype);
}
StructInfo InferCheck(Infer& in) { return OfElements(in, DataType::Bool()); }

struct UnaryRow {
  const char* name;
  InferFn infer;
  const char* doc;
};
constexpr UnaryRow kUnary[] = {
    {"relax.abs", &InferAny, "The absolute value."},
    {"relax.acos", &InferFloat, "The inverse cosine."},
    {"relax.acosh", &InferFloat, "The inverse hyperbolic cosine."},
    {"relax.asin", &InferFloat, "The inverse sine."},
    {"relax.asinh", &InferFloat, "The inverse hyperbolic sine."},
    {"relax.atan", &InferFloat, "The inverse tangent."},
    {"relax.atanh", &InferFloat, "The inverse hyperbolic tangent."},
    {"relax.bitwise_not", &InferAny, "All bits inverted."},
    {"relax.ceil", &InferAny, "The smallest integer not below x."},
    {"relax.cos", &InferFloat, "The cosine."},
    {"relax.cosh", &InferFloat, "The hyperbolic cosine."},
    {"relax.erf", &InferFloat, "The error function."},
    {"relax.exp", &InferFloat, "e to the power x."},
    {"relax.floor", &InferAny, "The largest integer not above x."},
    {"relax.isfinite", &InferCheck, "Whether x is neither infinite nor NaN."},
    {"relax.isinf", &InferCheck, "Whether x is infinite."},
    {"relax.isnan", &InferCheck, "Whether x is NaN."},
    {"relax.log", &InferFloat, "The natural logarithm."},
    {"relax.logical_not", &InferAny, "Whether x is false."},
    {"relax.negative", &InferAny, "-x"},
    {"relax.round", &InferAny, "The nearest integer, halves to even."},
    {"relax.rsqrt", &InferFloat, "1 / sqrt(x)"},
    {"relax.sigmoid", &InferFloat, "1 / (1 + exp(-x))"},
    {"relax.sign", &InferAny, "-1, 0 or 1."},
    {"relax.sin", &InferFloat, "The sine."},
    {"relax.sinh", &InferFloat, "The hyperbolic sine."},
    {"relax.sqrt", &InferFloat, "The square root."},
    {"relax.square", &InferAny, "x * x"},
    {"relax.tan", &InferFloat, "The tangent."},
    {"relax.tanh", &InferFloat, "The hyperbolic tangent."},
    {"relax.trunc", &InferAny, "x without its fraction."},
};
constexpr UnaryRow kActivation[] = {
    {"relax.nn.relu", &InferAny, "max(x, 0)"},
    {"relax.nn.gelu", &InferFloat, "x times the normal distribution function at x."},
    {"relax.nn.gelu_tanh", &InferFloat, "gelu, approximated with tanh."},
    {"relax.nn.selu", &InferFloat, "The scaled exponential linear unit."},
    {"relax.nn.silu", &InferFloat, "x * sigmoid(x)"},
};

TVM_REGISTER() {
  for (const UnaryRow& row : kUnary) {
    Operator(row.name, "x: Value", row.infer, row.doc).Pattern(kElemWise).Precision(kFollow);
  }
  for (const UnaryRow& row : kActivation) {
    Operator(row.name, "data: Tensor", row.infer, row.doc).Pattern(kElemWise).Precision(kFollow);
  }
  Operator("relax.nn.leakyrelu", "data: Tensor, alpha=0.01", &InferFloat,
           "x where it is positive, else alpha * x.")
      .Attrs<LeakyReluAttrsObj>()
      .Pattern(kElemWise)
      .Precision(kFollow);
  Operator("relax.nn.softplus", "data: Tensor, beta=1.0, threshold=20.0", &InferFloat,
           "log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold.")
      .Attrs<SoftplusAttrsObj>()
      .Pattern(kElemWise)
      .Precision(kFollow);
  Operator("relax.clip", "x: Tensor, min: Prim, max: Prim", &InferSame,
           "x brought into [min, max]; NaN stays NaN.")
      .Pattern(kElemWise)
      .Precision(kFollow);
}

}  // namespace
}  // namespace tvm::relax
