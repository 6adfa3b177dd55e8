// SPDX-License-Identifier: Apache-2.0
// Quantising what was computed from quantised numbers: scales are divided by each other when a
// model is compiled, not the results.
//
// round((sums * s + bias) / t) is round(sums * (s / t) + bias / t), and the same of dequantised
// numbers that are added up.
#include "relax/legalize/lowering.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Scales below have reciprocals that lose digits.
constexpr double kLeastScale = 1e-30;

/// A scalar constant, also a tensor of one element.
std::optional<double> NumberOf(const Expr& expr) {
  PrimExpr value = ScalarOf(expr);
  if (!value.defined()) return std::nullopt;
  if (auto* f = value.as<FloatImmObj>()) return f->value;
  auto i = AsConstInt(value);
  return i ? std::optional(static_cast<double>(*i)) : std::nullopt;
}
bool IsScale(const Expr& expr) {
  auto* constant = expr.as<ConstantObj>();
  auto number = NumberOf(expr);
  return constant && number && *number >= kLeastScale &&
         DataType(constant->data.dtype()) == DataType::Float(32);
}

class QuantizeFolder : public ExprMutator {
 public:
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    if (!call) return visited;
    if (Is(call, "relax.nn.max_pool2d")) return Pooled(call).value_or(visited);
    return Is(call, "relax.quantize") ? Folded(call).value_or(visited) : visited;
  }

 private:
  static bool Is(const CallObj* call, const char* name) {
    auto* op = call->op.as<OpObj>();
    return op && op->name == name;
  }
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  const CallObj* Behind(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : std::nullopt;
    return value ? value.value().as<CallObj>() : nullptr;
  }
  /// A call of dequantize, from integers to float32, with one scale that is known.
  const CallObj* Dequantized(const Expr& expr) const {
    auto* call = Behind(expr);
    if (!call || !Is(call, "relax.dequantize") || !IsScale(call->args[1])) return nullptr;
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    bool is_plain = call->attrs.value().as<QuantizeAttrsObj>()->out_dtype == DataType::Float(32);
    return data && data->dtype.is_integer() && NumberOf(call->args[2]) && is_plain ? call : nullptr;
  }
  static bool IsFloatConstant(const Expr& expr) {
    auto* constant = expr.as<ConstantObj>();
    return constant && DataType(constant->data.dtype()) == DataType::Float(32);
  }
  /// Sums of integers times a constant.
  bool IsScaledSum(const CallObj* call) const {
    auto* cast = Is(call, "relax.multiply") ? Behind(call->args[0]) : nullptr;
    if (!cast || !Is(cast, "relax.astype") || !IsFloatConstant(call->args[1])) return false;
    auto* sums = GetStructInfoAs<TensorStructInfoObj>(cast->args[0]);
    return sums && sums->dtype == DataType::Int(32);
  }
  /// Whether it is a sum of scaled integers and constants, cut off below 0 maybe.
  bool IsLinear(const Expr& expr) const {
    auto* call = Behind(expr);
    if (!call) return false;
    if (Dequantized(expr) || IsScaledSum(call)) return true;
    if (Is(call, "relax.nn.relu")) return IsLinear(call->args[0]);
    if (!Is(call, "relax.add")) return false;
    bool a = IsLinear(call->args[0]), b = IsLinear(call->args[1]);
    return (a && (b || IsFloatConstant(call->args[1]))) || (b && IsFloatConstant(call->args[0]));
  }
  /// What is linear, divided by a scale.
  Expr Over(const Expr& expr, const Expr& scale) {
    auto divided = [&](const Expr& constant) { return Make("relax.divide", {constant, scale}); };
    if (expr.as<ConstantObj>()) return divided(expr);
    const Call call = ffi::GetRef<Call>(Behind(expr));
    if (Dequantized(expr)) {
      auto* attrs = call->attrs.value().as<QuantizeAttrsObj>();
      return Make("relax.dequantize", {call->args[0], divided(call->args[1]), call->args[2],
                                       attrs->axis, attrs->out_dtype});
    }
    if (Is(call.get(), "relax.nn.relu")) return Make("relax.nn.relu", {Over(call->args[0], scale)});
    if (Is(call.get(), "relax.multiply"))
      return Make("relax.multiply", {call->args[0], divided(call->args[1])});
    Expr left = Over(call->args[0], scale);
    return Make("relax.add", {left, Over(call->args[1], scale)});
  }
  std::optional<Expr> Folded(const CallObj* call) {
    auto* attrs = call->attrs.value().as<QuantizeAttrsObj>();
    auto zero = NumberOf(call->args[2]);
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    if (!IsScale(call->args[1]) || !zero || !attrs->out_dtype.is_integer() || !data ||
        data->dtype != DataType::Float(32))
      return std::nullopt;
    // What was dequantised with the same numbers is as it was.
    if (auto* before = Dequantized(call->args[0])) {
      auto* bytes = GetStructInfoAs<TensorStructInfoObj>(before->args[0]);
      if (NumberOf(before->args[1]) == NumberOf(call->args[1]) &&
          NumberOf(before->args[2]) == zero && bytes->dtype == attrs->out_dtype)
        return before->args[0];
    }
    if (!IsLinear(call->args[0])) return std::nullopt;
    Expr moved = Make("relax.round", {Over(call->args[0], call->args[1])});
    if (*zero != 0)
      moved = Make("relax.add", {moved, MakeConstant({*zero}, {}, DataType::Float(32))});
    auto end = [](const PrimExpr& e) { return PrimValue(cast(DataType::Float(32), e)); };
    moved = Make("relax.clip",
                 {moved, end(min_value(attrs->out_dtype)), end(max_value(attrs->out_dtype))});
    return CallOperator("relax.astype", {moved, attrs->out_dtype});
  }
  /// The largest of dequantised numbers is the largest number, dequantised.
  std::optional<Expr> Pooled(const CallObj* call) {
    auto* before = Dequantized(call->args[0]);
    if (!before) return std::nullopt;
    auto* attrs = before->attrs.value().as<QuantizeAttrsObj>();
    Expr pooled = builder_->Emit(Call(call->op, {before->args[0]}, call->attrs));
    return CallOperator("relax.dequantize",
                        {pooled, before->args[1], before->args[2], attrs->axis, attrs->out_dtype});
  }
};

Function FoldQuantize(Function func, IRModule) {
  return OnDeepStack([&] {
    Expr changed = QuantizeFolder().VisitExpr(func);
    return changed.same_as(func) ? func : RemoveAllUnused(As<Function>(changed));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    FoldQuantize, 0,
    R"(What was computed from quantised numbers by constant scales is quantised without a division:
scales are divided by each other, by operators that FoldConstant computes. Numbers that are
dequantised and quantised with the same scale stay as they are, and the largest ones of a window are
taken before they are dequantised. Results differ by rounding alone.

y = R.quantize(R.add(R.multiply(R.astype(sums, "float32"), s), bias), t, zero)
->
y = R.round(R.add(R.multiply(R.astype(sums, "float32"), s / t), bias / t))
y = R.astype(R.clip(R.add(y, zero), 0, 255), "uint8"))");
}  // namespace tvm::relax
