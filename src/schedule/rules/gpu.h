// SPDX-License-Identifier: Apache-2.0
// What the rules for GPUs share: numbers, questions about blocks, and the parts of the rules.
#pragma once
#include "schedule/rules/gpu_product.h"

namespace tvm::tir::gpu {

inline constexpr int64_t kThreads =
    256;  ///< Of a block: enough of this size fill a multiprocessor.
inline constexpr int64_t kVectorBytes = 16;  ///< The widest access of a thread.
inline constexpr int64_t kMostThreads = 1024;
inline constexpr int64_t kSharedBytes = 40 << 10;  ///< Of a block, below what every GPU has.

inline int64_t BytesOf(const Buffer& buffer) { return std::max(1, buffer->dtype.bits() / 8); }
inline PrimExpr Int(int64_t value) { return PrimExpr(static_cast<int>(value)); }
/// The loop that blocks and threads of a grid share, bound; returns the threads.
LoopRV BindGrid(const Schedule& sch, const LoopRV& loop, int64_t threads);
/// Elements that a thread takes at once along an axis: one access, where all lie next to each
/// other.
int64_t LanesAlong(const BlockLook& look, size_t axis);
/// Threads that add up a run of this length together: each has several elements, all are whole
/// warps.
int64_t ThreadsFor(std::optional<int64_t> length);
/// Whether what is reduced lies next to each other in memory: threads share a result. Else a result
/// has a thread, and threads next to each other read what lies next to each other.
bool IsRowReduction(const BlockLook& look);

// ---- reductions ----
struct SumAxes {
  Array<LoopRV> spatial, reduced;
};
SumAxes AxesOf(const BlockLook& look);
bool IsReduced(const Axis& axis);
bool IsKept(const Axis& axis);
/// The reduction in two kernels: results of at most so many parts, and these together. Undefined
/// where it has no such parts.
BlockRV InParts(const Schedule& sch, const BlockLook& look, int64_t most);
/// Whether a block reads a buffer at the element that its iterators name, in their order.
bool ReadsInPlace(const BlockLook& look, const Buffer& buffer);
/// The block that alone uses the results of a reduction, each for an element of its own: a mean, a
/// cast, a bias.
std::optional<BlockRV> LastStepOf(const Schedule& sch, const BlockRV& block);
/// Makes the last step part of the kernel, if there is one, inside of the loop that is one result:
/// where several threads share that, the first of them does it.
void JoinLastStep(const Schedule& sch, const BlockRV& block, const LoopRV& result,
                  const char* thread = nullptr, int64_t threads = 1);
/// Long sums of columns, in vectors of them; false where it is none.
bool ScheduleTallColumns(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// Long sums of few columns, in parts; false where it is none.
bool ScheduleFewColumns(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// Sums of any columns.
void ScheduleColumns(const Schedule& sch, const BlockLook& look, const LoopRV& outer,
                     const Array<LoopRV>& reduced, const Machine& machine);
/// A reduction by itself.
void ScheduleSum(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// Any block by itself.
bool ScheduleBlock(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A function that is attention, in one kernel.
bool ScheduleAttention(const Schedule& sch, BlockRV root, const Machine& machine);
/// Stages over the same rows: softmax, normalisation.
bool RowByRow(const Schedule& sch, BlockRV root, const Machine& machine);

}  // namespace tvm::tir::gpu
