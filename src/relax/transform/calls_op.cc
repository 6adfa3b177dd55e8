// SPDX-License-Identifier: Apache-2.0
// Whether a function has anything that a pass over few operators looks for.
#include "relax/transform/calls_op.h"

#include "tvm/relax/expr_functor.h"

namespace tvm::relax {
namespace {
struct OpCallFinder : ExprVisitor {
  bool (*wanted)(const OpObj*);
  bool found = false;
  explicit OpCallFinder(bool (*wanted)(const OpObj*)) : wanted(wanted) {}
  void VisitExpr(const Expr& expr) final {
    if (!found) ExprVisitor::VisitExpr(expr);
  }
  void VisitExpr_(const CallObj* op) final {
    auto* callee = op->op.as<OpObj>();
    if (callee && wanted(callee)) {
      found = true;
      return;
    }
    ExprVisitor::VisitExpr_(op);
  }
  void VisitVarDef(const Var&) final {}
};
}  // namespace

bool CallsOp(const Expr& expr, bool (*wanted)(const OpObj*)) {
  OpCallFinder finder(wanted);
  finder.VisitExpr(expr);
  return finder.found;
}

}  // namespace tvm::relax
