// SPDX-License-Identifier: Apache-2.0
// Shapes and orders of dimensions, parts and joins.
#include "converter.h"

namespace tvm::frontend::torch {
namespace {

// ---- shapes -------------------------------------------------------------------------------------
/// The sizes with -1 replaced by what the others leave of the elements.
Dims Resolved(Conversion& c, const Expr& x, Dims sizes) {
  PrimExpr known = IntImm::Int64(1);
  int64_t open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (IsConstInt(sizes[i], -1)) {
      open = static_cast<int64_t>(i);
    } else {
      known = known * sizes[i];
    }
  }
  if (open >= 0) sizes.Set(open, c.Simplify(floordiv(Count(ShapeOf(x)), known)));
  return sizes;
}
Any View(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Reshape(x, Resolved(c, x, c.Sizes(1)));
}
/// The same elements seen as another type of the same size.
Any ViewAs(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType from = TypeOf(x), to = c.Type(1, from);
  if (from == to) return x;
  if (from.bits() != to.bits()) {
    TVM_REFUSE(c, NotImplementedError)
        << "expected a type of " << from.bits() << " bits, got " << to;
  }
  return c.Compute("reinterpret", {x}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
    return {te::compute(in[0]->shape,
                        [&](const Array<tir::Var>& i) { return reinterpret(to, in[0](i)); })};
  });
}
Any ReshapeAs(Conversion& c) { return c.Reshape(c.Tensor(0), ShapeOf(c.Tensor(1))); }
Any Flatten(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), result;
  if (dims.empty()) return c.Reshape(x, {IntImm::Int64(1)});
  int64_t begin = c.Axis(1, dims.size()), end = c.Axis(2, dims.size());
  PrimExpr merged = IntImm::Int64(1);
  for (int64_t i = 0; i < static_cast<int64_t>(dims.size()); ++i) {
    if (i < begin || i > end) result.push_back(dims[i]);
    if (i >= begin && i <= end) merged = merged * dims[i];
    if (i == end) result.push_back(c.Simplify(merged));
  }
  return c.Reshape(x, result);
}
Any Unflatten(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), result, sizes = c.Sizes(2);
  int64_t axis = c.Axis(1, dims.size());
  PrimExpr known = IntImm::Int64(1);
  for (const PrimExpr& size : sizes) known = IsConstInt(size, -1) ? known : known * size;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(i) != axis) {
      result.push_back(dims[i]);
      continue;
    }
    for (const PrimExpr& size : sizes) {
      result.push_back(IsConstInt(size, -1) ? c.Simplify(floordiv(dims[i], known)) : size);
    }
  }
  return c.Reshape(x, result);
}
/// Elements by strides over the row-major order of x.
Any AsStrided(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims size = c.Sizes(1), stride = c.Sizes(2);
  PrimExpr offset = c.Given(3) ? AsSize(c[3]) : IntImm::Int64(0);
  PrimExpr expected = IntImm::Int64(1);
  bool is_contiguous = IsZero(offset) && c.Equal(Count(size), Count(ShapeOf(x)));
  for (size_t i = size.size(); i-- > 0;) {
    is_contiguous = is_contiguous && (IsOne(size[i]) || c.Equal(stride[i], expected));
    expected = expected * size[i];
  }
  if (is_contiguous) return c.Reshape(x, size);
  Expr index = c.Const(0);
  for (size_t i = 0; i < size.size(); ++i) {
    Dims shape(size.size(), IntImm::Int64(1));
    shape.Set(i, size[i]);
    Expr steps = c.Emit("multiply", c.Arange(size[i]), PrimValue(stride[i]));
    index = c.Emit("add", c.Reshape(steps, shape), index);
  }
  index = c.Emit("add", index, PrimValue(offset));
  Expr flat = c.Emit("reshape", x, Array<Any>{-1});
  return c.Emit("take", flat, index, 0);
}
/// The first elements in row-major order; those that were not there are 0.
Any ResizedTo(Conversion& c, const Dims& size) {
  Expr x = c.Tensor(0);
  PrimExpr have = Count(ShapeOf(x)), need = c.Simplify(Count(size));
  Expr flat = c.Emit("reshape", x, Array<Any>{-1});
  if (!c.Equal(have, need)) {
    PrimExpr missing = c.Simplify(max(need - have, IntImm::Int64(0)));
    Expr zeros = c.Emit("zeros", Dims{missing}, TypeOf(x));
    flat = c.Emit("concat", Array<Expr>{flat, zeros}, 0);
    flat = c.Slice(flat, 0, IntImm::Int64(0), need);
  }
  return c.Reshape(flat, size);
}
Any Resize(Conversion& c) { return ResizedTo(c, c.Sizes(1)); }
Any ResizeAs(Conversion& c) { return ResizedTo(c, ShapeOf(c.Tensor(1))); }
Any Expand(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), sizes = c.Sizes(1);
  size_t extra = sizes.size() - dims.size();
  for (size_t i = extra; i < sizes.size(); ++i) {
    if (IsConstInt(sizes[i], -1)) sizes.Set(i, dims[i - extra]);
  }
  return c.Emit("broadcast_to", x, sizes);
}
Any ExpandAs(Conversion& c) { return c.Emit("broadcast_to", c.Tensor(0), ShapeOf(c.Tensor(1))); }
Any Permute(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return x;
  return c.Emit("permute_dims", x, AnyArray(c.Ints(1)));
}
Any Transpose(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return x;
  std::vector<int64_t> axes = Axes(RankOf(x));
  std::swap(axes[c.Axis(1, RankOf(x))], axes[c.Axis(2, RankOf(x))]);
  return c.Emit("permute_dims", x, AnyArray(axes));
}
Any TransposeMatrix(Conversion& c) {
  Expr x = c.Tensor(0);
  return RankOf(x) < 2 ? x : c.Emit("permute_dims", x, Array<Any>{1, 0});
}
Any MoveDim(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t rank = RankOf(x);
  std::vector<int64_t> from = c.NormalAxes(c.Ints(1), rank), to = c.NormalAxes(c.Ints(2), rank);
  std::vector<int64_t> order(rank, -1), rest;
  for (size_t i = 0; i < from.size(); ++i) order[to[i]] = from[i];
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(from.begin(), from.end(), i) == from.end()) rest.push_back(i);
  }
  for (size_t i = 0, k = 0; i < order.size(); ++i) {
    if (order[i] < 0) order[i] = rest[k++];
  }
  return c.Permute(x, order);
}
Any Unsqueeze(Conversion& c) { return c.Emit("expand_dims", c.Tensor(0), c.Int(1)); }
Any Squeeze(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return x;
  Dims dims = ShapeOf(x);
  auto rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> named = c.Given(1) ? c.Ints(1) : Axes(rank);
  // Axes of other sizes stay, also where they are named. A symbolic size is not 1: PyTorch exports
  // a size of 1 as that number.
  std::vector<int64_t> axes;
  for (int64_t axis : named) {
    if (IsOne(dims[c.NormalAxis(axis, rank)])) axes.push_back(axis);
  }
  return axes.empty() ? x : c.Emit("squeeze", x, AnyArray(axes));
}

