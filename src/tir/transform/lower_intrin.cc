// SPDX-License-Identifier: Apache-2.0
// Expands intrinsics into what the target's code generator knows.
#include <unordered_map>
#include <unordered_set>

#include "tvm/expr/dot.h"
#include "tvm/expr/math.h"
#include "tvm/expr/op.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// (x * y) / 2^shift, rounded to nearest, for 64-bit values; a negative shift multiplies.
PrimExpr MultiplyShift(const PrimExpr& x, const PrimExpr& y, const PrimExpr& shift) {
  DataType t = x.dtype();
  auto call = [&](const Op& op, PrimExpr a, PrimExpr b) { return Call(t, op, {a, b}); };
  PrimExpr product = x * y, zero = MakeZero(t), one = MakeConst(t, 1);
  PrimExpr half = call(builtin::shift_left(), one, shift - one);
  return Select(shift > zero, call(builtin::shift_right(), product + half, shift),
                call(builtin::shift_left(), product, zero - shift));
}
/// The fixed-point multiplications as 64-bit arithmetic, or an undefined expression.
PrimExpr ExpandFixedPoint(const CallObj* op) {
  DataType wide = DataType::Int(64, op->dtype.raw_lanes());
  auto arg = [&](size_t i) { return cast(wide, op->args[i]); };
  if (op->Is(builtin::q_multiply_shift()) && op->args.size() == 4)
    return cast(op->dtype, MultiplyShift(arg(0), arg(1), arg(2) - arg(3)));
  if (op->Is(builtin::q_multiply_shift_per_axis()) && op->args.size() == 7) {
    PrimExpr x = Call(wide, builtin::shift_left(), {arg(0), arg(2) * arg(5)});
    return cast(op->dtype, MultiplyShift(x, arg(1), arg(4) + arg(3) * arg(6)));
  }
  return PrimExpr();
}
struct IntrinLowerer : Mutator<IntrinLowerer, CallObj, AddObj, DivObj, BufferObj> {
  Target target;
  std::unordered_map<const Object*, Optional<Function>> rules;  // that users registered
  std::unordered_set<const Object*> in_use;  // rules whose result may call their own operator

  Optional<Function> RuleOf(const RelaxExpr& op) {
    auto* named = op.as<OpObj>();
    if (!named || in_use.count(named)) return {};
    auto [it, is_new] = rules.try_emplace(named);
    if (!is_new) return it->second;
    for (const String& kind : {target->kind->name, String("default")}) {
      for (const char* what : {".FLowerIntrinsic", ".FLegalize"}) {
        if (it->second.has_value()) break;
        it->second = ffi::GetRef<Op>(named).GetAttr(kind + what).as<Function>();
      }
    }
    return it->second;
  }
  /// What the rule of a user makes of the call; undefined without one, or where it declines.
  PrimExpr ByRule(const Call& call) {
    Optional<Function> rule = RuleOf(call->op);
    if (!rule.has_value()) return PrimExpr();
    Any made = rule.value()(call);
    if (made == nullptr) return PrimExpr();
    PrimExpr result = made.cast<PrimExpr>();
    if (result.same_as(call)) return PrimExpr();
    if (result.dtype() != call.dtype()) {
      TVM_FFI_THROW(TypeError) << "register_intrin_lowering: expected a value of " << call.dtype()
                               << " for " << call->op.as<OpObj>()->name << ", got "
                               << result.dtype();
    }
    in_use.insert(call->op.get());
    result = Mutate(result);
    in_use.erase(call->op.get());
    return result;
  }
  /// A sum with a dot product is one instruction.
  ObjectRef Rewrite(const AddObj* op) {
    for (const auto& [dot, other] : {std::pair{op->b, op->a}, {op->a, op->b}}) {
      auto* call = dot.as<CallObj>();
      if (!call || !IsDot(call->op)) continue;
      return ExpandDot(Below<Call>(call).get(), Mutate(other), target);
    }
    return Below<Add>(op);
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const DivObj* op) { return ExpandDivision(Below<Div>(op).get(), target); }
  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
    if (PrimExpr by_rule = ByRule(call); by_rule.defined()) return by_rule;
    if (IsDot(call->op)) return ExpandDot(call.get(), {}, target);
    if (PrimExpr fixed_point = ExpandFixedPoint(call.get()); fixed_point.defined())
      return fixed_point;
    PrimExpr expanded = ExpandMath(call.get(), target);
    return expanded.same_as(call) ? ObjectRef(call) : ObjectRef(Mutate(expanded));
  }
};
}  // namespace

PrimFunc LowerIntrin(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value()) return func;
  IntrinLowerer lower;
  lower.target = target.value();
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(
    tir, LowerIntrin,
    R"(Expands mathematical functions into arithmetic for the function's target, or as a rule of register_intrin_lowering says.

before(A: T.Buffer((16,), "float32")):
    T.func_attr({"target": T.target("c")})
    for i in range(16):
        A[i] = T.rsqrt(A[i])
after:
    T.func_attr({"target": T.target("c")})
    x = T.float32()
    for i in range(16):
        A[i] = T.Let(T.float32(1) / T.sqrt(x), where={x: A[i]}))")
}  // namespace tvm::tir
