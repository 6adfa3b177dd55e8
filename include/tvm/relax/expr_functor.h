// SPDX-License-Identifier: Apache-2.0
// Visitors and mutators that know of bindings, blocks and scopes.
#pragma once
#include <unordered_map>

#include "tvm/relax/block_builder.h"

namespace tvm::relax {

#define TVM_RELAX_EXPRS(ROW) \
  ROW(Constant)              \
  ROW(Tuple)                 \
  ROW(Var)                   \
  ROW(DataflowVar)           \
  ROW(ShapeExpr)             \
  ROW(ExternFunc)            \
  ROW(GlobalVar)             \
  ROW(Function)              \
  ROW(Call)                  \
  ROW(SeqExpr) ROW(If) ROW(Op) ROW(TupleGetItem) ROW(PrimValue) ROW(StringImm) ROW(DataTypeImm)

/// Visits expressions in the order in which they run. A handler that is overridden goes on below
/// its node by calling the one it overrides.
class ExprVisitor {
 public:
  virtual ~ExprVisitor() = default;
  virtual void VisitExpr(const Expr& expr);
#define ROW(Name) virtual void VisitExpr_(const Name##Obj* op);
  TVM_RELAX_EXPRS(ROW)
#undef ROW
  virtual void VisitBinding(const Binding& binding);
  virtual void VisitBinding_(const VarBindingObj* binding);
  virtual void VisitBinding_(const MatchCastObj* binding);
  virtual void VisitBindingBlock(const BindingBlock& block);
  virtual void VisitBindingBlock_(const BindingBlockObj* block);
  virtual void VisitBindingBlock_(const DataflowBlockObj* block);
  /// Where a variable is defined: parameters and bindings.
  virtual void VisitVarDef(const Var& var);
  /// Struct info that is part of the program: of definitions, casts and calls.
  virtual void VisitStructInfo(const StructInfo&) {}
};

/// Rewrites a program through a BlockBuilder: what changes gets new struct info, and variables
/// whose struct info changes are replaced wherever they are used. What does not change stays the
/// same object.
class ExprMutator {
 public:
  explicit ExprMutator(const Optional<IRModule>& mod = {}) : builder_(BlockBuilder::Create(mod)) {}
  virtual ~ExprMutator() = default;
  virtual Expr VisitExpr(const Expr& expr);
#define ROW(Name) virtual Expr VisitExpr_(const Name##Obj* op);
  TVM_RELAX_EXPRS(ROW)
#undef ROW
  /// Bindings are emitted into the builder.
  virtual void VisitBinding(const Binding& binding);
  virtual void VisitBinding_(const VarBindingObj* binding);
  virtual void VisitBinding_(const MatchCastObj* binding);
  virtual void VisitBindingBlock(const BindingBlock& block);
  /// The variable to define; a new one is used wherever the old one was.
  virtual Var VisitVarDef(const Var& var);
  virtual StructInfo VisitStructInfo(const StructInfo& info) { return info; }
  virtual PrimExpr VisitPrimExpr(const PrimExpr& e) { return e; }

  /// The builder's module with its Relax functions visited, in the order of their names.
  IRModule VisitFunctions();
  /// What takes the place of a function of the module.
  virtual Function VisitFunction(const GlobalVar& var, const Function& func);
  /// A body with its own scope: of a function with these parameters, or a branch.
  SeqExpr VisitWithNewScope(const Expr& body, const Optional<Array<Var>>& params = {});
  /// Emits `var = value` in place of the binding, with the struct info that the value has.
  void ReEmitBinding(const VarBindingObj* binding, const Expr& value);
  Optional<Expr> LookupBinding(const Var& var) const { return builder_->LookupBinding(var); }
  /// From now on `to` is used for the variable.
  void SetVarRemap(const Id& id, const Var& to) { var_remap_[id.get()] = {id, to}; }

 protected:
  Array<Expr> VisitExprs(const Array<Expr>& exprs);
  BlockBuilder builder_;
  std::unordered_map<const Object*, std::pair<Id, Var>> var_remap_;
};

/// Calls `visit` on every expression below and including `expr`, operands first.
void PostOrderVisit(const Expr& expr, const std::function<void(const Expr&)>& visit);

}  // namespace tvm::relax
