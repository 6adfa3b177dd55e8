// SPDX-License-Identifier: Apache-2.0
// Counts and ranks of elements, and elements put at places that are computed.
#include <cmath>
#include <limits>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr DataType kLong = DataType::Int(64);

Expr Flat(Conversion& c, const Expr& x) { return c.Emit("reshape", x, Array<Any>{-1}); }
Expr Apply(Conversion& c, const char* target, const Array<Any>& args) {
  return c.importer()->Apply(target, args).cast<Expr>();
}
Expr First(Conversion& c, const char* target, const Array<Any>& args) {
  Any result = c.importer()->Apply(target, args);
  if (auto list = ListOf(result)) return (*list)[0].cast<Expr>();
  return c.Bind(TupleGetItem(result.cast<Expr>(), 0));
}
/// The axis moved to the end; the same again moves it back.
Expr ToEnd(Conversion& c, const Expr& x, int64_t axis) {
  std::vector<int64_t> axes = Axes(RankOf(x));
  std::swap(axes[axis], axes.back());
  return c.Permute(x, axes);
}

// ---- counts -------------------------------------------------------------------------------------
/// How many elements lie in each of equal intervals; those outside of all are not counted.
Any Histogram(Conversion& c) {
  Expr x = Flat(c, c.Tensor(0));
  DataType t = TypeOf(x);
  int64_t bins = c.Int(1);
  double low = c.Number(2), high = c.Number(3);
  Expr from = c.Const(low, t), to = c.Const(high, t);
  if (low == high) {  // by the elements, or around the bound where they are all the same
    if (low == 0) {
      from = c.Emit("min", x);
      to = c.Emit("max", x);
    }
    Expr is_point = c.Emit("equal", from, to);
    Expr one = c.Const(1.0, t);
    Expr below = c.Emit("subtract", from, one), above = c.Emit("add", to, one);
    from = c.Emit("where", is_point, below, from);
    to = c.Emit("where", is_point, above, to);
  }
  Expr width = c.Emit("subtract", to, from);
  Expr place = c.Emit("multiply", c.Emit("divide", c.Emit("subtract", x, from), width),
                      c.Const(static_cast<double>(bins), t));
  Expr inside =
      c.Emit("logical_and", c.Emit("greater_equal", x, from), c.Emit("less_equal", x, to));
  Expr bin = c.Emit("clip", c.Cast(c.Emit("floor", place), kLong), 0, bins - 1);
  bin = c.Emit("where", inside, bin, c.Const(bins));
  Expr counts = c.Emit("zeros", Dims{IntImm::Int64(bins + 1)}, t);
  counts = c.Emit("scatter_elements", counts, bin, c.Emit("ones_like", x), 0, "add");
  return c.Slice(counts, 0, IntImm::Int64(0), IntImm::Int64(bins));
}
/// Where values belong among sorted ones: how many of those come before.
Any SearchSorted(Conversion& c) {
  Expr sorted = c.Tensor(0);
  bool right = c.Flag(3);
  if (c.Given(4)) right = c.Text(4) == "right";
  if (c.Given(5)) {
    sorted = c.Emit("gather_elements", sorted, c.Tensor(5), RankOf(sorted) - 1);
  }
  DataType t = c.ResultType({sorted, c[1]});
  sorted = c.Cast(sorted, t);
  Expr x = c.As(c[1], t);
  bool is_scalar = !IsTensor(c[1]) || RankOf(x) == 0;
  if (is_scalar) x = c.Emit("full", ShapeExpr(Dims{IntImm::Int64(1)}), x, t);
  DataType index = c.Flag(2) ? DataType::Int(32) : kLong;
  if (RankOf(sorted) > 1) sorted = c.Emit("expand_dims", sorted, -2);
  Expr values = c.Emit("expand_dims", x, -1);
  // NaN comes last, and is its own equal.
  Expr before = right ? c.Emit("logical_not", c.Emit("less", values, sorted))
                      : c.Emit("less", sorted, values);
  Expr found = c.Emit("sum", c.Cast(before, index), Array<Any>{-1});
  return is_scalar ? c.Reshape(found, {}) : found;
}
/// The smallest of the values that occur most often along an axis, and the last place of it.
Any Mode(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, kLong)};
  int64_t axis = c.Axis(1, RankOf(x));
  DataType t = TypeOf(x);
  Expr rows = ToEnd(c, x, axis);
  Expr same = c.Emit("equal", c.Emit("expand_dims", rows, -1), c.Emit("expand_dims", rows, -2));
  Expr counts = c.Emit("sum", c.Cast(same, kLong), Array<Any>{-1});
  Expr is_mode = c.Emit("equal", counts, c.Emit("max", counts, Array<Any>{-1}, true));
  Expr none = t.is_float() ? c.Const(kInf, t) : c.As(Any(max_value(t)), t);
  Expr mode = c.Emit("min", c.Emit("where", is_mode, rows, none), Array<Any>{-1}, true);
  Expr places = c.Arange(ShapeOf(rows)[RankOf(rows) - 1]);
  Expr is_it = c.Emit("equal", rows, mode);
  Expr place = c.Emit("max", c.Emit("where", is_it, places, c.Const(-1)), Array<Any>{-1}, true);
  Array<Any> results;
  for (const Expr& result : {mode, place}) {
    Expr moved = ToEnd(c, result, axis);
    results.push_back(c.Flag(2) ? moved : c.Emit("squeeze", moved, Array<Any>{axis}));
  }
  return results;
}
/// The lower median of what is not NaN, which is sorted last.
Any NanMedian(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, kLong)};
  int64_t axis = c.Axis(1, RankOf(x));
  Expr order = c.Emit("argsort", x, axis, false, kLong);
  Expr numbers = TypeOf(x).is_float() ? c.Cast(c.Emit("logical_not", c.Emit("isnan", x)), kLong)
                                      : c.Emit("ones_like", x, kLong);
  Expr known = c.Emit("sum", numbers, Array<Any>{axis}, true);
  Expr middle = c.Emit("floor_divide", c.Emit("subtract", known, c.Const(1)), c.Const(2));
  middle = c.Emit("maximum", middle, c.Const(0));
  Expr place = c.Emit("gather_elements", order, middle, axis);
  Expr value = c.Emit("gather_elements", x, place, axis);
  if (c.Flag(2)) return Array<Any>{value, place};
  return Array<Any>{c.Emit("squeeze", value, Array<Any>{axis}),
                    c.Emit("squeeze", place, Array<Any>{axis})};
}
Any NanMedianOfAll(Conversion& c) {
  return First(c, "aten.nanmedian.dim", {Flat(c, c.Tensor(0)), 0, false});
}
/// log of the running sum of exp, around the running maximum.
Any LogCumulativeSumExp(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return x;
  int64_t axis = c.Axis(1, RankOf(x)), last = RankOf(x) - 1;
  DataType t = TypeOf(x);
  Expr rows = ToEnd(c, x, axis);
  Expr top = First(c, "aten.cummax.default", {rows, last});
  Expr is_empty = c.Emit("equal", top, c.Const(-kInf, t));
  Expr shift = c.Emit("where", is_empty, c.Const(0.0, t), top);
  Expr terms = c.Emit(
      "exp", c.Emit("subtract", c.Emit("expand_dims", rows, -2), c.Emit("expand_dims", shift, -1)));
  Expr place = c.Arange(ShapeOf(rows)[last]);
  Expr is_before =
      c.Emit("less_equal", c.Emit("expand_dims", place, 0), c.Emit("expand_dims", place, 1));
  Expr sum = c.Emit("sum", c.Emit("where", is_before, terms, c.Const(0.0, t)), Array<Any>{-1});
  return ToEnd(c, c.Emit("add", c.Emit("log", sum), shift), axis);
}

