// SPDX-License-Identifier: Apache-2.0
// Kernels that need no compiler: one operation per element, along strides.
#pragma once
#include "tvm/tir/function.h"

namespace tvm::tir {

/// A packed function that does what `func` does, for a kernel of static shape that moves elements
/// of one tensor (transposed, broadcast, sliced, or with zeros around) or applies +, -, *, / or a
/// square root to float32: each is rounded once, so the results are those of compiled code.
Optional<ffi::Function> StridedKernel(const PrimFunc& func);

}  // namespace tvm::tir
