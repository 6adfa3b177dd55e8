// SPDX-License-Identifier: Apache-2.0
// Different elements, repeats, segments: results whose size, or whose parts, depend on the data.
#include <limits>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {
namespace {

constexpr DataType kPlace = DataType::Int(64);

PrimExpr Num(int64_t value) { return IntImm::Int64(value); }
Expr Vector(Conversion& c, const Expr& x) { return c.Emit("reshape", x, Array<Any>{-1}); }
/// An item of the result that was not asked for, in the type that PyTorch gives it.
Expr NoElements(Conversion& c, size_t item = 0) {
  auto metas = ListOf(c.meta());
  auto* meta = metas && item < (*metas).size() ? (*metas)[item].as<TensorMetaObj>() : nullptr;
  return c.Emit("zeros", Array<Any>{0}, meta ? ParseType(meta->dtype) : kPlace);
}
/// Whether an item of the result is asked for by its flag, or has elements in PyTorch anyhow.
bool IsAsked(Conversion& c, size_t flag, size_t item) {
  auto metas = ListOf(c.meta());
  auto* meta = metas && item < (*metas).size() ? (*metas)[item].as<TensorMetaObj>() : nullptr;
  bool is_empty = !meta || (meta->sizes.size() == 1 && meta->sizes[0].try_cast<int64_t>() == 0);
  return c.Flag(flag) || !is_empty;
}
/// A size that only running tells, as a vector of one element has it.
PrimExpr SizeIn(Conversion& c, const Expr& vector, const char* name) {
  tir::SizeVar n(c.bb->GetUniqueName(name), kPlace);
  c.bb->EmitMatchCast(c.Emit("tensor_to_shape", vector), relax::ShapeStructInfo(Dims{n}));
  return n;
}

// ---- different elements -------------------------------------------------------------------------
/// (elements, where each of x went, how often each occurs); what is not asked for is empty.
Any UniqueOf(Conversion& c, const Expr& x, const Any& axis, const Dims& inverse_shape,
             size_t inverse_flag, size_t count_flag) {
  bool inverse = IsAsked(c, inverse_flag, 1), counts = IsAsked(c, count_flag, 2);
  Expr all = c.Emit("unique", x, true, false, inverse, counts, axis);
  if (!inverse && !counts) return Array<Any>{all, NoElements(c, 1), NoElements(c, 2)};
  int64_t item = 0;
  Array<Any> results = {c.Bind(TupleGetItem(all, item++)), NoElements(c, 1), NoElements(c, 2)};
  if (inverse) {
    Dims flat = {c.Simplify(Count(inverse_shape))};
    Expr places = c.bb->EmitMatchCast(c.Bind(TupleGetItem(all, item++)),
                                      relax::TensorStructInfo(flat, kPlace));
    results.Set(1, c.Reshape(places, inverse_shape));
  }
  if (counts) results.Set(2, c.Bind(TupleGetItem(all, item)));
  return results;
}
Any Unique(Conversion& c) {
  Expr x = c.Tensor(0);
  return UniqueOf(c, Vector(c, x), nullptr, ShapeOf(x), 2, 3);
}
/// The same without counts.
Any UniquePair(Conversion& c) {
  Expr x = c.Tensor(0);
  Array<Any> args = {x, true, c.Flag(2), false};
  Array<Any> all = c.importer()->Apply("aten._unique2.default", args).cast<Array<Any>>();
  return Array<Any>{all[0], all[1]};
}
Any UniqueAlong(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t axis = c.Axis(1, RankOf(x));
  return UniqueOf(c, x, axis, {ShapeOf(x)[axis]}, 3, 4);
}
/// The first of each run of equal slices.
Any UniqueConsecutive(Conversion& c) {
  Expr given = c.Tensor(0), x = c.Given(3) ? given : Vector(c, given);
  int64_t axis = c.Given(3) ? c.Axis(3, RankOf(x)) : 0;
  PrimExpr n = ShapeOf(x)[axis];
  if (IsZero(n)) return Array<Any>{x, NoElements(c, 1), NoElements(c, 2)};
  Expr differs = c.Emit("not_equal", c.Slice(x, axis, Num(1), n),
                        c.Slice(x, axis, Num(0), c.Simplify(n - Num(1))));
  std::vector<int64_t> others;
  for (int64_t i = 0; i < RankOf(x); ++i) {
    if (i != axis) others.push_back(i);
  }
  differs = c.Cast(differs, kPlace);
  if (!others.empty()) differs = c.Emit("max", differs, AnyArray(others));
  Expr first = c.Emit("ones", Array<Any>{1}, kPlace);
  Expr begins = c.Emit("concat", Tuple({first, differs}), 0);
  Expr at = c.Emit("take", Positions(c, begins), c.Const(0), 0);
  Array<Any> results = {c.Emit("take", x, at, axis), NoElements(c, 1), NoElements(c, 2)};
  bool inverse = IsAsked(c, 1, 1), counts = IsAsked(c, 2, 2);
  if (!inverse && !counts) return results;
  Expr place = c.Emit("subtract", c.Emit("cumsum", begins, 0, kPlace), c.Const(1));
  if (inverse) results.Set(1, c.Given(3) ? place : c.Reshape(place, ShapeOf(given)));
  if (counts) {
    Expr none = c.Emit("zeros", ShapeOf(at), kPlace), ones = c.Emit("ones_like", place);
    results.Set(2, c.Emit("scatter_elements", none, place, ones, 0, "add"));
  }
  return results;
}
/// The positions of what is not 0, as many rows as said: cut off, or filled up.
Any NonzeroStatic(Conversion& c) {
  Expr x = c.Tensor(0);
  PrimExpr size = AsSize(c[1]);
  int64_t rank = RankOf(x);
  if (rank == 0) x = c.Reshape(x, {Num(1)});
  Expr rows = c.Permute(Positions(c, x), {1, 0});
  if (rank == 0) rows = c.Slice(rows, 1, Num(0), Num(0));
  Expr rest = c.Emit("full", Dims{size, Num(rank)}, c.Const(c.Int(2)), kPlace);
  return c.Slice(c.Emit("concat", Tuple({rows, rest}), 0), 0, Num(0), size);
}
/// [0] * repeats[0] + [1] * repeats[1] + …
Any RepeatPositions(Conversion& c) {
  Expr repeats = c.Cast(c.Tensor(0), kPlace);
  if (IsZero(ShapeOf(repeats)[0])) return NoElements(c);
  Expr ends = c.Emit("cumsum", repeats, 0, kPlace);
  PrimExpr count = c.Given(1) ? AsSize(c[1]) : PrimExpr();
  if (!count.defined()) {
    PrimExpr n = ShapeOf(ends)[0];
    count = SizeIn(c, c.Slice(ends, 0, c.Simplify(n - Num(1)), n), "repeats");
  }
  Array<Any> args = {ends, c.Arange(count), false, true};
  return c.importer()->Apply("aten.searchsorted.Tensor", args);
}

// ---- segments -----------------------------------------------------------------------------------
/// Where segments begin and end along an axis, from their lengths or offsets.
Expr SegmentEnds(Conversion& c, const Any& lengths, const Any& offsets, int64_t axis) {
  if (offsets != nullptr) return c.Cast(offsets.cast<Expr>(), kPlace);
  Expr counts = c.Cast(lengths.cast<Expr>(), kPlace);
  Dims one = ShapeOf(counts);
  one.Set(axis, Num(1));
  Expr sums = c.Emit("cumsum", counts, axis, kPlace);
  return c.Emit("concat", Tuple({c.Emit("zeros", one, kPlace), sums}), axis);
}
/// The number of elements of each segment, in the shape of results of `rank`.
Expr SegmentSizes(Conversion& c, const Expr& ends, int64_t axis, int64_t rank) {
  PrimExpr n = ShapeOf(ends)[axis];
  Expr count = c.Emit("subtract", c.Slice(ends, axis, Num(1), n),
                      c.Slice(ends, axis, Num(0), c.Simplify(n - Num(1))));
  for (int64_t i = axis + 1; i < rank; ++i) count = c.Emit("expand_dims", count, i);
  return count;
}
struct SegmentKind {
  const char* name;
  double none;  // the result over no elements
  PrimExpr (*reduce)(PrimExpr, Array<tir::IterVar>);
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const SegmentKind& SegmentKindOf(Conversion& c, const std::string& name) {
  static const SegmentKind kinds[] = {
      {"sum", 0, [](PrimExpr e, Array<tir::IterVar> k) { return te::sum(e, k); }},
      {"mean", 0, [](PrimExpr e, Array<tir::IterVar> k) { return te::sum(e, k); }},
      {"max", -kInfinity, [](PrimExpr e, Array<tir::IterVar> k) { return te::max(e, k); }},
      {"min", kInfinity, [](PrimExpr e, Array<tir::IterVar> k) { return te::min(e, k); }},
      {"prod", 1, [](PrimExpr e, Array<tir::IterVar> k) { return te::prod(e, k); }},
  };
  for (const SegmentKind& kind : kinds) {
    if (name == kind.name) return kind;
  }
  TVM_REFUSE(c, ValueError) << "reduce: expected sum, mean, max, min or prod, got " << name;
  TVM_FFI_UNREACHABLE();
}
/// Whether position k of an axis lies in the segment at a place, whose rows `ends` has.
PrimExpr InSegment(const te::Tensor& ends, const Array<PrimExpr>& segment, int64_t axis,
                   const PrimExpr& k) {
  Array<PrimExpr> row(segment.begin(), segment.begin() + axis + 1);
  PrimExpr begin = ends(row);
  row.Set(axis, segment[axis] + Num(1));
  return begin <= k && k < ends(row);
}
/// Neighbouring slices of an axis reduced, segment by segment.
Expr Reduced(Conversion& c, const Expr& x, const Expr& ends, int64_t axis,
             const SegmentKind& kind) {
  return c.Compute(
      "segment_reduce", {x, ends}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor data = in[0], bounds = in[1];
        Array<PrimExpr> shape = data->shape;
        shape.Set(axis, bounds->shape[axis] - Num(1));
        tir::IterVar k = te::reduce_axis(Range::FromMinExtent(Num(0), data->shape[axis]));
        auto element = [&](const Array<tir::Var>& i) {
          Array<PrimExpr> at(i.begin(), i.end());
          PrimExpr inside = InSegment(bounds, at, axis, k->var);
          at.Set(axis, k->var);
          return kind.reduce(tir::Select(inside, data(at), MakeConst(data->dtype, kind.none)), {k});
        };
        return {te::compute(shape, element, "segments")};
      });
}
/// Each element gets the value of its segment; those of no segment 0.
Expr Spread(Conversion& c, const Expr& values, const Expr& ends, int64_t axis, const Dims& shape) {
  return c.Compute(
      "segment_spread", {values, ends}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor data = in[0], bounds = in[1];
        tir::IterVar s = te::reduce_axis(Range::FromMinExtent(Num(0), data->shape[axis]));
        auto element = [&](const Array<tir::Var>& i) {
          Array<PrimExpr> at(i.begin(), i.end());
          at.Set(axis, s->var);
          PrimExpr inside = InSegment(bounds, at, axis, i[axis]);
          return te::sum(tir::Select(inside, data(at), MakeZero(data->dtype)), {s});
        };
        return {te::compute(Array<PrimExpr>(shape.begin(), shape.end()), element, "elements")};
      });
}
Any SegmentReduce(Conversion& c) {
  Expr x = c.Tensor(0);
  const SegmentKind& kind = SegmentKindOf(c, c.Text(1));
  std::string how = kind.name;
  int64_t axis = c.Axis(5, RankOf(x));
  Expr ends = SegmentEnds(c, c[2], c[4], axis);
  DataType t = TypeOf(x);
  double first = c.Given(7) ? c.Number(7) : kind.none;
  Expr reduced = Reduced(c, x, ends, axis, kind), start = c.Const(first, t);
  if (how == "max") return c.Emit("maximum", reduced, start);
  if (how == "min") return c.Emit("minimum", reduced, start);
  if (how == "prod") return c.Emit("multiply", reduced, start);
  Expr sum = c.Emit("add", reduced, start);
  if (how == "sum") return sum;
  // The mean; of nothing it is what was given to begin with, or NaN.
  Expr count = SegmentSizes(c, ends, axis, RankOf(x));
  Expr is_empty = c.Emit("equal", count, c.Const(0));
  Expr mean = c.Emit("divide", sum, c.Cast(count, t));
  Expr otherwise = c.Const(c.Given(7) ? first : std::numeric_limits<double>::quiet_NaN(), t);
  return c.Emit("where", is_empty, otherwise, mean);
}
/// The product of the other elements of each element's segment.
Expr ProductOfOthers(Conversion& c, const Expr& x, const Expr& segment, int64_t axis) {
  return c.Compute(
      "segment_others", {x, segment}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor data = in[0], number = in[1];
        tir::IterVar k = te::reduce_axis(Range::FromMinExtent(Num(0), data->shape[axis]));
        auto element = [&](const Array<tir::Var>& i) {
          Array<PrimExpr> own(i.begin(), i.end()), at = own;
          at.Set(axis, k->var);
          PrimExpr counts = equal(number(at), number(own)) && not_equal(k->var, i[axis]);
          return te::prod(tir::Select(counts, data(at), MakeConst(data->dtype, 1)), {k});
        };
        return {te::compute(data->shape, element, "others")};
      });
}
/// Schema: grad, output, data, reduce, lengths, offsets, axis, initial.
Any SegmentReduceBackward(Conversion& c) {
  Expr grad = c.Tensor(0), output = c.Tensor(1), x = c.Tensor(2);
  const SegmentKind& kind = SegmentKindOf(c, c.Text(3));
  std::string how = kind.name;
  int64_t axis = c.Axis(6, RankOf(x));
  Expr ends = SegmentEnds(c, c[4], c[5], axis);
  DataType t = TypeOf(x);
  auto spread = [&](const Expr& values) { return Spread(c, values, ends, axis, ShapeOf(x)); };
  if (how == "sum") return spread(grad);
  if (how == "mean") {
    Expr count = c.Cast(SegmentSizes(c, ends, axis, RankOf(x)), t);
    return spread(c.Emit("divide", grad, c.Emit("maximum", count, c.Const(1.0, t))));
  }
  if (how == "prod") {
    Expr numbers = c.Arange(ShapeOf(grad)[axis]);
    Dims along(RankOf(grad), Num(1));
    along.Set(axis, ShapeOf(grad)[axis]);
    numbers = c.BroadcastTo(c.Reshape(numbers, along), ShapeOf(grad));
    Expr others = ProductOfOthers(c, x, spread(numbers), axis);
    Expr start = c.Const(c.Given(7) ? c.Number(7) : 1, t);
    return c.Emit("multiply", c.Emit("multiply", spread(grad), others), start);
  }
  // Those that are the maximum share its gradient.
  Expr is_it = c.Emit("equal", x, spread(output));
  is_it = c.Cast(c.Emit("logical_or", is_it, c.Emit("isnan", x)), t);
  Expr count = Reduced(c, is_it, ends, axis, SegmentKindOf(c, "sum"));
  Expr share = c.Emit("divide", grad, c.Emit("maximum", count, c.Const(1.0, t)));
  return c.Emit("multiply", is_it, spread(share));
}

