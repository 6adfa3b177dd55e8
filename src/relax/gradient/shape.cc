// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that move elements: reshaping, joining, repeating.
#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
Values OfReshape(Grad& r) { return {r.ReshapeLike(r.g(), r.x(0))}; }
Values OfSame(Grad& r) { return {r.g()}; }
Values OfBroadcastTo(Grad& r) { return {r.CollapseTo(r.g(), r.x(0))}; }
Values OfCollapse(Grad& r) { return {r.BroadcastLike(r.g(), r.x(0))}; }
Values OfPermuteDims(Grad& r) {
  int64_t ndim = r.x(0).ndim();
  std::vector<int64_t> back(ndim);
  auto axes = r.attrs<PermuteDimsAttrsObj>()->axes;
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t from = axes ? axes.value()[i]->value : ndim - 1 - i;
    back[from < 0 ? from + ndim : from] = i;
  }
  return {r.Permuted(r.g(), back)};
}
/// The tensors of a tuple argument.
Values Items(Grad& r, size_t i) {
  Values items;
  auto* tuple = GetStructInfoAs<TupleStructInfoObj>(r.call->args[i]);
  for (size_t k = 0; k < tuple->fields.size(); ++k)
    items.push_back(r.Item(r.x(i), static_cast<int64_t>(k)));
  return items;
}
Values OfConcat(Grad& r) {
  Values items = Items(r, 0), parts;
  int64_t axis = r.attrs<ConcatAttrsObj>()->axis.value_or(0);
  if (axis < 0) axis += r.g().ndim();
  PrimExpr begin = Dim(0);
  for (const Value& item : items) {
    PrimExpr end = begin + r.DimsOf(item)[axis];
    parts.push_back(items.size() == 1 ? r.g() : r.Slice(r.g(), axis, begin, end));
    begin = end;
  }
  return {r.MakeTuple(parts)};
}
Values OfStack(Grad& r) {
  Values items = Items(r, 0), parts;
  int64_t axis = r.attrs<StackAttrsObj>()->axis.value_or(0);
  if (axis < 0) axis += r.g().ndim();
  for (size_t i = 0; i < items.size(); ++i) {
    auto k = static_cast<int64_t>(i);
    parts.push_back(r.ReshapeLike(r.Slice(r.g(), axis, Dim(k), Dim(k + 1)), items[i]));
  }
  return {r.MakeTuple(parts)};
}
Values OfSplit(Grad& r) {
  if (!GetStructInfoAs<TupleStructInfoObj>(r.g().expr)) return {r.g()};
  return {r.F("concat", r.g(), r.attrs<SplitAttrsObj>()->axis)};
}
Values OfRepeat(Grad& r) {
  auto* attrs = r.attrs<RepeatAttrsObj>();
  Value x = r.x(0);
  Dims dims = r.DimsOf(x), split;
  if (!attrs->axis) {
    PrimExpr count = Dim(1);
    for (const PrimExpr& dim : dims) count = count * dim;
    Value sums = r.F("sum", r.Reshaped(r.g(), {count, Dim(attrs->repeats)}), 1, false);
    return {r.ReshapeLike(sums, x)};
  }
  int64_t axis = attrs->axis.value() < 0 ? attrs->axis.value() + x.ndim() : attrs->axis.value();
  for (int64_t i = 0; i < x.ndim(); ++i) {
    split.push_back(dims[i]);
    if (i == axis) split.push_back(Dim(attrs->repeats));
  }
  return {r.F("sum", r.Reshaped(r.g(), split), axis + 1, false)};
}
Values OfTile(Grad& r) {
  Value x = r.x(0);
  const Ints& repeats = r.attrs<TileAttrsObj>()->repeats;
  Dims dims = r.DimsOf(x), split;
  std::vector<int64_t> summed;
  int64_t ndim = std::max<int64_t>(x.ndim(), repeats.size());
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t of_repeats = i - (ndim - static_cast<int64_t>(repeats.size()));
    int64_t of_x = i - (ndim - x.ndim());
    summed.push_back(static_cast<int64_t>(split.size()));
    split.push_back(of_repeats < 0 ? Dim(1) : Dim(repeats[of_repeats]->value));
    split.push_back(of_x < 0 ? Dim(1) : dims[of_x]);
  }
  return {r.ReshapeLike(r.F("sum", r.Reshaped(r.g(), split), AsArray(summed), false), x)};
}
Values OfFlip(Grad& r) { return {r.F("flip", r.g(), r.attrs<FlipAttrsObj>()->axis)}; }
Values OfTriu(Grad& r) { return {r.F("triu", r.g(), r.x(1))}; }
Values OfTril(Grad& r) { return {r.F("tril", r.g(), r.x(1))}; }
/// Padding with elements of the tensor is a product with a matrix: the padded identity.
Values OfPadByMode(Grad& r) {
  auto* attrs = r.attrs<PadAttrsObj>();
  Value x = r.x(0), g = r.g();
  for (int64_t i = 0; i < x.ndim(); ++i) {
    IntImm begin = attrs->pad_width[2 * i], end = attrs->pad_width[2 * i + 1];
    if (begin->value == 0 && end->value == 0) continue;
    int64_t size = r.ConstDim(x, i);
    IntImm none(begin.dtype(), 0);
    Value matrix = r.F("nn.pad", r.F("eye", size, size, 0, x.dtype()), Ints{none, none, begin, end},
                       attrs->pad_mode);
    g = r.Multiplied(g, i, matrix);
  }
  return {g};
}
Values OfPad(Grad& r) {
  auto* attrs = r.attrs<PadAttrsObj>();
  if (attrs->pad_mode != "constant") return OfPadByMode(r);
  Value x = r.x(0), g = r.g();
  for (int64_t i = 0; i < x.ndim(); ++i) {
    int64_t begin = attrs->pad_width[2 * i]->value, end = attrs->pad_width[2 * i + 1]->value;
    if (begin < 0 || end < 0) r.Refuse("negative padding");
    if (begin || end) g = r.Slice(g, i, Dim(begin), r.DimsOf(x)[i] + Dim(begin));
  }
  return {g};
}
Values OfPixelShuffle(Grad& r) {
  int64_t factor = r.attrs<PixelShuffleAttrsObj>()->upscale_factor;
  Dims x = r.DimsOf(r.x(0)), g = r.DimsOf(r.g());
  int64_t c = static_cast<int64_t>(x.size()) - 3;
  // (…, C, H, r, W, r) to (…, C, r, r, H, W)
  Dims split;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < c; ++i) {
    split.push_back(g[i]);
    order.push_back(i);
  }
  for (const PrimExpr& dim :
       {PrimExpr(g[c]), PrimExpr(x[c + 1]), Dim(factor), PrimExpr(x[c + 2]), Dim(factor)})
    split.push_back(dim);
  for (int64_t axis : {c, c + 2, c + 4, c + 1, c + 3}) order.push_back(axis);
  return {r.ReshapeLike(r.Permuted(r.Reshaped(r.g(), split), order), r.x(0))};
}

