// SPDX-License-Identifier: Apache-2.0
// One reduction by itself: along memory, across memory, or a product with tiles in registers.
#include <algorithm>
#include <bit>

#include "schedule/rules/look.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// The axis along which most of what is read is contiguous; of several, as in a window that slides,
/// the one along which the result is, too.
std::optional<size_t> ContiguousRead(const BlockLook& look) {
  std::optional<size_t> best;
  size_t most = 0;
  const Access& store = look.Store();
  for (const Access& access : look.accesses) {
    if (access.is_store || access.buffer.same_as(store.buffer) || !access.linear) continue;
    size_t moving = 0;
    std::optional<size_t> along;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      moving += access.Moves(i);
      if (!access.StepsBy(i, 1) || look.axes[i].size == 1) continue;
      if (!along || !store.StepsBy(*along, 1)) along = i;
    }
    if (along && moving > most) most = moving, best = along;
  }
  return best;
}

// ---- products -----------------------------------------------------------------------------------
/// A tile of the result that stays in registers: `rows` times `vectors` of `lanes` columns. Vectors
/// lie next to each other along the columns, or, where one is all columns, along the lines.
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
// Of the first cache: how often a place repeats, and how many lines it holds there.
constexpr int64_t kCachePeriod = 4096, kWays = 8;
/// What loading a vector of this many lanes costs: it comes in pieces, and joining two of them
/// keeps a unit busy that multiplies.
int LoadsOf(int64_t lanes) { return 4 * std::popcount(static_cast<uint64_t>(lanes)) - 3; }
/// What tiles are cut from.
struct Area {
  int64_t rows, columns;
  int64_t lines = 1;
  bool rows_collide = false;  // in the first cache: all in the same few places
};
Tile ChooseTile(const Area& area, int64_t most_lanes, const Machine& machine) {
  // Three quarters of the registers accumulate; the rest holds operands.
  int64_t accumulators = machine.vector_registers * 3 / 4;
  int64_t most_rows = area.rows_collide ? kWays : accumulators;
  constexpr double kChains = 8;  // that hide the latency of a multiply-add
  Tile best;
  for (int64_t lanes = most_lanes; lanes >= 1; --lanes) {
    if (area.columns % lanes != 0) continue;
    int64_t places = area.columns == lanes ? area.lines : area.columns / lanes;
    for (int64_t most = 1; most <= kInterleave; ++most) {
      Tile tile{1, LargestDivisor(places, most), lanes};
      tile.rows = LargestDivisor(area.rows, std::min(most_rows, accumulators / tile.vectors));
      double used = static_cast<double>(tile.rows * tile.vectors);
      double loads = static_cast<double>(tile.rows + tile.vectors * LoadsOf(lanes));
      tile.score = static_cast<double>(lanes) * std::min(1.0, used / kChains) * used / loads;
      if (tile.score > best.score) best = tile;
    }
  }
  return best;
}
/// The axes of a product: what is read along the columns is read again for every row. Lines are
/// other columns, where there are such.
struct TileAxes {
  size_t row, column;
  std::optional<size_t> line;
};
/// Whether what is read along the rows, and not along the columns, moves along an axis.
bool RowsMove(const BlockLook& look, TileAxes axes, size_t axis) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    return !access.is_store && !access.Moves(axes.column) && access.Moves(axis);
  });
}
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
  TileAxes axes{*row, *column, std::nullopt};
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (i == *row || i == *column || !axis.spatial || axis.reduce || !axis.size) continue;
    if (*axis.size > 1 && !RowsMove(look, axes, i)) axes.line = i;
  }
  return axes;
}
bool RowsCollide(const BlockLook& look, TileAxes axes) {
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    if (access.is_store || access.Moves(axes.column) || !access.Moves(axes.row)) return false;
    auto step = access.linear ? AsConstInt(access.steps[axes.row]) : std::nullopt;
    return step && *step * access.buffer->dtype.bits() / 8 % kCachePeriod == 0;
  });
}
/// Whether all that is read along the columns stays in the second cache: then each row of the other
/// operand is read once, for everything that uses it.
bool FitsSecondCache(const BlockLook& look, TileAxes axes, const Machine& machine) {
  double bytes = 0;
  for (const Access& access : look.accesses) {
    if (access.is_store || !access.StepsBy(axes.column, 1)) continue;
    double elements = 1;
    for (const PrimExpr& extent : access.buffer->shape) {
      elements *= static_cast<double>(AsConstInt(extent).value_or(machine.l2_bytes));
    }
    bytes += elements * access.buffer->dtype.bits() / 8;
  }
  return bytes <= static_cast<double>(machine.l2_bytes) / 2;
}
/// A number of rows with the divisors that matter: those of the extent, as far as they are known.
int64_t RowsOf(const Axis& axis, int lanes, const Machine& machine) {
  if (axis.size) return *axis.size;
  int64_t rows = ChooseTile({kEven, kEven}, lanes, machine).rows;
  PrimExpr rest = floormod(axis.extent, MakeConst(axis.extent.dtype(), rows));
  return arith::Analyzer().CanProveEqual(rest, MakeZero(axis.extent.dtype())) ? rows : 1;
}
/// [outer spatial, parallel] [reduction] [rows, vectors: unrolled] [lanes]: the tile lives in a
/// local buffer until the reduction is done; the block that uses it comes along.
void InTiles(const Schedule& sch, const BlockLook& look, TileAxes axes, const Machine& machine) {
  const BlockRV& block = look.rv;
  int lanes = machine.Lanes(look.widest_bits);
  Area area{RowsOf(look.axes[axes.row], lanes, machine), *look.axes[axes.column].size,
            axes.line ? *look.axes[*axes.line].size : 1, RowsCollide(look, axes)};
  bool is_result = sch.GetConsumers(block).empty();
  if (is_result) {
    // Sizes that tiles do not divide: most of the result in good tiles, the rest in what it takes.
    auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
    Tile ideal = ChooseTile({kEven, kEven, 1, area.rows_collide}, lanes, machine);
    auto good = [&](int64_t rows) {
      Area part = area;
      part.rows = rows;
      return ChooseTile(part, lanes, machine).score >= 0.75 * ideal.score;
    };
    if (!good(kEven) && Parted(sch, look, axes.column, lanes, again)) return;
    if (!good(area.rows) && Parted(sch, look, axes.row, ideal.rows, again)) return;
  }
  Tile tile = ChooseTile(area, lanes, machine);
  int64_t lines_inside = area.columns == tile.lanes ? tile.vectors : 1;
  int64_t vectors = tile.vectors / lines_inside;

  BlockRV epilogue;
  if (is_result) {
    epilogue = sch.CacheWrite(block, 0, "local");
  } else {
    epilogue = sch.GetConsumers(block)[0];
    sch.SetScope(block, 0, "local");
  }
  Array<LoopRV> outer, among_rows, reduction;
  LoopRV stretches, row_tiles, column_tiles, row, line, vector, lane;
  bool is_small = FitsSecondCache(look, axes, machine);
  int64_t depth = look.Size([](const Axis& a) { return a.reduce; }).value_or(kEven);
  auto split = [&](const Axis& axis, int64_t factor, LoopRV* inside) {
    Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(factor)});
    *inside = parts[1];
    return parts[0];
  };
  for (size_t i = 0; i < look.axes.size(); ++i) {
    const Axis& axis = look.axes[i];
    if (axis.reduce) {
      reduction.push_back(axis.loop);
    } else if (i == axes.row) {
      row_tiles = split(axis, tile.rows, &row);
    } else if (i == axes.column) {
      // As many columns as the second cache holds for all of the reduction are used for all rows
      // before the next ones.
      int64_t bytes = depth * vectors * tile.lanes * std::max(1, look.widest_bits / 8);
      int64_t close = LargestDivisor(area.columns / (vectors * tile.lanes),
                                     std::max<int64_t>(1, machine.l2_bytes / 2 / bytes));
      Array<LoopRV> parts = sch.Split(
          axis.loop, {std::nullopt, PrimExpr(close), PrimExpr(vectors), PrimExpr(tile.lanes)});
      stretches = parts[0], column_tiles = parts[1], vector = parts[2], lane = parts[3];
    } else {
      LoopRV loop = i == axes.line ? split(axis, lines_inside, &line) : axis.loop;
      (is_small && !RowsMove(look, axes, i) ? among_rows : outer).push_back(loop);
    }
  }
  outer.push_back(stretches), outer.push_back(row_tiles);
  for (const LoopRV& loop : among_rows) outer.push_back(loop);
  Array<LoopRV> order = outer;
  order.push_back(column_tiles);
  for (const LoopRV& loop : reduction) order.push_back(loop);
  for (const LoopRV& loop : {row, line, vector, lane}) {
    if (loop.defined()) order.push_back(loop);
  }
  sch.Reorder(order);
  sch.ReverseComputeAt(epilogue, column_tiles, /*preserve_unit_loops=*/true);
  // The tile of the epilogue: columns in vectors as well.
  Array<LoopRV> loops = sch.GetLoops(epilogue);
  sch.Split(loops.back(), {PrimExpr(vectors), PrimExpr(tile.lanes)});
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

