// SPDX-License-Identifier: Apache-2.0
// What a reduction block computes.
#pragma once
#include <optional>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// A block with init that combines values into elements of buffers.
struct BlockReduction {
  CommReducer combiner;
  std::vector<Buffer> buffers;  // the results
  Array<PrimExpr> indices;      // of the elements, the same in all buffers
  Array<PrimExpr> values;       // what one iteration contributes
};
/// The reduction of a block: `B[i] = B[i] + v`, a tuple of such stores, or of choices between
/// `B[i]` and `v` (argmax), possibly through lets. None if the block is of another form.
std::optional<BlockReduction> MatchReduction(const Block& block);

}  // namespace tvm::tir
