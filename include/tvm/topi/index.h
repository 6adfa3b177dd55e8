// SPDX-License-Identifier: Apache-2.0
// Operators that read elements at indices which are data. An index outside of the tensor raises
// IndexError when the function runs, unless a mode says what it means.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi {
using te::Tensor;

/// mode: "fast" (indices as they are), "clip" (the nearest inside), "wrap" (modulo the size), "nan"
/// (NaN for those outside). Without an axis the tensor is taken as a vector.
Tensor take(const Tensor& a, const Variant<Tensor, PrimExpr>& indices, const Any& axis,
            int64_t batch_dims = 0, String mode = "fast");
Tensor gather(const Tensor& data, int64_t axis, const Tensor& indices);
/// The first axis of `indices` goes over the axes of data behind the batch.
Tensor gather_nd(const Tensor& a, const Tensor& indices, int64_t batch_dims = 0);
/// One tensor of indices per leading axis; they broadcast. Negative ones count from the end.
Tensor index_tensor(const Tensor& data, const Array<Tensor>& indices);
Tensor one_hot(const Tensor& indices, const PrimExpr& on_value, const PrimExpr& off_value,
               int64_t depth, int64_t axis, DataType dtype);

}  // namespace tvm::topi
