// SPDX-License-Identifier: Apache-2.0
// Tensors as code of the host can read them.
#pragma once
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

/// The tensor on the CPU, contiguous, at an address that is a multiple of the alignment (that of
/// its elements: 0); itself where it is so already. Weights of a mapped file may lie anywhere.
Tensor HostTensor(const Tensor& tensor, size_t alignment = 0);

}  // namespace tvm::runtime
