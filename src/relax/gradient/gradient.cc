// SPDX-License-Identifier: Apache-2.0
// What rules for gradients of operators share, and how an operator's rule is found.
#include "relax/gradient/gradient.h"

#include <algorithm>
#include <numeric>

#include "tir/text.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"

namespace tvm::relax {
namespace {
std::unordered_map<const Object*, GradientRule>& Rules() {
  static auto& rules = *new std::unordered_map<const Object*, GradientRule>;
  return rules;
}
Array<Expr> RunRule(const Var& result, const Call& call, const Var& output_grad,
                    const BlockBuilder& builder) {
  Grad grad(result, call, output_grad, builder);
  Values values = Rules().at(call->op.get())(grad);
  static const Op& no_grad = *new Op(Op::Get("relax.grad.no_grad"));
  Array<Expr> gradients;
  for (size_t i = 0; i < call->args.size(); ++i) {
    bool has = i < values.size() && values[i];
    gradients.push_back(has ? values[i].expr : Expr(Call(no_grad, {call->args[i]})));
  }
  return gradients;
}
}  // namespace

void RegisterGradient(const GradientRow& row) {
  Op op = Op::Register(row.op);
  Rules()[op.get()] = row.rule;
  FPrimalGradient.Set(op, &RunRule);
}
Values NoGradient(Grad&) { return {}; }

std::vector<int64_t> AxesOf(const Optional<Ints>& axes, int64_t ndim) {
  std::vector<int64_t> result;
  if (!axes) {
    result.resize(ndim);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  for (const IntImm& axis : axes.value())
    result.push_back(axis->value < 0 ? axis->value + ndim : axis->value);
  std::sort(result.begin(), result.end());
  return result;
}
Array<int64_t> AsArray(const std::vector<int64_t>& values) {
  return Array<int64_t>(values.begin(), values.end());
}

// ---- values -------------------------------------------------------------------------------------
Value Grad::Item(const Value& tuple, int64_t i) const {
  Expr leaf = tuple.leaf();
  if (auto* known = leaf.as<TupleObj>()) return Of(known->fields[i]);
  return Of(TupleGetItem(leaf, i));
}
Value Grad::MakeTuple(const Values& items) const {
  Array<Expr> fields;
  for (const Value& item : items) fields.push_back(item.leaf());
  return Of(Tuple(fields));
}
bool Grad::IsFloat(size_t i) const {
  auto* info = GetStructInfoAs<TensorStructInfoObj>(call->args[i]);
  return info && (info->dtype.is_float() || info->dtype.is_bfloat16());
}
void Grad::Refuse(const std::string& why) const {
  TVM_FFI_THROW(ValueError) << "Gradient: expected a gradient of " << call->op.as<OpObj>()->name
                            << ", got " << why << ", in " << tir::TextOf(call);
  TVM_FFI_UNREACHABLE();
}

// ---- shapes -------------------------------------------------------------------------------------
Dims Grad::DimsOf(const Value& value) const {
  auto* info = value.info();
  auto dims = info ? info->Dims() : Optional<Array<PrimExpr>>();
  if (!dims) Refuse("a shape that is not known");
  return dims.value();
}
int64_t Grad::ConstDim(const Value& value, int64_t axis) const {
  auto size = AsConstInt(DimsOf(value)[axis]);
  if (!size) Refuse("a dimension that is not constant");
  return *size;
}
Value Grad::CollapseTo(const Value& value, const Value& like) const {
  auto* target = GetStructInfoAs<TensorStructInfoObj>(like.expr);
  if (!target) return {};  // a scalar
  auto* info = value.info();
  if (info->Dims() && target->Dims()) {
    if (IsBaseOf(ShapeStructInfo(target->Dims().value()), ShapeStructInfo(info->Dims().value()),
                 builder->analyzer()))
      return value;
    return F("collapse_sum_to", value, ShapeExpr(target->Dims().value()));
  }
  return F("collapse_sum_like", value, like);
}
Value Grad::ReshapeLike(const Value& value, const Value& like) const {
  return F("reshape", value, ShapeExpr(DimsOf(like)));
}
Value Grad::BroadcastLike(const Value& value, const Value& like) const {
  return F("broadcast_to", value, ShapeExpr(DimsOf(like)));
}
Value Grad::ZerosLike(const Value& like) const { return F("zeros_like", like); }
Value Grad::Transposed(const Value& value) const {
  std::vector<int64_t> axes(value.ndim());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return Permuted(value, axes);
}
Value Grad::Permuted(const Value& value, const std::vector<int64_t>& axes) const {
  return F("permute_dims", value, AsArray(axes));
}
Value Grad::Reshaped(const Value& value, const Dims& dims) const {
  return F("reshape", value, ShapeExpr(dims));
}
Value Grad::AxisLast(const Value& value, int64_t axis) const {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < value.ndim(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  axes.push_back(axis);
  return axis + 1 == value.ndim() ? value : Permuted(value, axes);
}
Value Grad::AxisBack(const Value& value, int64_t axis) const {
  int64_t last = value.ndim() - 1;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < last; ++i) {
    if (i == axis) axes.push_back(last);
    axes.push_back(i);
  }
  return axis == last ? value : Permuted(value, axes);
}
Value Grad::Multiplied(const Value& value, int64_t axis, const Value& matrix) const {
  return AxisBack(F("matmul", AxisLast(value, axis), Transposed(matrix)), axis);
}
Value Grad::Slice(const Value& value, int64_t axis, const PrimExpr& begin,
                  const PrimExpr& end) const {
  return F("strided_slice", value, Array<int64_t>{axis}, Array<PrimExpr>{begin},
           Array<PrimExpr>{end}, nullptr, true);
}
Value Grad::Scaled(const Value& value, const PrimExpr& numerator,
                   const PrimExpr& denominator) const {
  auto a = AsConstInt(numerator), b = AsConstInt(denominator);
  if (a && b) return value * (static_cast<double>(*a) / static_cast<double>(*b));
  return F("multiply", value,
           PrimValue(div(cast(value.dtype(), numerator), cast(value.dtype(), denominator))));
}

}  // namespace tvm::relax
