// SPDX-License-Identifier: Apache-2.0
// decompose_reduction: the init of a reduction becomes a block of its own before a loop.
#include "schedule/primitive/examples.h"
#include "schedule/rewrite.h"
#include "tir/threads.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

/// The loops of the init: the spatial ones from `at` inwards. Refuses what would run it wrongly.
std::vector<For> InitLoops(const Placed& p, size_t at) {
  std::vector<For> loops = p.Loops(), result;
  ObjectRef where = p.realize->block;
  for (size_t i = 0; i < loops.size(); ++i) {
    int use = UseOf(loops[i], p.realize);
    if (i >= at && use == kUnused && !IsOne(loops[i]->extent)) {
      Refuse(
          "expected a loop inside of " + NameOf(loops[i]) + ", in which the reduction runs again",
          {loops[i]});
    }
    if (use == kUnused || IsOne(loops[i]->extent)) {
      if (i >= at && use == kSpatial) result.push_back(loops[i]);
      continue;
    }
    if (i < at && (use & kReduce)) {
      Refuse("expected a loop outside of all loops of the reduction, but " + NameOf(loops[i]) +
                 " is around it",
             {loops[i]});
    }
    if (i < at) continue;
    if ((use & kReduce) && LaunchedThread(loops[i].get())) {
      Refuse(NameOf(loops[i]) +
                 " of the reduction is bound to threads, which without the init add to the result "
                 "without knowing of each other",
             {loops[i], where});
    }
    if (use == kSpatial) result.push_back(loops[i]);
    if (use & ~(kSpatial | kReduce) || use == (kSpatial | kReduce)) {
      Refuse(NameOf(loops[i]) + " is used by spatial and by reduction iterators",
             {loops[i], where});
    }
  }
  return result;
}

/// The part of the predicate that is about the loops of the init.
PrimExpr InitPredicate(const Placed& p, const std::vector<For>& loops, size_t at) {
  std::unordered_set<const VarObj*> kept, dropped;
  for (const For& loop : loops) kept.insert(loop->loop_var.get());
  std::vector<For> all = p.Loops();
  for (size_t i = at; i < all.size(); ++i) {
    if (!kept.count(all[i]->loop_var.get())) dropped.insert(all[i]->loop_var.get());
  }
  std::vector<PrimExpr> conditions;
  for (const PrimExpr& c : Conjuncts(p.realize->predicate)) {
    if (!UsesAny(c, dropped)) {
      conditions.push_back(c);
    } else if (UsesAny(c, kept)) {
      Refuse(
          "expected a predicate whose parts are about spatial loops or about loops of the "
          "reduction, got " +
              Text(c),
          {p.realize->block});
    }
  }
  return AllOf(conditions);
}

void CheckNeighbours(const Focus& at, const StmtObj* loop, const Block& init) {
  const Placed& p = *at.block;
  for (const Placed& other : at.scope.children) {
    if (other.order == p.order || !other.IsBelow(loop)) continue;
    std::string name = "block " + std::string(other.block()->name_hint);
    for (const BufferRegion& r : ReadsOf(other.block())) {
      for (const BufferRegion& w : p.block()->writes) {
        bool reads = r->buffer->data.same_as(w->buffer->data);
        if (reads && (other.order < p.order || !WhyNotRegionCover(at.scope, other).empty())) {
          Refuse(name + " in the loop may read buffer " + std::string(w->buffer->name) +
                     " before the reduction starts",
                 {other.realize->block});
        }
      }
    }
    for (const BufferRegion& w : other.block()->writes) {
      for (const BufferRegion& r : init->reads) {
        if (r->buffer->data.same_as(w->buffer->data)) {
          Refuse(name + " in the loop writes buffer " + std::string(r->buffer->name) +
                     ", which the init reads",
                 {other.realize->block});
        }
      }
    }
  }
}
}  // namespace

BlockId DecomposeReduction(State& state, BlockId id, LoopId loop_id) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  For loop = ffi::GetRef<For>(state.loop(loop_id));
  Require(WhyNotReduction(at.scope, p), {block});
  if (!p.IsBelow(loop.get())) {
    Refuse(
        "expected a loop around block " + std::string(block->name_hint) + ", got " + NameOf(loop),
        {loop, block});
  }
  size_t position = 0;
  std::vector<For> loops = p.Loops();
  while (!loops[position].same_as(loop)) ++position;
  bool inside = false;
  for (const Stmt& s : p.path) {
    inside |= s.same_as(loop);
    if (inside && !s.as<ForObj>() && !s.as<SeqStmtObj>()) {
      Refuse("expected only loops between " + NameOf(loop) + " and block " +
                 std::string(block->name_hint),
             {s});
    }
  }
  Require(WhyNotAffine(p), {block});
  std::vector<For> init_loops = InitLoops(p, position);
  PrimExpr predicate = InitPredicate(p, init_loops, position);

  // New variables for the loops and iterators of the init.
  Map<Var, PrimExpr> new_loops, new_iters;
  for (For& l : init_loops) {
    Var var = l->loop_var.CopyWithSuffix("_init");
    new_loops.Set(l->loop_var, var);
    auto* n = Edit(&l);
    n->loop_var = var;
    n->annotations = {};
  }
  Array<IterVar> iters;
  Array<PrimExpr> values;
  for (size_t i = 0; i < block->iter_vars.size(); ++i) {
    const IterVar& iter = block->iter_vars[i];
    if (iter->iter_type != IterVarType::kDataPar) continue;
    IterVar copy(iter->dom, iter->var.CopyWithSuffix("_init"), iter->iter_type);
    new_iters.Set(iter->var, copy->var);
    iters.push_back(copy);
    values.push_back(Substitute(p.realize->iter_values[i], new_loops));
  }
  Block init = WithInferredRegions(
      Block(iters, {}, {}, block->name_hint + "_init", Substitute(block->init.value(), new_iters)));
  Edit(&init)->annotations = block->annotations;
  CheckNeighbours(at, loop.get(), init);
  Block update = block;
  auto* n = Edit(&update);
  n->init = Optional<Stmt>();
  n->name_hint = block->name_hint + "_update";
  update = WithInferredRegions(update);

  BlockRealize realize = p.realize;
  Edit(&realize)->block = update;
  Stmt nest = InLoops(init_loops, BlockRealize(values, Substitute(predicate, new_loops), init));
  Stmt with = Sequence({nest, ReplaceStmts(loop, {{p.realize.get(), realize}})});
  Block scope = WithBody(at.scope.block, ReplaceStmts(at.scope.block->body, {{loop.get(), with}}));
  Commit(state, at.scope_id, scope, {{update.get(), block}});
  return state.Find(init.get());
}

namespace {
TVM_REGISTER() {
  DefPrimitive("DecomposeReduction", "decompose_reduction", &DecomposeReduction,
               &Schedule::DecomposeReduction,
               "Makes the init of a reduction a block of its own in front of `loop`, which is "
               "outside of all "
               "loops of the reduction. Returns that block; the reduction goes on without init.",
               {kRowSums,
                R"(i, k = sch.get_loops("B")
sch.decompose_reduction("B", k))"},
               Arg("block"), Arg("loop"));
}
}  // namespace

}  // namespace tvm::tir
