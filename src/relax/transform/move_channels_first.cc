// SPDX-License-Identifier: Apache-2.0
// Convolutions with channels last, or in blocks that somebody chose, as the passes for processors
// take them: these fold what follows into weights and choose blocks by what divides the channels.
//
// A tensor of the program is known as another one, with channels first, in an order of its
// dimensions. Transposes only change what is known; whoever has no rule gets the tensor as it was.
#include <algorithm>
#include <unordered_map>

#include "relax/layout/order.h"
#include "relax/transform/canonicalize_bindings.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// A tensor, or the first item of a tuple: `plain` in an order, an empty one for itself.
struct Form {
  Expr plain;
  Order order;
};
using Found = std::optional<Form>;

std::optional<Array<PrimExpr>> DimsOf(const Expr& expr) {
  auto* tensor = GetStructInfoAs<TensorStructInfoObj>(expr);
  auto dims = tensor ? tensor->Dims() : Optional<Array<PrimExpr>>();
  return dims ? std::optional(dims.value()) : std::nullopt;
}
Order Shortened(Order order) { return IsIdentity(order) ? Order() : order; }
template <class Obj>
const Obj* AttrsOf(const CallObj* call) {
  return call->attrs ? call->attrs.value().as<Obj>() : nullptr;
}
template <class Obj, class F>
Attrs Changed(const Obj* attrs, F&& change) {
  auto node = ffi::make_object<Obj>(*attrs);
  change(node.get());
  return Attrs(ObjectRef(std::move(node)).template as<Attrs>().value());
}

/// How a convolution of float32 lies, where its channels are not first; nothing for any other call.
struct ConvolutionOrders {
  Order data, weight, result;
};
std::optional<ConvolutionOrders> OrdersOf(const Expr& value) {
  auto* call = value.as<CallObj>();
  auto* conv = call ? AttrsOf<Conv2DAttrsObj>(call) : nullptr;
  if (!conv || conv->data_layout == "NCHW") return std::nullopt;
  auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  String out = conv->out_layout.empty() ? conv->data_layout : conv->out_layout;
  auto a = OrderOf("NCHW", conv->data_layout), b = OrderOf("OIHW", conv->kernel_layout),
       c = OrderOf("NCHW", out);
  if (!a || !b || !c || !data || data->dtype != DataType::Float(32)) return std::nullopt;
  for (const Expr& arg : call->args) {
    if (!DimsOf(arg)) return std::nullopt;
  }
  return ConvolutionOrders{*a, *b, *c};
}

class ChannelMover : public ExprMutator {
 public:
  void VisitBindingBlock(const BindingBlock& block) final {
    is_active_ = block.as<DataflowBlockObj>() &&
                 std::any_of(block->bindings.begin(), block->bindings.end(), [](const Binding& b) {
                   return b.as<VarBindingObj>() && OrdersOf(b.as<VarBindingObj>()->value);
                 });
    ExprMutator::VisitBindingBlock(block);
    is_active_ = false;
    forms_.clear();
    made_.clear();
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    Found form = is_active_ ? FormOf(binding->value) : std::nullopt;
    if (!form) return ExprMutator::VisitBinding_(binding);
    if (!IsLeaf(form->plain)) form->plain = builder_->Emit(form->plain, binding->var->name_hint());
    forms_[binding->var->vid.get()] = *form;
    // An output is seen where nobody knows of orders.
    if (!binding->var.as<DataflowVarObj>())
      ReEmitBinding(binding, builder_->Normalize(AsItWas(*form)));
  }
  Expr VisitExpr_(const VarObj* op) final {
    auto it = forms_.find(op->vid.get());
    if (it == forms_.end() || !op->IsInstance<DataflowVarObj>()) return ExprMutator::VisitExpr_(op);
    if (it->second.order.empty()) return it->second.plain;
    auto made = made_.find(op->vid.get());
    if (made == made_.end()) {
      Var var = builder_->Emit(AsItWas(it->second), op->name_hint());
      made = made_.emplace(op->vid.get(), var).first;
    }
    return made->second;
  }