// ---- elements at places -------------------------------------------------------------------------
Any Put(Conversion& c) {
  Expr x = c.Tensor(0), flat = Flat(c, x), index = Flat(c, c.Cast(c.Tensor(1), kLong));
  PrimExpr count = c.Simplify(Count(ShapeOf(x)));
  Expr moved = c.Emit("add", index, PrimValue(count));
  index = c.Emit("where", c.Emit("less", index, c.Const(0)), moved, index);
  Expr source = Flat(c, c.Cast(c.Tensor(2), TypeOf(x)));
  const char* how = c.Flag(3) ? "add" : "update";
  return c.Reshape(c.Emit("scatter_elements", flat, index, source, 0, how), ShapeOf(x));
}
/// The elements that as_strided shows, replaced.
Any StridedScatter(Conversion& c) {
  Expr x = c.Tensor(0), source = c.Cast(c.Tensor(1), TypeOf(x));
  PrimExpr count = c.Simplify(Count(ShapeOf(x)));
  Expr places = c.Arange(count);
  Any offset = c.Given(4) ? c[4] : Any(0);
  Expr shown = Apply(c, "aten.as_strided.default", {places, c[2], c[3], offset});
  Expr changed =
      c.Emit("scatter_elements", Flat(c, x), Flat(c, shown), Flat(c, source), 0, "update");
  return c.Reshape(changed, ShapeOf(x));
}
/// The diagonal of two axes replaced.
Any DiagonalScatter(Conversion& c) {
  Expr x = c.Tensor(0);
  PrimExpr count = c.Simplify(Count(ShapeOf(x)));
  Expr places = c.Reshape(c.Arange(count), ShapeOf(x));
  Expr shown = Apply(c, "aten.diagonal.default", {places, c[2], c[3], c[4]});
  Expr source = c.BroadcastTo(c.Cast(c.Tensor(1), TypeOf(x)), ShapeOf(shown));
  Expr changed =
      c.Emit("scatter_elements", Flat(c, x), Flat(c, shown), Flat(c, source), 0, "update");
  return c.Reshape(changed, ShapeOf(x));
}
/// Slices along an axis reduced into those at the indices.
Any IndexReduce(Conversion& c) {
  Expr x = c.Tensor(0), source = c.Tensor(3);
  int64_t rank = std::max<int64_t>(RankOf(x), 1), axis = c.Axis(1, RankOf(x));
  if (RankOf(x) == 0) source = c.Reshape(source, {});
  Expr index = c.Tensor(2);
  Dims shape(rank, IntImm::Int64(1));
  shape.Set(axis, Count(ShapeOf(index)));
  if (RankOf(x) > 0) index = c.BroadcastTo(c.Reshape(index, shape), ShapeOf(source));
  return Apply(c, "aten.scatter_reduce.two", {x, axis, index, source, c[4], c[5]});
}

