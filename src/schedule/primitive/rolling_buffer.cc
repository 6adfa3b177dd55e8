// SPDX-License-Identifier: Apache-2.0
// rolling_buffer: what the last iteration of a loop computed is kept in a circular buffer.
//
//   for i in range(8):                          for i in range(8):
//     for ax in range(4):                         for ax in range(4):
//       B[i * 2 + ax] = f(i * 2 + ax)     ->        if i == 0 or ax >= 2:
//     use(B[i * 2 : i * 2 + 4])                       B[(i * 2 + ax) % 4] = f(i * 2 + ax)
//                                                 use(B[(i * 2 + 0) % 4], ...)
//
// An iteration (i, ax) does what (i - 1, ax + 2) did: whatever depends on i and ax does so through
// i * 2 + ax. The window of an iteration has as many elements as the buffer keeps, so that elements
// of one window never share a place, and new ones take the places of those before the window.
#include "schedule/loops.h"
#include "schedule/primitive/cache.h"
#include "tvm/arith/pattern.h"

namespace tvm::tir {
namespace {
using arith::Analyzer;

/// The loops `over` and `window` with which dimension `dim` moves: over * step + window + ...
struct Roll {
  For over, window;
  size_t dim;
  int64_t step, size;
};

/// Shows that an element always gets the same value, at whichever iteration it is computed: the
/// block computes it from its indices, and from what is the same in all iterations of `loop`.
/// `shared`: the loops around it and its readers.
void CheckSameValues(const Focus& at, const Placed& p, const For& loop,
                     const std::vector<For>& shared, int depth) {
  const BlockObj* block = p.block();
  Require(WhyNotStage(at.scope, p), {p.realize->block});
  if (depth > static_cast<int>(at.scope.children.size()))
    Refuse(NameOf(p) + " depends on what it computes itself", {p.realize->block});
  for (const For& l : shared) {
    if (UseOf(l, p.realize) & ~kSpatial) {
      Refuse(NameOf(p) + " is not done with an element in one iteration of loop " +
                 std::string(l->loop_var->name_hint) + ", over which it reduces",
             {p.realize->block, l});
    }
  }
  Map<Var, Range> domains;
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type == IterVarType::kDataPar) domains.Set(iter->var, iter->dom.value());
  }
  for (const BufferRegion& write : block->writes) {
    Analyzer analyzer;
    Array<PrimExpr> indices = write->region.Map([](const Range& r) { return r->min; });
    bool points = std::all_of(write->region.begin(), write->region.end(),
                              [](const Range& r) { return IsOne(r->extent); });
    bool injective = !arith::DetectIterMap(indices, domains, const_true(),
                                           arith::IterMapLevel::kBijective, &analyzer)
                          ->indices.empty();
    if (!points || !injective) {
      Refuse("expected the indices with which " + NameOf(p) + " writes buffer " +
                 std::string(write->buffer->name) + " to tell its iterations apart",
             {p.realize->block});
    }
  }
  for (const BufferRegion& read : ReadsOf(block)) {
    if (at.scope.IsLoose(read->buffer))
      Refuse("statements outside of blocks use buffer " + std::string(read->buffer->name),
             {at.scope.block});
    bool within = false;
    for (const Placed* writer : at.scope.WritersOf(read->buffer)) {
      if (!writer->IsBelow(loop.get())) continue;
      within = true;
      CheckSameValues(at, *writer, loop, CommonLoops(*writer, p), depth + 1);
    }
    if (within) Require(WhyNotRegionCover(at.scope, p), {p.realize->block});
  }
}

/// Whether an expression is the same one step further in `over` and as much less far in `window`.
bool IsShiftInvariant(const PrimExpr& e, const Roll& roll, Analyzer* analyzer) {
  DataType t = roll.over->loop_var.dtype(), u = roll.window->loop_var.dtype();
  Map<Var, PrimExpr> shift{
      {roll.over->loop_var, roll.over->loop_var - MakeConst(t, 1)},
      {roll.window->loop_var, roll.window->loop_var + MakeConst(u, roll.step)}};
  auto same = [&](const PrimExpr& a, const PrimExpr& b) {
    PrimExpr difference = a - b;
    return analyzer->CanProveEqual(Substitute(difference, shift), difference);
  };
  auto compares = [&]<class... N>(const N*...) {
    return ((e.as<N>() && e.as<N>()->a.dtype().is_int() && same(e.as<N>()->a, e.as<N>()->b)) ||
            ...);
  };
  if (e.dtype().is_int()) return analyzer->CanProveEqual(Substitute(e, shift), e);
  if (compares((const LTObj*)nullptr, (const LEObj*)nullptr, (const GTObj*)nullptr,
               (const GEObj*)nullptr))
    return true;
  return !UsesAny(e, {roll.over->loop_var.get(), roll.window->loop_var.get()});
}

