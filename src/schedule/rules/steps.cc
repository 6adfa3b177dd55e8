// SPDX-License-Identifier: Apache-2.0
// Steps that several rules take: inlining, threads, vectors.
#include <algorithm>
#include <bit>

#include "schedule/rules/look.h"
#include "tir/analysis/reduction.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"

namespace tvm::tir {
namespace {
/// How often a block loads one element of a buffer, which is all that it loads from it; 0: it loads
/// others, too, or none.
int LoadsOfOneElement(const Block& block, const Buffer& buffer) {
  const BufferLoadObj* first = nullptr;
  int loads = 0;
  bool is_one = true;
  PostOrderVisit(block->body, [&](const ObjectRef& node) {
    auto* load = node.as<BufferLoadObj>();
    if (!load || !load->buffer.same_as(buffer)) return;
    if (!first) first = load;
    ++loads;
    is_one = is_one && StructuralEqual(load->indices, first->indices);
  });
  return is_one ? loads : 0;
}
/// Whether each element of `buffer` is read in one iteration of the consumer at most.
bool ReadsOnce(const BlockLook& consumer, const Buffer& buffer) {
  for (const Access& access : consumer.accesses) {
    if (access.is_store || !access.buffer.same_as(buffer)) continue;
    if (!access.linear) return false;
    for (size_t i = 0; i < consumer.axes.size(); ++i) {
      if (!access.Moves(i) && consumer.axes[i].size != 1) return false;
    }
    // A window that slides moves along more iterations than there are elements.
    auto iterations = consumer.Size();
    int64_t elements = 1;
    for (const PrimExpr& extent : buffer->shape) elements *= AsConstInt(extent).value_or(0);
    if (iterations && elements > 0 && *iterations > elements) return false;
  }
  return true;
}
/// Whether a block sums up products. Their factors, where they are small, are packed before
/// (dot_product.cc): they have to be elements of a buffer.
bool SumsProducts(const Schedule& sch, const BlockRV& block) {
  Reduction form;
  return WhyNoReducer(sch.Get(block).get(), &form).empty() && form.sources[0].as<MulObj>();
}
bool IsWorthInlining(const Schedule& sch, const BlockRV& block) {
  constexpr int kSmallBits = 16;
  Array<BlockRV> consumers = sch.GetConsumers(block);
  if (consumers.empty()) return false;  // a result of the function
  BlockLook look = LookAt(sch, block);
  if (look.has_reduction || look.block->writes.size() != 1) return false;
  // (A copy, such as padding by nothing, leaves elements of a buffer.)
  auto* store = look.block->body.as<BufferStoreObj>();
  bool is_copy = store && store->value.as<BufferLoadObj>();
  if (look.block->writes[0]->buffer->dtype.bits() <= kSmallBits && !is_copy &&
      std::any_of(consumers.begin(), consumers.end(),
                  [&](const BlockRV& consumer) { return SumsProducts(sch, consumer); }))
    return false;
  if (look.work <= cost::kCheap) return true;
  if (consumers.size() != 1) return false;
  // What is written several times for one element is computed once.
  BlockLook consumer = LookAt(sch, consumers[0]);
  const Buffer& buffer = look.block->writes[0]->buffer;
  int loads = LoadsOfOneElement(consumer.block, buffer);
  bool is_short = loads == 1 || (loads > 1 && look.work * loads <= cost::kMostRepeated);
  return is_short && ReadsOnce(consumer, buffer);
}
}  // namespace

int64_t LargestDivisor(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

double Unevenness(int64_t jobs, int64_t cores) {
  int64_t rounds = (jobs + cores - 1) / cores;
  return static_cast<double>(rounds * cores) / static_cast<double>(std::max<int64_t>(1, jobs));
}

LoopRV FuseAll(const Schedule& sch, const Array<LoopRV>& loops) {
  return loops.size() == 1 ? loops[0] : sch.Fuse(loops);
}

void FuseRun(const Schedule& sch, const BlockRV& block, size_t outside) {
  BlockLook look = LookAt(sch, block);
  size_t first = look.axes.size();
  auto is_same = [&](const Axis& a, const Axis& b) {
    return a.size && b.size && a.spatial == b.spatial && a.reduce == b.reduce;
  };
  if (first > 0) --first;
  while (first > outside && is_same(look.axes[first - 1], look.axes[first]) &&
         look.Collapses(first - 1))
    --first;
  Array<LoopRV> run;
  for (size_t i = first; i < look.axes.size(); ++i) run.push_back(look.axes[i].loop);
  if (run.size() < 2) return;
  Attempt(sch, [&] {
    sch.Fuse(run);
    return true;
  });
}

LoopRV FuseToShare(const Schedule& sch, const Array<LoopRV>& loops, const Machine& machine) {
  auto extent = [&](size_t i) { return AsConstInt(sch.Get(loops[i])->extent); };
  size_t known = 0, unknown = loops.size() - 1;
  int64_t count = 1;
  while (known < loops.size() && extent(known)) count *= *extent(known++);
  if (known == loops.size() || count >= cost::kTasksPerCore * machine->cores)
    return FuseAll(sch, {loops.begin(), loops.begin() + known});
  while (extent(unknown)) --unknown;
  return FuseAll(sch, {loops.begin() + unknown, loops.end()});
}

void InlineCheap(const Schedule& sch, const BlockRV& root) {
  auto inlined = [&](const Array<BlockRV>& blocks) {
    Array<BlockRV> left;
    for (const BlockRV& block : blocks) {
      bool is_done = Attempt(sch, [&] {
        if (!IsWorthInlining(sch, block)) return false;
        sch.ComputeInline(block);
        return true;
      });
      if (!is_done) left.push_back(block);
    }
    return left;
  };
  // Of several consumers there may be one left.
  Array<BlockRV> blocks = sch.GetChildBlocks(root), left = inlined(blocks);
  if (left.size() < blocks.size()) inlined(left);
}

void ParallelIfWorth(const Schedule& sch, const LoopRV& loop, const Machine& machine,
                     std::optional<double> work) {
  if (machine->cores <= 1 || (work && *work < cost::kParallel)) return;
  if (IsOne(sch.Get(loop)->extent)) return;
  Attempt(sch, [&] {
    sch.Parallel(loop);
    return true;
  });
}

LoopRV Vectorized(const Schedule& sch, const LoopRV& loop, int lanes, Rest rest) {
  PrimExpr extent = sch.Get(loop)->extent;
  auto size = AsConstInt(extent);
  if (lanes <= 1 || size == 1) return loop;
  int most = lanes * cost::kInterleave;
  if (size && *size <= most) {
    sch.Vectorize(loop);
    return LoopRV();
  }
  auto split = [&](const LoopRV& whole, int factor) {
    Array<LoopRV> parts = sch.Split(whole, {std::nullopt, PrimExpr(factor)});
    sch.Vectorize(parts[1]);
    return parts[0];
  };
  for (int factor = most; size && factor >= lanes; factor /= 2) {
    if (*size % factor == 0) return split(loop, factor);
  }
  if (rest == Rest::kMasked) return split(loop, most);
  PrimExpr even = floordiv(extent, PrimExpr(most)) * PrimExpr(most);
  Array<LoopRV> parts = sch.LoopPartition(loop, {even, std::nullopt});
  LoopRV outer = split(parts[0], most);
  if (AsConstInt(sch.Get(parts[1])->extent)) sch.Vectorize(parts[1]);
  return outer;
}

bool Parted(const Schedule& sch, const BlockLook& look, size_t axis, int64_t multiple,
            const std::function<void(const BlockRV&)>& schedule) {
  const Axis& parted = look.axes[axis];
  arith::Analyzer analyzer;
  PrimExpr even = floordiv(parted.extent, PrimExpr(multiple)) * PrimExpr(multiple);
  if (analyzer.CanProve(parted.extent < PrimExpr(multiple)) ||
      analyzer.CanProveEqual(even, parted.extent))
    return false;
  Array<LoopRV> order{parted.loop};
  for (const Axis& other : look.axes) {
    if (&other != &parted) order.push_back(other.loop);
  }
  if (order.size() > 1) sch.Reorder(order);
  for (const LoopRV& loop :
       sch.LoopPartition(parted.loop, {analyzer.Simplify(even), std::nullopt})) {
    for (const BlockRV& copy : sch.GetChildBlocks(loop)) schedule(copy);
  }
  return true;
}

double LoadsOf(int64_t lanes, const Machine& machine) {
  int pieces = std::popcount(static_cast<uint64_t>(lanes));
  if (pieces > 1 && machine->has_masks) return cost::kMasked;
  return 4 * pieces - 3;
}

BlockRV KeepTile(const Schedule& sch, const BlockRV& block) {
  Array<BlockRV> consumers = sch.GetConsumers(block);
  if (consumers.empty()) return sch.CacheWrite(block, 0, "local");
  sch.SetScope(block, 0, "local");
  return consumers[0];
}

void UnrollTile(const Schedule& sch, const std::vector<BlockRV>& blocks, size_t first) {
  for (const BlockRV& block : blocks) {
    Array<LoopRV> loops = sch.GetLoops(block);
    sch.Vectorize(loops.back());
    // What follows a tile may have more elements than the tile: a result for all pixels, say.
    int64_t copies = 1;
    for (size_t i = loops.size() - 1; i-- > first;) {
      copies *= AsConstInt(sch.Get(loops[i])->extent).value_or(cost::kMostUnrolled + 1);
      if (copies > cost::kMostUnrolled) break;
      sch.Unroll(loops[i]);
    }
  }
}

void VectorizeInner(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (look.axes.empty() || !look.simple || !machine->takes_vectors) return;
  size_t last = look.axes.size() - 1;
  if (look.axes[last].reduce || sch.Get(look.axes[last].loop)->kind != ForKind::kSerial) return;
  for (const Access& access : look.accesses) {
    if (!access.IsNear(last)) return;
  }
  Attempt(sch, [&] {
    Vectorized(sch, look.axes[last].loop, machine->Lanes(look.widest_bits), Rest::kMasked);
    return true;
  });
}
}  // namespace tvm::tir
