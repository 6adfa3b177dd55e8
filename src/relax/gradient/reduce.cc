// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions and scans.
#include <algorithm>

#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
/// What has the result's shape, spread over the reduced dimensions again.
Value Spread(Grad& r, const Value& value) {
  auto* attrs = r.attrs<StatisticalAttrsObj>();
  Value x = r.x(0);
  bool is_scalar = !attrs->axis && !attrs->keepdims;
  Value kept = value;
  if (!attrs->keepdims && !is_scalar)
    kept = r.F("expand_dims", value, AsArray(AxesOf(attrs->axis, x.ndim())));
  return r.BroadcastLike(kept, x);
}
/// How many elements one result is made of.
PrimExpr Count(Grad& r) {
  Value x = r.x(0);
  PrimExpr count = Dim(1);
  for (int64_t axis : AxesOf(r.attrs<StatisticalAttrsObj>()->axis, x.ndim()))
    count = count * r.DimsOf(x)[axis];
  return count;
}
Value Centred(Grad& r) {
  Value x = r.x(0);
  auto axes = AsArray(AxesOf(r.attrs<StatisticalAttrsObj>()->axis, x.ndim()));
  return x - r.F("mean", x, axes, true);
}
Values OfSum(Grad& r) { return {Spread(r, r.g())}; }
Values OfMean(Grad& r) { return {Spread(r, r.Scaled(r.g(), Dim(1), Count(r)))}; }
Values OfVariance(Grad& r) { return {Spread(r, r.Scaled(r.g(), Dim(2), Count(r))) * Centred(r)}; }
Values OfStd(Grad& r) {
  return {Spread(r, r.Scaled(r.g() / r.y(), Dim(1), Count(r))) * Centred(r)};
}
/// Elements that are equal share the gradient.
Values OfExtremum(Grad& r) {
  Value x = r.x(0), chosen = r.F("astype", x == Spread(r, r.y()), x.dtype());
  auto axes = AsArray(AxesOf(r.attrs<StatisticalAttrsObj>()->axis, x.ndim()));
  return {Spread(r, r.g()) * chosen / r.F("sum", chosen, axes, true)};
}

Value Flip(Grad& r, const Value& value, int64_t axis) { return r.F("flip", value, axis); }
/// Running products of what is before and behind each element: no division, for zeros' sake.
Values OfProd(Grad& r) {
  Value x = r.x(0);
  std::vector<int64_t> reduced = AxesOf(r.attrs<StatisticalAttrsObj>()->axis, x.ndim()), order;
  Dims dims = r.DimsOf(x), moved, flat;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (std::find(reduced.begin(), reduced.end(), i) != reduced.end()) continue;
    order.push_back(i);
    flat.push_back(dims[i]);
  }
  flat.push_back(Count(r));
  order.insert(order.end(), reduced.begin(), reduced.end());
  for (int64_t i : order) moved.push_back(dims[i]);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) back[order[i]] = static_cast<int64_t>(i);
  int64_t last = static_cast<int64_t>(flat.size()) - 1;
  Value rows = r.Reshaped(r.Permuted(x, order), flat);
  Value before = r.F("cumprod", rows, last, nullptr, true);
  Value behind = Flip(r, r.F("cumprod", Flip(r, rows, last), last, nullptr, true), last);
  Value product = r.Permuted(r.Reshaped(before * behind, moved), back);
  return {Spread(r, r.g()) * product};
}
/// Everything behind an element depends on it.
Values OfCumsum(Grad& r) {
  auto* attrs = r.attrs<ScanopAttrsObj>();
  int64_t axis = attrs->axis.value_or(0);
  Value sums = Flip(r, r.F("cumsum", Flip(r, r.g(), axis), axis, nullptr, attrs->exclusive), axis);
  return {attrs->axis ? sums : r.ReshapeLike(sums, r.x(0))};
}

/// The products without one element each, a matrix for each row: no division, for zeros' sake.
Values OfCumprod(Grad& r) {
  auto* attrs = r.attrs<ScanopAttrsObj>();
  Value x = r.x(0);
  if (!attrs->dtype.is_void() && attrs->dtype != x.dtype()) r.Refuse("a result of another type");
  bool is_flat = !attrs->axis;
  int64_t axis = attrs->axis.value_or(0);
  if (axis < 0) axis += x.ndim();
  Value rows = is_flat ? r.F("flatten", x) : r.AxisLast(x, axis);
  Value g = is_flat ? r.g() : r.AxisLast(r.g(), axis);
  int64_t last = rows.ndim() - 1;
  PrimExpr n = r.DimsOf(rows)[last];
  Value is_left_out = r.F("eye", PrimValue(n), PrimValue(n), 0, x.dtype()) == 1.0;
  Value row = r.F("expand_dims", rows, last);  // (…, 1, n)
  Value others = r.F("where", is_left_out, r.F("ones_like", row), row);
  Value products = r.F("cumprod", others, last + 1, nullptr, attrs->exclusive);
  // Products that end before the element do not depend on it.
  Value depends = r.F("triu", products, attrs->exclusive ? 1 : 0);
  Value sums = r.F("sum", depends * r.F("expand_dims", g, last), last + 1, false);
  return {is_flat ? r.ReshapeLike(sums, x) : r.AxisBack(sums, axis)};
}
/// The one element that was picked; over several axes, elements that are equal share the gradient.
Values OfMedian(Grad& r) {
  auto* attrs = r.attrs<StatisticalAttrsObj>();
  Value x = r.x(0);
  if (!GetStructInfoAs<TupleStructInfoObj>(r.g().expr)) return OfExtremum(r);
  std::vector<int64_t> axis = AxesOf(attrs->axis, x.ndim());
  auto kept = [&](int64_t i, const Value& tuple) {
    Value item = r.Item(tuple, i);
    return attrs->keepdims ? item : r.F("expand_dims", item, AsArray(axis));
  };
  return {r.F("scatter_elements", r.ZerosLike(x), kept(1, r.y()), kept(0, r.g()), axis[0])};
}

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.sum", &OfSum},
                                 {"relax.mean", &OfMean},
                                 {"relax.variance", &OfVariance},
                                 {"relax.std", &OfStd},
                                 {"relax.max", &OfExtremum},
                                 {"relax.min", &OfExtremum},
                                 {"relax.prod", &OfProd},
                                 {"relax.cumsum", &OfCumsum},
                                 {"relax.cumprod", &OfCumprod},
                                 {"relax.median", &OfMedian}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
