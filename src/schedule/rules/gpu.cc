// SPDX-License-Identifier: Apache-2.0
// Rules for GPUs: elementwise, rows (softmax, normalisation), reductions, products on plain cores.
#include <algorithm>
#include <bit>

#include "schedule/rules/gpu_product.h"
#include "schedule/schedule.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
namespace gpu {
namespace {
constexpr int64_t kThreads = 256;  // of a block: enough blocks of this size fill a multiprocessor
constexpr int64_t kVectorBytes = 16;  // the widest access of a thread
constexpr int64_t kMostThreads = 1024;
constexpr int64_t kSharedBytes = 40 << 10;  // of a block, below what every GPU has

int64_t BytesOf(const Buffer& buffer) { return std::max(1, buffer->dtype.bits() / 8); }
bool IsThreads(const Schedule& sch, const BlockLook& look) {
  return std::any_of(look.axes.begin(), look.axes.end(), [&](const Axis& axis) {
    return sch.Get(axis.loop)->kind == ForKind::kThreadBinding;
  });
}
/// The loop that blocks and threads of a grid share, bound.
void BindGrid(const Schedule& sch, const LoopRV& loop, int64_t threads) {
  if (auto size = AsConstInt(sch.Get(loop)->extent))
    threads = std::clamp<int64_t>(*size, 1, threads);
  Array<LoopRV> parts = sch.Split(loop, {std::nullopt, PrimExpr(static_cast<int>(threads))});
  sch.Bind(parts[0], "blockIdx.x");
  sch.Bind(parts[1], "threadIdx.x");
}
/// Elements that a thread takes at once along an axis: one access, where all lie next to each
/// other.
int64_t LanesAlong(const BlockLook& look, size_t axis) {
  if (!look.simple || !look.axes[axis].size) return 1;
  int64_t widest = 1;
  for (const Access& access : look.accesses) {
    if (!access.Moves(axis)) continue;
    if (!access.StepsBy(axis, 1)) return 1;
    widest = std::max(widest, BytesOf(access.buffer));
  }
  int64_t lanes = std::max<int64_t>(1, kVectorBytes / widest);
  while (*look.axes[axis].size % lanes != 0) lanes /= 2;
  return lanes;
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
struct Split {
  Array<LoopRV> spatial, reduced;
};
Split SplitAxes(const BlockLook& look) {
  Split split;
  for (const Axis& axis : look.axes)
    (axis.reduce ? split.reduced : split.spatial).push_back(axis.loop);
  return split;
}
/// Threads that add up a run of this length together: each has several elements, all are whole
/// warps.
int64_t ThreadsFor(std::optional<int64_t> length) {
  constexpr int64_t kElements = 8;
  if (!length) return kThreads;
  auto wanted = static_cast<uint64_t>(std::max<int64_t>(*length / kElements, 1));
  return std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(wanted)), kWarp, kMostThreads);
}
/// Whether what is reduced lies next to each other in memory: threads share a result. Else a result
/// has a thread, and threads next to each other read what lies next to each other.
bool IsRowReduction(const BlockLook& look) {
  size_t last = look.axes.size();
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce) last = i;
  }
  auto length = look.Size([](const Axis& a) { return a.reduce; });
  if (length && *length < kWarp) return false;
  return std::any_of(look.accesses.begin(), look.accesses.end(), [&](const Access& access) {
    return look.IsOperand(access) && access.StepsBy(last, 1);
  });
}
/// Threads next to each other have results next to each other; of long sums each has a part.
void ScheduleColumns(const Schedule& sch, const BlockLook& look, const LoopRV& outer,
                     const Array<LoopRV>& reduced) {
  constexpr int64_t kLong = 256, kParts = 16, kMany = 64 * kThreads;
  auto results = look.Size([](const Axis& a) { return a.spatial; });
  auto length = look.Size([](const Axis& a) { return a.reduce; });
  bool is_long = results && *results < kMany && length && *length >= kLong;
  if (is_long) {
    Array<LoopRV> parts =
        sch.Split(FuseAll(sch, reduced), {std::nullopt, PrimExpr(static_cast<int>(kParts))});
    sch.Bind(parts[1], "threadIdx.y");
  }
  BindGrid(sch, outer, is_long ? kWarp : kThreads);
}
void ScheduleSum(const Schedule& sch, const BlockLook& look) {
  Split axes = SplitAxes(look);
  Array<LoopRV> order = axes.spatial;
  for (const LoopRV& loop : axes.reduced) order.push_back(loop);
  if (order.size() > 1) sch.Reorder(order);
  LoopRV outer =
      axes.spatial.empty() ? sch.AddUnitLoop(axes.reduced[0]) : FuseAll(sch, axes.spatial);
  if (!IsRowReduction(look)) return ScheduleColumns(sch, look, outer, axes.reduced);
  LoopRV inner = FuseAll(sch, axes.reduced);
  int64_t threads = ThreadsFor(look.Size([](const Axis& a) { return a.reduce; }));
  Array<LoopRV> parts = sch.Split(inner, {std::nullopt, PrimExpr(static_cast<int>(threads))});
  if (threads == kWarp && AsConstInt(sch.Get(outer)->extent).value_or(kMostThreads) % 8 == 0) {
    // A warp is a small block: several results share one.
    Array<LoopRV> rows = sch.Split(outer, {std::nullopt, PrimExpr(8)});
    sch.Bind(rows[0], "blockIdx.x");
    sch.Bind(rows[1], "threadIdx.y");
  } else {
    sch.Bind(outer, "blockIdx.x");
  }
  sch.Bind(parts[1], "threadIdx.x");
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
bool ScheduleBlock(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (look.axes.empty()) {
    BindGrid(sch, sch.AddUnitLoop(block), 1);
  } else if (!look.has_reduction) {
    ScheduleElements(sch, look);
  } else if (!ScheduleProductKernel(sch, block, machine) &&
             !Attempt(sch, [&] { return ScheduleTiles(sch, look); })) {
    ScheduleSum(sch, look);
  }
  return true;
}
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

/// Stages over the same rows: softmax, normalisation. A block of threads has a row, and keeps what
/// stages hand on in shared memory.
bool RowByRow(const Schedule& sch, BlockRV root, const Machine&) {
  InlineCheap(sch, root);
  Array<BlockRV> blocks = sch.GetChildBlocks(root);
  if (blocks.size() < 2) return false;
  std::vector<BlockLook> looks;
  for (const BlockRV& block : blocks) looks.push_back(LookAt(sch, block));
  const BlockLook& last = looks.back();
  if (last.has_reduction || last.axes.size() < 2 || !sch.GetConsumers(last.rv).empty())
    return false;
  // Rows are the leading axes that the results of reductions are indexed by.
  size_t rows = 0;
  bool reduces = false;
  for (const BlockLook& look : looks) {
    if (!look.has_reduction) continue;
    reduces = true;
    if (!IsRowReduction(look)) return false;
    for (const Access& access : last.accesses) {
      if (access.is_store || !access.buffer.same_as(look.Store().buffer)) continue;
      for (size_t i = 0; i < last.axes.size(); ++i) {
        if (access.Moves(i)) rows = std::max(rows, i + 1);
      }
    }
  }
  if (!reduces || rows == 0 || rows == last.axes.size()) return false;
  auto is_row = [&](const Axis& a) {
    return &a - last.axes.data() < static_cast<std::ptrdiff_t>(rows);
  };
  auto length = last.Size([&](const Axis& a) { return !is_row(a); });
  if (!length) return false;
  int64_t bytes = 0;
  for (size_t i = 0; i + 1 < looks.size(); ++i)
    bytes += (looks[i].has_reduction ? 1 : *length) * BytesOf(looks[i].Store().buffer);
  if (bytes > kSharedBytes) return false;

  int threads = static_cast<int>(ThreadsFor(length));
  Array<LoopRV> outer, inner;
  for (const Axis& axis : last.axes) (is_row(axis) ? outer : inner).push_back(axis.loop);
  LoopRV row = FuseAll(sch, outer);
  for (size_t i = blocks.size() - 1; i-- > 0;) {
    sch.SetScope(blocks[i], 0, "shared");
    sch.ComputeAt(blocks[i], row, true);
  }
  auto bind = [&](const Array<LoopRV>& loops) {
    Array<LoopRV> parts = sch.Split(FuseAll(sch, loops), {std::nullopt, PrimExpr(threads)});
    sch.Bind(parts[1], "threadIdx.x");
  };
  for (size_t i = 0; i + 1 < blocks.size(); ++i) {
    Array<LoopRV> own;
    BlockLook look = LookAt(sch, blocks[i]);
    bool is_inside = false;
    for (const Axis& axis : look.axes) {
      bool is_shared = sch.IdOf(axis.loop) == sch.IdOf(row);
      if (is_inside && (look.has_reduction ? axis.reduce : true)) own.push_back(axis.loop);
      is_inside |= is_shared;
    }
    if (own.empty()) return false;
    bind(own);
  }
  int64_t lanes = inner.size() == 1 ? LanesAlong(last, last.axes.size() - 1) : 1;
  while (lanes > 1 && *length / lanes < threads) lanes /= 2;
  if (lanes > 1) {
    Array<LoopRV> parts =
        sch.Split(inner[0], {std::nullopt, PrimExpr(threads), PrimExpr(static_cast<int>(lanes))});
    sch.Bind(parts[1], "threadIdx.x");
    sch.Vectorize(parts[2]);
  } else {
    bind(inner);
  }
  sch.Bind(row, "blockIdx.x");
  return true;
}
}  // namespace
}  // namespace gpu

const std::vector<Rule>& GpuRules() {
  static const std::vector<Rule> rules = {
      {"GpuRowByRow", "All stages of a row in one block of threads: softmax, normalisation.",
       gpu::RowByRow},
      {"GpuBlockByBlock", "Every block in a kernel of its own: elementwise, reductions, products.",
       gpu::BlockByBlock},
  };
  return rules;
}

}  // namespace tvm::tir
