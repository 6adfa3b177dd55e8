// SPDX-License-Identifier: Apache-2.0
// Moves conditions and lets out of the loops they do not depend on.
#include "../analyzed_mutator.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
/// Which conditions and lets are moved. The values are part of the interface.
enum HoistedConditionals : int64_t {
  kIfElseStmt = 1,
  kIfElseExpr = 2,
  kBooleanExpression = 4,
  kUsingBlockVar = 8
};
enum HoistedLetBindings : int64_t { kRequiredByConditional = 1, kLetStmt = 2, kLetExpr = 4 };

bool Uses(const ObjectRef& e, const Var& var) {
  return UsesVar(e, [&](const VarObj* v) { return v == var.get(); });
}
/// A value that is the same wherever it is evaluated in the loop, and may be evaluated when the
/// loop does not run.
bool IsInvariant(const PrimExpr& e, const Var& var) {
  return !Uses(e, var) && SideEffect(e) <= CallEffectKind::kPure;
}

struct Hoister : Mutator<Hoister, ForObj, IfThenElseObj, PrimExprObj, BufferObj> {
  int64_t conditionals, lets;
  std::vector<Var> loops;  // around

  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }

  /// for i: if c: body  ->  if c: for i: body
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    if (op->kind == ForKind::kThreadBinding) return loop;
    if (auto* branch = loop->body.as<IfThenElseObj>();
        branch && (conditionals & kIfElseStmt) && IsInvariant(branch->condition, loop->loop_var)) {
      auto with = [&](const Stmt& body) -> Stmt {
        For copy = loop;
        Edit(&copy)->body = body;
        return copy;
      };
      Optional<Stmt> else_case;
      if (branch->else_case.has_value()) else_case = with(branch->else_case.value());
      return IfThenElse(branch->condition, with(branch->then_case), else_case, branch->span);
    }
    if (auto* let = loop->body.as<LetStmtObj>();
        let && (lets & kLetStmt) && IsInvariant(let->value, loop->loop_var)) {
      Stmt body = let->body;
      Edit(&loop)->body = body;
      return LetStmt(let->var, let->value, Mutate(loop), let->span);
    }
    return loop;
  }
  ObjectRef Rewrite(const IfThenElseObj* op) { return MapChildren(op, *this); }
};

PrimFunc Hoist(PrimFunc func, int64_t conditionals, int64_t lets) {
  Hoister hoist;
  hoist.conditionals = conditionals, hoist.lets = lets;
  PrimFunc result = RewriteBody(func, hoist);
  // Both sides of a condition may have a copy of the loop around it.
  return result.same_as(func) ? result : ConvertSSA(result);
}
}  // namespace

PrimFunc HoistExpression(PrimFunc func, int64_t hoisted_conditionals,
                         int64_t hoisted_let_bindings) {
  return Hoist(std::move(func), hoisted_conditionals, hoisted_let_bindings);
}
TVM_PASS(tir, HoistExpression,
         "Moves conditions and lets that do not change in a loop out of it.\n\n"
         "    for i in range(n):            if m > 4:\n"
         "      if m > 4: A[i] = x     ->     for i in range(n): A[i] = x\n\n"
         "hoisted_conditionals and hoisted_let_bindings are sums of the flags of the same names.",
         Arg("hoisted_conditionals", 15), Arg("hoisted_let_bindings", 7))

PrimFunc HoistIfThenElse(PrimFunc func, Optional<String> variant) {
  if (variant.has_value() && variant.value() != "basic") {
    TVM_FFI_THROW(ValueError) << "HoistIfThenElse: expected the variant 'basic' or none, got '"
                              << variant.value() << "'";
  }
  return Hoist(std::move(func), kIfElseStmt, 0);
}
TVM_PASS(tir, HoistIfThenElse,
         "Moves conditions that do not change in a loop out of it.\n\n"
         "    for i in range(n):            if m > 4:\n"
         "      if m > 4: A[i] = x     ->     for i in range(n): A[i] = x",
         Arg("variant", nullptr))
}  // namespace tvm::tir
