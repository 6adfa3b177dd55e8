// SPDX-License-Identifier: Apache-2.0
// Programs whose tensors are at hand in other layouts: what both passes over layouts do.
#pragma once
#include <map>
#include <utility>

#include "relax/layout/rules.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

/// In dataflow blocks calls work on tensors in the layouts in which these are at hand, as far as
/// there are rules for them; whoever has no rule takes values as they were.
class LayoutMutator : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  void VisitBindingBlock(const BindingBlock& block) override;
  void VisitBinding_(const VarBindingObj* binding) final;
  Expr VisitExpr_(const VarObj* op) final;

 protected:
  /// Whether calls of a dataflow block are converted.
  virtual bool IsConverted(const DataflowBlock&) { return true; }
  /// The layouts that the user wants for a call.
  virtual Array<String> DesiredFor(const CallObj*, const String&) { return {}; }
  /// The call in a layout: by the rule of its operator.
  virtual std::optional<LayoutResult> Converted(LayoutCall& c);
  /// A tensor of the program as it is at hand: the tensor and its layout; nullptr where it is as it
  /// was.
  const std::pair<Expr, Order>* Find(const Expr& expr) const;
  /// The value of the program as it was, in a layout.
  Expr Get(const Expr& expr, const Order& order);

 private:
  std::optional<LayoutResult> OfCall(const CallObj* call);
  /// Items of a tuple have the order of its tensors; others none.
  static Order ItemOrder(const StructInfo& item, const Order& order);
  bool Fits(const Expr& expr, const Order& order, bool is_broadcast) const;
  Expr Moved(const Expr& value, const Order& from, const Order& to);
  Expr ItemsAsBefore(const Expr& value, const TupleStructInfoObj* info, const Order& now);
  void Bind(const VarBindingObj* binding, const LayoutResult& result);

  bool is_active_ = false;
  std::unordered_map<const Object*, std::pair<Expr, Order>> converted_;
  std::map<std::pair<const Object*, Order>, Var> ordered_;
};

}  // namespace tvm::relax
