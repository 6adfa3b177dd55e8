// SPDX-License-Identifier: Apache-2.0
// Products: of matrices, of batches of them, along any axes. `out_dtype` is the type in which
// factors are multiplied and added; None keeps theirs.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi {
using te::Tensor;

/// As NumPy's matmul: leading axes broadcast, vectors lose their axis. The matrices of `b` may be
/// transposed.
Tensor broadcast_matmul(const Tensor& a, const Tensor& b,
                        Optional<DataType> out_dtype = std::nullopt, bool transp_b = false);
/// Of matrices, either of them transposed.
Tensor matmul(const Tensor& a, const Tensor& b, bool transp_a = false, bool transp_b = false);
Tensor tensordot(const Tensor& a, const Tensor& b, const Any& axes);
/// As NumPy's einsum, "..." included.
Tensor einsum(String subscripts, const Array<Tensor>& operands);

namespace nn {
Tensor matmul(const Tensor& tensor_a, const Tensor& tensor_b, const Optional<Tensor>& bias = {},
              Optional<DataType> out_dtype = std::nullopt, bool transpose_a = false,
              bool transpose_b = false);
/// data · weightᵀ + bias; data may have several leading axes.
Tensor dense(const Tensor& data, const Tensor& weight, const Optional<Tensor>& bias = {},
             Optional<DataType> out_dtype = std::nullopt);
Tensor batch_matmul(const Tensor& tensor_a, const Tensor& tensor_b,
                    Optional<DataType> out_dtype = std::nullopt, bool transpose_a = false,
                    bool transpose_b = true);
}  // namespace nn
}  // namespace tvm::topi
