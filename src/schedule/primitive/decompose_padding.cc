// SPDX-License-Identifier: Apache-2.0
// decompose_padding: a block that pads becomes one that fills and one that copies what is inside.
#include "schedule/loops.h"
#include "schedule/primitive/inline.h"
#include "schedule/primitive/move.h"

namespace tvm::tir {
namespace {

/// B[indices] = inside if condition else filling
struct PaddingStore {
  const BufferStoreObj* store;
  PrimExpr condition, inside, filling;
};

PaddingStore PaddingOf(const Block& block) {
  std::string name = "block " + std::string(block->name_hint);
  const auto* store = block->body.as<BufferStoreObj>();
  if (!store || store->predicate.has_value() || !block->alloc_buffers.empty() ||
      !block->match_buffers.empty())
    Refuse("expected the body of " + name + " to be one store", {block});
  PaddingStore found{store, {}, {}, {}};
  if (auto* call = store->value.as<CallObj>(); call && call->Is(builtin::if_then_else())) {
    found = {store, call->args[0], call->args[1], call->args[2]};
  } else if (auto* select = store->value.as<SelectObj>()) {
    found = {store, select->condition, select->true_value, select->false_value};
  } else {
    Refuse("expected " + name + " to store a value or padding by a condition, got " +
               Text(store->value),
           {block});
  }
  for (const PrimExpr& e : {found.condition, found.filling}) {
    if (SideEffect(e) > CallEffectKind::kPure)
      Refuse("expected a condition and padding that read no memory, got " + Text(e), {block});
  }
  if (SideEffect(found.inside) > CallEffectKind::kReadState)
    Refuse("expected a value without side effects, got " + Text(found.inside), {block});
  return found;
}

/// The values of each iterator, begin and end, for which the condition holds.
struct Inside {
  const Block& block;
  std::vector<std::pair<PrimExpr, PrimExpr>> bounds;
  arith::Analyzer analyzer;