// ---- histograms ---------------------------------------------------------------------------------
/// The n + 1 edges of equal intervals: from a given range, or around all elements; none lie between
/// 0 and 1.
Expr EdgesOf(Conversion& c, const Expr& x, int64_t n, const Any& low, const Any& high) {
  DataType t = TypeOf(x);
  Expr from, to;
  if (low != nullptr) {
    from = c.As(low, t);
    to = c.As(high, t);
  } else if (IsZero(c.Simplify(Count(ShapeOf(x))))) {
    from = c.Const(0.0, t);
    to = c.Const(1.0, t);
  } else {
    from = c.Emit("min", x);
    to = c.Emit("max", x);
  }
  Expr is_point = c.Emit("equal", from, to), half = c.Const(0.5, t);
  Expr below = c.Emit("subtract", from, half), above = c.Emit("add", to, half);
  from = c.Emit("where", is_point, below, from);
  to = c.Emit("where", is_point, above, to);
  Expr step = c.Emit("divide", c.Emit("subtract", to, from), c.Const(static_cast<double>(n), t));
  // From the nearer end, so that both ends are exact.
  Expr i = c.Arange(Num(n + 1), t);
  Expr up = c.Emit("add", from, c.Emit("multiply", step, i));
  Expr left = c.Emit("subtract", c.Const(static_cast<double>(n), t), i);
  Expr down = c.Emit("subtract", to, c.Emit("multiply", step, left));
  Expr is_first = c.Emit("less", i, c.Const(static_cast<double>((n + 1) / 2), t));
  return c.Emit("where", is_first, up, down);
}
/// How many rows of (m, d) lie in each cell of a grid, by their weights.
Expr CountCells(Conversion& c, const Expr& rows, const Array<Expr>& edges, const Any& weight,
                bool density) {
  DataType t = TypeOf(rows);
  PrimExpr m = ShapeOf(rows)[0];
  Expr cell, inside;
  Dims shape;
  for (size_t d = 0; d < edges.size(); ++d) {
    Expr x = c.Emit("take", rows, c.Const(static_cast<int64_t>(d)), 1);
    PrimExpr n = c.Simplify(ShapeOf(edges[d])[0] - Num(1));
    Array<Any> args = {edges[d], x, false, true};
    Expr place = c.importer()->Apply("aten.searchsorted.Tensor", args).cast<Expr>();
    // The last interval has its upper end.
    place = c.Emit("minimum", c.Emit("subtract", place, c.Const(1)), SizeTensor(c, n - Num(1)));
    Expr first = c.Emit("take", edges[d], c.Const(0), 0);
    Expr last = c.Emit("take", edges[d], PrimValue(n), 0);
    Expr is_in =
        c.Emit("logical_and", c.Emit("greater_equal", x, first), c.Emit("less_equal", x, last));
    Expr scaled = d ? c.Emit("multiply", cell, PrimValue(n)) : Expr();
    cell = d ? c.Emit("add", scaled, place) : place;
    inside = d ? c.Emit("logical_and", inside, is_in) : is_in;
    shape.push_back(n);
  }
  PrimExpr count = c.Simplify(Count(shape));
  cell = c.Emit("where", inside, cell, SizeTensor(c, count));
  Expr ones =
      weight == nullptr ? c.Emit("ones", Dims{m}, t) : c.Cast(Vector(c, weight.cast<Expr>()), t);
  Expr sums = c.Emit("zeros", Dims{c.Simplify(count + Num(1))}, t);
  sums = c.Emit("scatter_elements", sums, cell, ones, 0, "add");
  Expr result = c.Reshape(c.Slice(sums, 0, Num(0), count), shape);
  if (!density) return result;
  result = c.Emit("divide", result, c.Emit("sum", result));
  for (size_t d = 0; d < edges.size(); ++d) {
    Dims along(shape.size(), Num(1));
    along.Set(d, shape[d]);
    Expr upper = c.Slice(edges[d], 0, Num(1), c.Simplify(shape[d] + Num(1)));
    Expr width = c.Emit("subtract", upper, c.Slice(edges[d], 0, Num(0), shape[d]));
    result = c.Emit("divide", result, c.Reshape(width, along));
  }
  return result;
}
/// (m, d) of (…, d).
Expr AsRows(Conversion& c, const Expr& x) {
  Dims dims = ShapeOf(x);
  PrimExpr width = dims[dims.size() - 1];
  return c.Reshape(x, {c.Simplify(Count(Dims(dims.begin(), dims.end() - 1))), width});
}
Array<Expr> GridEdges(Conversion& c) {
  Expr rows = AsRows(c, c.Tensor(0));
  std::vector<int64_t> bins = c.Ints(1);
  auto range = ListOf(c[2]);
  Array<Expr> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    Expr x = c.Emit("take", rows, c.Const(static_cast<int64_t>(d)), 1);
    Any low = range ? (*range)[2 * d] : Any(nullptr), high = range ? (*range)[2 * d + 1] : low;
    edges.push_back(EdgesOf(c, x, bins[d], low, high));
  }
  return edges;
}
Any HistogramEdges(Conversion& c) {
  Array<Any> results;
  for (const Expr& edges : GridEdges(c)) results.push_back(edges);
  return results;
}
Any HistogramGrid(Conversion& c) {
  return CountCells(c, AsRows(c, c.Tensor(0)), GridEdges(c), c[3], c.Flag(4));
}
Any HistogramOfEdges(Conversion& c) {
  return CountCells(c, AsRows(c, c.Tensor(0)), c.Tensors(1), c[2], c.Flag(3));
}
Expr OneColumn(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Reshape(x, {c.Simplify(Count(ShapeOf(x))), Num(1)});
}
Any HistogramOfCount(Conversion& c) {
  auto range = ListOf(c[2]);
  Any low = range ? (*range)[0] : Any(nullptr), high = range ? (*range)[1] : low;
  Expr edges = EdgesOf(c, Vector(c, c.Tensor(0)), c.Int(1), low, high);
  return Array<Any>{CountCells(c, OneColumn(c), {edges}, c[3], c.Flag(4)), edges};
}
Any HistogramOfTensor(Conversion& c) {
  Expr edges = c.Tensor(1);
  return Array<Any>{CountCells(c, OneColumn(c), {edges}, c[2], c.Flag(3)), edges};
}

