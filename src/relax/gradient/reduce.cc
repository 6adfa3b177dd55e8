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

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.sum", &OfSum},
                                 {"relax.mean", &OfMean},
                                 {"relax.variance", &OfVariance},
                                 {"relax.std", &OfStd},
                                 {"relax.max", &OfExtremum},
                                 {"relax.min", &OfExtremum},
                                 {"relax.prod", &OfProd},
                                 {"relax.cumsum", &OfCumsum}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
