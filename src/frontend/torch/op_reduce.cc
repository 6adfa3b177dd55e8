// SPDX-License-Identifier: Apache-2.0
// Reductions, running reductions, sorting and searching.
#include <algorithm>
#include <cmath>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {
namespace {

/// The axes as the operator takes them: None for all. A scalar has nothing to reduce.
Any AxesOf(const Conversion& c, size_t i, const Expr& x) {
  std::vector<int64_t> axes = c.Ints(i);
  if (axes.empty() || RankOf(x) == 0) return nullptr;
  return AnyArray(axes);
}
/// Sums of integers are of int64.
DataType SumType(const Conversion& c, size_t i, const Expr& x) {
  DataType t = TypeOf(x);
  return c.Type(i, IsIntegral(t) ? DataType::Int(64) : t);
}
Any Sum(Conversion& c) {
  Expr x = c.Cast(c.Tensor(0), SumType(c, 3, c.Tensor(0)));
  return c.Emit(c.op, x, AxesOf(c, 1, x), c.Flag(2));
}
Any SumAll(Conversion& c) {
  Expr x = c.Cast(c.Tensor(0), SumType(c, 1, c.Tensor(0)));
  return c.Emit(c.op, x, nullptr, false);
}
Any MeanOf(Conversion& c, size_t dtype, const Any& axes, bool keepdims) {
  Expr x = c.Cast(c.Tensor(0), c.Type(dtype, TypeOf(c.Tensor(0))));
  return c.Emit("mean", x, axes, keepdims);
}
Any Mean(Conversion& c) { return MeanOf(c, 3, AxesOf(c, 1, c.Tensor(0)), c.Flag(2)); }
Any MeanAll(Conversion& c) { return MeanOf(c, 1, nullptr, false); }
Any ReduceAll(Conversion& c) { return c.Emit(c.op, c.Tensor(0), nullptr, false); }
/// amax, amin
Any ReduceAxes(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit(c.op, x, AxesOf(c, 1, x), c.Flag(2));
}
/// Whether any (all) elements are true, through the largest (smallest) one.
Any Truth(Conversion& c) {
  Expr x = c.Tensor(0);
  bool is_byte = TypeOf(x) == DataType::UInt(8);
  Expr bits = c.Cast(ToBool(c, x), DataType::Int(8));
  Expr extreme = c.Emit(c.op, bits, AxesOf(c, 1, x), c.Flag(2));
  return c.Cast(extreme, is_byte ? DataType::UInt(8) : DataType::Bool());
}

/// The exclusive or of all elements' bits, as numbers of 64 bits.
Any Hash(Conversion& c) {
  if (c.Int(3) != 0) TVM_REFUSE(c, NotImplementedError) << "mode: expected 0, got " << c.Int(3);
  Expr x = c.Tensor(0);
  x = c.Cast(x, TypeOf(x).is_float() ? DataType::Float(64) : DataType::Int(64));
  int64_t rank = RankOf(x);
  std::vector<int64_t> axes = rank ? c.NormalAxes(c.Ints(1), rank) : Axes(0), order;
  if (axes.empty()) axes = Axes(rank);
  Dims kept, reduced, result;
  for (int64_t d = 0; d < rank; ++d) {
    bool is_reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    (is_reduced ? reduced : kept).push_back(ShapeOf(x)[d]);
    if (!is_reduced) order.push_back(d);
    if (c.Flag(2) || !is_reduced) {
      result.push_back(is_reduced ? PrimExpr(IntImm::Int64(1)) : ShapeOf(x)[d]);
    }
  }
  order.insert(order.end(), axes.begin(), axes.end());
  Dims rows = kept;
  rows.push_back(c.Simplify(Count(reduced)));
  x = c.Reshape(c.Permute(x, order), rows);
  Expr hash = c.Compute("hash", {x}, [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
    DataType bits = DataType::UInt(64);
    tir::Var a("a", bits), b("b", bits);
    tir::CommReducer combiner({a}, {b}, {bitwise_xor(a, b)}, {MakeZero(bits)});
    tir::IterVar k = te::reduce_axis(Range::FromMinExtent(IntImm::Int64(0), in[0]->shape.back()));
    auto element = [&](const Array<tir::Var>& i) {
      Array<PrimExpr> at(i.begin(), i.end());
      at.push_back(k->var);
      return tir::Reduce(combiner, {reinterpret(bits, in[0](at))}, {k}, const_true(), 0);
    };
    return {te::compute(Array<PrimExpr>(kept.begin(), kept.end()), element, "hash")};
  });
  return c.Reshape(hash, result);
}

// ---- deviations ---------------------------------------------------------------------------------
/// The variance with n - correction in the place of n.
Expr VarianceOf(Conversion& c, const Expr& x, const Any& axes, double correction, bool keepdims) {
  Expr var = c.Emit("variance", x, axes, keepdims);
  if (correction == 0) return var;
  Dims dims = ShapeOf(x), reduced;
  if (axes == nullptr) {
    reduced = dims;
  } else {
    for (const Any& axis : axes.cast<Array<Any>>()) {
      reduced.push_back(dims[c.NormalAxis(axis.cast<int64_t>(), dims.size())]);
    }
  }
  DataType t = TypeOf(x);
  PrimExpr count = c.Simplify(Count(reduced));
  if (auto n = AsConstInt(count)) {
    double rest = std::max(static_cast<double>(*n) - correction, 0.0);
    return c.Emit("multiply", var, c.Const(static_cast<double>(*n) / rest, t));
  }
  PrimExpr n = cast(t, count), rest = max(n - MakeConst(t, correction), MakeConst(t, 0));
  return c.Emit("multiply", var, PrimValue(div(n, rest)));
}
Any Variance(Conversion& c) {
  Expr x = c.Tensor(0);
  return VarianceOf(c, x, AxesOf(c, 1, x), c.Number(2, 1), c.Flag(3));
}
Any Deviation(Conversion& c) {
  Expr x = c.Tensor(0);
  if (c.Number(2, 1) == 0) return c.Emit("std", x, AxesOf(c, 1, x), c.Flag(3));
  return c.Emit("sqrt", VarianceOf(c, x, AxesOf(c, 1, x), c.Number(2, 1), c.Flag(3)));
}
Any VarianceMean(Conversion& c) {
  Expr x = c.Tensor(0);
  Any axes = AxesOf(c, 1, x);
  Expr var = VarianceOf(c, x, axes, c.Number(2, 1), c.Flag(3));
  return Array<Any>{var, c.Emit("mean", x, axes, c.Flag(3))};
}
/// (sum of |x|^p)^(1/p)
Any VectorNorm(Conversion& c) {
  Expr x = c.Tensor(0);
  x = c.Cast(x, c.Type(4, TypeOf(x)));
  DataType t = TypeOf(x);
  double p = c.Number(1, 2);
  Any axes = AxesOf(c, 2, x);
  bool keepdims = c.Flag(3);
  if (std::isinf(p)) return c.Emit(p > 0 ? "max" : "min", c.Emit("abs", x), axes, keepdims);
  if (p == 0) {
    return c.Emit("sum", c.Cast(ToBool(c, x), t), axes, keepdims);
  }
  if (p == 1) return c.Emit("sum", c.Emit("abs", x), axes, keepdims);
  if (p == 2) return c.Emit("sqrt", c.Emit("sum", c.Emit("multiply", x, x), axes, keepdims));
  Expr powers = c.Emit("power", c.Emit("abs", x), c.Const(p, t));
  return c.Emit("power", c.Emit("sum", powers, axes, keepdims), c.Const(1 / p, t));
}

// ---- where the extremes are ---------------------------------------------------------------------
/// A scalar as a vector of one element, computed on, and back.
Any OnVector(Conversion& c, const std::function<Array<Expr>(const Expr&)>& compute) {
  Expr x = c.Tensor(0);
  if (RankOf(x) > 0) {
    Array<Expr> results = compute(x);
    return Array<Any>(results.begin(), results.end());
  }
  Array<Any> scalars;
  for (const Expr& result : compute(c.Reshape(x, {IntImm::Int64(1)}))) {
    scalars.push_back(c.Reshape(result, {}));
  }
  return scalars;
}
Any MaxAlong(Conversion& c) {
  Expr x = c.Tensor(0);
  bool keepdims = c.Flag(2);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, DataType::Int(64))};
  int64_t axis = c.Int(1);
  Expr best = c.Emit("topk", x, 1, axis, "both", true, DataType::Int(64));
  Expr values = c.Bind(TupleGetItem(best, 0)), indices = c.Bind(TupleGetItem(best, 1));
  if (!keepdims) {
    values = c.Emit("squeeze", values, Array<Any>{axis});
    indices = c.Emit("squeeze", indices, Array<Any>{axis});
  }
  return c.BindTuple({values, indices});
}
Any MinAlong(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, DataType::Int(64))};
  int64_t axis = c.Axis(1, RankOf(x));
  Expr values = c.Emit("min", x, Array<Any>{axis}, c.Flag(2));
  return Array<Any>{values, c.Emit("argmin", x, axis, c.Flag(2))};
}
Any ArgExtreme(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return c.Emit("zeros_like", x, DataType::Int(64));
  if (TypeOf(x).is_bool()) x = c.Cast(x, DataType::Int(8));
  return c.Emit(c.op, x, c[1], c.Flag(2));
}

