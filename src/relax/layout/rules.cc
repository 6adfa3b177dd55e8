// SPDX-License-Identifier: Apache-2.0
// Layouts of operators on elements, along axes, of reductions and of normalisation.
#include "relax/layout/rules.h"

#include <algorithm>
#include <unordered_map>

#include "tvm/expr/op.h"
#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {
namespace {
struct RuleOf {
  LayoutRule rule;
  bool has_choice;
};
std::unordered_map<const Object*, RuleOf>& Rules() {
  static auto& rules = *new std::unordered_map<const Object*, RuleOf>;
  return rules;
}
const TensorStructInfoObj* TensorOf(const Expr& expr) {
  return GetStructInfoAs<TensorStructInfoObj>(expr);
}
}  // namespace

int64_t LayoutCall::ndim(size_t i) const {
  auto* tensor = TensorOf(call->args[i]);
  return tensor ? tensor->ndim : -1;
}
Expr Again(const LayoutCall& c, Array<Expr> args, Optional<Attrs> attrs) {
  return Call(c.call->op, std::move(args), std::move(attrs), c.call->sinfo_args, c.call->span);
}
void RegisterLayoutRule(const char* op, LayoutRule rule, bool has_choice) {
  Rules()[Op::Register(op).get()] = {rule, has_choice};
}
bool HasLayoutChoice(const OpObj* op) {
  auto it = Rules().find(op);
  return it != Rules().end() && it->second.has_choice;
}
Order FirstOrder(const LayoutCall& c, const Array<Expr>& args) {
  for (const Expr& arg : args) {
    if (!arg.as<VarObj>()) continue;
    Order order = c.order_of(arg);
    if (!IsIdentity(order)) return order;
  }
  return {};
}

namespace {
using Result = std::optional<LayoutResult>;

/// All tensors in one layout; those of lower rank, which are broadcast, get dimensions of 1 first.
Result OfElements(LayoutCall& c) {
  Order order = FirstOrder(c, c.call->args);
  if (order.empty()) return std::nullopt;
  int64_t ndim = RankBefore(order);
  // Two passes: nothing is emitted for a call that stays as it is.
  for (const Expr& arg : c.call->args) {
    auto* tensor = TensorOf(arg);
    if (!tensor || tensor->ndim == 0) continue;
    if (tensor->ndim > ndim || !c.fits(arg, order, true)) return std::nullopt;
  }
  Array<Expr> args;
  for (const Expr& arg : c.call->args) {
    auto* tensor = TensorOf(arg);
    if (!tensor || tensor->ndim == 0) {
      args.push_back(arg);
    } else if (tensor->ndim == ndim) {
      args.push_back(c.get(arg, order));
    } else {
      Array<int64_t> axes;
      for (int64_t i = 0; i < ndim - tensor->ndim; ++i) axes.push_back(i);
      Expr wide = c.builder->Emit(CallOperator("relax.expand_dims", {arg, axes}));
      args.push_back(c.get(wide, order));
    }
  }
  return LayoutResult{Again(c, args, c.call->attrs), order};
}
/// The one tensor in the layout in which it is.
Result OfFirst(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  return LayoutResult{Again(c, args, c.call->attrs), order};
}
/// The one tensor in the layout in which it is, with an axis renumbered; along blocks it is as it
/// was.
template <class Obj>
Result OfAxis(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  std::optional<int64_t> axis;
  if constexpr (requires(Obj a) { a.axis.has_value(); }) {
    if (c.attrs<Obj>()->axis) axis = c.attrs<Obj>()->axis.value();
  } else {
    axis = c.attrs<Obj>()->axis;
  }
  if (order.empty() || !axis || BlockOf(*axis, order)) return std::nullopt;
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  auto attrs = ChangedAttrs<Obj>(c, [&](Obj* a) { a->axis = NewAxis(*axis, order); });
  return LayoutResult{Again(c, args, attrs), order};
}
/// All tensors, of one rank, in one order, with an axis renumbered.
template <class Obj>
Result OfAxisOfAll(LayoutCall& c) {
  Order order = FirstOrder(c, c.call->args);
  if (order.empty() || HasBlocks(order)) return std::nullopt;
  Array<Expr> args = c.call->args.Map([&](const Expr& arg) { return c.get(arg, order); });
  auto attrs = ChangedAttrs<Obj>(c, [&](Obj* a) { a->axis = NewAxis(a->axis, order); });
  return LayoutResult{Again(c, args, attrs), order};
}
/// Rows of the data: where the indices are a vector, the dimensions stay what they were.
Result OfTake(LayoutCall& c) { return c.ndim(1) == 1 ? OfAxis<TakeAttrsObj>(c) : std::nullopt; }
/// One scale for all, or one for each element along an axis.
Result OfQuantize(LayoutCall& c) {
  return c.ndim(1) == 0 && c.ndim(2) == 0 ? OfFirst(c) : OfAxis<QuantizeAttrsObj>(c);
}

// ---- reductions ---------------------------------------------------------------------------------
/// With the reduced dimensions kept, the layout is kept; without them it is what is left of it.
Result OfReduction(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto* attrs = c.attrs<StatisticalAttrsObj>();
  if (order.empty()) return std::nullopt;
  std::vector<bool> reduced(RankBefore(order), !attrs->axis);
  for (const IntImm& axis : attrs->axis.value_or({})) reduced[OldAxis(axis->value, order)] = true;
  if (Divides(reduced, order)) return std::nullopt;
  Ints axes;
  for (size_t i = 0; i < order.size(); ++i) {
    if (!reduced[order[i].axis]) continue;
    // A dimension of 1 that is kept is in no blocks.
    if (order[i].block != 0 && attrs->keepdims) return std::nullopt;
    axes.push_back(IntImm(DataType::Int(64), static_cast<int64_t>(i)));
  }
  auto changed = ChangedAttrs<StatisticalAttrsObj>(c, [&](StatisticalAttrsObj* a) {
    if (a->axis) a->axis = axes;
  });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, changed),
                      attrs->keepdims ? order : Without(order, reduced)};
}
Result OfArgReduction(LayoutCall& c) {
  auto result = OfAxis<ArgmaxArgminAttrsObj>(c);
  auto* attrs = c.attrs<ArgmaxArgminAttrsObj>();
  if (!result || attrs->keepdims) return result;
  std::vector<bool> reduced(RankBefore(result->order));
  reduced[OldAxis(attrs->axis.value(), result->order)] = true;
  result->order = Without(result->order, reduced);
  return result;
}

