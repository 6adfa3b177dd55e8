// SPDX-License-Identifier: Apache-2.0
// Whether iterations of loops may run in another order, or at the same time.
#pragma once
#include "tvm/schedule/state.h"

namespace tvm::tir {

/// Refuses unless the iterations of `loops`, a nest within one scope from the outermost in, may run
/// in any order: every block below runs at most once per element it writes and iteration, and what
/// one block computes for another does not cross iterations. `reductions`: a loop may run over the
/// iterator of a reduction, which may be reordered but not run at the same time. Below a
/// single loop a block that only computes the same again where it repeats itself may do so. A
/// trusted state is not asked.
void RequireIndependent(const State& state, const std::vector<LoopId>& loops, bool reductions);

}  // namespace tvm::tir
