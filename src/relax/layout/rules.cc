// SPDX-License-Identifier: Apache-2.0
// Layouts of operators on elements, reductions, joining and normalisation.
#include "relax/layout/rules.h"

#include <algorithm>
#include <numeric>

#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {
namespace {
std::unordered_map<const Object*, LayoutRule>& Rules() {
  static auto& rules = *new std::unordered_map<const Object*, LayoutRule>;
  return rules;
}
const TensorStructInfoObj* TensorOf(const Expr& expr) {
  return GetStructInfoAs<TensorStructInfoObj>(expr);
}
}  // namespace

bool IsIdentity(const Order& order) {
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}
Order Inverse(const Order& order) {
  Order inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[order[i]] = static_cast<int64_t>(i);
  return inverse;
}
std::optional<Order> OrderOf(const std::string& from, const std::string& to) {
  Order order;
  for (char letter : to) {
    size_t at = from.find(letter);
    if (at == from.npos || !isupper(static_cast<unsigned char>(letter))) return std::nullopt;
    order.push_back(static_cast<int64_t>(at));
  }
  if (from.size() != to.size()) return std::nullopt;
  return order;
}
int64_t NewAxis(int64_t axis, const Order& order) {
  if (axis < 0) axis += static_cast<int64_t>(order.size());
  return std::find(order.begin(), order.end(), axis) - order.begin();
}
std::string Reordered(const std::string& layout, const Order& order) {
  std::string result;
  for (int64_t i : order) result += layout[i];
  return result;
}
int64_t LayoutCall::ndim(size_t i) const {
  auto* tensor = TensorOf(call->args[i]);
  return tensor ? tensor->ndim : -1;
}
Expr Again(const LayoutCall& c, Array<Expr> args, Optional<Attrs> attrs) {
  return Call(c.call->op, std::move(args), std::move(attrs), c.call->sinfo_args, c.call->span);
}
void RegisterLayoutRule(const char* op, LayoutRule rule) { Rules()[Op::Register(op).get()] = rule; }

