// SPDX-License-Identifier: Apache-2.0
// Blockizing, for primitives that need it first.
#pragma once
#include "tvm/schedule/state.h"

namespace tvm::tir {

/// The block that contains what is below the loop from now on.
BlockId BlockizeLoop(State& state, LoopId loop, bool preserve_unit_iters);

}  // namespace tvm::tir