// ---- parts of a reduction ----------------------------------------------------------------------
/// Splits the loops of a reduction into parts for the threads: returns the block of their results,
/// which has the parts as an axis of its own, or nothing where they do not divide.
std::optional<BlockRV> InParts(const Schedule& sch, const BlockLook& look,
                               const Array<LoopRV>& reduction, int64_t most,
                               const Machine& machine) {
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  int64_t parts = depth ? LargestDivisor(*depth, most) : 1;
  if (parts < machine.cores) return std::nullopt;
  return sch.RFactor(sch.Split(FuseAll(sch, reduction), {PrimExpr(parts), std::nullopt})[0], 0);
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
  // Where threads would read short pieces of every row, they share the rows instead.
  constexpr int64_t kLongPiece = 1024;  // bytes
  if (axis.size && others && *others < machine.cores && depth && *depth > 4 * kRegisters &&
      *axis.size * *others * look.widest_bits / 8 < kLongPiece * machine.cores &&
      look.TotalWork() >= kParallelWork && Attempt(sch, [&] {
        Array<LoopRV> reduction;
        for (const Axis& a : look.axes) {
          if (a.reduce) reduction.push_back(a.loop);
        }
        auto partial = InParts(sch, look, reduction, 2 * machine.cores, machine);
        if (partial) ScheduleReduction(sch, *partial, machine);
        if (partial) ScheduleReduction(sch, block, machine);
        return partial.has_value();
      })) {
    return true;
  }
  if (!depth || *depth > kRegisters) {
    int64_t fits = machine.l1_bytes / 4 / std::max(1, look.widest_bits / 8);
    int64_t share = axis.size ? (*axis.size + machine.cores - 1) / machine.cores : fits;
    if (others && *others >= machine.cores) share = fits;
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
      auto partial = InParts(sch, look, reduction, 4 * machine.cores, machine);
      if (!partial) return false;
      // The new axis of partial results is spatial: it may be anywhere among the loops.
      for (const Axis& axis : LookAt(sch, *partial).axes) {
        if (axis.reduce || axis.size.value_or(1) < machine.cores) continue;
        sch.Parallel(axis.loop);
        return true;
      }
      return false;
    });
    if (shared) return true;
  }
  // A run of memory is one loop, however many axes it has.
  look = LookAt(sch, block);
  size_t first = look.axes.size() - 1;
  while (first > spatial.size() && look.Collapses(first - 1)) --first;
  LoopRV outermost = look.axes[std::min(spatial.size(), first)].loop;
  if (first + 1 < look.axes.size()) {
    Array<LoopRV> run;
    for (size_t i = first; i < look.axes.size(); ++i) run.push_back(look.axes[i].loop);
    LoopRV fused = sch.Fuse(run);
    if (first == spatial.size()) outermost = fused;
  }
  // A sum over nothing has a value, too.
  if (!depth && !reduction.empty()) sch.DecomposeReduction(block, outermost);
  if (!spatial.empty()) ParallelIfWorth(sch, FuseAll(sch, spatial), machine, work);
  return true;
}
/// What is summed over nothing has its initial value.
bool Empty(const Schedule& sch, const BlockRV& block, const Machine&) {
  BlockLook look = LookAt(sch, block);
  if (!look.IsEmpty()) return false;
  Array<LoopRV> order, reduction;
  for (const Axis& axis : look.axes) (axis.reduce ? reduction : order).push_back(axis.loop);
  for (const LoopRV& loop : reduction) order.push_back(loop);
  if (order.size() > 1) sch.Reorder(order);
  if (!reduction.empty()) sch.DecomposeReduction(block, reduction[0]);
  return true;
}
}  // namespace

void ScheduleReduction(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  for (auto way : {Empty, Tiled, AcrossMemory, AlongMemory}) {
    if (Attempt(sch, [&] { return way(sch, block, machine); })) return;
  }
}
}  // namespace tvm::tir
