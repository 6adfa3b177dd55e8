// SPDX-License-Identifier: Apache-2.0
// Kernels that differ in extents alone, as one that takes any.
#pragma once
#include <vector>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// The kernels that take the place of others: `of[i]` is the index of the one for kernel i.
struct SharedKernels {
  std::vector<PrimFunc> kernels;
  std::vector<size_t> of;
};
/// Kernels that are equal up to extents of their buffers become one, which reads those extents from
/// its arguments; extents that all of them have stay numbers. Those with more than one stage, or a
/// reduction, whose order depends on its extents, stay as they are.
SharedKernels ShareKernels(const std::vector<PrimFunc>& kernels);

}  // namespace tvm::tir
