// SPDX-License-Identifier: Apache-2.0
// The largest element of each window, and its place.
#pragma once
#include <limits>

#include "converter.h"

namespace tvm::frontend::torch {

/// An element of a window: its value, its place in the tensor, the axes that go over the window.
struct WindowElement {
  PrimExpr is_inside = const_true(), value, place;
  Array<tir::IterVar> over;
};

/// `element(at)` is that of the window of the result's element `at`. NaN is the largest of all; of
/// several that are as large the first one counts.
template <class F>
Array<te::Tensor> LargestOfWindow(const Array<PrimExpr>& result, DataType t, const F& element) {
  te::Tensor largest = te::compute(
      result,
      [&](const Array<tir::Var>& at) {
        WindowElement e = element(at);
        if (IsTrue(e.is_inside)) return te::max(e.value, e.over);
        PrimExpr none =
            t.is_float() ? MakeConst(t, -std::numeric_limits<double>::infinity()) : min_value(t);
        return te::max(tir::Select(e.is_inside, e.value, none), e.over);
      },
      "largest");
  te::Tensor place = te::compute(
      result,
      [&](const Array<tir::Var>& at) {
        WindowElement e = element(at);
        PrimExpr is_it = equal(e.value, largest(at));
        if (t.is_float()) is_it = is_it || isnan(e.value);
        PrimExpr none = max_value(e.place.dtype());
        return te::min(tir::Select(e.is_inside && is_it, e.place, none), e.over);
      },
      "place");
  return {largest, place};
}

}  // namespace tvm::frontend::torch
