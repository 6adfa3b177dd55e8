// SPDX-License-Identifier: Apache-2.0
// Reductions across memory on GPUs: threads next to each other have results next to each other.
//
// Long ones are read in tiles of a line of memory and as many rows as there are rows of threads:
//
//   for b in blocks:                          # a line of columns, and a part of the rows
//       for y, x in threads:                  # x: a vector of the line
//           for r in own rows: sums[x] += A[r, x]
//           shared[y, x] = sums[x]
//       for c, x in threads:                  # results of the line, each by several threads
//           result[c] = sum(shared[..., c])   # and what the last step makes of it
#include <algorithm>

#include "schedule/rules/gpu.h"

namespace tvm::tir::gpu {
namespace {
constexpr int64_t kLineVectors = 8;  // of 16 bytes: a line of the cache
constexpr int64_t kWideLanes = 4;

struct Tile {
  int64_t columns;  // of a line
  int64_t lanes;    // of a vector
  int64_t rows;     // of threads
  int64_t parts;    // of a column, in blocks of their own
  int64_t unroll;   // rows that a thread reads at once
};
/// Elements of the widest access along the columns.
int64_t LanesOf(const BlockLook& look, size_t column) {
  int64_t bytes = 1;
  for (const Access& access : look.accesses) {
    if (look.IsOperand(access) && access.Moves(column))
      bytes = std::max(bytes, BytesOf(access.buffer));
  }
  return kVectorBytes / bytes;
}
/// So many threads that memory is kept busy, with no more parts than that takes.
std::optional<Tile> ChooseTile(const BlockLook& look, const Machine& machine) {
  constexpr int64_t kMostRows = 64, kFewestRows = 8, kMostParts = 16, kThreadsOfCore = 768;
  auto column = look.Column();
  auto results = look.Size(IsKept), length = look.Size(IsReduced);
  if (!column || !results || !length || *results == 0 || LanesAlong(look, *column) == 1)
    return std::nullopt;
  Tile tile;
  tile.lanes = LanesOf(look, *column);
  tile.columns = tile.lanes * kLineVectors;
  int64_t size = *look.axes[*column].size, wanted = machine->cores * kThreadsOfCore;
  int64_t lines = *results / tile.columns;
  // Many results keep all threads busy, one vector each.
  if (size % tile.columns != 0 || 3 * lines * kLineVectors >= wanted) return std::nullopt;
  // What a thread reads at once, several times; 1 where that is not all of its part.
  auto unroll_of = [](int64_t own) {
    int64_t unroll = LargestDivisor(own, 4);
    while (unroll > 1 && (own % unroll != 0 || own / unroll < 2)) --unroll;
    return unroll;
  };
  for (tile.rows = std::min(tile.columns, kMostRows); tile.rows >= kFewestRows; tile.rows /= 2) {
    if (*length % tile.rows != 0) continue;
    int64_t own = *length / tile.rows, threads = lines * tile.rows * kLineVectors;
    tile.parts = 0;
    for (int64_t parts = 1; parts <= kMostParts && threads * tile.parts < wanted; ++parts) {
      if (own % parts == 0 && unroll_of(own / parts) > 1) tile.parts = parts;
    }
    if (tile.parts == 0) continue;
    tile.unroll = unroll_of(own / tile.parts);
    return tile;
  }
  return std::nullopt;
}

/// The kernel of a block and its last step.
bool ScheduleTile(const Schedule& sch, const BlockRV& block, const Tile& tile) {
  auto user = LastStepOf(sch, block);
  LoopRV length = FuseAll(sch, AxesOf(LookAt(sch, block)).reduced);
  Array<LoopRV> rows = sch.Split(length, {Int(tile.rows), std::nullopt, Int(tile.unroll)});
  BlockRV sums = sch.RFactor(rows[0], 0);
  sch.SetScope(sums, 0, "shared");
  // Lines begin in different banks.
  sch.StorageAlign(sums, 0, 0, 32, 4);

  // ---- results ----
  BlockLook last = LookAt(sch, user.value_or(block));
  auto column = last.Column();
  if (!column) return false;
  Array<LoopRV> line = sch.Split(last.axes[*column].loop, {std::nullopt, Int(tile.columns)});
  Array<LoopRV> outer;
  for (size_t i = 0; i < last.axes.size(); ++i) {
    if (i != *column && !last.axes[i].reduce) outer.push_back(last.axes[i].loop);
  }
  outer.push_back(line[0]);
  Array<LoopRV> order = outer;
  order.push_back(line[1]);
  sch.Reorder(order);
  LoopRV grid = FuseAll(sch, outer);
  sch.Bind(grid, "blockIdx.x");
  if (user) {
    sch.ComputeAt(block, line[1]);
    sch.SetScope(block, 0, "local");
  }
  sch.ComputeAt(sums, grid);
  Array<LoopRV> each = sch.Split(line[1], {std::nullopt, Int(tile.rows)});
  sch.Bind(each[1], "threadIdx.y");
  Array<LoopRV> several = sch.Split(sch.GetLoops(block).back(), {std::nullopt, Int(kLineVectors)});
  sch.Bind(several[1], "threadIdx.x");

  // ---- sums of the rows of threads ----
  Array<LoopRV> own = sch.GetLoops(sums);
  if (own.size() != 5) return false;  // the grid, rows, columns, and two of the length
  Array<LoopRV> vectors = sch.Split(own[2], {Int(kLineVectors), Int(tile.lanes)});
  sch.Reorder({own[1], vectors[0], own[3], own[4], vectors[1]});
  sch.Bind(own[1], "threadIdx.y");
  sch.Bind(vectors[0], "threadIdx.x");
  BlockRV store = sch.CacheWrite(sums, 0, "local");
  sch.ReverseComputeAt(store, vectors[0], true);
  sch.Vectorize(sch.GetLoops(store).back());
  size_t reads = sch.Get(sums)->reads.size();
  for (size_t i = 0; i < reads; ++i) {
    BlockRV copy = sch.CacheRead(sums, static_cast<int64_t>(i), "local");
    sch.ComputeAt(copy, own[3]);
    Array<LoopRV> loops = sch.GetLoops(copy);
    if (loops.size() > 5) sch.Unroll(loops[4]);  // inside of the grid, threads and steps
    if (loops.size() > 4) sch.Vectorize(loops.back());
  }
  sch.Unroll(own[4]);
  sch.Unroll(vectors[1]);
  sch.DecomposeReduction(sums, own[3]);
  return true;
}
/// Sums of a few numbers: a thread has a result.
void AddParts(const Schedule& sch, const BlockRV& block) {
  SumAxes axes = AxesOf(LookAt(sch, block));
  LoopRV thread = BindGrid(sch, FuseAll(sch, axes.spatial), kThreads / 2);
  sch.Unroll(axes.reduced[0]);
  JoinLastStep(sch, block, thread);
}
/// A thread has several results next to each other, which it reads as vectors.
void ScheduleVectorColumns(const Schedule& sch, const BlockLook& look, size_t column,
                           int64_t lanes) {
  constexpr int64_t kOfBlock = 128;
  SumAxes axes = AxesOf(look);
  Array<LoopRV> outer, order;
  Array<LoopRV> parts = sch.Split(look.axes[column].loop, {std::nullopt, Int(lanes)});
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (!look.axes[i].reduce && i != column) outer.push_back(look.axes[i].loop);
  }
  outer.push_back(parts[0]);
  order = outer;
  for (const LoopRV& loop : axes.reduced) order.push_back(loop);
  order.push_back(parts[1]);
  sch.Reorder(order);
  // Blocks that divide a line of results, if there are such: indices stay simple.
  int64_t line = *look.axes[column].size / lanes, threads = LargestDivisor(line, kOfBlock);
  if (threads < kWarp) threads = LargestDivisor(line, 2 * kOfBlock);
  LoopRV thread = BindGrid(sch, FuseAll(sch, outer), threads < kWarp ? kOfBlock : threads);
  BlockRV store = sch.CacheWrite(look.rv, 0, "local");
  sch.ReverseComputeAt(store, thread, true);
  sch.Vectorize(sch.GetLoops(store).back());
  BlockRV init = sch.DecomposeReduction(look.rv, axes.reduced[0]);
  sch.Vectorize(sch.GetLoops(init).back());
  sch.Vectorize(parts[1]);
}
}  // namespace

