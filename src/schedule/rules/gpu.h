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

/// A reduction by itself.
void ScheduleSum(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// Any block by itself.
bool ScheduleBlock(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A function that is attention, in one kernel.
bool ScheduleAttention(const Schedule& sch, BlockRV root, const Machine& machine);
/// Stages over the same rows: softmax, normalisation.
bool RowByRow(const Schedule& sch, BlockRV root, const Machine& machine);

}  // namespace tvm::tir::gpu