/// The outermost loop around producer and consumers along which the windows overlap.
Roll FindRoll(const Placed& p, const BufferRegion& write, const std::vector<For>& common,
              const std::vector<For>& own) {
  Analyzer analyzer;
  analyzer.Bind(DomainsOf(p.Loops()));
  Array<Range> region = BoundRegion(p.realize, write->region);
  for (const For& over : common) {
    for (const For& window : own) {
      auto size = AsConstInt(window->extent);
      if (!size || !IsZero(window->min) || !window->HasTrivialStep()) continue;
      for (size_t d = 0; d < region.size(); ++d) {
        Array<PrimExpr> parts =
            arith::DetectLinearEquation(region[d]->min, {over->loop_var, window->loop_var});
        auto step = parts.empty() ? std::nullopt : AsConstInt(parts[0]);
        if (!step || *step <= 0 || *step >= *size || !IsOne(parts[1])) continue;
        Roll roll{over, window, d, *step, *size};
        bool fits = true;
        for (const PrimExpr& value : p.realize->iter_values)
          fits &= IsShiftInvariant(value, roll, &analyzer);
        for (const PrimExpr& c : Conjuncts(p.realize->predicate))
          fits &= IsShiftInvariant(c, roll, &analyzer);
        // Other loops that move this dimension would make the window larger.
        for (const For& other : own)
          fits &= other.same_as(window) || !UsesAny(region[d], {other->loop_var.get()});
        for (const For& inner : common) {
          bool inside = false;
          for (const For& l : common) {
            if (l.same_as(inner)) break;
            inside |= l.same_as(over);
          }
          fits &= !inside || !UsesAny(region[d], {inner->loop_var.get()});
        }
        if (fits) return roll;
      }
    }
  }
  Refuse("expected a loop around " + NameOf(p) + " and the blocks that read buffer " +
             std::string(write->buffer->name) +
             ", along which what one iteration writes overlaps with the next",
         {p.realize->block});
}

/// What consumers read in an iteration must lie in the window of the iteration.
void CheckWindow(const Placed& consumer, const Buffer& buffer, const PrimExpr& begin,
                 const Roll& roll, const std::vector<For>& common) {
  Analyzer analyzer;
  analyzer.Bind(DomainsOf(common));
  std::vector<For> all = consumer.Loops();
  std::vector<For> below(all.begin() + common.size(), all.end());
  for (const BufferRegion& read : consumer.block()->reads) {
    if (!read->buffer.same_as(buffer)) continue;
    const arith::IntSet box = Relax(BoundRegion(consumer.realize, read->region), below,
                                    consumer.realize->predicate, &analyzer)
                                  .box[roll.dim];
    PrimExpr last = begin + MakeConst(begin.dtype(), roll.size - 1);
    bool inside = box.HasLowerBound() && box.HasUpperBound() &&
                  analyzer.CanProve(begin <= box.min()) && analyzer.CanProve(box.max() <= last);
    if (!inside) {
      Refuse(NameOf(consumer) + " may read parts of buffer " + std::string(buffer->name) +
                 " that are not written in the same iteration of loop " +
                 std::string(roll.over->loop_var->name_hint),
             {consumer.realize->block});
    }
  }
}

