// SPDX-License-Identifier: Apache-2.0
// Operators that combine elements along axes. `axis` is None for all, a number or a list.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi {
using te::Tensor;

// clang-format off
//  name  combines              documentation
#define TVM_TOPI_REDUCTIONS(ROW)                                                  \
  ROW(sum,  te::sum,               "The sum along axes.")                             \
  ROW(prod, te::prod,              "The product along axes.")                         \
  ROW(max,  te::max,               "The maximum along axes; NaN if there is one.")    \
  ROW(min,  te::min,               "The minimum along axes; NaN if there is one.")    \
  ROW(all,  ReduceAll,             "Whether all elements along axes hold.")           \
  ROW(any,  ReduceAny,             "Whether some element along axes holds.")

#define TVM_TOPI_MOMENTS(ROW)                                                     \
  ROW(mean,      "mean",     "The mean along axes.")                                  \
  ROW(variance,  "variance", "The mean of the squared deviations from the mean.")     \
  ROW(deviation, "std",      "The square root of the variance.")
// clang-format on
#define ROW(name, ...) Tensor name(const Tensor& data, const Any& axis, bool keepdims = false);
TVM_TOPI_REDUCTIONS(ROW)
TVM_TOPI_MOMENTS(ROW)
#undef ROW
/// The type in which numbers of a type are added and multiplied, float32 for smaller floats: a sum
/// of many of them would stand still. The results are rounded at the end.
DataType SumType(DataType t);
/// The index of the extreme element along one axis, or in the whole tensor for None.
Tensor argmax(const Tensor& data, const Any& axis, bool keepdims = false,
              bool select_last_index = false, Optional<DataType> dtype = std::nullopt);
Tensor argmin(const Tensor& data, const Any& axis, bool keepdims = false,
              bool select_last_index = false, Optional<DataType> dtype = std::nullopt);
/// The tensor summed to a shape that broadcasts to its own.
Tensor collapse_sum(const Tensor& data, Array<PrimExpr> target_shape);

}  // namespace tvm::topi
