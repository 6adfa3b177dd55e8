// SPDX-License-Identifier: Apache-2.0
// reverse_compute_at: a consumer moves below a loop of its producers and uses what they just wrote.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/inline.h"
#include "schedule/primitive/move.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using arith::Analyzer, arith::IntSet;

std::string NameOf(const Placed* p) { return "block " + std::string(p->block()->name_hint); }

/// The box of `buffer` that one iteration of the loop produces.
Array<IntSet> Produced(const LoopPlace& place, const std::vector<const Placed*>& producers,
                       const Buffer& buffer) {
  Analyzer analyzer;
  analyzer.Bind(DomainsOf(place.outer));
  std::optional<Array<IntSet>> box;
  for (const Placed* p : producers) {
    for (const For& loop : place.outer) {
      if ((UseOf(loop, p->realize) & ~kSpatial) && !IsOne(loop->extent)) {
        Refuse(NameOf(p) + " is not done with an element in one iteration of loop " +
                   std::string(loop->loop_var->name_hint) + ", over which it reduces",
               {p->realize->block, loop});
      }
    }
    for (const Relaxed& region :
         Touched(*p, p->block()->writes, buffer, place.LoopsBelow(*p), &analyzer)) {
      bool same = region.exact && !p->IsConditional();
      for (size_t i = 0; same && box && i < box->size(); ++i) {
        same = analyzer.CanProveEqual((*box)[i].min(), region.box[i].min()) &&
               analyzer.CanProveEqual((*box)[i].max(), region.box[i].max());
      }
      if (!same) {
        Refuse("cannot tell which part of buffer " + std::string(buffer->name) + " " + NameOf(p) +
                   " writes in one iteration of the loop",
               {p->realize->block, place.loop});
      }
      box = region.box;
    }
  }
  return *box;
}

/// Limits an iterator to [low, high] as well.
void Narrow(std::optional<std::pair<PrimExpr, PrimExpr>>* range, const PrimExpr& low,
            const PrimExpr& high) {
  *range = *range ? std::pair(max((*range)->first, low), min((*range)->second, high))
                  : std::pair(low, high);
}
/// Limits the iterations through the inverse of the indices, where each iteration reads an element
/// of its own: those that read the box are then a box, too. Whether that worked.
bool LimitByInverse(const Placed& consumer, const BufferRegion& read, const Array<IntSet>& box,
                    Analyzer* analyzer, IterRanges* ranges) {
  const Array<IterVar>& iters = consumer.block()->iter_vars;
  Array<PrimExpr> indices, places;
  Map<Var, IntSet> reached;
  PrimExpr count;
  for (size_t d = 0; d < box.size(); ++d) {
    if (!IsOne(read->region[d]->extent)) return false;
    indices.push_back(read->region[d]->min);
    Var place("i" + std::to_string(d), indices[d].dtype());
    places.push_back(place);
    PrimExpr low = cast(place.dtype(), box[d].min()), high = cast(place.dtype(), box[d].max());
    reached.Set(place, IntSet::Interval(low, high));
    PrimExpr length = high - low + MakeConst(place.dtype(), 1);
    count = count.defined() ? count * length : length;
  }
  Map<Var, Range> domains;
  for (const IterVar& iter : iters) {
    if (UsesVar(indices, [&](const VarObj* v) { return v == iter->var.get(); }))
      domains.Set(iter->var, iter->dom.value());
  }
  auto map = arith::DetectIterMap(indices, domains, const_true(), arith::IterMapLevel::kBijective,
                                  analyzer);
  if (map->indices.empty()) return false;
  Map<Var, PrimExpr> inverse = arith::InverseAffineIterMap(map->indices, places);
  IterRanges found(iters.size());
  PrimExpr runs = MakeConst(count.dtype(), 1);
  for (size_t i = 0; i < iters.size(); ++i) {
    auto it = inverse.find(iters[i]->var);
    if (it == inverse.end()) continue;
    IntSet set = arith::EvalSet((*it).second, reached);
    if (!set.HasLowerBound() || !set.HasUpperBound()) return false;
    found[i] = std::pair(analyzer->Simplify(set.min()), analyzer->Simplify(set.max()));
    runs = runs * (found[i]->second - found[i]->first + MakeConst(runs.dtype(), 1));
  }
  if (!analyzer->CanProveEqual(runs, count)) return false;
  for (size_t i = 0; i < iters.size(); ++i) {
    if (found[i]) Narrow(&(*ranges)[i], found[i]->first, found[i]->second);
  }
  return true;
}

/// Limits the iterations to those that read only what is in the box.
void Limit(const Placed& consumer, const BufferRegion& read, const Array<IntSet>& box,
           Analyzer* analyzer, IterRanges* ranges) {
  for (size_t d = 0; d < box.size(); ++d) {
    PrimExpr extent = read->buffer->shape[d], one = MakeConst(extent.dtype(), 1);
    if (analyzer->CanProve(box[d].min() <= MakeZero(extent.dtype())) &&
        analyzer->CanProve(box[d].max() >= extent - one))
      continue;
    const Range& range = read->region[d];
    std::optional<LinearIndex> index = AsLinear(range->min, consumer.block()->iter_vars);
    if (!index || index->scale < 0 || !AsConstInt(range->extent)) {
      if (LimitByInverse(consumer, read, box, analyzer, ranges)) return;
      Refuse("cannot tell which iterations of " + NameOf(&consumer) +
                 " read only what the loop just wrote of buffer " +
                 std::string(read->buffer->name) + ": its index is " + Text(range->min),
             {consumer.realize->block});
    }
    // low <= scale * v + offset and scale * v + offset + extent - 1 <= high
    PrimExpr scale = MakeConst(index->offset.dtype(), index->scale);
    PrimExpr low = floordiv(box[d].min() - index->offset + scale - one, scale);
    PrimExpr high = floordiv(box[d].max() - index->offset - range->extent + one, scale);
    Narrow(&(*ranges)[index->iter], low, high);
  }
}

