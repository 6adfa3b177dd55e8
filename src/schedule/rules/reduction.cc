// SPDX-License-Identifier: Apache-2.0
// One reduction by itself: along memory, across memory, or a product with tiles in registers.
#include <algorithm>
#include <cmath>

#include "schedule/rules/look.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
LoopRV FuseAll(const Schedule& sch, const Array<LoopRV>& loops) {
  return loops.size() == 1 ? loops[0] : sch.Fuse(loops);
}
std::optional<double> WorkOf(const BlockLook& look) {
  auto size = look.Size();
  return size ? std::optional(look.work * static_cast<double>(*size)) : std::nullopt;
}
/// The axis along which most of what is read is contiguous.
std::optional<size_t> ContiguousRead(const BlockLook& look) {
  std::optional<size_t> best;
  size_t most = 0;
  const Buffer& result = look.Store().buffer;
  for (const Access& access : look.accesses) {
    if (access.is_store || access.buffer.same_as(result) || !access.linear) continue;
    size_t moving = 0;
    for (size_t i = 0; i < look.axes.size(); ++i) moving += access.Moves(i);
    for (size_t i = look.axes.size(); i-- > 0;) {
      if (!access.StepsBy(i, 1) || look.axes[i].size == 1) continue;
      if (moving > most) most = moving, best = i;
      break;
    }
  }
  return best;
}

// ---- products -----------------------------------------------------------------------------------
/// A tile of the result that stays in registers: `rows` times `columns`, the latter in vectors.
struct Tile {
  size_t row_axis, column_axis;
  int64_t rows, columns;
};
int64_t LargestDivisor(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}
/// Each step of the reduction loads `columns` values once and uses them for every row.
std::optional<Tile> ChooseTile(const BlockLook& look, const Machine& machine) {
  if (!look.simple || machine.vector_bits == 0) return std::nullopt;
  const Access& store = look.Store();
  std::optional<size_t> column;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].spatial && !look.axes[i].reduce && store.StepsBy(i, 1)) column = i;
  }
  if (!column || !look.axes[*column].size) return std::nullopt;
  bool reads_vectors = false;
  for (const Access& access : look.accesses) {
    if (access.is_store) continue;
    if (!access.StepsBy(*column, 0) && !access.StepsBy(*column, 1)) return std::nullopt;
    reads_vectors |= !access.buffer.same_as(store.buffer) && access.StepsBy(*column, 1);
  }
  if (!reads_vectors) return std::nullopt;
  // A row axis: what is read in vectors does not move along it.
  std::optional<size_t> row;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == *column || !axis.spatial || axis.reduce || !axis.size || *axis.size == 1) continue;
    bool reuses = true;
    for (const Access& access : look.accesses) {
      if (access.is_store || access.buffer.same_as(store.buffer)) continue;
      if (access.StepsBy(*column, 1) && access.Moves(i)) reuses = false;
    }
    if (reuses && (!row || *axis.size > *look.axes[*row].size)) row = i;
  }
  if (!row) return std::nullopt;

  int lanes = machine.Lanes(look.widest_bits);
  // Three quarters of the registers accumulate; the rest holds operands.
  int64_t accumulators = machine.vector_registers * 3 / 4;
  Tile best{*row, *column, 1, 1};
  double best_score = 0;
  for (int64_t vectors = 1; vectors <= kInterleave; ++vectors) {
    int64_t columns = LargestDivisor(*look.axes[*column].size, vectors * lanes);
    int64_t used = (columns + lanes - 1) / lanes;
    int64_t rows = LargestDivisor(*look.axes[*row].size, accumulators / used);
    // Multiply-adds per operand loaded, less where lanes stay empty or there are too few chains.
    double filled = static_cast<double>(columns) / static_cast<double>(used * lanes);
    double chains = std::min(1.0, static_cast<double>(rows * used) / 8);
    double score = filled * chains * static_cast<double>(rows * used) / static_cast<double>(rows + used);
    if (score > best_score) best_score = score, best.rows = rows, best.columns = columns;
  }
  if (best.columns < lanes / 2 || best.rows == 1) return std::nullopt;
  return best;
}
/// [outer spatial, parallel] [reduction] [rows, unrolled] [columns, a vector]: the tile lives in a
/// local buffer until the reduction is done.
bool Tiled(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto tile = ChooseTile(look, machine);
  if (!tile) return false;
  Array<BlockRV> consumers = sch.GetConsumers(block);
  BlockRV epilogue = consumers.size() == 1 ? consumers[0] : BlockRV();
  if (consumers.empty()) {
    epilogue = sch.CacheWrite(block, 0, "local");
  } else if (!epilogue.defined() || LookAt(sch, epilogue).has_reduction) {
    return false;
  } else {
    sch.SetScope(block, 0, "local");
  }

  Array<LoopRV> outer, reduction, tiles;
  LoopRV rows, columns, row_tiles, column_tiles;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == tile->row_axis) {
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(tile->rows)});
      row_tiles = parts[0], rows = parts[1];
      tiles.push_back(row_tiles);
    } else if (i == tile->column_axis) {
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(tile->columns)});
      column_tiles = parts[0], columns = parts[1];
    } else if (axis.reduce) {
      reduction.push_back(axis.loop);
    } else {
      outer.push_back(axis.loop);
    }
  }
  tiles.push_back(column_tiles);
  Array<LoopRV> order = outer;
  for (const Array<LoopRV>& part : {tiles, reduction, Array<LoopRV>{rows, columns}})
    for (const LoopRV& loop : part) order.push_back(loop);
  sch.Reorder(order);
  sch.ReverseComputeAt(epilogue, column_tiles);
  BlockRV init = sch.DecomposeReduction(block, reduction[0]);
  sch.Unroll(rows);
  sch.Vectorize(columns);
  for (const BlockRV& copy : {init, epilogue}) {
    Array<LoopRV> loops = sch.GetLoops(copy);
    size_t n = loops.size();
    sch.Vectorize(loops[n - 1]);
    sch.Unroll(loops[n - 2]);
  }
  outer.push_back(row_tiles);
  LoopRV shared = FuseAll(sch, outer);
  auto count = AsConstInt(sch.Get(shared)->extent);
  if (count && *count < 4 * machine.cores) shared = sch.Fuse({shared, column_tiles});
  ParallelIfWorth(sch, shared, machine, WorkOf(look));
  return true;
}