// ---- joins and parts ----------------------------------------------------------------------------
/// Tensors of one type. A vector without elements may stand beside anything.
/// The tensor with the sizes of another, but along one axis: the exporter knows by more than we do
/// that they are equal, which is checked when the program runs.
Expr WithSizesOf(Conversion& c, const Expr& other, const Expr& x, int64_t but_axis) {
  const Dims *known = DimsOf(InfoOf(x)), *others = DimsOf(InfoOf(other));
  if (!known || !others || known->size() != others->size()) return x;
  Dims dims = *known, expected = *others;
  if (but_axis >= 0) expected.Set(but_axis, dims[but_axis]);
  if (c.Equal(dims, expected)) return x;
  return c.bb->EmitMatchCast(x, relax::TensorStructInfo(expected, TypeOf(x)));
}
Any Concat(Conversion& c) {
  Array<Expr> tensors = c.Tensors(0), parts;
  std::vector<Any> all(tensors.begin(), tensors.end());
  DataType t = c.ResultType(all);
  int64_t rank = 0;
  for (const Expr& x : tensors) rank = std::max(rank, RankOf(x));
  for (const Expr& x : tensors) {
    bool is_empty = RankOf(x) == 1 && rank > 1 && IsZero(ShapeOf(x)[0]);
    if (is_empty) continue;
    Expr part = c.Cast(x, t);
    int64_t axis = c.Axis(1, rank);
    parts.push_back(parts.empty() ? part : WithSizesOf(c, parts[0], part, axis));
  }
  return c.Emit("concat", relax::Tuple(parts), c.Int(1));
}
Any Stack(Conversion& c) {
  Array<Expr> tensors = c.Tensors(0), parts;
  DataType t = c.ResultType(std::vector<Any>(tensors.begin(), tensors.end()));
  for (const Expr& x : tensors) {
    Expr part = c.Cast(x, t);
    parts.push_back(parts.empty() ? part : WithSizesOf(c, parts[0], part, -1));
  }
  return c.Emit("stack", relax::Tuple(parts), c.Int(1));
}
/// The parts as a list: one part is the tensor itself to the operator.
Any SplitAt(Conversion& c, const Expr& x, const Any& sections, size_t n, int64_t axis) {
  if (n == 1) return Array<Any>{x};
  return c.Emit("split", x, sections, axis);
}
Any SplitWithSizes(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims sizes = c.Sizes(1);
  std::vector<int64_t> ends;
  int64_t end = 0;
  int64_t axis = c.Axis(2, RankOf(x));
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    auto size = AsConstInt(c.Simplify(sizes[i]));
    if (!size) {  // symbolic parts are slices
      Array<Any> parts;
      PrimExpr begin = IntImm::Int64(0);
      for (const PrimExpr& s : sizes) {
        parts.push_back(c.Slice(x, axis, begin, begin + s));
        begin = begin + s;
      }
      return parts;
    }
    ends.push_back(end += *size);
  }
  return SplitAt(c, x, AnyArray(ends), sizes.size(), c.Int(2));
}
/// a / b where it is a number without rest, whatever the symbolic sizes are.
std::optional<int64_t> WholeQuotient(const Conversion& c, const PrimExpr& a, const PrimExpr& b) {
  auto quotient = AsConstInt(c.Simplify(floordiv(a, b)));
  return quotient && c.Equal(b * IntImm::Int64(*quotient), a) ? quotient : std::nullopt;
}
Any Split(Conversion& c) {
  if (ListOf(c[1])) return SplitWithSizes(c);
  Expr x = c.Tensor(0);
  int64_t axis = c.Axis(2, RankOf(x));
  PrimExpr along = ShapeOf(x)[axis], part = c.Sizes(1)[0];
  auto extent = AsConstInt(along), constant = AsConstInt(part);
  if (!extent || !constant) {
    auto n = WholeQuotient(c, along, part);
    if (!n) TVM_REFUSE(c, NotImplementedError) << "expected a constant size to split";
    return SplitAt(c, x, *n, *n, c.Int(2));
  }
  int64_t size = *constant;
  int64_t n = size == 0 ? 1 : std::max<int64_t>((*extent + size - 1) / size, 1);
  // Sections divide evenly up to the last one; other sizes are given by where they end.
  if ((*extent + n - 1) / n == size) return SplitAt(c, x, n, n, c.Int(2));
  std::vector<int64_t> ends;
  for (int64_t i = 1; i < n; ++i) ends.push_back(i * size);
  return SplitAt(c, x, AnyArray(ends), n, c.Int(2));
}
Any Chunk(Conversion& c) {
  Expr x = c.Tensor(0);
  auto extent = AsConstInt(ShapeOf(x)[c.Axis(2, RankOf(x))]);
  if (!extent) TVM_REFUSE(c, NotImplementedError) << "expected a constant size to split";
  int64_t size = std::max<int64_t>((*extent + c.Int(1) - 1) / c.Int(1), 1);
  int64_t n = std::max<int64_t>((*extent + size - 1) / size, 1);
  std::vector<int64_t> ends;
  for (int64_t i = 1; i < n; ++i) ends.push_back(i * size);
  bool is_even = (*extent + n - 1) / n == size;
  return SplitAt(c, x, is_even ? Any(n) : Any(AnyArray(ends)), n, c.Int(2));
}
Any Unbind(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t axis = c.Axis(1, RankOf(x));
  auto n = AsConstInt(ShapeOf(x)[axis]);
  if (!n) TVM_REFUSE(c, AssertionError) << "expected a constant size along the axis";
  if (*n == 0) return Array<Any>();
  if (*n == 1) return Array<Any>{c.Emit("squeeze", x, Array<Any>{c.Int(1)})};
  Expr parts = c.Emit("split", x, *n, c.Int(1));
  Array<Expr> items;
  for (int64_t i = 0; i < *n; ++i) {
    items.push_back(c.Emit("squeeze", c.Bind(TupleGetItem(parts, i)), Array<Any>{c.Int(1)}));
  }
  return c.BindTuple(items);
}
Any GetItem(Conversion& c) {
  if (auto list = ListOf(c[0])) {
    int64_t i = c.Int(1), n = (*list).size();
    if (i < -n || i >= n) {
      TVM_REFUSE(c, IndexError) << "expected an index below " << n << ", got " << i;
    }
    return (*list)[i < 0 ? i + n : i];
  }
  auto* expr = c[0].as<RelaxExprObj>();
  if (expr && relax::GetStructInfo(ffi::GetRef<Expr>(expr)).as<relax::TupleStructInfoObj>()) {
    return c.Bind(TupleGetItem(ffi::GetRef<Expr>(expr), c.Int(1)));
  }
  TVM_REFUSE(c, TypeError) << "expected a value of several items, got " << c[0].GetTypeKey();
  TVM_FFI_UNREACHABLE();
}

