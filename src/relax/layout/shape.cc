// SPDX-License-Identifier: Apache-2.0
// Layouts of operators that join, cut and rearrange dimensions.
#include <algorithm>

#include "relax/layout/rules.h"
#include "tvm/expr/op.h"
#include "tvm/relax/operator.h"

namespace tvm::relax {
namespace {
using Result = std::optional<LayoutResult>;

/// The fields of a tuple in one layout, or nothing.
std::optional<std::pair<Array<Expr>, Order>> InOneLayout(LayoutCall& c) {
  auto* tuple = c.call->args[0].as<TupleObj>();
  Order order = tuple ? FirstOrder(c, tuple->fields) : Order();
  if (order.empty()) return std::nullopt;
  for (const Expr& field : tuple->fields) {
    if (!c.fits(field, order, false)) return std::nullopt;
  }
  return std::pair(tuple->fields.Map([&](const Expr& f) { return c.get(f, order); }), order);
}
/// Joined along blocks: all tensors consist of whole ones.
Result OfConcat(LayoutCall& c) {
  auto fields = InOneLayout(c);
  if (!fields) return std::nullopt;
  auto& [tensors, order] = *fields;
  int64_t axis = OldAxis(c.attrs<ConcatAttrsObj>()->axis.value_or(0), order),
          now = NewAxis(axis, order);
  if (order[now].inner == axis) return std::nullopt;
  auto attrs = ChangedAttrs<ConcatAttrsObj>(c, [&](auto* a) { a->axis = now; });
  return LayoutResult{Again(c, {Tuple(tensors)}, attrs), order};
}
/// Cut where blocks end.
Result OfSplit(LayoutCall& c) {
  Expr data = c.call->args[0];
  Order order = FirstOrder(c, {data});
  auto* attrs = c.attrs<SplitAttrsObj>();
  if (order.empty()) return std::nullopt;
  int64_t axis = OldAxis(attrs->axis, order), block = BlockOf(axis, order);
  if (order[NewAxis(axis, order)].IsJoined()) return std::nullopt;
  ObjectRef pieces = attrs->indices_or_sections;
  if (auto* sections = pieces.as<IntImmObj>(); sections && block) {
    auto dims = GetStructInfoAs<TensorStructInfoObj>(data)->Dims();
    auto size = dims ? AsConstInt(dims.value()[axis]) : std::nullopt;
    if (!size || *size % (sections->value * block) != 0) return std::nullopt;
  } else if (block) {
    Array<Any> cuts;
    for (const Any& where : Any(pieces).cast<Array<Any>>()) {
      auto cut = AsConstInt(where.cast<PrimExpr>());
      if (!cut || *cut % block != 0) return std::nullopt;
      cuts.push_back(*cut / block);
    }
    pieces = cuts;
  }
  auto changed = ChangedAttrs<SplitAttrsObj>(c, [&](SplitAttrsObj* a) {
    a->indices_or_sections = pieces;
    a->axis = NewAxis(axis, order);
  });
  return LayoutResult{Again(c, {c.get(data, order)}, changed), order};
}
/// An order among `rank` axes, of which those in `added` are new and come first.
Order WithNewAxes(const Order& order, const std::vector<int64_t>& added, int64_t rank) {
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(added.begin(), added.end(), i) == added.end()) kept.push_back(i);
  }
  Order result;
  for (int64_t axis : added) result.push_back({axis});
  for (const Part& part : order)
    result.push_back({kept[part.axis], part.block, part.IsJoined() ? kept[part.inner] : -1});
  return result;
}
Result OfStack(LayoutCall& c) {
  auto fields = InOneLayout(c);
  if (!fields) return std::nullopt;
  auto& [tensors, order] = *fields;
  int64_t rank = RankBefore(order) + 1, axis = c.attrs<StackAttrsObj>()->axis.value_or(0);
  auto attrs = ChangedAttrs<StackAttrsObj>(c, [](StackAttrsObj* a) { a->axis = int64_t{0}; });
  return LayoutResult{Again(c, {Tuple(tensors)}, attrs),
                      WithNewAxes(order, {axis < 0 ? axis + rank : axis}, rank)};
}
Result OfExpandDims(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  std::vector<int64_t> added;
  Ints first;
  const Ints& axes = c.attrs<ExpandDimsAttrsObj>()->axis;
  int64_t rank = RankBefore(order) + static_cast<int64_t>(axes.size());
  for (const IntImm& axis : axes) {
    first.push_back(IntImm(axis.dtype(), static_cast<int64_t>(added.size())));
    added.push_back(axis->value < 0 ? axis->value + rank : axis->value);
  }
  auto attrs = ChangedAttrs<ExpandDimsAttrsObj>(c, [&](auto* a) { a->axis = first; });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, attrs),
                      WithNewAxes(order, added, rank)};
}
/// Dimensions that are not 1 stay, so all that are named, or all, must be known.
Result OfSqueeze(LayoutCall& c) {
  Expr data = c.call->args[0];
  Order order = FirstOrder(c, {data});
  auto dims = GetStructInfoAs<TensorStructInfoObj>(data)->Dims();
  if (order.empty() || !dims) return std::nullopt;
  auto named = c.attrs<SqueezeAttrsObj>()->axis;
  std::vector<bool> removed(dims.value().size(), !named);
  for (const IntImm& axis : named.value_or({})) removed[OldAxis(axis->value, order)] = true;
  for (size_t i = 0; i < removed.size(); ++i) {
    auto size = AsConstInt(dims.value()[i]);
    if (removed[i] && !size) return std::nullopt;
    if (size != 1) removed[i] = false;
  }
  if (Divides(removed, order)) return std::nullopt;
  Ints axes;
  for (size_t i = 0; i < order.size(); ++i) {
    if (removed[order[i].axis]) axes.push_back(IntImm(DataType::Int(64), static_cast<int64_t>(i)));
  }
  auto attrs = ChangedAttrs<SqueezeAttrsObj>(c, [&](SqueezeAttrsObj* a) { a->axis = axes; });
  return LayoutResult{Again(c, {c.get(data, order)}, attrs), Without(order, removed)};
}
/// Along blocks, whole ones are repeated.
Result OfTile(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  Ints repeats = c.attrs<TileAttrsObj>()->repeats, changed;
  auto rank = static_cast<size_t>(RankBefore(order));
  if (order.empty() || repeats.size() > rank) return std::nullopt;
  size_t missing = rank - repeats.size();
  IntImm once(DataType::Int(64), 1);
  auto times = [&](int64_t axis) {
    auto i = static_cast<size_t>(axis);
    return i < missing ? once : repeats[i - missing];
  };
  for (const Part& part : order) {
    if (part.IsJoined() && (times(part.axis)->value != 1 || times(part.inner)->value != 1))
      return std::nullopt;
    changed.push_back(part.block != 0 ? once : times(part.axis));
  }
  auto attrs = ChangedAttrs<TileAttrsObj>(c, [&](TileAttrsObj* a) { a->repeats = changed; });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, attrs), order};
}
Result OfStridedSlice(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  auto* axes = c.call->args[1].as<TupleObj>();
  if (order.empty() || !axes) return std::nullopt;
  Array<Expr> moved;
  for (const Expr& axis : axes->fields) {
    auto* value = axis.as<PrimValueObj>();
    auto number = value ? AsConstInt(value->value) : std::nullopt;
    if (!number || BlockOf(*number, order)) return std::nullopt;
    moved.push_back(PrimValue::Int64(NewAxis(*number, order)));
  }
  Array<Expr> args = c.call->args;
  args.Set(0, c.get(args[0], order));
  args.Set(1, Tuple(moved));
  return LayoutResult{Again(c, args, c.call->attrs), order};
}
Result OfPad(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  const Ints& before = c.attrs<PadAttrsObj>()->pad_width;
  Ints width;
  for (const Part& part : order) {
    auto is_padded = [&](int64_t axis) {
      return before[2 * axis]->value != 0 || before[2 * axis + 1]->value != 0;
    };
    IntImm begin = before[2 * part.axis], end = before[2 * part.axis + 1];
    if (part.block != 0 && (is_padded(part.axis) || (part.IsJoined() && is_padded(part.inner))))
      return std::nullopt;
    width.push_back(begin);
    width.push_back(end);
  }
  auto attrs = ChangedAttrs<PadAttrsObj>(c, [&](PadAttrsObj* a) { a->pad_width = width; });
  return LayoutResult{Again(c, {c.get(c.call->args[0], order)}, attrs), order};
}
/// A transposition of what is transposed already: only the bookkeeping changes.
Result OfPermuteDims(LayoutCall& c) {
  Order order = FirstOrder(c, {c.call->args[0]});
  if (order.empty()) return std::nullopt;
  return LayoutResult{c.get(c.call->args[0], order),
                      Permuted(order, c.attrs<PermuteDimsAttrsObj>()->axes)};
}

TVM_REGISTER() {
  RegisterLayoutRule("relax.concat", &OfConcat);
  RegisterLayoutRule("relax.split", &OfSplit);
  RegisterLayoutRule("relax.stack", &OfStack);
  RegisterLayoutRule("relax.expand_dims", &OfExpandDims);
  RegisterLayoutRule("relax.squeeze", &OfSqueeze);
  RegisterLayoutRule("relax.tile", &OfTile);
  RegisterLayoutRule("relax.strided_slice", &OfStridedSlice);
  RegisterLayoutRule("relax.nn.pad", &OfPad);
  RegisterLayoutRule("relax.permute_dims", &OfPermuteDims);
}
}  // namespace
}  // namespace tvm::relax
