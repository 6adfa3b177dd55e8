// SPDX-License-Identifier: Apache-2.0
// Programs whose tensors are at hand in other layouts.
#include "relax/layout/mutator.h"

#include "tvm/relax/analysis.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {

void LayoutMutator::VisitBindingBlock(const BindingBlock& block) {
  auto dataflow = block.as<DataflowBlock>();
  is_active_ = dataflow && IsConverted(*dataflow);
  ExprMutator::VisitBindingBlock(block);
  is_active_ = false;
  converted_.clear();
  ordered_.clear();
}
void LayoutMutator::VisitBinding_(const VarBindingObj* binding) {
  if (!is_active_) return ExprMutator::VisitBinding_(binding);
  if (auto* item = binding->value.as<TupleGetItemObj>()) {
    if (auto* tuple = Find(item->tuple_value)) {
      Expr taken = TupleGetItem(tuple->first, item->index);
      return Bind(binding, {taken, ItemOrder(GetStructInfo(binding->var), tuple->second)});
    }
  }
  if (auto* call = binding->value.as<CallObj>()) {
    if (auto result = OfCall(call); result) return Bind(binding, *result);
  }
  ExprMutator::VisitBinding_(binding);
}
Expr LayoutMutator::VisitExpr_(const VarObj* op) {
  if (!Find(ffi::GetRef<Expr>(op))) return ExprMutator::VisitExpr_(op);
  return Get(ffi::GetRef<Expr>(op), {});
}

std::optional<LayoutResult> LayoutMutator::OfCall(const CallObj* call) {
  auto* op = call->op.as<OpObj>();
  if (!op) return std::nullopt;
  for (const Expr& arg : call->args) {
    auto* tensor = GetStructInfoAs<TensorStructInfoObj>(arg);
    if (tensor && tensor->ndim < 0) return std::nullopt;
  }
  LayoutCall c{call,
               [&](const Expr& e) {
                 auto* found = Find(e);
                 return found ? found->second : Order();
               },
               [&](const Expr& e, const Order& order) { return Get(e, order); },
               [&](const Expr& e, const Order& order, bool is_broadcast) {
                 return Fits(e, order, is_broadcast);
               },
               DesiredFor(call, op->name),
               builder_};
  auto result = Converted(c);
  if (result && IsIdentity(result->order)) result->order.clear();
  return result;
}
std::optional<LayoutResult> LayoutMutator::Converted(LayoutCall& c) {
  LayoutRule rule = FindLayoutRule(c.call->op.as<OpObj>());
  return rule ? rule(c) : std::nullopt;
}
const std::pair<Expr, Order>* LayoutMutator::Find(const Expr& expr) const {
  auto* var = expr.as<VarObj>();
  auto it = var ? converted_.find(var->vid.get()) : converted_.end();
  return it == converted_.end() ? nullptr : &it->second;
}
Order LayoutMutator::ItemOrder(const StructInfo& item, const Order& order) {
  auto* tensor = item.as<TensorStructInfoObj>();
  return tensor && tensor->ndim == RankBefore(order) ? order : Order();
}
bool LayoutMutator::Fits(const Expr& expr, const Order& order, bool is_broadcast) const {
  if (!HasBlocks(order)) return true;
  if (auto* found = Find(expr); found && found->second == order) return true;
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  if (!dims) return false;
  int64_t missing = is_broadcast ? RankBefore(order) - tensor->ndim : 0;
  auto size_of = [&](int64_t axis) {
    return axis < missing ? std::optional<int64_t>(1) : AsConstInt(dims.value()[axis - missing]);
  };
  for (const Part& part : order) {
    if (part.block == 0) continue;
    auto size = size_of(part.axis);
    bool is_one = is_broadcast && size == 1;
    if (part.IsJoined()) {
      // Blocks that are broadcast have the size 1, the whole then as well.
      if (is_one ? size_of(part.inner) != 1 : size_of(part.inner) != part.block) return false;
    } else if (!is_one && (!size || *size % part.block != 0)) {
      return false;
    }
  }
  return true;
}
Expr LayoutMutator::Get(const Expr& expr, const Order& order) {
  auto* var = expr.as<VarObj>();
  auto* found = Find(expr);
  Order now = found ? found->second : Order();
  Expr value = found ? found->first : var ? ExprMutator::VisitExpr_(var) : expr;
  if (now == order || (IsIdentity(now) && IsIdentity(order))) return value;
  if (auto* tuple = GetStructInfoAs<TupleStructInfoObj>(expr))
    return ItemsAsBefore(value, tuple, now);
  const Object* id = var ? static_cast<const Object*>(var->vid.get()) : expr.get();
  auto& known = ordered_[{id, order}];
  if (!known.defined()) known = builder_->Emit(Moved(value, now, order));
  return known;
}
/// A value from one order to another, in one step. A dimension of 1, which is broadcast, has
/// blocks of 1.
Expr LayoutMutator::Moved(const Expr& value, const Order& from, const Order& to) {
  int64_t rank = RankBefore(from.empty() ? to : from);
  Order now = from.empty() ? IdentityOrder(rank) : from;
  Order wanted = to.empty() ? IdentityOrder(rank) : to;
  if (!HasBlocks(now) && !HasBlocks(wanted)) {
    Array<int64_t> axes;
    for (const Part& part : wanted) axes.push_back(NewAxis(part.axis, now));
    return CallOperator("relax.permute_dims", {value, axes});
  }
  Array<PrimExpr> dims = GetStructInfoAs<TensorStructInfoObj>(value)->Dims().value();
  for (Part& part : wanted) {
    bool is_one = IsOne(dims[NewAxis(part.axis, now)]) && !BlockOf(part.axis, now) &&
                  (!part.IsJoined() || IsOne(dims[NewAxis(part.inner, now)]));
    if (part.block != 0 && is_one) part.block = 1;
  }
  return CallOperator("relax.layout_transform", {value, MapBetween(now, wanted, dims)});
}
/// A tuple as a whole, each of its tensors as it was.
Expr LayoutMutator::ItemsAsBefore(const Expr& value, const TupleStructInfoObj* info,
                                  const Order& now) {
  Array<Expr> items;
  for (size_t i = 0; i < info->fields.size(); ++i) {
    Expr item = builder_->Emit(TupleGetItem(value, static_cast<int64_t>(i)));
    Order order = ItemOrder(info->fields[i], now);
    items.push_back(order.empty() ? item : builder_->Emit(Moved(item, order, {})));
  }
  return Tuple(items);
}
void LayoutMutator::Bind(const VarBindingObj* binding, const LayoutResult& result) {
  if (result.order.empty() && !IsLeaf(result.value)) return ReEmitBinding(binding, result.value);
  Expr now =
      IsLeaf(result.value) ? result.value : builder_->Emit(result.value, binding->var->name_hint());
  const Object* id = binding->var->vid.get();
  converted_[id] = {now, result.order};
  if (binding->var.as<DataflowVarObj>()) return;
  // An output is seen where nobody knows of layouts.
  Expr back = Get(binding->var, {});
  converted_.erase(id);
  ReEmitBinding(binding, back);
}

}  // namespace tvm::relax