// ---- copies -------------------------------------------------------------------------------------
/// Symbolic numbers of copies are dimensions of their own, which are then merged.
Any Repeat(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims repeats = c.Sizes(1), dims = ShapeOf(x), single, both, merged;
  if (std::all_of(repeats.begin(), repeats.end(),
                  [](const PrimExpr& n) { return AsConstInt(n).has_value(); })) {
    return c.Emit("tile", x, AnyArray(c.Ints(1)));
  }
  for (size_t i = 0; i < repeats.size(); ++i) {
    size_t extra = repeats.size() - dims.size();
    PrimExpr dim = i < extra ? IntImm::Int64(1) : dims[i - extra];
    single.push_back(IntImm::Int64(1));
    single.push_back(dim);
    both.push_back(repeats[i]);
    both.push_back(dim);
    merged.push_back(c.Simplify(repeats[i] * dim));
  }
  return c.Reshape(c.BroadcastTo(c.Reshape(x, single), both), merged);
}
Any RepeatInterleave(Conversion& c) {
  if (IsTensor(c[1])) TVM_REFUSE(c, NotImplementedError) << "expected one number of repeats";
  Any axis = c.Given(2) ? Any(c.Axis(2, RankOf(c.Tensor(0)))) : Any(nullptr);
  return c.Emit("repeat", c.Tensor(0), c.Int(1), axis);
}
Any Flip(Conversion& c) {
  Expr x = c.Tensor(0);
  for (int64_t axis : c.Ints(1)) x = RankOf(x) == 0 ? x : c.Emit("flip", x, axis);
  return x;
}
Any Roll(Conversion& c) {
  Expr x = c.Tensor(0);
  std::vector<int64_t> shifts = c.Ints(1), axes = c.Ints(2);
  if (axes.empty() && shifts.size() != 1) {
    TVM_REFUSE(c, ValueError) << "expected one shift without dims, got " << shifts.size();
  }
  if (!axes.empty() && axes.size() != shifts.size()) {
    TVM_REFUSE(c, ValueError) << "expected as many dims as shifts (" << shifts.size() << "), got "
                              << axes.size();
  }
  Dims shape = ShapeOf(x);
  bool is_flat = axes.empty();
  Expr result = is_flat ? c.Emit("reshape", x, Array<Any>{-1}) : x;
  if (is_flat) axes = {0};
  for (size_t i = 0; i < axes.size() && RankOf(result) > 0; ++i) {
    int64_t axis = c.NormalAxis(axes[i], RankOf(result));
    PrimExpr n = ShapeOf(result)[axis];
    if (IsZero(n)) continue;
    PrimExpr shift = c.Simplify(floormod(IntImm::Int64(shifts[i]), n));
    if (IsZero(shift)) continue;
    Expr first = c.Slice(result, axis, IntImm::Int64(0), n - shift);
    Expr second = c.Slice(result, axis, n - shift, n);
    result = c.Emit("concat", relax::Tuple({second, first}), axis);
  }
  return is_flat ? c.Reshape(result, shape) : result;
}
Any Meshgrid(Conversion& c) {
  Array<Expr> tensors = c.Tensors(0), vectors;
  for (const Expr& x : tensors) {
    vectors.push_back(RankOf(x) == 0 ? c.Reshape(x, {IntImm::Int64(1)}) : x);
  }
  if (vectors.size() == 1) return Array<Any>{vectors[0]};
  return c.Emit("meshgrid", relax::Tuple(vectors), c.Given(1) ? String(c.Text(1)) : String("ij"));
}
/// The diagonal of two axes, as the last one.
Any Diagonal(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t rank = RankOf(x), offset = c.Int(1);
  int64_t a = c.Axis(2, rank), b = c.Axis(3, rank);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != a && i != b) order.push_back(i);
  }
  order.push_back(a);
  order.push_back(b);
  Expr turned = c.Permute(x, order);
  Dims dims = ShapeOf(turned), result(dims.begin(), dims.end() - 2);
  PrimExpr row = IntImm::Int64(std::max<int64_t>(-offset, 0));
  PrimExpr column = IntImm::Int64(std::max<int64_t>(offset, 0));
  PrimExpr length =
      c.Simplify(max(min(dims[rank - 2] - row, dims[rank - 1] - column), IntImm::Int64(0)));
  result.push_back(length);
  if (IsZero(length)) return c.Emit("zeros", result, TypeOf(x));
  Expr steps = c.Arange(length);
  Dims flat(dims.begin(), dims.end() - 2);
  flat.push_back(c.Simplify(dims[rank - 2] * dims[rank - 1]));
  Expr scaled = c.Emit("multiply", steps, PrimValue(c.Simplify(dims[rank - 1] + IntImm::Int64(1))));
  Expr at = c.Emit("add", scaled, PrimValue(c.Simplify(row * dims[rank - 1] + column)));
  return c.Emit("take", c.Reshape(turned, flat), at, rank - 2);
}
Any PixelShuffle(Conversion& c) { return c.Emit("nn.pixel_shuffle", c.Tensor(0), c.Int(1)); }
Any PixelUnshuffle(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), split(dims.begin(), dims.end() - 2), result(dims.begin(), dims.end() - 3);
  int64_t rank = RankOf(x);
  PrimExpr r = IntImm::Int64(c.Int(1));
  PrimExpr height = floordiv(dims[rank - 2], r), width = floordiv(dims[rank - 1], r);
  for (const PrimExpr& d : {height, r, width, r}) split.push_back(d);
  result.push_back(dims[rank - 3] * r * r);
  result.push_back(height);
  result.push_back(width);
  std::vector<int64_t> order = Axes(rank - 2);
  for (int64_t i : {rank - 1, rank + 1, rank - 2, rank}) order.push_back(i);
  return c.Reshape(c.Permute(c.Reshape(x, split), order), result);
}