namespace {
using Result = std::optional<LayoutResult>;

/// The layout of the first of some arguments that is at hand in another one.
Order FirstOrder(LayoutCall& c, const Array<Expr>& args) {
  for (const Expr& arg : args) {
    if (!arg.as<VarObj>()) continue;
    Order order = c.order_of(arg);
    if (!IsIdentity(order)) return order;
  }
  return {};
}
/// All tensors in one layout; those of lower rank, which are broadcast, get dimensions of 1 first.
Result OfElements(LayoutCall& c) {
  Order order = FirstOrder(c, c.call->args);
  if (order.empty()) return std::nullopt;
  auto ndim = static_cast<int64_t>(order.size());
  Array<Expr> args;
  for (const Expr& arg : c.call->args) {
    auto* tensor = TensorOf(arg);
    if (!tensor || tensor->ndim == 0) {
      args.push_back(arg);
    } else if (tensor->ndim == ndim) {
      args.push_back(c.get(arg, order));
    } else if (tensor->ndim > 0 && tensor->ndim < ndim) {
      Array<int64_t> axes;
      for (int64_t i = 0; i < ndim - tensor->ndim; ++i) axes.push_back(i);
      Expr wide = c.builder->Emit(CallOperator("relax.expand_dims", {arg, axes}));
      args.push_back(c.get(wide, order));
    } else {
      return std::nullopt;
    }
  }
  return LayoutResult{Again(c, args, c.call->attrs), order};
}
/// The one tensor in the layout in which it is, with an axis renumbered.
template <class Obj>
Result OfAxis(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  auto attrs = ChangedAttrs<Obj>(c, [&](Obj* a) { a->axis = NewAxis(a->axis, order); });
  return LayoutResult{Again(c, args, attrs), order};
}
/// With the reduced dimensions kept, the layout is kept; without them it is what is left of it.
Result OfReduction(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto* attrs = c.attrs<StatisticalAttrsObj>();
  if (order.empty()) return std::nullopt;
  auto ndim = static_cast<int64_t>(order.size());
  std::vector<bool> reduced(ndim, !attrs->axis);
  Ints axes;
  for (const IntImm& axis : attrs->axis.value_or({})) {
    reduced[axis->value < 0 ? axis->value + ndim : axis->value] = true;
    axes.push_back(IntImm(DataType::Int(64), NewAxis(axis->value, order)));
  }
  auto changed = ChangedAttrs<StatisticalAttrsObj>(c, [&](StatisticalAttrsObj* a) {
    if (a->axis) a->axis = axes;
  });
  Order rest = order;
  if (!attrs->keepdims) {
    rest.clear();
    for (int64_t axis : order) {
      if (reduced[axis]) continue;
      rest.push_back(axis - std::count(reduced.begin(), reduced.begin() + axis, true));
    }
  }
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, changed), rest};
}
Result OfConcat(LayoutCall& c) {
  auto* tuple = c.call->args[0].as<TupleObj>();
  Order order = tuple ? FirstOrder(c, tuple->fields) : Order();
  if (order.empty()) return std::nullopt;
  Array<Expr> fields = tuple->fields.Map([&](const Expr& f) { return c.get(f, order); });
  auto attrs = ChangedAttrs<ConcatAttrsObj>(
      c, [&](ConcatAttrsObj* a) { a->axis = NewAxis(a->axis.value_or(0), order); });
  return LayoutResult{Again(c, {Tuple(fields)}, attrs), order};
}
Result OfBatchNorm(LayoutCall& c) { return OfAxis<BatchNormAttrsObj>(c); }
Result OfPad(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  auto attrs = ChangedAttrs<PadAttrsObj>(c, [&](PadAttrsObj* a) {
    Ints width;
    for (int64_t axis : order) {
      width.push_back(a->pad_width[2 * axis]);
      width.push_back(a->pad_width[2 * axis + 1]);
    }
    a->pad_width = width;
  });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, attrs), order};
}
Result OfResize(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  auto attrs = ChangedAttrs<Resize2DAttrsObj>(
      c, [&](Resize2DAttrsObj* a) { a->layout = Reordered(a->layout, order); });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order), c.call->args[1]}, attrs), order};
}
/// A transposition of what is transposed already: only the bookkeeping changes.
Result OfPermuteDims(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto axes = c.attrs<PermuteDimsAttrsObj>()->axes;
  if (order.empty() || !axes) return std::nullopt;
  Order result;
  Ints wanted = axes.value();
  // Dimension i of what is at hand is dimension order[i] before; in the result that is where
  // `wanted` names it.
  auto ndim = static_cast<int64_t>(order.size());
  for (int64_t i : order) {
    for (int64_t k = 0; k < ndim; ++k) {
      int64_t axis = wanted[k]->value < 0 ? wanted[k]->value + ndim : wanted[k]->value;
      if (axis == i) result.push_back(k);
    }
  }
  return LayoutResult{c.get(c.call->args[0], order), result};
}

TVM_REGISTER() {
  for (const char* op : {"relax.sum", "relax.mean", "relax.max", "relax.min", "relax.prod",
                         "relax.std", "relax.variance"})
    RegisterLayoutRule(op, &OfReduction);
  RegisterLayoutRule("relax.concat", &OfConcat);
  RegisterLayoutRule("relax.split", &OfAxis<SplitAttrsObj>);
  RegisterLayoutRule("relax.flip", &OfAxis<FlipAttrsObj>);
  RegisterLayoutRule("relax.nn.softmax", &OfAxis<SoftmaxAttrsObj>);
  RegisterLayoutRule("relax.nn.log_softmax", &OfAxis<SoftmaxAttrsObj>);
  RegisterLayoutRule("relax.nn.prelu", &OfAxis<PReluAttrsObj>);
  RegisterLayoutRule("relax.nn.batch_norm", &OfBatchNorm);
  RegisterLayoutRule("relax.nn.pad", &OfPad);
  RegisterLayoutRule("relax.image.resize2d", &OfResize);
  RegisterLayoutRule("relax.permute_dims", &OfPermuteDims);
}
}  // namespace

LayoutRule FindLayoutRule(const OpObj* op) {
  auto it = Rules().find(op);
  if (it != Rules().end()) return it->second;
  int64_t pattern = TOpPattern.Get(ffi::GetRef<Op>(op), static_cast<int64_t>(kOpaque));
  // Whatever works element by element does so in any layout.
  return pattern == kElemWise || pattern == kBroadcast ? &OfElements : nullptr;
}

}  // namespace tvm::relax
