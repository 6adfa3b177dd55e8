// SPDX-License-Identifier: Apache-2.0
// Copies of tensors, apart from who else has them.
#pragma once
#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

/// A contiguous copy on the same device.
inline Tensor CopyOf(const Tensor& tensor) {
  Tensor copy = Empty(tensor.shape(), tensor.dtype(), tensor.device());
  CopyTensor(tensor, copy);
  return copy;
}

}  // namespace tvm::runtime
