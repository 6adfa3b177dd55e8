// SPDX-License-Identifier: Apache-2.0
// A mutator that knows which variables are in scope, and the values behind them.
#pragma once
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

class ScopedMutator : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  Expr VisitExpr_(const SeqExprObj* op) override {
    size_t depth = order_.size();
    Expr result = ExprMutator::VisitExpr_(op);
    Leave(depth, false);
    return result;
  }
  Expr VisitExpr_(const FunctionObj* op) override {
    size_t depth = order_.size();
    Expr result = ExprMutator::VisitExpr_(op);
    Leave(depth, false);
    return result;
  }
  using ExprMutator::VisitExpr_;
  void VisitBindingBlock(const BindingBlock& block) override {
    size_t depth = order_.size();
    ExprMutator::VisitBindingBlock(block);
    if (block.as<DataflowBlockObj>()) Leave(depth, true);
  }
  Var VisitVarDef(const Var& var) override {
    Var now = ExprMutator::VisitVarDef(var);
    Define(now);
    return now;
  }

 protected:
  struct Known {
    Id id;
    Optional<Expr> value;
    bool is_dataflow;
  };
  /// From here on the variable is in scope, with this value where one is known.
  void Define(const Var& var, const Optional<Expr>& value = {}) {
    auto [it, is_new] = scope_.try_emplace(
        var->vid.get(), Known{var->vid, value, var.as<DataflowVarObj>() != nullptr});
    if (is_new) order_.push_back(var->vid.get());
    if (!value) return;
    it->second.value = value;
    if (!IsLeaf(value.value())) bound_.insert_or_assign(value.value().get(), var);
  }
  bool InScope(const Var& var) const { return scope_.count(var->vid.get()); }
  Optional<Expr> ValueInScope(const Var& var) const {
    auto it = scope_.find(var->vid.get());
    return it == scope_.end() ? Optional<Expr>() : it->second.value;
  }
  /// The variable that an expression of the program was bound to, or null.
  const Var* BoundTo(const Expr& value) const {
    auto it = bound_.find(value.get());
    return it == bound_.end() ? nullptr : &it->second;
  }

 private:
  /// Behind a dataflow block its outputs are known, but not what they were made of.
  void Leave(size_t depth, bool keep_outputs) {
    size_t kept = depth;
    for (size_t i = depth; i < order_.size(); ++i) {
      auto it = scope_.find(order_[i]);
      if (it->second.value) bound_.erase(it->second.value.value().get());
      it->second.value = std::nullopt;
      if (keep_outputs && !it->second.is_dataflow) {
        order_[kept++] = order_[i];
      } else {
        scope_.erase(it);
      }
    }
    order_.resize(kept);
  }
  std::unordered_map<const Object*, Known> scope_;
  std::unordered_map<const Object*, Var> bound_;
  std::vector<const Object*> order_;
};

}  // namespace tvm::relax
