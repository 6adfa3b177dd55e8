// SPDX-License-Identifier: Apache-2.0
// Operators that combine elements along axes.
#include "tvm/topi/reduction.h"

#include <algorithm>

#include "topi/reduce.h"
#include "tvm/topi/elementwise.h"

namespace tvm::topi {
using namespace tir;

Reduction::Reduction(const Tensor& data, const std::vector<size_t>& axes, bool keepdims)
    : ndim(data->shape.size()), keepdims(keepdims) {
  reduced.resize(ndim);
  for (size_t axis : axes) {
    const PrimExpr& extent = data->shape[axis];
    reduced[axis] = Along(extent, "k" + std::to_string(axis));
  }
  for (size_t i = 0; i < ndim; ++i) {
    if (!reduced[i].defined()) {
      shape.push_back(data->shape[i]);
      continue;
    }
    iters.push_back(reduced[i]);
    if (keepdims) shape.push_back(MakeConst(data->shape[i].dtype(), 1));
  }
}
Index Reduction::Source(const Index& result) const {
  Index index;
  size_t next = 0;
  for (size_t i = 0; i < ndim; ++i) {
    if (!reduced[i].defined()) {
      index.push_back(result[next++]);
      continue;
    }
    index.push_back(reduced[i]->var);
    next += keepdims;
  }
  return index;
}
PrimExpr Reduction::Count() const {
  PrimExpr count = MakeConst(DataType::Int(64), 1);
  for (const IterVar& iter : iters) count = count * iter->dom.value()->extent;
  return Simplified(count);
}
PrimExpr CountAs(const PrimExpr& count, DataType dtype) {
  if (auto n = AsConstInt(count)) return MakeConst(dtype, static_cast<double>(*n));
  return tvm::cast(dtype, count);
}

DataType SumType(DataType t) { return t.is_float() && t.bits() < 32 ? DataType::Float(32) : t; }

namespace {
/// What was computed in the type of sums, in the type of the data.
Tensor Rounded(const Tensor& x, DataType t) { return x->dtype == t ? x : cast(x, t); }
PrimExpr ReduceBools(BinaryOp combine, bool identity, const PrimExpr& source,
                     const Array<IterVar>& axis) {
  Var x("x", DataType::Bool()), y("y", DataType::Bool());
  CommReducer combiner({x}, {y}, {combine(x, y, {})}, {IntImm::Bool(identity)});
  PrimExpr truth =
      source.dtype().is_bool() ? source : tvm::not_equal(source, MakeZero(source.dtype()));
  return Reduce(combiner, {truth}, axis, const_true(), 0, {});
}
PrimExpr ReduceAll(PrimExpr source, Array<IterVar> axis, Array<PrimExpr>) {
  return ReduceBools(&tvm::logical_and, true, source, axis);
}
PrimExpr ReduceAny(PrimExpr source, Array<IterVar> axis, Array<PrimExpr>) {
  return ReduceBools(&tvm::logical_or, false, source, axis);
}
using ReduceFn = PrimExpr (*)(PrimExpr, Array<IterVar>, Array<PrimExpr>);
Tensor ReduceWith(const char* op, ReduceFn reduce, const Tensor& data, const Any& axis,
                  bool keepdims) {
  std::vector<size_t> axes = Axes(op, axis, data->shape.size());
  if (axes.empty()) return identity(data);
  Reduction r(data, axes, keepdims);
  bool is_sum = reduce == &te::sum || reduce == &te::prod;
  DataType t = is_sum ? SumType(data->dtype) : data->dtype;
  auto element = [&](const Index& i) {
    return reduce(tvm::cast(t, At(data, r.Source(i))), r.iters, {});
  };
  return Rounded(Compute(r.shape, element, std::string(data->op->name) + "_red", kCommReduce),
                 data->dtype);
}

// ---- index of the extreme -----------------------------------------------------------------------
/// Whether pair (i, x) goes before (j, y): by value, NaN first of all, then by index. The start has
/// index -1, which is behind all others: as an unsigned number it is the largest.
PrimExpr GoesBefore(const PrimExpr& i, const PrimExpr& x, const PrimExpr& j, const PrimExpr& y,
                    bool is_max, bool last) {
  DataType unsigned_index = DataType::UInt(i.dtype().bits());
  PrimExpr earlier = last ? i > j : tvm::cast(unsigned_index, i) < tvm::cast(unsigned_index, j);
  PrimExpr beyond = is_max ? x > y : x < y, same = tvm::equal(x, y);
  if (x.dtype().is_float()) {
    beyond = beyond || (tvm::isnan(x) && !tvm::isnan(y));
    same = same || (tvm::isnan(x) && tvm::isnan(y));
  }
  return beyond || (same && earlier);
}
Tensor ArgExtreme(const char* op, bool is_max, const Tensor& data, const Any& axis, bool keepdims,
                  bool last, Optional<DataType> dtype) {
  std::vector<size_t> axes = Axes(op, axis, data->shape.size());
  if (axes.empty()) Complain(op, "an axis to look along", "a scalar");
  Reduction r(data, axes, keepdims);
  DataType t = dtype.value_or(DataType::Int(32)), v = data->dtype;
  Var i("lhs_0", t), x("lhs_1", v), j("rhs_0", t), y("rhs_1", v);
  PrimExpr first = GoesBefore(i, x, j, y, is_max, last);
  CommReducer combiner({i, x}, {j, y}, {Select(first, i, j), Select(first, x, y)},
                       {MakeConst(t, -1), is_max ? min_value(v) : max_value(v)});
  auto pairs = [&](const Array<Var>& at) {
    Index source = r.Source(Index(at.begin(), at.end()));
    Index reduced;
    Shape extents;
    for (const IterVar& iter : r.iters) {
      reduced.push_back(iter->var);
      extents.push_back(iter->dom.value()->extent);
    }
    Array<PrimExpr> values = {tvm::cast(t, Ravel(reduced, extents)), At(data, source)};
    return Array<PrimExpr>{Reduce(combiner, values, r.iters, const_true(), 0, {}),
                           Reduce(combiner, values, r.iters, const_true(), 1, {})};
  };
  std::string name = data->op->name;
  Array<String> axis_names;
  for (size_t d = 0; d < r.shape.size(); ++d) axis_names.push_back("ax" + std::to_string(d));
  Tensor found =
      te::compute_tuple(r.shape, pairs, name + "_red_temp", kCommReduceIdx, {}, axis_names)[0];
  return Compute(
      r.shape, [&](const Index& at) { return At(found, at); }, name + "_red", kCommReduceIdx);
}
}  // namespace

#define ROW(name, combine, ...)                                     \
  Tensor name(const Tensor& data, const Any& axis, bool keepdims) { \
    return ReduceWith(#name, &combine, data, axis, keepdims);       \
  }
TVM_TOPI_REDUCTIONS(ROW)
#undef ROW

Tensor mean(const Tensor& data, const Any& axis, bool keepdims) {
  Reduction r(data, Axes("mean", axis, data->shape.size()), keepdims);
  DataType t = data->dtype, wide = SumType(t);
  if (wide != t) return cast(mean(cast(data, wide), axis, keepdims), t);
  return divide(sum(data, axis, keepdims), CountAs(r.Count(), t)).get<Tensor>();
}
Tensor variance(const Tensor& data, const Any& axis, bool keepdims) {
  DataType t = data->dtype, wide = SumType(t);
  if (wide != t) return cast(variance(cast(data, wide), axis, keepdims), t);
  Tensor apart = subtract(data, mean(data, axis, true)).get<Tensor>();
  return mean(multiply(apart, apart).get<Tensor>(), axis, keepdims);
}
Tensor deviation(const Tensor& data, const Any& axis, bool keepdims) {
  return sqrt(variance(data, axis, keepdims));
}
Tensor argmax(const Tensor& data, const Any& axis, bool keepdims, bool select_last_index,
              Optional<DataType> dtype) {
  return ArgExtreme("argmax", true, data, axis, keepdims, select_last_index, dtype);
}
Tensor argmin(const Tensor& data, const Any& axis, bool keepdims, bool select_last_index,
              Optional<DataType> dtype) {
  return ArgExtreme("argmin", false, data, axis, keepdims, select_last_index, dtype);
}

Tensor collapse_sum(const Tensor& data, Array<PrimExpr> target_shape) {
  const Shape& source = data->shape;
  BroadcastShape("collapse_sum", {source, target_shape});
  if (target_shape.size() > source.size()) {
    Complain("collapse_sum", "at most " + std::to_string(source.size()) + " dimensions",
             Text(target_shape));
  }
  size_t leading = source.size() - target_shape.size();
  std::vector<size_t> axes;
  for (size_t i = 0; i < source.size(); ++i) {
    bool kept = i >= leading && SameDim(source[i], target_shape[i - leading]);
    if (!kept) axes.push_back(i);
    if (!kept && i >= leading && !IsOne(target_shape[i - leading])) {
      Complain("collapse_sum", "a shape that broadcasts to " + Text(source), Text(target_shape));
    }
  }
  if (axes.empty()) return identity(data);
  Reduction r(data, axes, false);
  auto element = [&](const Index& result) {
    Index kept;
    for (size_t i = leading; i < source.size(); ++i) {
      if (!r.reduced[i].defined()) kept.push_back(result[i - leading]);
    }
    return te::sum(tvm::cast(SumType(data->dtype), At(data, r.Source(kept))), r.iters);
  };
  return Rounded(Compute(target_shape, element, std::string(data->op->name) + "_red", kCommReduce),
                 data->dtype);
}

namespace {
TVM_REGISTER() {
#define ROW(name, combine, doc) \
  Def("topi." #name, &name, doc, Arg("data"), Arg("axis", nullptr), Arg("keepdims", false));
  TVM_TOPI_REDUCTIONS(ROW)
#undef ROW
#define ROW(name, public_name, doc) \
  Def("topi." public_name, &name, doc, Arg("data"), Arg("axis", nullptr), Arg("keepdims", false));
  TVM_TOPI_MOMENTS(ROW)
#undef ROW
  constexpr const char* kIndex =
      "The index of the first extreme element along the axis, or of the last one; that of NaN.";
  Def("topi.argmax", &argmax, kIndex, Arg("data"), Arg("axis", nullptr), Arg("keepdims", false),
      Arg("select_last_index", false), Arg("dtype", nullptr));
  Def("topi.argmin", &argmin, kIndex, Arg("data"), Arg("axis", nullptr), Arg("keepdims", false),
      Arg("select_last_index", false), Arg("dtype", nullptr));
  Def("topi.collapse_sum", &collapse_sum, "The sum to a shape that broadcasts to the tensor's.",
      Arg("data"), Arg("target_shape"));
}
}  // namespace
}  // namespace tvm::topi