  Inside(const Block& block, const PrimExpr& condition) : block(block) {
    for (const IterVar& iter : block->iter_vars) {
      const Range& dom = iter->dom.value();
      bounds.emplace_back(dom->min, dom->min + dom->extent);
      analyzer.Bind(iter->var, dom);
    }
    for (const PrimExpr& c : Conjuncts(condition)) Limit(c);
    for (auto& [begin, end] : bounds) {
      begin = analyzer.Simplify(begin);
      end = analyzer.Simplify(max(end, begin));
    }
  }
  void Limit(const PrimExpr& c) {
    // All forms as a <= b.
    auto limit = [&](const PrimExpr& a, const PrimExpr& b, int less) {
      PrimExpr one = MakeConst(a.dtype(), less), zero = MakeZero(a.dtype());
      PrimExpr left = analyzer.Simplify(b - one - a);  // 0 <= left
      if (auto up = AsLinear(left, block->iter_vars); up && up->scale == 1) {
        PrimExpr& begin = bounds[up->iter].first;
        begin = max(begin, zero - up->offset);
      } else if (auto down = AsLinear(zero - left, block->iter_vars); down && down->scale == 1) {
        PrimExpr& end = bounds[down->iter].second;
        end = min(end, MakeConst(a.dtype(), 1) - down->offset);
      } else if (!analyzer.CanProve(zero <= left)) {
        Refuse(Text("expected a condition made of bounds on single iterators of block ",
                    block->name_hint, ", got ", c),
               {block});
      }
    };
    if (auto* op = c.as<LTObj>(); op && op->a.dtype().is_int()) return limit(op->a, op->b, 1);
    if (auto* op = c.as<LEObj>(); op && op->a.dtype().is_int()) return limit(op->a, op->b, 0);
    if (auto* op = c.as<GTObj>(); op && op->a.dtype().is_int()) return limit(op->b, op->a, 1);
    if (auto* op = c.as<GEObj>(); op && op->a.dtype().is_int()) return limit(op->b, op->a, 0);
    Refuse(Text("expected a condition made of bounds on single iterators of block ",
                block->name_hint, ", got ", c),
           {block});
  }
};

/// Variables replaced, and the indices that they are in simplified.
struct ShiftIters : Mutator<ShiftIters, VarObj, BufferLoadObj, BufferStoreObj> {
  const Map<Var, PrimExpr>& values;
  arith::Analyzer* analyzer;
  ShiftIters(const Map<Var, PrimExpr>& values, arith::Analyzer* analyzer)
      : values(values), analyzer(analyzer) {}
  ObjectRef Rewrite(const VarObj* op) {
    Var var = ffi::GetRef<Var>(op);
    auto it = values.find(var);
    return it == values.end() ? ObjectRef(var) : ObjectRef((*it).second);
  }
  template <class Ref>
  ObjectRef Simplified(Ref access) {
    Array<PrimExpr> indices =
        access->indices.Map([&](const PrimExpr& index) { return analyzer->Simplify(index); });
    if (!indices.same_as(access->indices)) Edit(&access)->indices = indices;
    return access;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) { return Simplified(Below<BufferLoad>(op)); }
  ObjectRef Rewrite(const BufferStoreObj* op) { return Simplified(Below<BufferStore>(op)); }
};

BlockId DecomposePadding(State& state, BlockId id, LoopId loop_id) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  For loop = ffi::GetRef<For>(state.loop(loop_id));
  std::string name = "block " + std::string(block->name_hint);
  Require(WhyNotComplete(at.scope, p), {block});
  Require(WhyNotAffine(p), {block});
  PaddingStore padding = PaddingOf(block);
  StoreForm form;  // an element has one iteration: filling does not destroy what another one wrote
  Require(WhyNoStoreForm(block.get(), padding.store->indices, &form), {block});
  if (!p.IsBelow(loop.get()))
    Refuse("expected a loop around " + name + ", got " + NameOf(loop), {loop, block});
  std::vector<For> nest;  // from `loop` inwards
  for (const Stmt& s : p.path) {
    if (s.same_as(loop) || !nest.empty()) {
      auto inner = s.as<For>();
      if (!inner) Refuse("expected only loops between " + NameOf(loop) + " and " + name, {s});
      nest.push_back(*inner);
    }
  }
  Inside inside(block, padding.condition);
  if (inside.analyzer.CanProve(padding.condition)) {
    Refuse("expected a condition that fails somewhere, but " + Text(padding.condition) +
               " always holds: there is no padding",
           {block});
  }

  // The filling: the same loops and iterators under new names.
  Map<Var, PrimExpr> new_loops, new_iters;
  std::vector<For> fill_loops = nest;
  for (For& l : fill_loops) {
    Var var = l->loop_var.CopyWithSuffix("_pad");
    new_loops.Set(l->loop_var, var);
    auto* n = Edit(&l);
    n->loop_var = var;
    n->annotations = {};
  }
  Array<IterVar> iters;
  for (const IterVar& iter : block->iter_vars) {
    iters.push_back(IterVar(iter->dom, iter->var.CopyWithSuffix("_pad"), iter->iter_type));
    new_iters.Set(iter->var, iters.back()->var);
  }
  BufferStore filling(padding.store->buffer, padding.filling, padding.store->indices);
  Block fill = WithInferredRegions(
      Block(iters, {}, {}, block->name_hint + "_pad_const", Substitute(Stmt(filling), new_iters)));
  Stmt fill_nest =
      InLoops(fill_loops, BlockRealize(Substitute(p.realize->iter_values, new_loops),
                                       Substitute(p.realize->predicate, new_loops), fill));

