// SPDX-License-Identifier: Apache-2.0
// What a reduction block computes.
#pragma once
#include <string>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// init + update as a reducer: buffers[i][indices] = combiner(buffers, sources)[i].
struct Reduction {
  CommReducer reducer;
  bool any_order;  // false: what comes first wins among equals (argmax), the order matters
  Array<Buffer> buffers;
  Array<PrimExpr> indices, sources;
};
/// Why the block's init and body are none of the known reducers; else fills `result`.
std::string WhyNoReducer(const BlockObj* block, Reduction* result);

}  // namespace tvm::tir
