// SPDX-License-Identifier: Apache-2.0
// compute_at: a producer moves below a loop of its consumers and computes what they need there.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/inline.h"
#include "schedule/primitive/move.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using arith::Analyzer, arith::IntSet;

/// Loops around the place whose iterations all see the same copy of a buffer: the threads of a
/// block share what one of them needs.
std::vector<For> SharedBy(const Buffer& buffer, const LoopPlace& place) {
  std::vector<For> loops;
  if (View(buffer.scope()).substr(0, 6) != "shared") return loops;
  for (const For& loop : place.outer) {
    if (loop->kind != ForKind::kThreadBinding) continue;
    if (View(loop->thread_binding.value()->thread_tag).substr(0, 9) != "blockIdx.")
      loops.push_back(loop);
  }
  return loops;
}
/// The box of each buffer that the consumers need in one iteration of the loop.
std::vector<Array<IntSet>> Needed(const Focus& at, const LoopPlace& place,
                                  const std::vector<const Placed*>& consumers) {
  Analyzer analyzer;
  analyzer.Bind(DomainsOf(place.outer));
  std::vector<Array<IntSet>> needed;
  for (const BufferRegion& write : at.block->block()->writes) {
    Array<Array<IntSet>> boxes;
    for (const Placed* consumer : consumers) {
      std::vector<For> loops = SharedBy(write->buffer, place);
      for (const For& loop : place.LoopsBelow(*consumer)) loops.push_back(loop);
      for (const Relaxed& read :
           Touched(*consumer, consumer->block()->reads, write->buffer, loops, &analyzer))
        boxes.push_back(read.box);
    }
    needed.push_back(boxes.empty() ? Array<IntSet>() : arith::UnionRegion(boxes));
  }
  return needed;
}

/// The iterations that write into the boxes.
IterRanges Solve(const BlockObj* block, const std::vector<Array<IntSet>>& needed) {
  IterRanges ranges(block->iter_vars.size());
  std::vector<bool> all(block->iter_vars.size());
  Analyzer analyzer;
  for (size_t w = 0; w < needed.size(); ++w) {
    const Array<Range>& region = block->writes[w]->region;
    for (size_t d = 0; d < needed[w].size(); ++d) {
      const IntSet& box = needed[w][d];
      std::optional<LinearIndex> index = AsLinear(region[d]->min, block->iter_vars);
      bool constant = AsConstInt(region[d]->extent).has_value();
      if (!index || !constant || !box.HasLowerBound() || !box.HasUpperBound()) {
        for (size_t i = 0; i < all.size(); ++i) {
          const VarObj* var = block->iter_vars[i]->var.get();
          if (UsesVar(region[d], [&](const VarObj* v) { return v == var; })) all[i] = true;
        }
        continue;
      }
      // scale * v + offset <= high and low <= scale * v + offset + extent - 1
      PrimExpr first = box.min(), last = box.max();
      index->TurnUpward(region[d]->extent, &first, &last);
      PrimExpr scale = MakeConst(index->offset.dtype(), index->scale);
      PrimExpr low = floordiv(first - index->offset - region[d]->extent + scale, scale);
      PrimExpr high = floordiv(last - index->offset, scale);
      auto& range = ranges[index->iter];
      range = range ? std::pair(min(range->first, low), max(range->second, high))
                    : std::pair(low, high);
    }
  }
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i]) ranges[i] = std::nullopt;
  }
  return ranges;
}
}  // namespace

void ComputeAt(State& state, BlockId id, ComputeLocation where, bool preserve_unit_loops,
               int64_t index) {
  // What sample_compute_location decided may be no loop.
  if (where == kRootMark) return;
  if (where == kInlineMark) return ComputeInline(state, id);
  LoopId loop_id{where};
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  std::string name = "block " + std::string(block->name_hint);
  LoopPlace place(at, state, loop_id);
  if (IsOutputBlock(at.scope, p))
    Refuse(name + " writes a buffer that is needed after its scope (it is an output block)",
           {block});
  std::vector<const Placed*> consumers = at.scope.ConsumersOf(p);
  if (consumers.empty()) Refuse("expected blocks that read what " + name + " writes", {block});
  int last = static_cast<int>(place.body.size());
  for (const Placed* consumer : consumers) {
    if (!consumer->IsBelow(place.loop.get())) {
      Refuse("compute_at requires all the consumers of " + name + " below the loop, but block " +
                 std::string(consumer->block()->name_hint) + " is not",
             {consumer->realize->block, place.loop});
    }
    if (consumer->order < p.order) {
      Refuse("block " + std::string(consumer->block()->name_hint) + " reads before " + name +
                 " writes",
             {consumer->realize->block});
    }
    last = std::min(last, place.PositionOf(*consumer));
  }
  Require(WhyNotStable(at.scope, p, place.AsPlaced(p, consumers[0]->order)), {block, place.loop});
  int position = ChoosePosition(index, 0, last, place.loop);
  IterRanges ranges = Solve(block.get(), Needed(at, place, consumers));
  NewNest nest = NestFor(block, ranges, place.outer, preserve_unit_loops, false);
  MoveBlock(state, at, place, position, nest);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "ComputeAt", "compute_at", &ComputeAt, &Schedule::ComputeAt,
      "Moves a block below a loop around all its consumers, where each iteration computes what "
      "they "
      "need of it. `index` is the position in the loop's body: -1 the last possible one, -2 the "
      "first. Loops of extent 1 are left out unless preserve_unit_loops is set.",
      {kTwoGrids,
       R"(i, j = sch.get_loops("C")
sch.compute_at("B", i))"},
      Arg("block"), Arg("loop"), Arg("preserve_unit_loops", false), Arg("index", -1));
}
}  // namespace

}  // namespace tvm::tir
