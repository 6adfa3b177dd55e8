// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors from numbers, and those that depend on places alone.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi {
using te::Tensor;

Tensor full(const Any& shape, DataType dtype, const PrimExpr& fill_value);
Tensor full_like(const Tensor& x, const PrimExpr& fill_value);
/// Ones on diagonal number `k` of a matrix.
Tensor eye(const PrimExpr& n, const Optional<PrimExpr>& m, const PrimExpr& k, DataType dtype);
Tensor arange(const PrimExpr& start, const Optional<PrimExpr>& stop, const PrimExpr& step,
              DataType dtype);
/// Zero below (upper) or above the diagonal number `k` of the last two axes.
Tensor trilu(const Tensor& data, const PrimExpr& k, bool upper);
Tensor hamming_window(const PrimExpr& window_size, bool periodic, double alpha, double beta,
                      DataType dtype);

}  // namespace tvm::topi
