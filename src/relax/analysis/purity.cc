// SPDX-License-Identifier: Apache-2.0
// Which calls have side effects.
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"

namespace tvm::relax {

bool IsImpureCall(const CallObj* call) {
  if (auto* op = call->op.as<OpObj>()) {
    const bool* pure = FPurity.Find(op);
    if (!pure) {
      TVM_FFI_THROW(OpValueError) << op->name << ": expected an operator with FPurity, got none";
    }
    return !*pure;
  }
  StructInfo info = GetStructInfo(call->op);
  auto* func = info.as<FuncStructInfoObj>();
  return !func || !func->purity;
}

namespace {
struct ImpurityFinder : ExprVisitor {
  Optional<Expr> own;
  Optional<Expr> found;
  explicit ImpurityFinder(Optional<Expr> own) : own(std::move(own)) {}
  void VisitExpr_(const CallObj* call) final {
    if (!found && !IsOwn(call->op) && IsImpureCall(call)) found = ffi::GetRef<Expr>(call);
    ExprVisitor::VisitExpr_(call);
  }
  void VisitExpr_(const FunctionObj*) final {}  // making a local function calls nothing
  bool IsOwn(const Expr& callee) const {
    if (!own) return false;
    if (callee.same_as(own.value())) return true;
    auto *a = callee.as<GlobalVarObj>(), *b = own.value().as<GlobalVarObj>();
    return a && b && a->name_hint == b->name_hint;
  }
};
}  // namespace

Optional<Expr> FindImpureCall(const Expr& expr, const Optional<Expr>& own_name) {
  ImpurityFinder finder(own_name);
  if (auto* func = expr.as<FunctionObj>()) {
    finder.VisitExpr(func->body);
  } else {
    finder.VisitExpr(expr);
  }
  return finder.found;
}

namespace {
TVM_REGISTER() {
  Def(
      "relax.analysis.contains_impure_call",
      [](Expr expr, Optional<Expr> own) { return FindImpureCall(expr, own).has_value(); },
      "Whether something with side effects is called; calls of the function itself, if it is "
      "named, "
      "do not count.",
      Arg("expr"), Arg("own_name", nullptr));
}
}  // namespace
}  // namespace tvm::relax