 private:
  // ---- values in orders -------------------------------------------------------------------------
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  static Expr Moved(const Expr& value, const Order& from, const Order& to) {
    if (!HasBlocks(from) && !HasBlocks(to)) {
      Array<int64_t> axes;
      for (const Part& part : to) axes.push_back(NewAxis(part.axis, from));
      return CallOperator("relax.permute_dims", {value, axes});
    }
    return CallOperator("relax.layout_transform", {value, MapBetween(from, to, *DimsOf(value))});
  }
  Expr AsItWas(const Form& form) {
    if (form.order.empty()) return form.plain;
    auto identity = [&] { return IdentityOrder(RankBefore(form.order)); };
    auto* tuple = GetStructInfoAs<TupleStructInfoObj>(form.plain);
    if (!tuple) return Moved(form.plain, identity(), form.order);
    Array<Expr> items;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Expr item = builder_->Emit(TupleGetItem(form.plain, static_cast<int64_t>(i)));
      items.push_back(i == 0 ? builder_->Emit(Moved(item, identity(), form.order)) : item);
    }
    return Tuple(items);
  }
  /// A tensor that is in an order, with channels first.
  Expr Plain(const Expr& value, const Order& order) {
    if (IsIdentity(order)) return value;
    return builder_->Emit(Moved(value, order, IdentityOrder(RankBefore(order))));
  }
  const Form* Find(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    auto it = var ? forms_.find(var->vid.get()) : forms_.end();
    return it == forms_.end() ? nullptr : &it->second;
  }
  /// The form of an argument in an order other than its own, or nullptr.
  const Form* Ordered(const Expr& expr) const {
    const Form* form = Find(expr);
    return form && !form->order.empty() ? form : nullptr;
  }

  // ---- rules ------------------------------------------------------------------------------------
  Found FormOf(const Expr& value) {
    if (auto* item = value.as<TupleGetItemObj>()) {
      const Form* form = Ordered(item->tuple_value);
      if (!form) return std::nullopt;
      return Form{TupleGetItem(form->plain, item->index), item->index == 0 ? form->order : Order()};
    }
    auto* call = value.as<CallObj>();
    if (!call || !call->op.as<OpObj>() || call->args.empty()) return std::nullopt;
    if (auto orders = OrdersOf(value)) return Convolution(call, *orders);
    if (auto* attrs = AttrsOf<PermuteDimsAttrsObj>(call)) return Permuted(call, attrs);
    if (auto* attrs = AttrsOf<LayoutTransformAttrsObj>(call)) return Transformed(call, attrs);
    if (auto* attrs = AttrsOf<Pool2DAttrsObj>(call)) return Pool(call, attrs);
    if (auto* attrs = AttrsOf<AdaptivePool2DAttrsObj>(call)) return Pool(call, attrs);
    if (auto* attrs = AttrsOf<BatchNormAttrsObj>(call)) return BatchNorm(call, attrs);
    if (auto* attrs = AttrsOf<StatisticalAttrsObj>(call)) return Reduction(call, attrs);
    return ElementByElement(call);
  }
  Found Convolution(const CallObj* call, const ConvolutionOrders& orders) {
    auto known = BeforeMoving(call->args[1], orders.weight);
    Expr weight = known.value_or(call->args[1]);
    if (!weight.as<ConstantObj>()) return std::nullopt;
    if (!known) weight = Plain(weight, orders.weight);
    const Form* form = Find(call->args[0]);
    Expr data = form && form->order == orders.data ? form->plain
                                                   : Plain(VisitExpr(call->args[0]), orders.data);
    auto attrs = Changed(AttrsOf<Conv2DAttrsObj>(call), [](Conv2DAttrsObj* a) {
      a->data_layout = a->out_layout = "NCHW";
      a->kernel_layout = "OIHW";
    });
    return Form{Call(call->op, {data, weight}, attrs, call->sinfo_args, call->span),
                Shortened(orders.result)};
  }
  /// What was brought into an order to be this value, or nothing.
  std::optional<Expr> BeforeMoving(const Expr& value, const Order& order) {
    if (const Form* form = Find(value); form && form->order == order) return form->plain;
    auto* var = VisitExpr(value).as<VarObj>();
    auto bound = var ? LookupBinding(ffi::GetRef<Var>(var)) : Optional<Expr>();
    auto* call = bound ? bound.value().as<CallObj>() : nullptr;
    auto* permuted = call ? AttrsOf<PermuteDimsAttrsObj>(call) : nullptr;
    if (permuted && permuted->axes && AreOrder(permuted->axes.value(), order)) return call->args[0];
    auto* attrs = call ? AttrsOf<LayoutTransformAttrsObj>(call) : nullptr;
    auto dims = attrs ? DimsOf(call->args[0]) : std::nullopt;
    int64_t rank = RankBefore(order);
    if (dims && static_cast<int64_t>(dims->size()) == rank &&
        Is(attrs, MapBetween(IdentityOrder(rank), order, *dims)))
      return call->args[0];
    return std::nullopt;
  }
  static bool AreOrder(const Ints& axes, const Order& order) {
    return std::equal(axes.begin(), axes.end(), order.begin(), order.end(),
                      [](const IntImm& a, const Part& b) { return b == Part{a->value}; });
  }
  static bool Is(const LayoutTransformAttrsObj* attrs, const tir::IndexMap& map) {
    return !attrs->pad_value && StructuralEqual(attrs->index_map, map);
  }
  Found Permuted(const CallObj* call, const PermuteDimsAttrsObj* attrs) {
    static const Order& last = *new Order{{0}, {2}, {3}, {1}};
    auto dims = DimsOf(call->args[0]);
    const Form* form = Find(call->args[0]);
    Order from = form && !form->order.empty() ? form->order : IdentityOrder(4), to;
    if (!dims || dims->size() != 4 || !attrs->axes || from.size() != 4) return std::nullopt;
    for (const IntImm& axis : attrs->axes.value()) to.push_back(from[axis->value]);
    if (!IsIdentity(to) && to != last) return std::nullopt;
    return Form{form ? form->plain : VisitExpr(call->args[0]), Shortened(to)};
  }
  Found Transformed(const CallObj* call, const LayoutTransformAttrsObj* attrs) {
    auto dims = DimsOf(call->args[0]), now = DimsOf(ffi::GetRef<Call>(call));
    const Form* form = Find(call->args[0]);
    if (!dims || !now || (form && form->plain->struct_info_.as<TupleStructInfoObj>()))
      return std::nullopt;
    Order from = form && !form->order.empty() ? form->order
                                              : IdentityOrder(static_cast<int64_t>(dims->size()));
    int64_t rank = RankBefore(from);
    Order to = IdentityOrder(rank);
    if (static_cast<int64_t>(now->size()) == rank + 1) {
      auto* block = (*now)[rank].as<IntImmObj>();
      if (!block || rank < 2 || block->value < 1) return std::nullopt;
      to.push_back({1, block->value});
    } else if (static_cast<int64_t>(now->size()) != rank) {
      return std::nullopt;
    }
    if (!Is(attrs, MapBetween(from, to, *dims))) return std::nullopt;
    return Form{form ? form->plain : VisitExpr(call->args[0]), Shortened(to)};
  }
  template <class Obj>
  Found Pool(const CallObj* call, const Obj* attrs) {
    const Form* form = Ordered(call->args[0]);
    if (!form || (!attrs->out_layout.empty() && attrs->out_layout != attrs->layout) ||
        OrderOf("NCHW", attrs->layout) != form->order)
      return std::nullopt;
    auto changed = Changed(attrs, [](Obj* a) { a->layout = a->out_layout = "NCHW"; });
    return Form{Call(call->op, {form->plain}, changed, call->sinfo_args, call->span), form->order};
  }
  Found BatchNorm(const CallObj* call, const BatchNormAttrsObj* attrs) {
    const Form* form = Ordered(call->args[0]);
    if (!form || HasBlocks(form->order)) return std::nullopt;
    int64_t axis = form->order[OldAxis(attrs->axis, form->order)].axis;
    Array<Expr> args{form->plain};
    for (size_t i = 1; i < call->args.size(); ++i) args.push_back(VisitExpr(call->args[i]));
    auto changed = Changed(attrs, [&](BatchNormAttrsObj* a) { a->axis = axis; });
    return Form{Call(call->op, args, changed, call->sinfo_args, call->span), form->order};
  }
  /// Over H and W.
  Found Reduction(const CallObj* call, const StatisticalAttrsObj* attrs) {
    const Form* form = Ordered(call->args[0]);
    if (!form || !attrs->axis || RankBefore(form->order) != 4) return std::nullopt;
    auto size = static_cast<int64_t>(form->order.size());
    std::vector<bool> removed(4);
    Ints axes;
    for (const IntImm& axis : attrs->axis.value()) {
      const Part& part = form->order[axis->value < 0 ? axis->value + size : axis->value];
      if (part.axis < 2) return std::nullopt;
      removed[part.axis] = true;
      axes.push_back(IntImm(DataType::Int(64), part.axis));
    }
    auto changed = Changed(attrs, [&](StatisticalAttrsObj* a) { a->axis = axes; });
    Order order = attrs->keepdims ? form->order : Shortened(Without(form->order, removed));
    return Form{Call(call->op, {form->plain}, changed, call->sinfo_args, call->span), order};
  }
  Found ElementByElement(const CallObj* call) {
    if (TOpPattern.Get(call->op, kOpaque) > kBroadcast) return std::nullopt;
    const Object* attrs = call->attrs ? call->attrs.value().get() : nullptr;
    if (attrs && !attrs->IsInstance<LeakyReluAttrsObj>() && !attrs->IsInstance<SoftplusAttrsObj>())
      return std::nullopt;  // they may name an axis
    auto shape = DimsOf(ffi::GetRef<Call>(call));
    const Form* first = nullptr;
    for (const Expr& arg : call->args) first = first ? first : Ordered(arg);
    if (!first || !shape || shape->size() != first->order.size()) return std::nullopt;
    const Order order = first->order;
    // Two passes: nothing is emitted for a call that stays as it is.
    for (const Expr& arg : call->args) {
      if (GetStructInfoAs<PrimStructInfoObj>(arg)) continue;
      const Form* form = Find(arg);
      auto dims = DimsOf(arg);
      bool fits = form ? form->order == order : dims && FitsBroadcast(*dims, order);
      if (!fits) return std::nullopt;
    }
    Array<Expr> args = call->args.Map([&](const Expr& arg) {
      if (const Form* form = Find(arg)) return form->plain;
      auto dims = DimsOf(arg);
      return dims && !dims->empty() ? Broadcast(VisitExpr(arg), *dims, order) : VisitExpr(arg);
    });
    return Form{Call(call->op, args, call->attrs, call->sinfo_args, call->span), order};
  }
  /// Blocks that are broadcast have the size 1, the channels then as well.
  static bool FitsBroadcast(const Array<PrimExpr>& dims, const Order& order) {
    size_t missing = order.size() - std::min(order.size(), dims.size());
    for (size_t i = missing; i < order.size(); ++i) {
      if (order[i].block == 0) continue;
      auto size = AsConstInt(dims[i - missing]);
      size_t whole = NewAxis(order[i].axis, order);
      auto blocks = whole < missing ? 1 : AsConstInt(dims[whole - missing]);
      if (!size || !blocks || (*size == 1 ? *blocks != 1 : *size != order[i].block)) return false;
    }
    return dims.size() <= order.size();
  }
  Expr Broadcast(Expr value, const Array<PrimExpr>& dims, Order order) {
    size_t missing = order.size() - dims.size();
    Array<int64_t> axes;
    for (size_t i = 0; i < missing; ++i) axes.push_back(static_cast<int64_t>(i));
    if (missing > 0) value = Make("relax.expand_dims", {value, axes});
    for (size_t i = 0; i < order.size(); ++i) {
      if (order[i].block != 0 && (i < missing || IsOne(dims[i - missing]))) order[i].block = 1;
    }
    return Plain(value, order);
  }

  bool is_active_ = false;
  std::unordered_map<const Object*, Form> forms_;  // by id
  std::unordered_map<const Object*, Var> made_;    // … and as it was, where somebody needs it
};

Function MoveChannelsFirst(Function func, IRModule) {
  return OnDeepStack([&] {
    Expr changed = ChannelMover().VisitExpr(func);
    if (changed.same_as(func)) return func;
    // Without other names of outputs, and transposes that nobody reads any more: passes look who
    // uses a value.
    return RemoveAllUnused(CanonicalizeRelaxBindings(As<Function>(changed), IRModule()));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    MoveChannelsFirst, 0,
    R"(Convolutions of float32 with constant weights whose channels are last, or in blocks, get them
first. What is between them follows, transposes on the way cancel out; weights are put into order by
operators that FoldConstant computes.

y = R.permute_dims(x, axes=[0, 2, 3, 1])
z = R.nn.relu(R.nn.conv2d(y, w, data_layout="NHWC", kernel_layout="OHWI"))
->
z1 = R.nn.relu(R.nn.conv2d(x, R.permute_dims(w, axes=[0, 3, 1, 2])))
z = R.permute_dims(z1, axes=[0, 2, 3, 1]))");
}  // namespace tvm::relax
