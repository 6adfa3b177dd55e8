// SPDX-License-Identifier: Apache-2.0
// Rules for GPUs: elementwise blocks, transposes, and which rule a block gets.
#include "schedule/rules/gpu.h"

#include <algorithm>

#include "schedule/schedule.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
namespace gpu {
namespace {
bool IsThreads(const Schedule& sch, const BlockLook& look) {
  return std::any_of(look.axes.begin(), look.axes.end(), [&](const Axis& axis) {
    return sch.Get(axis.loop)->kind == ForKind::kThreadBinding;
  });
}

// ---- one block by itself ------------------------------------------------------------------------
/// Independent iterations: threads next to each other take elements next to each other.
void ScheduleElements(const Schedule& sch, const BlockLook& look) {
  Array<LoopRV> order, serial;
  size_t column = look.Column().value_or(look.axes.size() - 1);
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (i != column) (look.axes[i].spatial ? order : serial).push_back(look.axes[i].loop);
  }
  LoopRV last = look.axes[column].loop;
  int64_t lanes = LanesAlong(look, column);
  Array<LoopRV> parts{last};
  if (lanes > 1) parts = sch.Split(last, {std::nullopt, PrimExpr(static_cast<int>(lanes))});
  order.push_back(parts[0]);
  Array<LoopRV> all = order;
  for (const LoopRV& loop : serial) all.push_back(loop);
  if (lanes > 1) all.push_back(parts[1]);
  if (all.size() > 1) sch.Reorder(all);
  if (lanes > 1) sch.Vectorize(parts[1]);
  BindGrid(sch, FuseAll(sch, order), kThreads);
}
/// What is read along another axis than it is written goes through a square in shared memory: both
/// ways threads next to each other take what lies next to each other.
bool ScheduleTranspose(const Schedule& sch, const BlockLook& look) {
  constexpr int64_t kSide = 32, kRows = 8;  // of a square, and of threads
  auto column = look.Column();
  if (!look.simple || !column || look.block->reads.size() != 1 || look.accesses.size() != 2)
    return false;
  const Access& load = look.accesses[look.accesses[0].is_store ? 1 : 0];
  std::optional<size_t> row;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce || !look.axes[i].size) return false;
    if (i != *column && load.StepsBy(i, 1) && *look.axes[i].size > 1) row = i;
  }
  if (!row || load.StepsBy(*column, 1) || !load.Moves(*column)) return false;
  if (*look.axes[*row].size % kSide != 0 || *look.axes[*column].size % kSide != 0) return false;
  Array<LoopRV> outer;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (i != *row && i != *column) outer.push_back(look.axes[i].loop);
  }
  Array<LoopRV> r = sch.Split(look.axes[*row].loop, {std::nullopt, Int(kSide)});
  Array<LoopRV> c = sch.Split(look.axes[*column].loop, {std::nullopt, Int(kSide)});
  outer.push_back(r[0]);
  outer.push_back(c[0]);
  Array<LoopRV> all = outer;
  all.push_back(r[1]);
  all.push_back(c[1]);
  sch.Reorder(all);
  LoopRV block = FuseAll(sch, outer);
  BlockRV square = sch.CacheRead(look.rv, 0, "shared");
  sch.ComputeAt(square, block);
  auto share = [&](const LoopRV& across, const LoopRV& along) {
    Array<LoopRV> parts = sch.Split(across, {std::nullopt, Int(kRows)});
    sch.Unroll(parts[0]);
    sch.Bind(parts[1], "threadIdx.y");
    sch.Bind(along, "threadIdx.x");
  };
  share(r[1], c[1]);
  Array<LoopRV> own = sch.GetLoops(square);
  if (own.size() != 3) return false;
  share(own[1], own[2]);
  // Lines begin in different banks.
  int64_t rank = static_cast<int64_t>(load.buffer->shape.size());
  sch.StorageAlign(square, 0, rank - 2, kSide, 1);
  sch.Bind(block, "blockIdx.x");
  return true;
}