TVM_REGISTER() {
  Converter(
      "view.default reshape.default _unsafe_view.default _reshape_copy.default "
      "view_copy.default",
      "self, size", &View);
  Converter("view.dtype", "self, dtype", &ViewAs);
  Converter("reshape_as.default view_as.default", "self, other", &ReshapeAs);
  Converter("flatten.using_ints", "self, start_dim=0, end_dim=-1", &Flatten);
  Converter("unflatten.int", "self, dim, sizes", &Unflatten);
  Converter("resize.default", "self, size, memory_format=None", &Resize);
  Converter("resize_as.default", "self, the_template, memory_format=None", &ResizeAs);
  Converter("as_strided.default as_strided_copy.default", "self, size, stride, storage_offset=None",
            &AsStrided);
  Converter("expand.default expand_copy.default", "self, size, implicit=False", &Expand);
  Converter("broadcast_to.default", "self, size", &Expand);
  Converter("expand_as.default", "self, other", &ExpandAs);
  Converter("permute.default permute_copy.default", "self, dims", &Permute);
  Converter("transpose.int transpose_copy.int swapaxes.default swapdims.default",
            "self, dim0, dim1", &Transpose);
  Converter("t.default t_copy.default numpy_T.default", "self", &TransposeMatrix);
  Converter("movedim.intlist movedim.int moveaxis.intlist moveaxis.int",
            "self, source, destination", &MoveDim);
  Converter("unsqueeze.default unsqueeze_copy.default", "self, dim", &Unsqueeze);
  Converter("squeeze.default squeeze.dim squeeze.dims squeeze_copy.dim squeeze_copy.dims",
            "self, dim=None", &Squeeze);
  Converter("cat.default concat.default concatenate.default", "tensors, dim=0", &Concat);
  Converter("stack.default", "tensors, dim=0", &Stack);
  Converter("split_with_sizes.default split_with_sizes_copy.default", "self, split_sizes, dim=0",
            &SplitWithSizes);
  Converter("split.Tensor split_copy.Tensor split.sizes", "self, split_size, dim=0", &Split);
  Converter("chunk.default", "self, chunks, dim=0", &Chunk);
  Converter("unbind.int unbind_copy.int", "self, dim=0", &Unbind);
  Converter("_operator.getitem", "self, index", &GetItem);
  Converter("repeat.default", "self, repeats", &Repeat);
  Converter("tile.default", "self, dims", &Repeat);
  Converter("repeat_interleave.self_int", "self, repeats, dim=None, output_size=None",
            &RepeatInterleave);
  Converter("flip.default", "self, dims", &Flip);
  Converter("roll.default", "self, shifts, dims=[]", &Roll);
  Converter("meshgrid.default meshgrid.indexing", "tensors, indexing=None", &Meshgrid);
  Converter("diagonal.default diagonal_copy.default", "self, offset=0, dim1=0, dim2=1", &Diagonal);
  Converter("pixel_shuffle.default", "self, upscale_factor", &PixelShuffle);
  Converter("pixel_unshuffle.default", "self, downscale_factor", &PixelUnshuffle);
}

}  // namespace
}  // namespace tvm::frontend::torch
