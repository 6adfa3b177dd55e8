// SPDX-License-Identifier: Apache-2.0
// Functions with variables replaced.
#pragma once
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

/// Replaces variables and symbolic variables, in struct info as well.
class VarReplacer : public ExprMutator {
 public:
  explicit VarReplacer(Map<tir::Var, PrimExpr> symbolic = {}) : symbolic_(std::move(symbolic)) {}
  void Replace(const Var& var, const Expr& value) { values_[var->vid.get()] = value; }
  /// Every variable that is defined gets a new one, symbolic ones too.
  void RenewDefinitions() { renew_ = true; }

  Expr VisitExpr_(const VarObj* op) override;
  Var VisitVarDef(const Var& var) override;
  using ExprMutator::VisitBinding_;
  void VisitBinding_(const MatchCastObj* binding) override;
  StructInfo VisitStructInfo(const StructInfo& info) override;
  PrimExpr VisitPrimExpr(const PrimExpr& e) override;

 private:
  /// New variables for those that the struct info may define.
  void RenewSymbolic(const StructInfo& info);
  Map<tir::Var, PrimExpr> symbolic_;
  std::unordered_map<const Object*, Expr> values_;
  bool renew_ = false;
};

/// The function with new variables, symbolic ones included.
Function CopyWithNewVars(const Function& func);
/// The function with symbolic variables, by name or variable, replaced. ValueError for a name that
/// it does not have.
Function BindSymbolicVars(const Function& func,
                          const Map<Variant<String, tir::Var>, PrimExpr>& binding_map);
/// The function without some parameters, by name or variable, whose values are given. They must fit
/// the parameters; what that says about symbolic variables holds in the whole function.
Function BindParams(const Function& func, const Map<Variant<String, Var>, Expr>& binding_map);
/// The function with calls of some functions, by name, replaced by their bodies.
Function InlineFunctions(const Function& func,
                         const std::unordered_map<std::string, Function>& functions);

}  // namespace tvm::relax