// ---- products -----------------------------------------------------------------------------------
/// A product of matrices in tiles: a block has 64 x 64 results, a thread 4 x 4 of them in
/// registers; what they share goes through shared memory. False where it is none, or tiles do not
/// fit.
bool ScheduleTiles(const Schedule& sch, const BlockLook& look) {
  constexpr int kTile = 64, kThread = 16, kDepth = 16;
  size_t n = look.axes.size();
  if (n < 3 || !look.axes[n - 1].reduce || look.block->reads.size() != 2) return false;
  const Axis &row = look.axes[n - 3], &column = look.axes[n - 2], &depth = look.axes[n - 1];
  if (row.reduce || column.reduce || !row.size || !column.size || !depth.size) return false;
  if (*row.size % kTile != 0 || *column.size % kTile != 0 || *depth.size % kDepth != 0)
    return false;
  // One operand per side.
  auto moves = [&](size_t axis) {
    return std::count_if(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
      return look.IsOperand(access) && access.Moves(axis);
    });
  };
  if (moves(n - 3) != 1 || moves(n - 2) != 1) return false;
  const BlockRV& block = look.rv;
  Array<LoopRV> batch;
  for (size_t i = 0; i + 3 < n; ++i) {
    if (look.axes[i].reduce) return false;
    batch.push_back(look.axes[i].loop);
  }
  PrimExpr per_thread(kTile / kThread);
  Array<LoopRV> i = sch.Split(row.loop, {std::nullopt, PrimExpr(kThread), per_thread});
  Array<LoopRV> j = sch.Split(column.loop, {std::nullopt, PrimExpr(kThread), per_thread});
  Array<LoopRV> k = sch.Split(depth.loop, {std::nullopt, PrimExpr(kDepth)});
  sch.Reorder({i[0], j[0], i[1], j[1], k[0], k[1], i[2], j[2]});
  LoopRV outer = batch.empty() ? LoopRV() : FuseAll(sch, batch);
  if (outer.defined()) sch.Bind(outer, "blockIdx.z");
  sch.Bind(i[0], "blockIdx.y");
  sch.Bind(j[0], "blockIdx.x");
  sch.Bind(i[1], "threadIdx.y");
  sch.Bind(j[1], "threadIdx.x");
  sch.Unroll(i[2]);
  sch.Unroll(j[2]);
  BlockRV result = sch.CacheWrite(block, 0, "local");
  sch.ReverseComputeAt(result, j[1], true);
  for (int64_t operand = 0; operand < 2; ++operand) {
    BlockRV copy = sch.CacheRead(block, operand, "shared");
    sch.ComputeAt(copy, k[0], true);
    Array<LoopRV> loops = sch.GetLoops(copy);
    Array<LoopRV> own(loops.end() - 2, loops.end());
    Array<LoopRV> parts =
        sch.Split(sch.Fuse(own), {std::nullopt, PrimExpr(kThread), PrimExpr(kThread)});
    sch.Bind(parts[1], "threadIdx.y");
    sch.Bind(parts[2], "threadIdx.x");
  }
  sch.DecomposeReduction(block, k[0]);
  return true;
}

// ---- rules --------------------------------------------------------------------------------------
}  // namespace

bool ScheduleBlock(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (look.axes.empty()) {
    BindGrid(sch, sch.AddUnitLoop(block), 1);
  } else if (!look.has_reduction) {
    if (!Attempt(sch, [&] { return ScheduleTranspose(sch, look); })) ScheduleElements(sch, look);
  } else if (!ScheduleProductKernel(sch, block, machine) &&
             !Attempt(sch, [&] { return ScheduleTiles(sch, look); })) {
    ScheduleSum(sch, block, machine);
  }
  return true;
}

namespace {
/// A nest that several blocks share, or whose order matters: one thread runs all of it.
bool ScheduleSerially(const Schedule& sch, const BlockRV& block) {
  sch.Bind(sch.AddUnitLoop(LookAt(sch, block).axes[0].loop), "threadIdx.x");
  return true;
}
bool BlockByBlock(const Schedule& sch, BlockRV root, const Machine& machine) {
  InlineCheap(sch, root);
  for (const BlockRV& block : sch.GetChildBlocks(root)) {
    if (!sch.state().Has(sch->symbols.Find(SymbolKey(block))->node)) continue;  // part of a kernel
    if (IsThreads(sch, LookAt(sch, block))) continue;
    if (!Attempt(sch, [&] { return ScheduleBlock(sch, block, machine); }))
      Attempt(sch, [&] { return ScheduleSerially(sch, block); });
  }
  return true;
}
}  // namespace
}  // namespace gpu

const std::vector<Rule>& GpuRules() {
  static const std::vector<Rule> rules = {
      {"GpuAttention", "Attention in one kernel: scores and weights are never stored.",
       gpu::ScheduleAttention},
      {"GpuRowByRow", "All stages of a row in one block of threads: softmax, normalisation.",
       gpu::RowByRow},
      {"GpuBlockByBlock", "Every block in a kernel of its own: elementwise, reductions, products.",
       gpu::BlockByBlock},
  };
  return rules;
}

}  // namespace tvm::tir
