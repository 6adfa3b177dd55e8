// SPDX-License-Identifier: Apache-2.0
// Removes choices whose outcome T.assume makes the same on both sides.
#include "assumptions.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct ChoiceRemover : AnalyzedMutator<ChoiceRemover> {
  using Base::Rewrite;
  std::vector<Assumption> assumptions;

  /// cond ? a : b, where a and b agree for the cases of one of them.
  PrimExpr Choose(const PrimExpr& cond, const PrimExpr& a, const PrimExpr& b) {
    if (GivesSameWithout(assumptions, &analyzer, cond, a, b)) return a;
    if (GivesSameWithout(assumptions, &analyzer, logical_not(cond), b, a)) return b;
    return PrimExpr();
  }
  ObjectRef Rewrite(const CallObj* op) {
    ObjectRef result = Base::Rewrite(op);
    auto* call = result.as<CallObj>();
    if (!call || !call->Is(builtin::if_then_else())) return result;
    PrimExpr one = Choose(call->args[0], call->args[1], call->args[2]);
    return one.defined() ? ObjectRef(one) : result;
  }
  ObjectRef Rewrite(const SelectObj* op) {
    ObjectRef result = Base::Rewrite(op);
    auto* select = result.as<SelectObj>();
    if (!select || !select->condition.dtype().is_scalar()) return result;
    PrimExpr one = Choose(select->condition, select->true_value, select->false_value);
    return one.defined() ? ObjectRef(one) : result;
  }
};
}  // namespace

PrimFunc UseAssumeToReduceBranches(PrimFunc func) {
  ChoiceRemover remove;
  remove.assumptions = AssumptionFinder(func->body).found;
  if (remove.assumptions.empty()) return func;
  remove.LearnParams(func);
  return RewriteBody(std::move(func), remove);
}
TVM_PASS(
    tir, UseAssumeToReduceBranches,
    R"(Removes choices between values that are the same where it matters, given what T.assume says about elements: padding that holds 0 need not be told apart.

before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
    for i in range(16):
        B[i] = T.if_then_else(i < 14, A[i] * 2.0, T.float32(0))
after:
    for i in range(16):
        T.evaluate(T.assume(i < 14 or A[i] == T.float32(0)))
    for i in range(16):
        B[i] = A[i] * 2.0)")
}  // namespace tvm::tir