// ---- rows ---------------------------------------------------------------------------------------
/// Rows that are looked up and too long, shortened to the largest norm.
Any EmbeddingRenorm(Conversion& c) {
  Expr table = c.Tensor(0), indices = Vector(c, c.Cast(c.Tensor(1), kPlace));
  double largest = c.Number(2);
  DataType t = TypeOf(table);
  Array<Any> args = {table, c[3], Array<Any>{1}, true};
  Expr norm = c.importer()->Apply("aten.linalg_vector_norm.default", args).cast<Expr>();
  Expr used = c.Emit("zeros", Dims{ShapeOf(table)[0]}, kPlace);
  used = c.Emit("scatter_elements", used, indices, c.Emit("ones_like", indices), 0, "update");
  used = c.Emit("expand_dims", used, 1);
  Expr is_long = c.Emit("logical_and", c.Emit("greater", norm, c.Const(largest, t)),
                        c.Emit("greater", used, c.Const(0)));
  Expr factor = c.Emit("divide", c.Const(largest, t), c.Emit("add", norm, c.Const(1e-7, t)));
  factor = c.Emit("where", is_long, factor, c.Const(1.0, t));
  return c.Emit("multiply", table, factor);
}
/// The elements in another shape; those that are new are 0.
Any ResizeElements(Conversion& c) {
  Expr x = Vector(c, c.Tensor(0));
  Dims shape = c.Sizes(1);
  PrimExpr from = ShapeOf(x)[0], to = c.Simplify(Count(shape));
  auto m = AsConstInt(from), n = AsConstInt(to);
  if (!m || !n) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes";
  if (*m > *n) x = c.Slice(x, 0, Num(0), to);
  if (*m < *n) {
    x = c.Emit("concat", Tuple({x, c.Emit("zeros", Dims{Num(*n - *m)}, TypeOf(x))}), 0);
  }
  return c.Reshape(x, shape);
}
/// The product of each row with the matrix of its group, which ends where `offs` says.
Any GroupedProduct(Conversion& c) {
  Expr x = c.Tensor(0), weight = c.Tensor(1);
  if (!c.Given(2) || RankOf(x) != 2 || RankOf(weight) != 3) {
    TVM_REFUSE(c, NotImplementedError) << "expected rows and a matrix for each group, got ranks "
                                       << RankOf(x) << " and " << RankOf(weight);
  }
  DataType t = TypeOf(x);
  Array<Any> args = {c.Cast(c.Tensor(2), kPlace), c.Arange(ShapeOf(x)[0]), false, true};
  Expr group = c.importer()->Apply("aten.searchsorted.Tensor", args).cast<Expr>();
  return c.Compute(
      "grouped_matmul", {x, weight, group}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
        te::Tensor rows = in[0], matrices = in[1], of = in[2];
        tir::IterVar k = te::reduce_axis(Range::FromMinExtent(Num(0), rows->shape[1]));
        DataType wide = t.bits() < 32 ? DataType::Float(32) : t;
        te::Tensor sums = te::compute(
            {rows->shape[0], matrices->shape[2]},
            [&](const Array<tir::Var>& i) {
              // Rows behind the last group belong to none.
              PrimExpr g = min(of(i[0]), matrices->shape[0] - Num(1));
              PrimExpr is_in = of(i[0]) < matrices->shape[0];
              PrimExpr term =
                  cast(wide, rows(i[0], k->var)) * cast(wide, matrices(g, k->var, i[1]));
              return te::sum(tir::Select(is_in, term, MakeZero(wide)), {k});
            },
            "sums");
        if (wide == t) return {sums};
        return {te::compute(
            sums->shape, [&](const Array<tir::Var>& i) { return cast(t, sums(i)); }, "rounded")};
      });
}

