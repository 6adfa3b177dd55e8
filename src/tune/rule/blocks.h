// SPDX-License-Identifier: Apache-2.0
// Which blocks of a schedule rules take up, and the choices they make.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "schedule/block_view.h"
#include "tvm/ir/machine.h"
#include "tvm/tune/search.h"

namespace tvm::tune {

using tir::Axis;
using tir::BlockView;
using tir::LoopUse;

/// Whether another rule or somebody by hand annotated the block, or bound its loops.
bool IsScheduled(const BlockView& view);
/// The value that annotates a block, or None.
Any AnnotationOf(const Schedule& sch, const BlockRV& block, const char* key);
/// Annotates a loop over threads each of which is a whole warp.
inline constexpr const char* kWarpExecution = "warp_execution";
/// Annotates the root of a schedule that no further rule shall change.
inline constexpr const char* kComplete = "meta_schedule.complete";
bool IsComplete(const Schedule& sch);
int64_t ConstantExtent(const tir::ForObj* loop);

/// The blocks of all functions, inner ones included, that have a name of their own and are wanted.
/// Only these are looked up in the trace: it is read by people and replayed by the search.
std::vector<BlockRV> BlocksWhere(const Schedule& sch,
                                 const std::function<bool(const BlockRV&)>& wanted);

/// One of the values, all equally likely.
tir::Var Choose(const Schedule& sch, const Array<int64_t>& values);

/// What a search is for; a common machine where it does not say.
Machine MachineOf(const Optional<Target>& target);

/// Runs what may refuse; false when it did, with the schedule as it was before the refusal.
template <class F>
bool Try(F&& body) {
  try {
    body();
    return true;
  } catch (const ffi::Error&) {
    return false;
  }
}

}  // namespace tvm::tune