  // What is inside: loops that are one iterator get shorter, others a predicate.
  Map<Var, PrimExpr> shifted;
  Array<IterVar> inner_iters;
  std::vector<PrimExpr> predicate = Conjuncts(p.realize->predicate);
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    IterVar iter = block->iter_vars[i];
    const Range& dom = iter->dom.value();
    const auto& [begin, end] = inside.bounds[i];
    PrimExpr extent = inside.analyzer.Simplify(end - begin);
    bool whole = inside.analyzer.CanProveEqual(begin, dom->min) &&
                 inside.analyzer.CanProveEqual(extent, dom->extent);
    For* own = nullptr;
    for (For& l : nest) {
      bool plain = l->loop_var.same_as(p.realize->iter_values[i]) && l->kind == ForKind::kSerial &&
                   l->HasTrivialStep() && inside.analyzer.CanProveEqual(l->min, dom->min) &&
                   inside.analyzer.CanProveEqual(l->extent, dom->extent);
      bool alone = !UsesAny(p.realize->predicate, {l->loop_var.get()});
      for (size_t j = 0; j < block->iter_vars.size(); ++j)
        alone &= j == i || !UsesAny(p.realize->iter_values[j], {l->loop_var.get()});
      for (const For& other : nest)
        alone &= !UsesAny(other->min, {l->loop_var.get()}) &&
                 !UsesAny(other->extent, {l->loop_var.get()});
      if (plain && alone) own = &l;
    }
    if (!whole && own) {
      PrimExpr zero = MakeZero(extent.dtype());
      auto* n = Edit(own);
      n->min = zero;
      n->extent = extent;
      shifted.Set(iter->var, inside.analyzer.Simplify(iter->var + begin));
      Edit(&iter)->dom = Range::FromMinExtent(zero, extent);
    } else if (!whole) {
      const PrimExpr& value = p.realize->iter_values[i];
      if (!inside.analyzer.CanProve(begin <= dom->min)) predicate.push_back(begin <= value);
      if (!inside.analyzer.CanProve(end >= dom->min + dom->extent))
        predicate.push_back(value < end);
    }
    inner_iters.push_back(iter);
  }
  BufferStore store(padding.store->buffer, padding.inside, padding.store->indices);
  Block inner = block;
  auto* n = Edit(&inner);
  n->iter_vars = inner_iters;
  n->body = ShiftIters(shifted, &inside.analyzer).Mutate(Stmt(store));
  inner = WithInferredRegions(inner);
  Stmt inner_nest = InLoops(nest, BlockRealize(p.realize->iter_values, AllOf(predicate), inner));
  Stmt body = ReplaceStmts(at.scope.block->body, {{loop.get(), Sequence({fill_nest, inner_nest})}});
  Commit(state, at.scope_id, WithBody(at.scope.block, body), {{inner.get(), block}});
  return state.Find(fill.get());
}

bool CanDecomposePadding(Schedule sch, Variant<BlockRV, String> block, LoopRV loop) {
  // A copy that leaves the trace and the random numbers of the schedule alone.
  auto n = NewObject<ScheduleObj>(*sch.get());
  n->state = ScheduleState(NewObject<ScheduleStateObj>(*sch->state.get()));
  Schedule trial(std::move(n));
  auto name = block.as<String>();
  BlockId block_id{trial.IdOf(name ? trial.GetBlock(*name) : block.get<BlockRV>())};
  LoopId loop_id{trial.IdOf(loop)};
  if (loop_id < 0) return false;  // a compute location
  try {
    DecomposePadding(trial.state(), block_id, loop_id);
    return true;
  } catch (const Refusal&) {
    return false;
  }
}

TVM_REGISTER() {
  DefPrimitive(
      "DecomposePadding", "decompose_padding", &DecomposePadding, &Schedule::DecomposePadding,
      "Makes two blocks of one that stores a value where a condition holds and padding elsewhere: "
      "one in front of `loop` that stores padding everywhere, which is returned, and one that "
      "stores the values. The condition consists of bounds on the block's iterators.",
      {R"(
def before(A: T.Buffer((128,), "float32"), B: T.Buffer((140,), "float32")):
    for i in range(140):
        with T.block("B"):
            vi = T.axis.spatial(140, i)
            B[vi] = T.if_then_else(vi >= 6 and vi < 134, A[vi - 6], T.float32(0)))",
       R"(i, = sch.get_loops("B")
sch.decompose_padding("B", i))"},
      Arg("block"), Arg("loop"));
  Def("tir.Schedule.can_decompose_padding", &CanDecomposePadding,
      "Whether decompose_padding would not refuse.", Arg("self"), Arg("block"), Arg("loop"));
}

}  // namespace
}  // namespace tvm::tir