// ---- across memory ------------------------------------------------------------------------------
/// What is read is contiguous along a spatial axis: a stretch of results, small enough for the
/// cache, collects row after row in vectors.
bool AcrossMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto contiguous = ContiguousRead(look);
  if (!contiguous || look.axes[*contiguous].reduce || !look.Store().StepsBy(*contiguous, 1)) {
    return false;
  }
  int lanes = machine.Lanes(look.widest_bits);
  const Axis& axis = look.axes[*contiguous];
  auto others = look.Size([&](const Axis& a) { return a.spatial && &a != &axis; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  constexpr int64_t kRegisters = 64;  // a reduction this short keeps its results in registers
  int64_t stretch = lanes * kInterleave;
  if (!depth || *depth > kRegisters) {
    int64_t fits = machine.l1_bytes / 4 / std::max(1, look.widest_bits / 8);
    int64_t share = axis.size ? (*axis.size + machine.cores - 1) / machine.cores : fits;
    if (others && *others >= 4 * machine.cores) share = fits;
    stretch = std::max(stretch, std::min(fits, share) / stretch * stretch);
  }
  Array<LoopRV> outer, order;
  LoopRV inner = axis.loop, stretches;
  if (!axis.size || *axis.size > stretch) {
    Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(stretch)});
    stretches = parts[0], inner = parts[1];
  }
  LoopRV first;
  for (const Axis& a : look.axes) {
    if (!a.reduce && &a != &axis) outer.push_back(a.loop);
  }
  if (stretches.defined()) outer.push_back(stretches);
  order = outer;
  for (const Axis& a : look.axes) {
    if (!a.reduce) continue;
    if (!first.defined()) first = a.loop;
    order.push_back(a.loop);
  }
  order.push_back(inner);
  sch.Reorder(order);
  BlockRV init = sch.DecomposeReduction(block, first);
  VectorizeInner(sch, init, machine);
  VectorizeInner(sch, block, machine);
  if (!outer.empty()) ParallelIfWorth(sch, FuseAll(sch, outer), machine, WorkOf(look));
  return true;
}

// ---- along memory -------------------------------------------------------------------------------
/// The reduction is innermost, where the compiler accumulates in vectors; threads share the
/// results, or parts of the reduction where results are few.
bool AlongMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto results = look.Size([](const Axis& a) { return a.spatial; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  auto work = WorkOf(look);
  Array<LoopRV> spatial, reduction, order;
  for (const Axis& axis : look.axes) (axis.reduce ? reduction : spatial).push_back(axis.loop);
  auto contiguous = ContiguousRead(look);
  if (contiguous && look.axes[*contiguous].reduce) {
    // Contiguous reads go innermost.
    Array<LoopRV> rest;
    for (const LoopRV& loop : reduction) {
      if (!loop.same_as(look.axes[*contiguous].loop)) rest.push_back(loop);
    }
    rest.push_back(look.axes[*contiguous].loop);
    reduction = rest;
  }
  order = spatial;
  for (const LoopRV& loop : reduction) order.push_back(loop);
  if (order.size() > 1) sch.Reorder(order);
  constexpr int64_t kDeep = 4096;
  if (results && *results < 2 * machine.cores && depth && *depth > kDeep && machine.cores > 1 &&
      work && *work >= kParallelWork) {
    bool shared = Attempt(sch, [&] {
      int64_t parts = LargestDivisor(*depth, 4 * machine.cores);
      if (parts < machine.cores) return false;
      LoopRV all = FuseAll(sch, reduction);
      Array<LoopRV> split = sch.Split(all, {PrimExpr(parts), std::nullopt});
      BlockRV partial = sch.RFactor(split[0], 0);
      Array<LoopRV> loops = sch.GetLoops(partial);
      // The new axis of partial results is spatial: it may be anywhere among the loops.
      for (const Axis& axis : LookAt(sch, partial).axes) {
        if (axis.reduce || axis.size != parts) continue;
        sch.Parallel(axis.loop);
        return true;
      }
      return false;
    });
    if (shared) return true;
  }
  if (!spatial.empty()) ParallelIfWorth(sch, FuseAll(sch, spatial), machine, work);
  return true;
}
}  // namespace

void ScheduleReduction(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  for (auto way : {Tiled, AcrossMemory, AlongMemory}) {
    if (Attempt(sch, [&] { return way(sch, block, machine); })) return;
  }
}
}  // namespace tvm::tir
