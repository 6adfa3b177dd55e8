// SPDX-License-Identifier: Apache-2.0
// Files read through a memory map, and tensors that are views of memory somebody else owns.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "tvm/runtime/tensor.h"

namespace tvm::frontend {

/// Bytes that live as long as somebody holds the owner.
struct Bytes {
  std::string_view view;
  std::shared_ptr<const void> owner;
};
/// The contents of a regular file, mapped read-only; FileNotFoundError or OSError when it cannot be
/// read.
Bytes MapFile(const std::string& path);
/// Bytes in memory of our own.
Bytes OwnBytes(std::string bytes);
/// A tensor over the bytes, which are as many as its shape needs. They may lie at any address: who
/// reads its elements asks for a HostTensor.
runtime::Tensor TensorOver(const Bytes& bytes, runtime::ShapeView shape, DLDataType dtype);

}  // namespace tvm::frontend