TVM_REGISTER() {
  Converter("_unique2.default", "self, sorted=True, return_inverse=False, return_counts=False",
            &Unique);
  Converter("_unique.default", "self, sorted=True, return_inverse=False", &UniquePair);
  Converter("unique_dim.default",
            "self, dim, sorted=True, return_inverse=False, return_counts=False", &UniqueAlong);
  Converter("unique_consecutive.default",
            "self, return_inverse=False, return_counts=False, dim=None", &UniqueConsecutive);
  Converter("nonzero_static.default", "self, size, fill_value=-1", &NonzeroStatic);
  Converter("repeat_interleave.Tensor", "repeats, output_size=None", &RepeatPositions);
  Converter("segment_reduce.default",
            "data, reduce, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, "
            "initial=None",
            &SegmentReduce);
  Converter("_segment_reduce_backward.default",
            "grad, output, data, reduce, lengths=None, offsets=None, axis=0, initial=None",
            &SegmentReduceBackward);
  Converter("histogram.bin_ct", "self, bins=100, range=None, weight=None, density=False",
            &HistogramOfCount);
  Converter("histogram.bins_tensor", "self, bins, weight=None, density=False", &HistogramOfTensor);
  Converter("_histogramdd_bin_edges.default", "self, bins, range=None, weight=None, density=False",
            &HistogramEdges);
  Converter("_histogramdd_from_bin_cts.default",
            "self, bins, range=None, weight=None, density=False", &HistogramGrid);
  Converter("_histogramdd_from_bin_tensors.default", "self, bins, weight=None, density=False",
            &HistogramOfEdges);
  Converter("embedding_renorm.default", "self, indices, max_norm, norm_type", &EmbeddingRenorm);
  Converter("resize.default", "self, size", &ResizeElements);
  Converter("_grouped_mm.default transformers.grouped_mm_fallback.default",
            "self, mat2, offs=None, bias=None, out_dtype=None", &GroupedProduct);
}

}  // namespace
}  // namespace tvm::frontend::torch
