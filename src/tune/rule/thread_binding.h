// SPDX-License-Identifier: Apache-2.0
// Loops to the blocks and threads of a GPU.
#pragma once
#include <functional>

#include "tune/rule/blocks.h"

namespace tvm::tune {

/// Which axes loops above a block are bound to.
struct Bound {
  bool blocks = false, threads = false;
  explicit Bound(const BlockView& view);
};

/// Binds the leading loops of a block that nothing is bound around yet, in as many steps per thread
/// as it takes to keep within `max_threadblocks`:
///   for i in range(N)  ->  for b in blockIdx.x: for t in threadIdx.x(threads): for s: …
/// A reduction across threads gets blocks only. `threads` gives the threads of a block, at most its
/// argument.
void BindThreads(const Schedule& sch, const BlockRV& block, int64_t max_threadblocks,
                 int64_t max_threads_per_block,
                 const std::function<PrimExpr(int64_t most)>& threads);

}  // namespace tvm::tune
