// SPDX-License-Identifier: Apache-2.0
// One reduction by itself: along memory, across memory, or a product with tiles in registers.
#include <algorithm>
#include <cmath>

#include "schedule/rules/look.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
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
/// A tile of the result that stays in registers: `rows` times `vectors` of `lanes` columns.
struct Tile {
  int64_t rows = 1, vectors = 1, lanes = 1;
  double score = 0;  // multiply-adds per operand loaded, as far as lanes and chains are filled
};
int64_t LargestDivisor(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}
constexpr int64_t kEven = 1 << 10;  // a size that all tiles divide
Tile ChooseTile(int64_t rows, int64_t columns, int lanes, const Machine& machine) {
  // Three quarters of the registers accumulate; the rest holds operands.
  int64_t accumulators = machine.vector_registers * 3 / 4;
  constexpr double kChains = 8;  // that hide the latency of a multiply-add
  Tile best;
  while (lanes > 1 && columns % lanes != 0) lanes /= 2;
  for (int64_t most = 1; most <= kInterleave; ++most) {
    Tile tile{1, LargestDivisor(columns / lanes, most), lanes};
    tile.rows = LargestDivisor(rows, accumulators / tile.vectors);
    double used = static_cast<double>(tile.rows * tile.vectors);
    tile.score = lanes * std::min(1.0, used / kChains) * used /
                 static_cast<double>(tile.rows + tile.vectors);
    if (tile.score > best.score) best = tile;
  }
  return best;
}
/// The two axes of a product: what is read along the columns is read again for every row.
struct TileAxes {
  size_t row, column;
};
std::optional<TileAxes> FindTileAxes(const BlockLook& look) {
  const Access& store = look.Store();
  std::optional<size_t> row, column;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].spatial && !look.axes[i].reduce && store.StepsBy(i, 1)) column = i;
  }
  if (!column || !look.axes[*column].size) return std::nullopt;
  bool reads_vectors = false;
  for (const Access& access : look.accesses) {
    if (access.is_store || access.buffer.same_as(store.buffer)) continue;
    if (!access.StepsBy(*column, 0) && !access.StepsBy(*column, 1)) return std::nullopt;
    reads_vectors |= access.StepsBy(*column, 1);
  }
  if (!reads_vectors) return std::nullopt;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == *column || !axis.spatial || axis.reduce || axis.size == 1) continue;
    bool reuses = true;
    for (const Access& access : look.accesses) {
      if (access.is_store || access.buffer.same_as(store.buffer)) continue;
      if (access.StepsBy(*column, 1) && access.Moves(i)) reuses = false;
    }
    auto size = [&](size_t i) { return look.axes[i].size.value_or(kEven); };
    if (reuses && (!row || size(i) > size(*row))) row = i;
  }
  if (!row) return std::nullopt;
  return TileAxes{*row, *column};
}
/// A number of rows with the divisors that matter: those of the extent, as far as they are known.
int64_t RowsOf(const Axis& axis, int lanes, const Machine& machine) {
  if (axis.size) return *axis.size;
  int64_t rows = ChooseTile(kEven, kEven, lanes, machine).rows;
  PrimExpr rest = floormod(axis.extent, MakeConst(axis.extent.dtype(), rows));
  return arith::Analyzer().CanProveEqual(rest, MakeZero(axis.extent.dtype())) ? rows : 1;
}
/// [outer spatial, parallel] [reduction] [rows, vectors: unrolled] [lanes]: the tile lives in a
/// local buffer until the reduction is done; the block that uses it comes along.
void InTiles(const Schedule& sch, const BlockLook& look, TileAxes axes, const Machine& machine) {
  const BlockRV& block = look.rv;
  int lanes = machine.Lanes(look.widest_bits);
  bool is_result = sch.GetConsumers(block).empty();
  if (is_result) {
    // Sizes that tiles do not divide: most of the result in good tiles, the rest in what it takes.
    auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
    int64_t rows = RowsOf(look.axes[axes.row], lanes, machine);
    int64_t columns = *look.axes[axes.column].size;
    Tile ideal = ChooseTile(kEven, kEven, lanes, machine);
    auto good = [&](int64_t r, int64_t c) {
      return ChooseTile(r, c, lanes, machine).score >= 0.75 * ideal.score;
    };
    if (!good(kEven, columns) && Parted(sch, look, axes.column, lanes, again)) return;
    if (!good(rows, columns) && Parted(sch, look, axes.row, ideal.rows, again)) return;
  }
  int64_t rows = RowsOf(look.axes[axes.row], lanes, machine);
  Tile tile = ChooseTile(rows, *look.axes[axes.column].size, lanes, machine);

  BlockRV epilogue;
  if (is_result) {
    epilogue = sch.CacheWrite(block, 0, "local");
  } else {
    epilogue = sch.GetConsumers(block)[0];
    sch.SetScope(block, 0, "local");
  }
  Array<LoopRV> outer, reduction, inner;
  LoopRV stretches, column_tiles, row_tiles;
  int64_t depth = look.Size([](const Axis& a) { return a.reduce; }).value_or(kEven);
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == axes.row) {
      Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(tile.rows)});
      row_tiles = parts[0];
      inner.insert(inner.begin(), parts[1]);
    } else if (i == axes.column) {
      // As many columns as the second cache holds for all of the reduction are used for all rows
      // before the next ones.
      int64_t tiles = *axis.size / (tile.vectors * tile.lanes);
      int64_t bytes = depth * tile.vectors * tile.lanes * std::max(1, look.widest_bits / 8);
      int64_t close = LargestDivisor(tiles, std::max<int64_t>(1, machine.l2_bytes / 2 / bytes));
      Array<LoopRV> parts = sch.Split(
          axis.loop, {std::nullopt, PrimExpr(close), PrimExpr(tile.vectors), PrimExpr(tile.lanes)});
      stretches = parts[0], column_tiles = parts[1];
      inner.push_back(parts[2]), inner.push_back(parts[3]);
    } else {
      (axis.reduce ? reduction : outer).push_back(axis.loop);
    }
  }
  outer.push_back(stretches), outer.push_back(row_tiles);
  Array<LoopRV> order = outer;
  order.push_back(column_tiles);
  for (const LoopRV& loop : reduction) order.push_back(loop);
  for (const LoopRV& loop : inner) order.push_back(loop);
  sch.Reorder(order);
  sch.ReverseComputeAt(epilogue, column_tiles, /*preserve_unit_loops=*/true);
  // The tile of the epilogue: columns in vectors as well.
  Array<LoopRV> loops = sch.GetLoops(epilogue);
  sch.Split(loops.back(), {PrimExpr(tile.vectors), PrimExpr(tile.lanes)});
  BlockRV init = sch.DecomposeReduction(block, reduction[0]);
  for (const BlockRV& part : {init, block, epilogue}) {
    loops = sch.GetLoops(part);
    sch.Vectorize(loops.back());
    size_t above = outer.size() + 1 + (part.same_as(block) ? reduction.size() : 0);
    for (size_t i = above; i + 1 < loops.size(); ++i) sch.Unroll(loops[i]);
  }
  LoopRV shared = FuseAll(sch, outer);
  auto count = AsConstInt(sch.Get(shared)->extent);
  if (count && *count < 4 * machine.cores) shared = sch.Fuse({shared, column_tiles});
  ParallelIfWorth(sch, shared, machine, look.TotalWork());
}
/// Turns an operand that is contiguous along the reduction, so that it is along the columns of the
/// result: the copy pays when many rows use it.
bool TurnOperand(const Schedule& sch, const BlockLook& look, const Machine& machine) {
  constexpr int64_t kManyRows = 16;
  const Access& store = look.Store();
  std::optional<size_t> column;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].spatial && !look.axes[i].reduce && store.StepsBy(i, 1)) column = i;
  }
  if (!column) return false;
  for (const Access& access : look.accesses) {
    if (access.is_store || access.buffer.same_as(store.buffer)) continue;
    if (access.StepsBy(*column, 0) || access.StepsBy(*column, 1)) continue;
    std::optional<int64_t> reuse = 1;
    Array<Var> iters;
    Array<PrimExpr> order;
    Optional<Var> last;
    for (const IterVar& iter : look.block->iter_vars) iters.push_back(iter->var);
    for (size_t i = 0; i < look.axes.size(); ++i) {
      const Axis& axis = look.axes[i];
      if (!axis.iter.defined()) return false;
      if (!access.Moves(i)) {
        reuse = reuse && axis.size ? std::optional(*reuse * *axis.size) : std::nullopt;
      } else if (i == *column) {
        last = axis.iter;
      } else {
        order.push_back(axis.iter);
      }
    }
    if (!last || (reuse && *reuse < kManyRows)) return false;
    order.push_back(*last);
    for (size_t r = 0; r < look.block->reads.size(); ++r) {
      if (!look.block->reads[r]->buffer.same_as(access.buffer)) continue;
      BlockRV copy = sch.ReindexCacheRead(look.rv, static_cast<int64_t>(r), "global",
                                          IndexMap(iters, order, {}));
      ScheduleSpatial(sch, copy, machine);
      return true;
    }
  }
  return false;
}
bool Tiled(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (look.simple && machine.vector_bits > 0 &&
      Attempt(sch, [&] { return TurnOperand(sch, look, machine); })) {
    look = LookAt(sch, block);
  }
  auto axes = FindTileAxes(look);
  if (!look.simple || machine.vector_bits == 0 || !axes) return false;
  Array<BlockRV> consumers = sch.GetConsumers(block);
  if (consumers.size() > 1) return false;
  if (consumers.size() == 1 && LookAt(sch, consumers[0]).has_reduction) return false;
  InTiles(sch, look, *axes, machine);
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
  auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
  if (Parted(sch, look, *contiguous, lanes * kInterleave, again)) return true;
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
  if (!outer.empty()) ParallelIfWorth(sch, FuseAll(sch, outer), machine, look.TotalWork());
  return true;
}

// ---- along memory -------------------------------------------------------------------------------
/// The reduction is innermost, where the compiler accumulates in vectors; threads share the
/// results, or parts of the reduction where results are few.
bool AlongMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto results = look.Size([](const Axis& a) { return a.spatial; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  auto work = look.TotalWork();
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