// ---- order --------------------------------------------------------------------------------------
Any SortOf(Conversion& c, const Any& dim, bool descending) {
  return OnVector(c, [&](const Expr& x) -> Array<Expr> {
    int64_t axis = dim.cast<int64_t>();
    Expr indices = c.Emit("argsort", x, axis, descending, DataType::Int(64));
    Expr values = c.Emit("gather_elements", x, indices, c.NormalAxis(axis, RankOf(x)));
    return {values, indices};
  });
}
Any SortedPair(Conversion& c, const Any& dim, bool descending) {
  Array<Any> pair = SortOf(c, dim, descending).cast<Array<Any>>();
  return c.BindTuple({pair[0].cast<Expr>(), pair[1].cast<Expr>()});
}
Any Sort(Conversion& c) { return SortedPair(c, c[1], c.Flag(2)); }
Any StableSort(Conversion& c) { return SortedPair(c, c[2], c.Flag(3)); }
Any ArgSort(Conversion& c) {
  return OnVector(c,
                  [&](const Expr& x) -> Array<Expr> {
                    return {c.Emit("argsort", x, c.Int(1), c.Flag(2), DataType::Int(64))};
                  })
      .cast<Array<Any>>()[0];
}
Any StableArgSort(Conversion& c) {
  return OnVector(c,
                  [&](const Expr& x) -> Array<Expr> {
                    return {c.Emit("argsort", x, c.Int(2), c.Flag(3), DataType::Int(64))};
                  })
      .cast<Array<Any>>()[0];
}
Any TopK(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t k = c.Int(1);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, DataType::Int(64))};
  int64_t axis = c.Axis(2, RankOf(x));
  if (k == 0) {  // to the operator 0 means all of them
    Dims dims = ShapeOf(x);
    dims.Set(axis, IntImm::Int64(0));
    return Array<Any>{c.Emit("zeros", dims, TypeOf(x)), c.Emit("zeros", dims, DataType::Int(64))};
  }
  return c.Emit("topk", x, k, c.Int(2), "both", c.Flag(3), DataType::Int(64));
}
/// The k-th element in ascending order along an axis, and where it is.
Array<Expr> Selected(Conversion& c, const Expr& x, const PrimExpr& k, int64_t axis, bool keepdims) {
  Expr order = c.Emit("argsort", x, axis, false, DataType::Int(64));
  Expr index = c.Slice(order, axis, k, k + IntImm::Int64(1));
  Expr value = c.Emit("gather_elements", x, index, axis);
  if (keepdims) return {value, index};
  return {c.Emit("squeeze", value, Array<Any>{axis}), c.Emit("squeeze", index, Array<Any>{axis})};
}
Any KthValue(Conversion& c) {
  return OnVector(c, [&](const Expr& x) {
    return Selected(c, x, IntImm::Int64(c.Int(1) - 1), c.Axis(2, RankOf(x)), c.Flag(3));
  });
}
/// The lower of the two in the middle; NaN, which is sorted last, if there is one.
Any MedianAlong(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, DataType::Int(64))};
  int64_t axis = c.Axis(1, RankOf(x));
  PrimExpr middle = c.Simplify(floordiv(ShapeOf(x)[axis] - IntImm::Int64(1), IntImm::Int64(2)));
  Array<Expr> pair = Selected(c, x, middle, axis, c.Flag(2));
  if (!TypeOf(x).is_float()) return Array<Any>(pair.begin(), pair.end());
  Expr nans = c.Emit("astype", c.Emit("isnan", x), DataType::Int(8));
  Expr has_nan = c.Cast(c.Emit("max", nans, Array<Any>{axis}, c.Flag(2)), DataType::Bool());
  Expr first = c.Emit("argmax", nans, axis, c.Flag(2));
  Expr nan = c.Const(std::nan(""), TypeOf(x));
  return Array<Any>{c.Emit("where", has_nan, nan, pair[0]),
                    c.Emit("where", has_nan, first, pair[1])};
}
Any MedianOfAll(Conversion& c) {
  Expr x = c.Emit("reshape", c.Tensor(0), Array<Any>{-1});
  PrimExpr middle = c.Simplify(floordiv(ShapeOf(x)[0] - IntImm::Int64(1), IntImm::Int64(2)));
  Expr value = Selected(c, x, middle, 0, false)[0];
  if (!TypeOf(x).is_float()) return value;
  Expr has_nan = c.Emit("max", c.Emit("astype", c.Emit("isnan", x), DataType::Int(8)));
  return c.Emit("where", c.Cast(has_nan, DataType::Bool()), c.Const(std::nan(""), TypeOf(x)),
                value);
}
Any Bucketize(Conversion& c) {
  Expr x = IsTensor(c[0]) ? c.Tensor(0)
                          : c.Emit("full", ShapeExpr(Dims()), c.As(c[0], TypeOf(c.Tensor(1))));
  DataType t = c.ResultType({x, c[1]});
  return c.Emit("bucketize", c.Cast(x, t), c.Cast(c.Tensor(1), t), c.Flag(2), c.Flag(3));
}

