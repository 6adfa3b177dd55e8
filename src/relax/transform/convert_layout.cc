// SPDX-License-Identifier: Apache-2.0
// Convolutions in other layouts, and what is between them.
#include <map>

#include "relax/layout/rules.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using DesiredLayouts = Map<String, Array<String>>;

class LayoutConverter : public ExprMutator {
 public:
  LayoutConverter(const IRModule& mod, DesiredLayouts desired, Optional<ffi::Function> layout_cb)
      : ExprMutator(mod), desired_(std::move(desired)), layout_cb_(std::move(layout_cb)) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (!block.as<DataflowBlockObj>()) return ExprMutator::VisitBindingBlock(block);
    converted_.clear();
    ordered_.clear();
    ExprMutator::VisitBindingBlock(block);
    converted_.clear();
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    if (!builder_->CurrentBlockIsDataflow()) return ExprMutator::VisitBinding_(binding);
    if (auto* item = binding->value.as<TupleGetItemObj>()) {
      auto* var = item->tuple_value.as<VarObj>();
      auto it = var ? converted_.find(var->vid.get()) : converted_.end();
      if (it != converted_.end()) {
        Expr taken = TupleGetItem(it->second.first, item->index);
        return Bind(binding, {taken, ItemOrder(binding->var, it->second.second)});
      }
    }
    if (auto* call = binding->value.as<CallObj>()) {
      if (auto result = Converted(call); result) return Bind(binding, *result);
    }
    ExprMutator::VisitBinding_(binding);
  }
  /// Whoever has no rule takes values as they were.
  Expr VisitExpr_(const VarObj* op) final {
    auto it = converted_.find(op->vid.get());
    if (it == converted_.end()) return ExprMutator::VisitExpr_(op);
    return Get(ffi::GetRef<Expr>(op), {});
  }

 private:
  std::optional<LayoutResult> Converted(const CallObj* call) {
    auto* op = call->op.as<OpObj>();
    LayoutRule rule = op ? FindLayoutRule(op) : nullptr;
    if (!rule) return std::nullopt;
    for (const Expr& arg : call->args) {
      auto* tensor = GetStructInfoAs<TensorStructInfoObj>(arg);
      if (tensor && tensor->ndim < 0) return std::nullopt;
    }
    LayoutCall c{call, [&](const Expr& e) { return OrderOfVar(e); },
                 [&](const Expr& e, const Order& order) { return Get(e, order); },
                 DesiredFor(call, op->name), builder_};
    auto result = rule(c);
    if (result && IsIdentity(result->order)) result->order.clear();
    return result;
  }
  Array<String> DesiredFor(const CallObj* call, const String& name) {
    DesiredLayouts desired = desired_;
    if (layout_cb_) {
      Any answer = CallBack(layout_cb_.value(), ffi::GetRef<Call>(call));
      if (answer != nullptr) desired = answer.cast<DesiredLayouts>();
    }
    return desired.Get(name).value_or(Array<String>());
  }
  Order OrderOfVar(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    auto it = var ? converted_.find(var->vid.get()) : converted_.end();
    return it == converted_.end() ? Order() : it->second.second;
  }
  /// Items of a tuple have the order of its tensors; others none.
  Order ItemOrder(const Var& item, const Order& order) const {
    auto* tensor = GetStructInfoAs<TensorStructInfoObj>(item);
    return tensor && tensor->ndim == static_cast<int64_t>(order.size()) ? order : Order();
  }
  /// The value of the program as it was, in a layout.
  Expr Get(const Expr& expr, const Order& order) {
    auto* var = expr.as<VarObj>();
    auto it = var ? converted_.find(var->vid.get()) : converted_.end();
    Order now = it == converted_.end() ? Order() : it->second.second;
    Expr value = it == converted_.end() ? (var ? ExprMutator::VisitExpr_(var) : expr)
                                        : Expr(it->second.first);
    if (IsIdentity(now) && IsIdentity(order)) return value;
    if (now == order) return value;
    if (auto* tuple = GetStructInfoAs<TupleStructInfoObj>(expr))
      return ItemsAsBefore(value, tuple, now);
    // From what is at hand to the wanted order, in one step.
    Order wanted = order;
    if (wanted.empty()) {
      wanted.resize(now.size());
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<int64_t>(i);
    }
    Array<int64_t> axes;
    for (int64_t axis : wanted) axes.push_back(now.empty() ? axis : NewAxis(axis, now));
    const Object* id = var ? static_cast<const Object*>(var->vid.get()) : expr.get();
    auto& known = ordered_[{id, wanted}];
    if (!known.defined()) known = builder_->Emit(CallOperator("relax.permute_dims", {value, axes}));
    return known;
  }
  /// A tuple as a whole, each of its tensors as it was.
  Expr ItemsAsBefore(const Expr& value, const TupleStructInfoObj* info, const Order& now) {
    Array<Expr> items;
    for (size_t i = 0; i < info->fields.size(); ++i) {
      Expr item = builder_->Emit(TupleGetItem(value, static_cast<int64_t>(i)));
      auto* tensor = info->fields[i].as<TensorStructInfoObj>();
      Array<int64_t> axes;
      for (int64_t axis : Inverse(now)) axes.push_back(axis);
      bool is_ordered = tensor && tensor->ndim == static_cast<int64_t>(now.size());
      items.push_back(is_ordered ? builder_->Emit(CallOperator("relax.permute_dims", {item, axes}))
                                 : item);
    }
    return Tuple(items);
  }
  void Bind(const VarBindingObj* binding, const LayoutResult& result) {
    bool inner = binding->var.as<DataflowVarObj>();
    if (result.order.empty()) return ReEmitBinding(binding, result.value);
    Var now = builder_->Emit(result.value, binding->var->name_hint());
    converted_[binding->var->vid.get()] = {now, result.order};
    if (inner) return;
    // An output is seen where nobody knows of layouts.
    Expr back = Get(binding->var, {});
    converted_.erase(binding->var->vid.get());
    ReEmitBinding(binding, back);
  }

  DesiredLayouts desired_;
  Optional<ffi::Function> layout_cb_;
  std::unordered_map<const Object*, std::pair<Var, Order>> converted_;
  std::map<std::pair<const Object*, Order>, Var> ordered_;
};

Function ConvertLayout(Function func, IRModule mod, DesiredLayouts desired_layouts,
                       Optional<ffi::Function> layout_cb) {
  for (const auto& [name, layouts] : desired_layouts) {
    auto* op = Op::Get(name).get();
    if (!FindLayoutRule(op)) {
      TVM_FFI_THROW(ValueError) << "ConvertLayout: expected an operator with a layout rule, got "
                                << name;
    }
  }
  return As<Function>(LayoutConverter(mod, desired_layouts, layout_cb).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    ConvertLayout, 0,
    "y = conv2d(x, w) in NCHW  ->  y1 = conv2d(permute_dims(x), permute_dims(w)) in NHWC; y = "
    "permute_dims(y1), with {\"relax.nn.conv2d\": [\"NHWC\", \"OHWI\"]}, in dataflow blocks; what "
    "is "
    "between convolutions stays in their layout. layout_cb(call) may give the layouts for a call.",
    Arg("desired_layouts"), Arg("layout_cb", nullptr));
}  // namespace tvm::relax