bool ScheduleTallColumns(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto tile = ChooseTile(look, machine);
  if (!tile) return false;
  if (tile->parts == 1) return ScheduleTile(sch, block, *tile);
  LoopRV length = FuseAll(sch, AxesOf(look).reduced);
  BlockRV parts = sch.RFactor(sch.Split(length, {Int(tile->parts), std::nullopt})[0], 0);
  if (!ScheduleTile(sch, parts, *tile)) return false;
  AddParts(sch, block);
  return true;
}
bool ScheduleFewColumns(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  constexpr int64_t kThreadsOfCore = 512, kShortest = 16, kLong = 512;
  BlockLook look = LookAt(sch, block);
  auto column = look.Column();
  auto results = look.Size(IsKept), length = look.Size(IsReduced);
  if (!column || !results || !length || *results == 0) return false;
  // Of wide elements a warp reads whole lines without vectors.
  int64_t lanes = LanesOf(look, *column);
  if (lanes <= kWideLanes || LanesAlong(look, *column) == 1 ||
      *look.axes[*column].size % lanes != 0)
    lanes = 1;
  int64_t wanted = machine->cores * kThreadsOfCore / std::max<int64_t>(1, *results / lanes);
  if (wanted < 2 || *length < kLong) return false;
  BlockRV parts = InParts(sch, look, std::min(wanted, *length / kShortest));
  if (!parts.defined()) return false;
  BlockLook inner = LookAt(sch, parts);
  column = inner.Column();
  if (!column) return false;
  if (lanes > 1 && LanesAlong(inner, *column) > 1) {
    ScheduleVectorColumns(sch, inner, *column, lanes);
  } else {
    // Parts outermost: threads next to each other have columns next to each other.
    SumAxes axes = AxesOf(inner);
    Array<LoopRV> grid{axes.spatial.back()};
    grid.insert(grid.end(), axes.spatial.begin(), axes.spatial.end() - 1);
    Array<LoopRV> order = grid;
    order.insert(order.end(), axes.reduced.begin(), axes.reduced.end());
    sch.Reorder(order);
    BindGrid(sch, FuseAll(sch, grid), kThreads / 2);
  }
  return ScheduleBlock(sch, block, machine);
}
void ScheduleColumns(const Schedule& sch, const BlockLook& look, const LoopRV& outer,
                     const Array<LoopRV>& reduced, const Machine& machine) {
  constexpr int64_t kLong = 128, kParts = 16, kThreadsOfCore = 1024;
  auto results = look.Size(IsKept), length = look.Size(IsReduced);
  bool is_long =
      results && *results < machine->cores * kThreadsOfCore && length && *length >= kLong;
  if (is_long) {
    Array<LoopRV> parts = sch.Split(FuseAll(sch, reduced), {std::nullopt, Int(kParts)});
    sch.Bind(parts[1], "threadIdx.y");
  }
  LoopRV thread = BindGrid(sch, outer, is_long ? kWarp : kThreads);
  JoinLastStep(sch, look.rv, thread, is_long ? "threadIdx.y" : nullptr, kParts);
}

}  // namespace tvm::tir::gpu