/// Each tensor varies along one axis of its result.
Values OfMeshgrid(Grad& r) {
  Values items = Items(r, 0), sums;
  auto indexing = r.attrs<MeshgridAttrsObj>()->indexing;
  bool swapped = indexing && indexing.value() == "xy" && items.size() > 1;
  auto rank = static_cast<int64_t>(items.size());
  for (int64_t i = 0; i < rank; ++i) {
    int64_t own = swapped && i < 2 ? 1 - i : i;
    std::vector<int64_t> others;
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (axis != own) others.push_back(axis);
    }
    Value g = r.Item(r.g(), i);
    if (!others.empty()) g = r.F("sum", g, AsArray(others), false);
    sums.push_back(r.ReshapeLike(g, items[i]));
  }
  return {r.MakeTuple(sums)};
}
/// The elements back to where they were, without the padding.
Values OfLayoutTransform(Grad& r) {
  Value x = r.x(0);
  Dims dims = r.DimsOf(x);
  Array<Range> ranges;
  for (const PrimExpr& dim : dims) ranges.push_back(Range::FromMinExtent(Dim(0), dim));
  const tir::IndexMap& map = r.attrs<LayoutTransformAttrsObj>()->index_map;
  auto inverse = map.NonSurjectiveInverse(ranges, r.builder->analyzer()).first;
  Value g = r.F("layout_transform", r.g(), inverse);
  Dims padded = r.DimsOf(g);
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (!r.builder->analyzer()->CanProveEqual(padded[i], dims[i]))
      g = r.Slice(g, i, Dim(0), dims[i]);
  }
  return {g};
}
Values OfWrapParam(Grad& r) { return {r.F("astype", r.g(), r.x(0).dtype())}; }

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.reshape", &OfReshape},
                                 {"relax.flatten", &OfReshape},
                                 {"relax.squeeze", &OfReshape},
                                 {"relax.expand_dims", &OfReshape},
                                 {"relax.broadcast_to", &OfBroadcastTo},
                                 {"relax.collapse_sum_to", &OfCollapse},
                                 {"relax.collapse_sum_like", &OfCollapse},
                                 {"relax.permute_dims", &OfPermuteDims},
                                 {"relax.concat", &OfConcat},
                                 {"relax.stack", &OfStack},
                                 {"relax.split", &OfSplit},
                                 {"relax.repeat", &OfRepeat},
                                 {"relax.tile", &OfTile},
                                 {"relax.flip", &OfFlip},
                                 {"relax.triu", &OfTriu},
                                 {"relax.tril", &OfTril},
                                 {"relax.nn.pad", &OfPad},
                                 {"relax.nn.pixel_shuffle", &OfPixelShuffle},
                                 {"relax.meshgrid", &OfMeshgrid},
                                 {"relax.layout_transform", &OfLayoutTransform},
                                 {"relax.wrap_param", &OfWrapParam},
                                 {"relax.memory.ensure_zero_offset", &OfSame},
                                 {"relax.builtin.stop_lift_params", &OfSame},
                                 {"relax.grad.start_checkpoint", &OfSame},
                                 {"relax.grad.end_checkpoint", &OfSame},
                                 {"relax.grad.no_grad", &NoGradient}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