/// A reduction must see each iteration once, its init first, one after the other.
void CheckReductionOrder(const Placed& moved) {
  const For* reduce = nullptr;
  std::vector<For> loops = moved.Loops();
  for (const For& loop : loops) {
    if (IsOne(loop->extent)) continue;
    int use = UseOf(loop, moved.realize);
    if (use == kUnused && reduce) {
      Refuse(NameOf(&moved) + " would run several times inside loop " +
                 std::string((*reduce)->loop_var->name_hint) + ", over which it reduces",
             {loop});
    }
    if (!(use & kReduce)) continue;
    reduce = &loop;
    // The threads of one block combine what each of them reduced.
    bool across_threads =
        loop->thread_binding && View((*loop->thread_binding)->thread_tag).starts_with("threadIdx");
    if (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled && !across_threads) {
      Refuse(NameOf(&moved) + " would reduce over loop " + std::string(loop->loop_var->name_hint) +
                 ", whose iterations run at once",
             {loop});
    }
  }
}
}  // namespace

void ReverseComputeAt(State& state, BlockId id, ComputeLocation where, bool preserve_unit_loops,
                      int64_t index) {
  if (where == kRootMark) return;
  if (where == kInlineMark) return ReverseComputeInline(state, id);
  LoopId loop_id{where};
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  LoopPlace place(at, state, loop_id);

  std::vector<const Placed*> below;
  int first = 0;
  for (const Placed* producer : at.scope.ProducersOf(p)) {
    if (producer->IsBelow(place.loop.get())) {
      below.push_back(producer);
      first = std::max(first, place.PositionOf(*producer) + 1);
    }
  }
  if (below.empty())
    Refuse("expected a producer of " + NameOf(&p) + " below the loop", {place.loop, block});
  // What comes after the loop begins and before the block now comes after the block.
  for (const Placed& other : at.scope.children) {
    bool passed = other.order > below[0]->order && other.order < p.order;
    if (!passed && !other.IsBelow(place.loop.get())) continue;
    for (const BufferRegion& w : block->writes) {
      for (const BufferRegion& r : other.block()->reads) {
        if (r->buffer->data.same_as(w->buffer->data)) {
          Refuse(NameOf(&other) + " reads buffer " + std::string(w->buffer->name) + " before " +
                     NameOf(&p) + " writes it",
                 {other.realize->block});
        }
      }
    }
    if (other.IsBelow(place.loop.get())) continue;
    for (const BufferRegion& w : other.block()->writes) {
      for (const BufferRegion& r : ReadsOf(block.get())) {
        if (r->buffer->data.same_as(w->buffer->data)) {
          Refuse("reverse_compute_at requires all the producers of " + NameOf(&p) +
                     " below the loop or before it, but " + NameOf(&other) + " is not",
                 {other.realize->block});
        }
      }
    }
  }
  int position = ChoosePosition(index, first, static_cast<int>(place.body.size()), place.loop);

  Analyzer analyzer;
  analyzer.Bind(DomainsOf(place.outer));
  IterRanges ranges(block->iter_vars.size());
  for (const BufferRegion& read : ReadsOf(block.get())) {
    std::vector<const Placed*> producers;
    for (const Placed* w : at.scope.WritersOf(read->buffer)) {
      if (w->IsBelow(place.loop.get())) producers.push_back(w);
    }
    if (!producers.empty())
      Limit(p, read, Produced(place, producers, read->buffer), &analyzer, &ranges);
  }
  NewNest nest = NestFor(block, ranges, place.outer, preserve_unit_loops, true);
  Placed moved{nest.Realize(block), place.path, p.order};
  for (const For& loop : nest.loops) moved.path.push_back(loop);
  if (std::string why = WhyNotCovering(moved); !why.empty())
    Refuse("below the loop " + why, {block, place.loop});
  CheckReductionOrder(moved);
  MoveBlock(state, at, place, position, nest);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "ReverseComputeAt", "reverse_compute_at", &ReverseComputeAt, &Schedule::ReverseComputeAt,
      "Moves a block below a loop around its producers, where each iteration uses what they just "
      "wrote. `index` is the position in the loop's body: -1 the last possible one, -2 the first. "
      "Loops of extent 1 are left out unless preserve_unit_loops is set.",
      {kTwoGrids,
       R"(i, j = sch.get_loops("B")
sch.reverse_compute_at("C", i))"},
      Arg("block"), Arg("loop"), Arg("preserve_unit_loops", false), Arg("index", -1));
}
}  // namespace

}  // namespace tvm::tir