// ---- numbers ------------------------------------------------------------------------------------
Any Distance(Conversion& c) {
  Expr gap = Apply(c, "aten.sub.Tensor", {c[0], c[1]});
  return Apply(c, "aten.linalg_vector_norm.default", {gap, c[2]});
}
/// 0 or π: the angle of a real number.
Any Angle(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  DataType t = TypeOf(x);
  Expr angle = c.Emit("where", c.Emit("less", x, c.Const(0.0, t)), c.Const(std::acos(-1.0), t),
                      c.Const(0.0, t));
  return c.Emit("where", c.Emit("isnan", x), x, angle);
}
/// x times 2 to the power of y
Any LoadExponent(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  if (IsIntegral(t)) t = c.default_dtype();
  return c.Emit("multiply", c.As(c[0], t), c.Emit("power", c.Const(2.0, t), c.As(c[1], t)));
}
/// x = mantissa · 2^exponent with a mantissa in [1/2, 1), from the bits of the number.
Any SplitExponent(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x), word = DataType::Int(32);
  if (t != DataType::Float(32)) {
    TVM_REFUSE(c, NotImplementedError) << "expected float32, got " << t;
  }
  struct Split {
    PrimExpr is_plain, bits, exponent;
  };
  auto split = [&](const PrimExpr& v) -> Split {
    PrimExpr is_tiny = abs(v) < MakeConst(t, std::ldexp(1.0, -126));
    PrimExpr scaled = tir::Select(is_tiny, v * MakeConst(t, std::ldexp(1.0, 24)), v);
    PrimExpr bits = reinterpret(word, scaled);
    PrimExpr field = floormod(shift_right(bits, MakeConst(word, 23)), MakeConst(word, 256));
    PrimExpr is_plain = !(equal(v, MakeZero(t)) || isnan(v) || isinf(v));
    PrimExpr exponent = field - MakeConst(word, 126) -
                        tir::Select(is_tiny, MakeConst(word, 24), MakeConst(word, 0));
    return {is_plain, bits, exponent};
  };
  Expr mantissa = Elementwise(c, "mantissa", {x}, [&](const std::vector<PrimExpr>& v) {
    Split s = split(v[0]);
    int64_t kept = static_cast<int32_t>(0x807fffffU);  // the sign and the digits
    PrimExpr bits =
        bitwise_or(bitwise_and(s.bits, MakeConst(word, kept)), MakeConst(word, int64_t{126} << 23));
    return tir::Select(s.is_plain, reinterpret(t, bits), v[0]);
  });
  Expr exponent = Elementwise(c, "exponent", {x}, [&](const std::vector<PrimExpr>& v) {
    Split s = split(v[0]);
    return tir::Select(s.is_plain, s.exponent, MakeZero(word));
  });
  return Array<Any>{mantissa, exponent};
}
/// The sum over some axes of a product of three tensors, each with axes of 1 put in.
Any Trilinear(Conversion& c) {
  Expr product;
  for (size_t i = 0; i < 3; ++i) {
    Expr x = c.Tensor(i);
    for (int64_t axis : c.Ints(3 + i)) x = c.Emit("expand_dims", x, axis);
    product = product.defined() ? c.Emit("multiply", product, x) : x;
  }
  return c.Emit("sum", product, AnyArray(c.Ints(6)));
}

TVM_REGISTER() {
  Converter("histc.default", "self, bins=100, min=0, max=0", &Histogram);
  Converter("searchsorted.Tensor searchsorted.Scalar",
            "sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None",
            &SearchSorted);
  Converter("mode.default", "self, dim=-1, keepdim=False", &Mode);
  Converter("nanmedian.dim", "self, dim, keepdim=False", &NanMedian);
  Converter("nanmedian.default", "self", &NanMedianOfAll);
  Converter("logcumsumexp.default", "self, dim", &LogCumulativeSumExp);
  Converter("put.default", "self, index, source, accumulate=False", &Put);
  Converter("as_strided_scatter.default", "self, src, size, stride, storage_offset=None",
            &StridedScatter);
  Converter("diagonal_scatter.default", "self, src, offset=0, dim1=0, dim2=1", &DiagonalScatter);
  Converter("index_reduce.default", "self, dim, index, source, reduce, include_self=True",
            &IndexReduce);
  Converter("dist.default", "self, other, p=2", &Distance);
  Converter("angle.default", "self", &Angle);
  Converter("ldexp.Tensor", "self, other", &LoadExponent);
  Converter("frexp.Tensor", "self", &SplitExponent);
  Converter("_trilinear.default", "i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim=1",
            &Trilinear);
}

}  // namespace
}  // namespace tvm::frontend::torch
