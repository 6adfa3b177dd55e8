// SPDX-License-Identifier: Apache-2.0
// Buffers that the program allocates.
#pragma once
#include "schedule/primitive/cache.h"

namespace tvm::tir {

/// The block around `block` (or itself) that allocates a buffer; refuses a buffer from outside.
BlockId RequireAllocated(const State& state, BlockId block, const Buffer& buffer);

}  // namespace tvm::tir
