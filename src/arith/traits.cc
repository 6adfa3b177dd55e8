// SPDX-License-Identifier: Apache-2.0
// Which expressions are index arithmetic, and which may be dropped or repeated.
#include "arith/impl.h"

namespace tvm::arith {
namespace {
/// Calls that keep index arithmetic what it is: their results are of the arguments' making alone.
bool IsIndexCall(const CallObj* call) {
  static const std::vector<Op> ops = {
      builtin::likely(),     builtin::if_then_else(), builtin::bitwise_and(),
      builtin::bitwise_or(), builtin::bitwise_xor(),  builtin::bitwise_not(),
      builtin::shift_left(), builtin::shift_right(),  builtin::vscale(),
      builtin::clz(),        builtin::popcount(),     builtin::ignore_loop_partition()};
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) { return call->Is(op); });
}
}  // namespace

Traits Analyzer::Impl::TraitsOf(const PrimExpr& e) {
  if (e.as<IntImmObj>() || e.as<FloatImmObj>()) return {true, true};
  if (auto* var = e.as<VarObj>()) return {!data_vars.count(var), true};
  if (auto* memo = memos.Find(e); memo && memo->traits) return *memo->traits;
  return Recurse([&] {
    Traits result;
    auto merge = [&](const PrimExpr& child) {
      Traits t = TraitsOf(child);
      result.index = result.index && t.index;
      result.pure = result.pure && t.pure;
    };
    if (auto* call = e.as<CallObj>()) {
      for (const PrimExpr& arg : call->args) merge(arg);
      result.index = result.index && IsIndexCall(call);
      CallEffectKind effect = EffectOf(call->op);
      result.pure = result.pure &&
                    (effect == CallEffectKind::kPure || effect == CallEffectKind::kExprAnnotation ||
                     effect == CallEffectKind::kReadState);
    } else if (e.as<BufferLoadObj>() || e.as<ProducerLoadObj>() || e.as<ReduceObj>()) {
      VisitChildren(e.get(), [&](const ObjectRef& child) {
        if (auto expr = child.as<PrimExpr>()) merge(*expr);
      });
      result.index = false;
    } else if (auto* let = e.as<LetObj>()) {
      merge(let->value);
      merge(let->body);
    } else {
      VisitChildren(e.get(), [&](const ObjectRef& child) {
        if (auto expr = child.as<PrimExpr>()) merge(*expr);
      });
      if (auto* cast = e.as<CastObj>(); cast && cast->value.dtype().is_float())
        result.index = false;
    }
    return *(memos.At(e)->traits = result);
  });
}

}  // namespace tvm::arith
