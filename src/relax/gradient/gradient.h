// SPDX-License-Identifier: Apache-2.0
// Rules for gradients of operators:
//
//   {"relax.sin", [](Grad& r) -> Values { return {r.g() * r.F("cos", r.x(0))}; }}
//
// A rule gives one value for each argument of the call, an empty one where there is no gradient.
// For an argument that is a tuple it is a tuple.
#pragma once
#include <vector>

#include "tvm/relax/block_builder.h"
#include "tvm/relax/infer.h"

namespace tvm::relax {

/// An expression in the arithmetic of gradients: a nested one is bound where it is used.
struct Value {
  Expr expr{nullptr};
  const BlockBuilder* builder = nullptr;
  explicit operator bool() const { return expr.defined(); }
  /// The same as a leaf, whose struct info is known.
  Expr leaf() const { return (*builder)->NormalizeArgument(expr); }
  const TensorStructInfoObj* info() const { return GetStructInfoAs<TensorStructInfoObj>(leaf()); }
  DataType dtype() const { return info()->dtype; }
  int64_t ndim() const { return info()->ndim; }
};
using Values = std::vector<Value>;

inline Expr LeafOf(const Value& value) { return value.leaf(); }
template <class T>
const T& LeafOf(const T& value) {
  return value;
}
/// A call of relax.<name> with the parameters of its Python function.
template <class... A>
Value Apply(const BlockBuilder& builder, const char* name, const A&... args) {
  std::vector<Any> leaves{Any(LeafOf(args))...};
  std::vector<AnyView> views(leaves.begin(), leaves.end());
  return {CallOperator((std::string("relax.") + name).c_str(), views), &builder};
}
#define TVM_GRADIENT_OPERATOR(op, name)                                                        \
  inline Value operator op(const Value& a, const Value& b) {                                   \
    return Apply(*a.builder, name, a, b);                                                      \
  }                                                                                            \
  inline Value operator op(const Value& a, double b) { return Apply(*a.builder, name, a, b); } \
  inline Value operator op(double a, const Value& b) { return Apply(*b.builder, name, a, b); }
TVM_GRADIENT_OPERATOR(+, "add")
TVM_GRADIENT_OPERATOR(-, "subtract")
TVM_GRADIENT_OPERATOR(*, "multiply")
TVM_GRADIENT_OPERATOR(/, "divide")
TVM_GRADIENT_OPERATOR(<, "less")
TVM_GRADIENT_OPERATOR(>=, "greater_equal")
TVM_GRADIENT_OPERATOR(==, "equal")
#undef TVM_GRADIENT_OPERATOR
inline Value operator-(const Value& a) { return Apply(*a.builder, "negative", a); }

/// One call whose gradient is asked for.
class Grad {
 public:
  Grad(const Var& result, const Call& call, const Var& output_grad, const BlockBuilder& builder)
      : call(call), builder(builder), result_(result), output_grad_(output_grad) {}
  const Call& call;
  const BlockBuilder& builder;

  Value Of(const Expr& expr) const { return {expr, &builder}; }
  /// An argument, the result, the gradient of the result.
  Value x(size_t i) const { return Of(call->args[i]); }
  Value y() const { return Of(result_); }
  Value g() const { return Of(output_grad_); }
  /// Items of a tuple.
  Value Item(const Value& tuple, int64_t i) const;
  Value MakeTuple(const Values& items) const;
  bool Has(size_t i) const { return i < call->args.size(); }
  /// Whether the argument is a tensor of floating-point numbers.
  bool IsFloat(size_t i) const;
  template <class Obj>
  const Obj* attrs() const {
    return static_cast<const Obj*>(call->attrs.value().get());
  }
  template <class... A>
  Value F(const char* name, const A&... args) const {
    return Apply(builder, name, args...);
  }

  // ---- shapes -----------------------------------------------------------------------------------
  /// The dimensions, which must be known: ValueError otherwise.
  Dims DimsOf(const Value& value) const;
  int64_t ConstDim(const Value& value, int64_t axis) const;
  /// The value of that shape: dimensions along which it was broadcast are summed up.
  Value CollapseTo(const Value& value, const Value& like) const;
  Value ReshapeLike(const Value& value, const Value& like) const;
  Value BroadcastLike(const Value& value, const Value& like) const;
  Value ZerosLike(const Value& like) const;
  Value Transposed(const Value& value) const;  // of the last two dimensions
  Value Permuted(const Value& value, const std::vector<int64_t>& axes) const;
  Value Reshaped(const Value& value, const Dims& dims) const;
  /// An axis made the last, and back.
  Value AxisLast(const Value& value, int64_t axis) const;
  Value AxisBack(const Value& value, int64_t axis) const;
  /// The product with a matrix, transposed, along an axis: (out, in) for an axis of `in` elements.
  Value Multiplied(const Value& value, int64_t axis, const Value& matrix) const;
  /// The elements [begin, end) along an axis.
  Value Slice(const Value& value, int64_t axis, const PrimExpr& begin, const PrimExpr& end) const;
  /// A number times a value.
  Value Scaled(const Value& value, const PrimExpr& numerator, const PrimExpr& denominator) const;
  /// Raises: there is no gradient in this case.
  [[noreturn]] void Refuse(const std::string& why) const;

 private:
  Var result_, output_grad_;
};

using GradientRule = Values (*)(Grad& r);
struct GradientRow {
  const char* op;
  GradientRule rule;
};
void RegisterGradient(const GradientRow& row);
/// No gradient for any argument.
Values NoGradient(Grad& r);

/// All axes, or those given, as non-negative numbers in order.
std::vector<int64_t> AxesOf(const Optional<Ints>& axes, int64_t ndim);
Array<int64_t> AsArray(const std::vector<int64_t>& values);

}  // namespace tvm::relax
