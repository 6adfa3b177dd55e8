// SPDX-License-Identifier: Apache-2.0
// One reduction by itself: along memory or across memory; products are in product.cc.
#include <algorithm>

#include "schedule/rules/look.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
/// The axis along which most of what is read is contiguous; of several, as in a window that slides
/// or the operands of a product, the one along which the result is, too.
std::optional<size_t> ContiguousRead(const BlockLook& look) {
  std::optional<size_t> best;
  size_t most = 0;
  const Access& store = look.Store();
  for (const Access& access : look.accesses) {
    if (!look.IsOperand(access) || !access.linear) continue;
    size_t moving = 0;
    std::optional<size_t> along;
    for (size_t i = 0; i < look.axes.size(); ++i) {
      if (look.axes[i].size == 1) continue;
      moving += access.Moves(i);
      if (!access.StepsBy(i, 1)) continue;
      if (!along || !store.StepsBy(*along, 1)) along = i;
    }
    bool is_better = moving == most && best && along && !store.StepsBy(*best, 1);
    if (along && (moving > most || (is_better && store.StepsBy(*along, 1)))) {
      most = moving;
      best = along;
    }
  }
  return best;
}

// ---- parts of a reduction ----------------------------------------------------------------------
/// Splits a loop of a reduction into parts for the threads: returns the block of their results,
/// which has the parts as an axis of its own, or nothing where no loop divides. What is contiguous
/// stays whole if it can.
std::optional<BlockRV> InParts(const Schedule& sch, const BlockLook& look, int64_t most,
                               const Machine& machine) {
  auto contiguous = ContiguousRead(look);
  const Axis* axis = nullptr;
  int64_t parts = machine->cores - 1;
  for (bool may_be_contiguous : {false, true}) {
    for (size_t i = 0; i < look.axes.size(); ++i) {
      if (!look.axes[i].reduce || !look.axes[i].size || (i == contiguous) != may_be_contiguous)
        continue;
      int64_t count = LargestDivisor(*look.axes[i].size, most);
      if (count > parts) {
        axis = &look.axes[i];
        parts = count;
      }
    }
    if (axis) break;
  }
  if (!axis) return std::nullopt;
  return sch.RFactor(sch.Split(axis->loop, {PrimExpr(parts), std::nullopt})[0], 0);
}

/// How many of `count` pieces go into one stretch, `most` at the most: as many as divide, unless
/// that leaves some of the threads without work for long.
int64_t EvenShare(int64_t count, int64_t most, int64_t threads) {
  for (int64_t d = std::min(count, most); d > 1; --d) {
    if (count % d == 0 && Unevenness(count / d, threads) <= cost::kIdle) return d;
  }
  return 1;
}

/// The axis along which vectors are made across a reduction: what is read is contiguous along it.
/// Of a window too short for vectors it is the axis along which the results are.
std::optional<size_t> AxisAcross(const BlockLook& look, int lanes) {
  auto along = ContiguousRead(look);
  const Access& store = look.Store();
  if (along && !look.axes[*along].reduce) return store.StepsBy(*along, 1) ? along : std::nullopt;
  if (along && look.axes[*along].size.value_or(lanes) >= lanes) return std::nullopt;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce || look.axes[i].size == 1 || !store.StepsBy(i, 1)) continue;
    bool is_near = std::all_of(look.accesses.begin(), look.accesses.end(),
                               [&](const Access& access) { return access.IsNear(i); });
    if (is_near) return i;
  }
  return std::nullopt;
}
/// Adds several rows to the vectors of a row of sums at once: more of them is on its way from
/// memory, and sums stay in registers meanwhile.
///
///   for k, j in T.grid(n, m): C[64 * j : 64 * j + 64] += ...   -->   for k0, j, k1: ...
bool RowsTogether(const Schedule& sch, const BlockRV& block) {
  BlockLook look = LookAt(sch, block);
  size_t n = look.axes.size();
  if (n < 3 || !look.axes[n - 3].reduce || look.axes[n - 2].reduce || !look.axes[n - 3].size)
    return false;
  if (sch.Get(look.axes[n - 1].loop)->kind != ForKind::kVectorized) return false;
  int64_t rows = LargestDivisor(*look.axes[n - 3].size, cost::kRowsTogether);
  if (rows == 1) return false;
  Array<LoopRV> parts = sch.Split(look.axes[n - 3].loop, {std::nullopt, PrimExpr(rows)});
  sch.Reorder({parts[0], look.axes[n - 2].loop, parts[1], look.axes[n - 1].loop});
  sch.Unroll(parts[1]);
  return true;
}