void RollingBuffer(State& state, BlockId id, BufferIndex& index) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  Buffer buffer = BufferAt(p, block->writes, index, "writes");
  std::string name = "buffer " + std::string(buffer->name);
  Require(WhyNotStage(at.scope, p), {block});
  if (!at.scope.Owns(buffer)) {
    Refuse("expected a buffer that is allocated in the scope of the block, got " +
               std::string(buffer->name) + ", which is needed after it (that of an output block)",
           {block});
  }
  if (block->writes.size() != 1) Refuse("expected " + NameOf(p) + " to write one buffer", {block});
  std::vector<const Placed*> consumers = at.scope.ReadersOf(buffer);
  if (consumers.empty()) Refuse("expected blocks that read " + name + ", got none", {block});
  std::vector<For> common = p.Loops();
  for (const Placed* consumer : consumers) {
    std::vector<For> both = CommonLoops(p, *consumer);
    if (both.size() < common.size()) common = both;
    if (consumer->order < p.order)
      Refuse(NameOf(*consumer) + " reads " + name + " before it is written",
             {consumer->realize->block});
    CheckPlainUse(*consumer, buffer);
  }
  CheckPlainUse(p, buffer);
  if (common.empty()) {
    Refuse("expected loops around both " + NameOf(p) + " and the blocks that read " + name +
               ", as after compute_at",
           {block});
  }
  for (const For& loop : common) {
    // Iterations that run at once would share one window.
    if (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled)
      Refuse("expected serial loops around " + NameOf(p) + ", got loop " +
                 std::string(loop->loop_var->name_hint),
             {loop});
  }
  if (p.IsConditional())
    Refuse(NameOf(p) + " runs only where a condition around it holds", {block});
  std::vector<For> all = p.Loops(), own(all.begin() + common.size(), all.end());
  BufferRegion write = block->writes[0];
  Roll roll = FindRoll(p, write, common, own);
  CheckSameValues(at, p, roll.over, common, 0);
  PrimExpr begin = Substitute(
      BoundRegion(p.realize, write->region)[roll.dim]->min,
      Map<Var, PrimExpr>{{roll.window->loop_var, MakeZero(roll.window->loop_var.dtype())}});
  for (const Placed* consumer : consumers) CheckWindow(*consumer, buffer, begin, roll, common);

  Array<PrimExpr> shape = buffer->shape;
  DataType t = shape[roll.dim].dtype();
  shape.Set(roll.dim, MakeConst(t, roll.size));
  Buffer circular = NewBufferLike(buffer, shape, buffer->name, buffer.scope());
  auto place = [&](Array<PrimExpr> indices) {
    indices.Set(roll.dim,
                floormod(indices[roll.dim], MakeConst(indices[roll.dim].dtype(), roll.size)));
    return indices;
  };
  AccessRewrite rewrite{buffer,
                        [&](const BufferLoad& load) -> PrimExpr {
                          return BufferLoad(circular, place(load->indices), load->predicate);
                        },
                        [&](const BufferStore& store) -> Stmt {
                          return BufferStore(circular, store->value, place(store->indices),
                                             store->predicate);
                        }};
  BlockMap same;
  StmtMap changes;
  for (const Placed* consumer : consumers)
    changes[consumer->realize.get()] = RewriteAccesses(consumer->realize, rewrite, &same);
  BlockRealize realize = Any(RewriteAccesses(p.realize, rewrite, &same)).cast<BlockRealize>();
  // Iterations of the loop now depend on each other.
  Block ordered = realize->block;
  Array<IterVar> iters;
  for (size_t i = 0; i < realize->iter_values.size(); ++i) {
    IterVar iter = ordered->iter_vars[i];
    if (UsesAny(realize->iter_values[i], {roll.over->loop_var.get()}))
      Edit(&iter)->iter_type = IterVarType::kOpaque;
    iters.push_back(iter);
  }
  Edit(&ordered)->iter_vars = iters;
  same.erase(realize->block.get());
  same.emplace(ordered.get(), block);
  std::vector<PrimExpr> predicate = Conjuncts(realize->predicate);
  PrimExpr is_new =
      roll.window->loop_var >= MakeConst(roll.window->loop_var.dtype(), roll.size - roll.step);
  predicate.push_back(roll.over->loop_var <= roll.over->min || is_new);
  auto* n = Edit(&realize);
  n->block = ordered;
  n->predicate = AllOf(predicate);
  changes[p.realize.get()] = realize;
  Block scope = WithAllocated(WithoutAllocated(at.scope.block, buffer), circular);
  Commit(state, at.scope_id, WithBody(scope, ReplaceStmts(scope->body, changes)), same);
}

TVM_REGISTER() {
  DefPrimitive(
      "RollingBuffer", "rolling_buffer", &RollingBuffer, &Schedule::RollingBuffer,
      "Keeps what a block wrote in the last iteration of a loop, where the next one needs it "
      "again: the buffer becomes a circular one of the size of what an iteration needs, and only "
      "what is new is computed. The loop is the outermost one around the block and all that read "
      "the buffer with such an overlap, as compute_at leaves it.",
      {R"(
def before(A: T.Buffer((12,), "float32"), C: T.Buffer((10,), "float32")):
    B = T.alloc_buffer((12,))
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] * 2.0
    for i in range(10):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi] + B[vi + 1] + B[vi + 2])",
       R"(i, = sch.get_loops("C")
sch.compute_at("B", i)
sch.rolling_buffer("B", 0))"},
      Arg("block"), Arg("write_buffer_index"));
}

}  // namespace
}  // namespace tvm::tir
