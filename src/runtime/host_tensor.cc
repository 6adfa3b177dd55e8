// SPDX-License-Identifier: Apache-2.0
// Copies for the host, where they are needed.
#include "runtime/host_tensor.h"

#include <bit>

#include "tvm/runtime/data_type.h"

namespace tvm::runtime {

Tensor HostTensor(const Tensor& tensor, size_t alignment) {
  if (!alignment) alignment = std::bit_floor(static_cast<size_t>(DataType(tensor.dtype()).bytes()));
  auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  bool is_good = tensor.device().device_type == kDLCPU && tensor.is_contiguous() &&
                 tensor.byte_offset() == 0 && address % alignment == 0;
  if (is_good) return tensor;
  Tensor copy = Empty(tensor.shape(), tensor.dtype(), {kDLCPU, 0});
  CopyTensor(tensor, copy);
  return copy;
}

}  // namespace tvm::runtime
