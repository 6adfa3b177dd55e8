// SPDX-License-Identifier: Apache-2.0
// Tensors in files of NumPy's format.
#pragma once
#include <string>

#include "tvm/runtime/tensor.h"

namespace tvm::cli {

/// ValueError for a file that is damaged, or holds what a tensor cannot.
runtime::Tensor ReadNpy(const std::string& path);
/// Types that NumPy does not have are written as the bits that they are.
void WriteNpy(const std::string& path, const runtime::Tensor& tensor);

}  // namespace tvm::cli
