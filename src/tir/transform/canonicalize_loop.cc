// SPDX-License-Identifier: Apache-2.0
// Makes loops begin at 0 and go in steps of 1.
#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct LoopCanonicalizer : AnalyzedStmtMutator<LoopCanonicalizer, VarObj> {
  using Base::Rewrite;
  std::unordered_map<const VarObj*, PrimExpr> values;

  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const ForObj* op) {
    // A thread's index keeps its range: other launches refer to it.
    if ((IsZero(op->min) && op->HasTrivialStep()) || op->kind == ForKind::kThreadBinding)
      return Base::Rewrite(op);
    std::vector<std::pair<Var, PrimExpr>> lets;
    // The body may write what a bound reads; the loop keeps the value from before it.
    auto once = [&](const PrimExpr& e, const char* suffix) -> PrimExpr {
      PrimExpr value = Mutate(e);
      if (SideEffect(value) <= CallEffectKind::kPure) return value;
      lets.emplace_back(op->loop_var.CopyWithSuffix(suffix), value);
      return lets.back().first;
    };
    PrimExpr min = once(op->min, "_min"), extent = Mutate(op->extent);
    PrimExpr step =
        op->step.has_value() ? once(op->step.value(), "_step") : MakeConst(op->loop_var.dtype(), 1);
    PrimExpr count = analyzer.Simplify(ceildiv(extent, step));
    Var var = op->loop_var.CopyWithSuffix("");
    LoopScope scope(this, var, MakeZero(var.dtype()), count, op->body);
    values[op->loop_var.get()] = var * step + min;
    For loop = ffi::GetRef<For>(op);
    auto* n = Edit(&loop);
    n->loop_var = var;
    n->min = MakeZero(var.dtype());
    n->extent = count;
    n->step = std::nullopt;
    n->body = Mutate(op->body);
    Stmt result = loop;
    for (auto it = lets.rbegin(); it != lets.rend(); ++it)
      result = LetStmt(it->first, it->second, result);
    return result;
  }
};
}  // namespace

PrimFunc CanonicalizeLoop(PrimFunc func) {
  auto is_other = [](const ForObj* op) { return !IsZero(op->min) || !op->HasTrivialStep(); };
  if (!AnyStmt<ForObj>(func->body, is_other)) return func;
  LoopCanonicalizer canonicalize;
  canonicalize.LearnParams(func);
  return RewriteBody(std::move(func), canonicalize);
}
TVM_PASS(tir, CanonicalizeLoop,
         R"(Makes loops begin at 0 and go in steps of 1.

before(A: T.Buffer((16,), "float32")):
    for i in range(2, 10, 4):
        A[i] = 1.0
after:
    for i in range(2):
        A[i * 4 + 2] = T.float32(1))")
}  // namespace tvm::tir