// ---- running ------------------------------------------------------------------------------------
Any Cumulative(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = SumType(c, 2, x);
  if (RankOf(x) == 0) return c.Cast(x, t);
  Any dtype = c.Given(2) || t != TypeOf(x) ? Any(t) : Any(nullptr);
  return c.Emit(c.op, x, c.Int(1), dtype);
}

TVM_REGISTER() {
  Converter("sum.dim_IntList", "self, dim, keepdim=False, dtype=None", &Sum, "sum");
  Converter("sum.default", "self, dtype=None", &SumAll, "sum");
  Converter("prod.default", "self, dtype=None", &SumAll, "prod");
  Converter("prod.dim_int", "self, dim, keepdim=False, dtype=None", &Sum, "prod");
  Converter("mean.dim", "self, dim, keepdim=False, dtype=None", &Mean);
  Converter("mean.default", "self, dtype=None", &MeanAll);
  Converter("max.default", "self", &ReduceAll, "max");
  Converter("min.default", "self", &ReduceAll, "min");
  Converter("amax.default", "self, dim=[], keepdim=False", &ReduceAxes, "max");
  Converter("amin.default", "self, dim=[], keepdim=False", &ReduceAxes, "min");
  Converter("any.default any.dim any.dims", "self, dim=None, keepdim=False", &Truth, "max");
  Converter("all.default all.dim all.dims", "self, dim=None, keepdim=False", &Truth, "min");
  Converter("hash_tensor.default", "self, dim=[], keepdim=False, mode=0", &Hash);
  Converter("var.correction", "self, dim=None, correction=None, keepdim=False", &Variance);
  Converter("std.correction", "self, dim=None, correction=None, keepdim=False", &Deviation);
  Converter("var.dim", "self, dim, unbiased=True, keepdim=False", &Variance);
  Converter("std.dim", "self, dim, unbiased=True, keepdim=False", &Deviation);
  Converter("var_mean.correction", "self, dim=None, correction=None, keepdim=False", &VarianceMean);
  Converter("linalg_vector_norm.default", "self, ord=2, dim=None, keepdim=False, dtype=None",
            &VectorNorm);
  Converter("norm.ScalarOpt_dim norm.Scalar", "self, p=2, dim=None, keepdim=False, dtype=None",
            &VectorNorm);
  Converter("max.dim", "self, dim, keepdim=False", &MaxAlong);
  Converter("min.dim", "self, dim, keepdim=False", &MinAlong);
  Converter("argmax.default", "self, dim=None, keepdim=False", &ArgExtreme, "argmax");
  Converter("argmin.default", "self, dim=None, keepdim=False", &ArgExtreme, "argmin");
  Converter("sort.default", "self, dim=-1, descending=False", &Sort);
  Converter("sort.stable", "self, stable, dim=-1, descending=False", &StableSort);
  Converter("argsort.default", "self, dim=-1, descending=False", &ArgSort);
  Converter("argsort.stable", "self, stable, dim=-1, descending=False", &StableArgSort);
  Converter("topk.default", "self, k, dim=-1, largest=True, sorted=True", &TopK);
  Converter("kthvalue.default", "self, k, dim=-1, keepdim=False", &KthValue);
  Converter("median.dim", "self, dim, keepdim=False", &MedianAlong);
  Converter("median.default", "self", &MedianOfAll);
  Converter("bucketize.Tensor bucketize.Scalar", "self, boundaries, out_int32=False, right=False",
            &Bucketize);
  Converter("cumsum.default", "self, dim, dtype=None", &Cumulative, "cumsum");
  Converter("cumprod.default", "self, dim, dtype=None", &Cumulative, "cumprod");
}

}  // namespace
}  // namespace tvm::frontend::torch