// ---- across memory ------------------------------------------------------------------------------
/// What is read is contiguous along a spatial axis: a stretch of results, small enough for the
/// cache, collects row after row in vectors.
bool AcrossMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  int lanes = machine->Lanes(look.widest_bits);
  auto contiguous = AxisAcross(look, lanes);
  if (!contiguous) return false;
  auto again = [&](const BlockRV& part) { ScheduleReduction(sch, part, machine); };
  if (Parted(sch, look, *contiguous, lanes * cost::kInterleave, again)) return true;
  const Axis& axis = look.axes[*contiguous];
  auto others = look.Size([&](const Axis& a) { return a.spatial && &a != &axis; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  int64_t stretch = lanes * cost::kInterleave;
  // Where threads would read short pieces of every row, they share the rows instead. Pieces are
  // longer where rows come from memory, which is fastest along whole rows.
  int64_t row = axis.size.value_or(0) * others.value_or(0) * look.widest_bits / 8;
  int64_t parts = 2 * machine->cores;
  bool is_far = row * depth.value_or(0) > machine->l2_bytes * machine->cores;
  int64_t long_piece = is_far ? cost::kFarPiece : cost::kPiece;
  int64_t deep = is_far ? parts * cost::kShortReduction : 4 * cost::kShortReduction;
  bool in_parts = row > 0 && *others < machine->cores && row < long_piece * machine->cores &&
                  depth && *depth > deep && look.TotalWork() >= cost::kParallel;
  if (in_parts && Attempt(sch, [&] {
        auto partial = InParts(sch, look, parts, machine);
        if (partial) ScheduleReduction(sch, *partial, machine);
        if (partial) ScheduleReduction(sch, block, machine);
        return partial.has_value();
      }))
    return true;
  if (!depth || *depth > cost::kShortReduction) {
    int64_t fits = machine->l1_bytes / 4 / std::max(1, look.widest_bits / 8) / stretch;
    int64_t sharing = others && *others >= machine->cores ? 1 : machine->cores;
    if (axis.size) stretch *= EvenShare(*axis.size / stretch, fits, sharing);
  }
  Array<LoopRV> outer, order;
  LoopRV inner = axis.loop, stretches;
  arith::Analyzer analyzer;
  if (!analyzer.CanProve(axis.extent <= PrimExpr(stretch))) {
    Array<LoopRV> parts = sch.Split(axis.loop, {std::nullopt, PrimExpr(stretch)});
    stretches = parts[0];
    inner = parts[1];
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
  Attempt(sch, [&] { return RowsTogether(sch, block); });
  if (!outer.empty())
    ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, look.TotalWork());
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
/// Puts the loops over results outside, and those of the reduction inside, what is contiguous
/// innermost; a run of memory is one loop, however many axes it has. Returns the number of loops
/// over results.
size_t ReduceInside(const Schedule& sch, const BlockRV& block) {
  BlockLook look = LookAt(sch, block);
  Array<LoopRV> order = LargestFirst(look);
  size_t results = order.size();
  auto contiguous = ContiguousRead(look);
  for (size_t i = 0; i < look.axes.size(); ++i) {
    if (look.axes[i].reduce && i != contiguous) order.push_back(look.axes[i].loop);
  }
  if (contiguous && look.axes[*contiguous].reduce) order.push_back(look.axes[*contiguous].loop);
  if (order.size() > 1) sch.Reorder(order);
  look = LookAt(sch, block);
  size_t first = look.axes.size() - 1;
  while (first > results && look.Collapses(first - 1)) --first;
  Array<LoopRV> run;
  for (size_t i = first; i < look.axes.size(); ++i) run.push_back(look.axes[i].loop);
  if (run.size() > 1) sch.Fuse(run);
  // A sum over nothing has a value, too; and more than one loop would ask in each iteration
  // whether it is the first.
  Array<LoopRV> around = sch.GetLoops(block);
  bool may_be_empty = !look.Size([](const Axis& a) { return a.reduce; });
  if (around.size() > results + 1 || (may_be_empty && around.size() > results))
    sch.DecomposeReduction(block, around[results]);
  return results;
}
/// Sums over axes apart, of which the last is short: a run of memory is added to the sums of those
/// before it in registers, and only the last ones are added to each other.
bool RunByRun(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  int lanes = machine->Lanes(look.widest_bits);
  auto along = ContiguousRead(look);
  if (!along || !look.axes[*along].reduce || !look.simple || !machine->takes_vectors) return false;
  auto run = look.axes[*along].size, results = look.Size([](const Axis& a) { return a.spatial; });
  if (!run || *run < cost::kShortestRun || *run > 2 * cost::kInterleave * lanes) return false;
  if (!results || *results < machine->cores || !look.block->init.has_value()) return false;
  bool is_apart = false;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    is_apart |= look.axes[i].reduce && i != *along && look.axes[i].size != 1;
  }
  bool is_longer = *along > 0 && look.axes[*along - 1].reduce && look.Collapses(*along - 1);
  if (!is_apart || is_longer) return false;
  auto rank = static_cast<int64_t>(look.Store().buffer->shape.size());
  BlockRV sums = sch.RFactor(look.axes[*along].loop, rank);
  // Runs that are no whole vectors take the registers only in parts: many are added in a block of
  // its own.
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  if (*run > lanes && *run % lanes != 0 && depth && *depth >= cost::kManyRuns * *run) {
    ScheduleReduction(sch, sums, machine);
    ScheduleReduction(sch, block, machine);
    return true;
  }
  // The results outside, in both blocks; then the sums are where they are used.
  Array<LoopRV> outer, order;
  for (const Axis& axis : LookAt(sch, block).axes) {
    if (!axis.reduce) outer.push_back(axis.loop);
  }
  if (outer.empty()) return false;
  order = outer;
  order.push_back(look.axes[*along].loop);
  sch.Reorder(order);
  ParallelIfWorth(sch, FuseToShare(sch, outer, machine), machine, look.TotalWork());
  Array<LoopRV> around = sch.GetLoops(block);
  sch.ComputeAt(sums, around[around.size() - 2], /*preserve_unit_loops=*/true);
  sch.SetScope(sums, 0, "local");
  BlockLook inside = LookAt(sch, sums);
  Array<LoopRV> reduction;
  LoopRV elements;
  for (const Axis& axis : inside.axes) {
    if (axis.reduce) reduction.push_back(axis.loop);
    if (!axis.reduce && axis.size == run) elements = axis.loop;
  }
  order = reduction;
  order.push_back(elements);
  sch.Reorder(order);
  BlockRV init = sch.DecomposeReduction(sums, reduction[0]);
  for (const BlockRV& part : {init, sums}) sch.Vectorize(sch.GetLoops(part).back());
  return true;
}
/// The reduction is innermost, where the compiler accumulates in vectors; threads share the
/// results, or parts of the reduction where results are few.
bool AlongMemory(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  auto results = look.Size([](const Axis& a) { return a.spatial; });
  auto depth = look.Size([](const Axis& a) { return a.reduce; });
  auto work = look.TotalWork();
  if (results && *results < 2 * machine->cores && depth && *depth > cost::kDeep &&
      machine->cores > 1 && work && *work >= cost::kParallel) {
    bool shared = Attempt(sch, [&] {
      auto partial = InParts(sch, look, cost::kTasksPerCore * machine->cores, machine);
      if (!partial) return false;
      size_t loops = ReduceInside(sch, *partial);
      Array<LoopRV> around = sch.GetLoops(*partial);
      around.resize(loops);
      sch.Parallel(FuseToShare(sch, around, machine));
      return true;
    });
    if (shared) return true;
  }
  size_t loops = ReduceInside(sch, block);
  Array<LoopRV> around = sch.GetLoops(block);
  if (loops > 0) {
    around.resize(loops);
    ParallelIfWorth(sch, FuseToShare(sch, around, machine), machine, work);
  }
  return true;
}
/// An axis whose number is divided in an index, such as the channels of a convolution in groups,
/// becomes two, along which the access moves evenly.
bool Divided(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  for (const Axis& axis : look.axes) {
    std::optional<int64_t> by;
    PostOrderVisit(look.block->body, [&](const ObjectRef& node) {
      auto* div = node.as<FloorDivObj>();
      if (div && axis.iter.defined() && div->a.same_as(axis.iter)) by = AsConstInt(div->b);
    });
    if (!by || *by <= 1 || !axis.size || *axis.size <= *by || *axis.size % *by != 0) continue;
    sch.Split(axis.loop, {std::nullopt, PrimExpr(*by)});
    ScheduleReduction(sch, block, machine);
    return true;
  }
  return false;
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
  for (auto way : {Empty, ScheduleWords, Divided, ScheduleDotProduct, ScheduleStridedWindow,
                   ScheduleProduct, ScheduleWindow, AcrossMemory, RunByRun, AlongMemory}) {
    if (Attempt(sch, [&] { return way(sch, block, machine); })) return;
  }
}
}  // namespace tvm::tir
