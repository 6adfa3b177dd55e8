// SPDX-License-Identifier: Apache-2.0
// What the default rules look at, and the steps that they share.
#pragma once
#include <functional>

#include "schedule/block_view.h"
#include "schedule/rules/costs.h"
#include "tvm/schedule/rules.h"

namespace tvm::tir {

/// A view of a block, with what its body does.
struct BlockLook : BlockView {
  using BlockView::BlockView;
  BlockRV rv;
  std::vector<Access> accesses;
  bool simple = true;   // straight-line stores of pure expressions without branches: vectors pay
  double work = 0;      // of one iteration, in simple operations
  int widest_bits = 8;  // of the values it computes with
  /// Iterations, where known.
  std::optional<int64_t> Size(const std::function<bool(const Axis&)>& which) const;
  std::optional<int64_t> Size() const {
    return Size([](const Axis&) { return true; });
  }
  /// Whether an axis is known to have no iterations.
  bool IsEmpty() const;
  /// Work of all iterations, where known.
  std::optional<double> TotalWork() const;
  const Access& Store() const;
  /// Whether it is read, and not what the block itself writes.
  bool IsOperand(const Access& access) const {
    return !access.is_store && !access.buffer.same_as(Store().buffer);
  }
  /// The axis along which elements of the result lie next to each other.
  std::optional<size_t> Column() const;
  /// Whether every access moves along an axis and the one inside of it as along one: outer steps
  /// are whole runs of inner ones.
  bool Collapses(size_t outer) const;
  /// Whether a choice between values depends on the place along an axis, and not on what is there.
  bool ChoosesAlong(size_t axis) const;
};
/// The view with the loops as random variables: rules take them from it.
BlockLook LookAt(const Schedule& sch, const BlockRV& block);

/// The function as the rules want it: simple indices, reductions that only share their loops apart.
PrimFunc Prepared(PrimFunc func);
/// Sums of small floats as sums of float32 that are rounded at the end.
PrimFunc WithWideSums(PrimFunc func);

/// The function scheduled, a product of rows whose number is not known also for one row: which of
/// both runs is seen when it is called.
PrimFunc WithOneRow(const PrimFunc& func, const std::function<PrimFunc(PrimFunc)>& schedule);

/// Whether a block writes all of a buffer, each element in an iteration of its own.
bool WritesAll(const BlockObj* block, const Buffer& buffer, const Array<PrimExpr>& indices);

/// Runs `attempt` and keeps what it did; when it returns false or a primitive refuses, the schedule
/// is what it was before.
bool Attempt(const Schedule& sch, const std::function<bool()>& attempt);

// ---- steps that rules share ---------------------------------------------------------------------
/// One loop for all; a loop alone stays.
LoopRV FuseAll(const Schedule& sch, const Array<LoopRV>& loops);
/// Makes one loop of the innermost ones of a block that are one run of memory for every access, but
/// for those outside.
void FuseRun(const Schedule& sch, const BlockRV& block, size_t outside);
/// The loop that threads share, of some nested ones. Iterations can be told apart in a fused loop
/// where all but the outermost are counted: so all loops, or the outer ones, if they are counted
/// and enough for the threads, or the innermost one that is not counted with all inside of it.
LoopRV FuseToShare(const Schedule& sch, const Array<LoopRV>& loops, const Machine& machine);
/// How much longer jobs of one length take on these cores than if all were busy to the end.
double Unevenness(int64_t jobs, int64_t cores);
/// Inlines what is cheaper to compute again than to store.
void InlineCheap(const Schedule& sch, const BlockRV& root);
/// Marks the loop parallel unless the work is known to be too small.
void ParallelIfWorth(const Schedule& sch, const LoopRV& loop, const Machine& machine,
                     std::optional<double> work);
/// What happens to the elements after the last whole vector: a loop of their own, or the last
/// vector has a mask (where other statements share the loops around: parts of their own would hide
/// from later steps what belongs to one iteration).
enum class Rest { kOwnLoop, kMasked };
/// Turns the innermost loop, along which all accesses are contiguous, into vectors. Returns the
/// loop around the vectors, undefined where none is left.
LoopRV Vectorized(const Schedule& sch, const LoopRV& loop, int lanes, Rest rest);
/// Splits the axis of a block into a part that is a multiple of `multiple` and a rest, each with a
/// nest of its own, and calls `schedule` on both. Returns false where nothing is to be split.
bool Parted(const Schedule& sch, const BlockLook& look, size_t axis, int64_t multiple,
            const std::function<void(const BlockRV&)>& schedule);
/// Vectorizes innermost spatial loops of a block that is already in its place.
void VectorizeInner(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// The largest divisor of n up to `most`.
int64_t LargestDivisor(int64_t n, int64_t most);

/// How threads share what a transposing block writes: lines, or parts of every line, which is
/// better where the threads that read it take parts of every line, too.
enum class Share { kRows, kColumns };
/// Schedules one block by itself.
void ScheduleSpatial(const Schedule& sch, const BlockRV& block, const Machine& machine,
                     Share share = Share::kRows);
void ScheduleReduction(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// What loading a vector of this many lanes costs: it comes with a mask, or in pieces, and joining
/// two of them keeps a unit busy that multiplies.
double LoadsOf(int64_t lanes, const Machine& machine);
/// Makes the result of a block local, a tile at a time, and returns the block that uses it: its
/// consumer, or one that stores it.
BlockRV KeepTile(const Schedule& sch, const BlockRV& block);
/// Blocks of a tile: the innermost loop becomes vectors, those from `first` on are unrolled.
void UnrollTile(const Schedule& sch, const std::vector<BlockRV>& blocks, size_t first);
/// Inlines the margins around what windows slide over, where all lanes of a vector are inside or
/// outside.
void InlinePadding(const Schedule& sch, const BlockRV& root);
/// A short reduction whose results share some of what their neighbours read; false where it is
/// none.
bool IsWindow(const BlockLook& look);
bool ScheduleWindow(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A convolution whose window moves by several elements; false where it is none.
bool ScheduleStridedWindow(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A reduction whose results share what is read; false where it is none.
bool ScheduleProduct(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// The same where some operands are copies already, which may be laid out in any way.
bool ScheduleProductOf(const Schedule& sch, const BlockRV& block, Array<BlockRV> copies,
                       const Machine& machine);
/// How many rows and columns a product is best filled up to, for tiles to divide it: the least work
/// in all. Of those whose number is not known, a multiple.
std::pair<int64_t, int64_t> EvenSides(std::optional<int64_t> rows, std::optional<int64_t> columns,
                                      int64_t lanes, const Machine& machine);
/// How many columns of a product are used for all rows before the next ones: as many as stay close,
/// and where threads share one product, no more than make the part of each a square, which reads
/// least of both operands.
int64_t PanelOf(const BlockLook& look, size_t row, size_t column, const Machine& machine);
/// Threads share the tiles of a result: `outer` loops, and those along `inner` where that is not
/// even.
void ShareTiles(const Schedule& sch, const Array<LoopRV>& outer, const LoopRV& inner,
                const Machine& machine, std::optional<double> work);
/// A copy of what an access reads, in the order of the axes with the columns last. Undefined where
/// fewer than `reuse` results share an element: the copy would cost more than it saves.
BlockRV CopyOperand(const Schedule& sch, const BlockLook& look, const Access& access, size_t column,
                    int64_t reuse);
/// Gives what a block writes, a copy that others read, the layout `map`.
void LayOut(const Schedule& sch, const BlockRV& copy, const IndexMap& map);
/// The last step of the results becomes one with what is made of them, where that is one block.
/// Returns what is left of it.
Array<BlockRV> InlineResult(const Schedule& sch, const BlockRV& block);
/// Schedules a block that packs words which only a copy reads, in other order: for each square of
/// the copy, so that they need not go through memory, or else by itself.
void SchedulePacking(const Schedule& sch, const BlockRV& packing, const Machine& machine);
/// What the products of a block are made of, in the order of the product.
std::vector<const Access*> FactorsOf(const BlockLook& look);
/// A product on the matrix units of a processor; false where it is none, or too small for them.
bool ScheduleTileProduct(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// Packs the factors of a product of small numbers into words that an instruction of the machine
/// multiplies at once. Returns the blocks that pack, none where it is no such product or too little
/// of it.
Array<BlockRV> PackSmallProduct(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A product of small numbers which lie in memory as the words that an instruction multiplies;
/// false where it is none.
bool ScheduleWords(const Schedule& sch, const BlockRV& block, const Machine& machine);
/// A convolution by Winograd; false where the function is none.
bool ScheduleWinograd(const Schedule& sch, BlockRV root, const Machine& machine);
/// A product of small numbers; false where it is none.
bool ScheduleDotProduct(const Schedule& sch, const BlockRV& block, const Machine& machine);

}  // namespace tvm::tir