// ---- normalisation ------------------------------------------------------------------------------
/// The axes renumbered; nothing when one of them is in blocks.
std::optional<Ints> Renumbered(const Ints& axes, const Order& order) {
  Ints result;
  for (const IntImm& axis : axes) {
    if (BlockOf(axis->value, order)) return std::nullopt;
    result.push_back(IntImm(DataType::Int(64), NewAxis(axis->value, order)));
  }
  return result;
}
/// The parameters have the dimensions of the axes, which therefore stay in their order.
template <class Obj>
Result OfNormOverAxes(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto axes = Renumbered(c.attrs<Obj>()->axes, order);
  auto less = [](const IntImm& a, const IntImm& b) { return a->value < b->value; };
  if (order.empty() || !axes || !std::is_sorted(axes->begin(), axes->end(), less))
    return std::nullopt;
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  return LayoutResult{Again(c, args, ChangedAttrs<Obj>(c, [&](Obj* a) { a->axes = *axes; })),
                      order};
}
/// The parameters have one element for each channel.
template <class Obj>
Result OfNormOfChannels(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto* attrs = c.attrs<Obj>();
  auto axes = Renumbered(attrs->axes, order);
  if (order.empty() || !axes || BlockOf(attrs->channel_axis, order)) return std::nullopt;
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  auto changed = ChangedAttrs<Obj>(c, [&](Obj* a) {
    a->axes = *axes;
    a->channel_axis = NewAxis(a->channel_axis, order);
  });
  return LayoutResult{Again(c, args, changed), order};
}

TVM_REGISTER() {
  for (const char* op : {"relax.sum", "relax.mean", "relax.max", "relax.min", "relax.prod",
                         "relax.std", "relax.variance"})
    RegisterLayoutRule(op, &OfReduction);
  for (const char* op : {"relax.argmax", "relax.argmin"}) RegisterLayoutRule(op, &OfArgReduction);
  for (const char* op : {"relax.cumsum", "relax.cumprod"})
    RegisterLayoutRule(op, &OfAxis<ScanopAttrsObj>);
  for (const char* op : {"relax.quantize", "relax.dequantize"}) RegisterLayoutRule(op, &OfQuantize);
  for (const char* op :
       {"relax.zeros_like", "relax.ones_like", "relax.full_like", "relax.nn.dropout"})
    RegisterLayoutRule(op, &OfFirst);
  RegisterLayoutRule("relax.sort", &OfAxis<SortAttrsObj>);
  RegisterLayoutRule("relax.argsort", &OfAxis<ArgsortAttrsObj>);
  RegisterLayoutRule("relax.topk", &OfAxis<TopKAttrsObj>);
  RegisterLayoutRule("relax.flip", &OfAxis<FlipAttrsObj>);
  RegisterLayoutRule("relax.repeat", &OfAxis<RepeatAttrsObj>);
  RegisterLayoutRule("relax.take", &OfTake);
  RegisterLayoutRule("relax.gather_elements", &OfAxisOfAll<GatherElementsAttrsObj>);
  RegisterLayoutRule("relax.scatter_elements", &OfAxisOfAll<ScatterElementsAttrsObj>);
  RegisterLayoutRule("relax.nn.softmax", &OfAxis<SoftmaxAttrsObj>);
  RegisterLayoutRule("relax.nn.log_softmax", &OfAxis<SoftmaxAttrsObj>);
  RegisterLayoutRule("relax.nn.prelu", &OfAxis<PReluAttrsObj>);
  RegisterLayoutRule("relax.nn.batch_norm", &OfAxis<BatchNormAttrsObj>);
  RegisterLayoutRule("relax.nn.layer_norm", &OfNormOverAxes<LayerNormAttrsObj>);
  RegisterLayoutRule("relax.nn.rms_norm", &OfNormOverAxes<RMSNormAttrsObj>);
  RegisterLayoutRule("relax.nn.group_norm", &OfNormOfChannels<GroupNormAttrsObj>);
  RegisterLayoutRule("relax.nn.instance_norm", &OfNormOfChannels<InstanceNormAttrsObj>);
}
}  // namespace

LayoutRule FindLayoutRule(const OpObj* op) {
  auto it = Rules().find(op);
  if (it != Rules().end()) return it->second.rule;
  int64_t pattern = TOpPattern.Get(ffi::GetRef<Op>(op), static_cast<int64_t>(kOpaque));
  // Whatever works element by element does so in any layout.
  return pattern == kElemWise || pattern == kBroadcast ? &OfElements : nullptr;
}

}  // namespace tvm::relax
