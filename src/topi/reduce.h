// SPDX-License-Identifier: Apache-2.0
// The iterators and indices of a reduction along axes of a tensor.
#pragma once
#include "topi/shape.h"

namespace tvm::topi {

using BinaryOp = PrimExpr (*)(PrimExpr, PrimExpr, Optional<Span>);

struct Reduction {
  Reduction(const Tensor& data, const std::vector<size_t>& axes, bool keepdims);
  /// The element of the data for an element of the result, with iterators along the reduced axes.
  Index Source(const Index& result) const;
  /// How many elements are combined.
  PrimExpr Count() const;

  size_t ndim;
  bool keepdims;
  Shape shape;                   // of the result
  Array<IterVar> iters;          // in the order of the axes
  std::vector<IterVar> reduced;  // by axis of the data; undefined where it stays
};
/// A count as a number to divide by.
PrimExpr CountAs(const PrimExpr& count, DataType dtype);

}  // namespace tvm::topi
