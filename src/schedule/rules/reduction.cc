// SPDX-License-Identifier: Apache-2.0
// One reduction by itself: along memory or across memory; products are in product.cc.
#include <algorithm>

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
/// The loops over results: what moves along the first ones is large and is read once; what moves
/// along the others alone stays in the cache.
Array<LoopRV> LargestFirst(const BlockLook& look) {
  std::vector<std::pair<double, LoopRV>> loops;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce) continue;
    double largest = 0;
    for (const Access& access : look.accesses) {
      if (access.is_store || !access.Moves(i)) continue;
      double elements = 1;
      for (const PrimExpr& extent : access.buffer->shape) {
        elements *= static_cast<double>(AsConstInt(extent).value_or(1));
      }
      largest = std::max(largest, elements);
    }
    loops.emplace_back(largest, look.axes[i].loop);
  }
  std::stable_sort(loops.begin(), loops.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  Array<LoopRV> order;
  for (const auto& [_, loop] : loops) order.push_back(loop);
  return order;
}
/// The reduction is innermost, where the compiler accumulates in vectors; threads share the
/// results, or parts of the reduction where results are few.
bool AlongMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto results = look.Size([](const Axis& a) { return a.spatial; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  auto work = look.TotalWork();
  Array<LoopRV> spatial = LargestFirst(look), reduction, order;
  for (const Axis& axis : look.axes) {
    if (axis.reduce) reduction.push_back(axis.loop);
  }
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
  for (auto way : {Empty, ScheduleProduct, AcrossMemory, AlongMemory}) {
    if (Attempt(sch, [&] { return way(sch, block, machine); })) return;
  }
}
}  // namespace tvm::tir
