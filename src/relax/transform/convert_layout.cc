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
        return Bind(binding, {taken, ItemOrder(GetStructInfo(binding->var), it->second.second)});
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
    LayoutCall c{call,
                 [&](const Expr& e) { return OrderOfVar(e); },
                 [&](const Expr& e, const Order& order) { return Get(e, order); },
                 [&](const Expr& e, const Order& order, bool is_broadcast) {
                   return Fits(e, order, is_broadcast);
                 },
                 DesiredFor(call, op->name),
                 builder_};
    auto result = rule(c);
    if (result && IsIdentity(result->order)) result->order.clear();
    return result;
  }
  Array<String> DesiredFor(const CallObj* call, const String& name) {
    DesiredLayouts desired = desired_;
    Any answer = layout_cb_ ? CallBack(layout_cb_.value(), ffi::GetRef<Call>(call)) : Any(nullptr);
    if (answer != nullptr) {
      auto layouts = answer.try_cast<DesiredLayouts>();
      if (!layouts) {
        TVM_FFI_THROW(TypeError) << "ConvertLayout: expected layouts by names of operators from "
                                    "the call-back for "
                                 << name << ", got " << answer.GetTypeKey();
      }
      desired = *layouts;
    }
    return desired.Get(name).value_or(Array<String>());
  }
  Order OrderOfVar(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    auto it = var ? converted_.find(var->vid.get()) : converted_.end();
    return it == converted_.end() ? Order() : it->second.second;
  }
  /// Items of a tuple have the order of its tensors; others none.
  Order ItemOrder(const StructInfo& item, const Order& order) const {
    auto* tensor = item.as<TensorStructInfoObj>();
    return tensor && tensor->ndim == RankBefore(order) ? order : Order();
  }
  bool Fits(const Expr& expr, const Order& order, bool is_broadcast) {
    if (!HasBlocks(order)) return true;
    auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
    auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
    if (!dims) return false;
    int64_t missing = is_broadcast ? RankBefore(order) - tensor->ndim : 0;
    for (const Part& part : order) {
      if (part.block == 0 || part.axis < missing) continue;
      auto size = AsConstInt(dims.value()[part.axis - missing]);
      if (!size || (*size % part.block != 0 && !(is_broadcast && *size == 1))) return false;
    }
    return true;
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
    const Object* id = var ? static_cast<const Object*>(var->vid.get()) : expr.get();
    auto& known = ordered_[{id, order}];
    if (!known.defined()) known = builder_->Emit(Moved(value, now, order));
    return known;
  }
  /// A value from one order to another, in one step. A dimension of 1, which is broadcast, has
  /// blocks of 1.
  Expr Moved(const Expr& value, const Order& from, const Order& to) {
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
      bool is_one = IsOne(dims[NewAxis(part.axis, now)]) && !BlockOf(part.axis, now);
      if (part.block != 0 && is_one) part.block = 1;
    }
    return CallOperator("relax.layout_transform", {value, MapBetween(now, wanted, dims)});
  }
  /// A tuple as a whole, each of its tensors as it was.
  Expr ItemsAsBefore(const Expr& value, const TupleStructInfoObj* info, const Order& now) {
    Array<Expr> items;
    for (size_t i = 0; i < info->fields.size(); ++i) {
      Expr item = builder_->Emit(TupleGetItem(value, static_cast<int64_t>(i)));
      Order order = ItemOrder(info->fields[i], now);
      items.push_back(order.empty() ? item : builder_->Emit(Moved(item, order, {})));
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
    if (!HasLayoutChoice(Op::Get(name).get())) {
      TVM_FFI_THROW(ValueError) << "ConvertLayout: expected an operator whose layouts can be "
                                   "chosen (a convolution, a pool, resize2d), got "
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
    "is between convolutions stays in their layout. Layouts may have blocks, \"NCHW16c\" and "
    "\"OIHW16i16o\", into which layout_transform brings the tensors; convolutions whose channels "
    "they do not divide stay. layout_cb(call) may give the layouts for a call.",
    Arg("desired_layouts"), Arg("layout_cb", nullptr));
}  // namespace tvm::relax
