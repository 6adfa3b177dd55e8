// SPDX-License-Identifier: Apache-2.0
// rfactor: a loop of a reduction becomes spatial; its partial results are reduced by another block.
#include "schedule/primitive/examples.h"
#include "schedule/rewrite.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

/// The block with all that is needed to write the two blocks it becomes.
struct Factored {
  const Placed* placed;
  Block block;
  For loop;
  std::vector<For> chain;  // the loops that contain nothing else, outermost first
  Stmt top;                // the first of them
  Reduction reduction;
  size_t axis;  // where the loop's dimension goes in the partial results
};

/// The last loops around the block that contain only it.
std::vector<For> ChainAbove(const Placed& p) {
  std::vector<For> chain;
  for (auto s = p.path.rbegin(); s != p.path.rend() && s->as<ForObj>(); ++s)
    chain.insert(chain.begin(), *s->as<For>());
  return chain;
}

Factored Check(const State& state, const Focus& at, LoopId loop_id, int64_t factor_axis) {
  Factored f{at.block, at.block->realize->block, ffi::GetRef<For>(state.loop(loop_id)), {}, {}, {},
             0};
  const Placed& p = *f.placed;
  Require(WhyNotReduction(at.scope, p), {f.block});
  Require(WhyNotAffine(p), {f.block});
  if (UseOf(f.loop, p.realize) != kReduce) {
    Refuse("expected a loop over which block " + std::string(f.block->name_hint) +
               " only reduces, got " + NameOf(f.loop),
           {f.loop});
  }
  f.chain = ChainAbove(p);
  size_t outside = p.Loops().size() - f.chain.size();
  bool first_reduce = true;
  for (size_t i = 0; i < p.Loops().size(); ++i) {
    For loop = p.Loops()[i];
    int use = UseOf(loop, p.realize);
    if (use & kOther || use == (kSpatial | kReduce)) {
      Refuse(NameOf(loop) + " is used by spatial and by reduction iterators", {loop});
    }
    if (i < outside && (use & kReduce)) {
      Refuse("expected the loops of the reduction to contain only block " +
                 std::string(f.block->name_hint) + ", but " + NameOf(loop) + " contains others",
             {loop});
    }
    if (loop.same_as(f.loop)) break;
    if (use & kReduce) first_reduce = false;
  }
  f.top = f.chain[0];
  Require(WhyNoReducer(f.block.get(), &f.reduction), {f.block});
  if (!f.reduction.any_order && !first_reduce && !IsOne(f.loop->extent)) {
    Refuse(
        "expected the outermost loop of the reduction, because among equal values the first one "
        "wins, got " +
            NameOf(f.loop),
        {f.loop});
  }
  auto rank = static_cast<int64_t>(f.reduction.indices.size());
  if (factor_axis < -rank - 1 || factor_axis > rank) {
    Refuse(Text("expected factor_axis from ", -rank - 1, " to ", rank, ", got ", factor_axis),
           {f.block});
  }
  f.axis = static_cast<size_t>(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis);
  return f;
}

template <class T>
Array<T> Inserted(const Array<T>& list, size_t at, const T& item) {
  std::vector<T> items(list.begin(), list.end());
  items.insert(items.begin() + at, item);
  return Array<T>(items);
}

/// buffers[indices] = combine(buffers[indices], sources), all at once.
Stmt Update(const Reduction& r, const Array<Buffer>& buffers, const Array<PrimExpr>& indices,
            const Array<PrimExpr>& sources) {
  Array<PrimExpr> current =
      buffers.Map([&](const Buffer& b) -> PrimExpr { return BufferLoad(b, indices); });
  Array<PrimExpr> values = r.reducer->Combine(current, sources);
  std::vector<Var> lets;
  Array<Stmt> stores;
  for (size_t i = 0; i < buffers.size(); ++i) {
    PrimExpr value = values[i];
    if (buffers.size() > 1)
      value = lets.emplace_back("v_" + std::string(buffers[i]->name), value.dtype());
    stores.push_back(BufferStore(buffers[i], value, indices));
  }
  Stmt body = SeqStmt::Flatten(stores);
  for (size_t i = lets.size(); i > 0; --i) body = LetStmt(lets[i - 1], values[i - 1], body);
  return body;
}
Stmt Stores(const Array<Buffer>& buffers, const Array<PrimExpr>& indices,
            const Array<PrimExpr>& values) {
  Array<Stmt> stores;
  for (size_t i = 0; i < buffers.size(); ++i)
    stores.push_back(BufferStore(buffers[i], values[i], indices));
  return SeqStmt::Flatten(stores);
}

/// Iterators, their values and how the variables of the old block are expressed by them.
struct Iters {
  Array<IterVar> iters;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> old;
  Var Add(const std::string& name, const Range& dom, IterVarType type, const PrimExpr& value) {
    Var var(name, value.dtype());
    iters.push_back(IterVar(dom, var, type));
    values.push_back(value);
    return var;
  }
  void Keep(const IterVar& iter, const PrimExpr& value) {
    old.Set(iter->var, Add(iter->var->name_hint, iter->dom.value(), iter->iter_type, value));
  }
};
Range DomainOf(const For& loop) { return Range::FromMinExtent(loop->min, loop->extent); }

/// The block's predicate in two parts, about the old loops: what stays one, and what becomes a
/// choice of the values combined, because it may leave out the first iteration of a partial result,
/// which must be started.
std::pair<std::vector<PrimExpr>, std::vector<PrimExpr>> SplitPredicate(const Factored& f) {
  Map<Var, PrimExpr> start;
  std::unordered_set<const VarObj*> reduce_loops, others;
  for (const For& loop : f.placed->Loops()) {
    bool reduces = UseOf(loop, f.placed->realize) & kReduce;
    (reduces ? reduce_loops : others).insert(loop->loop_var.get());
    if (reduces && !loop.same_as(f.loop)) start.Set(loop->loop_var, loop->min);
  }
  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(f.placed->Loops()));
  std::vector<PrimExpr> predicate, guards;
  for (const PrimExpr& c : Conjuncts(f.placed->realize->predicate)) {
    bool starts = !UsesAny(c, reduce_loops) || analyzer.CanProve(Substitute(c, start));
    if (!starts && UsesAny(c, others)) {
      Refuse(
          "expected a predicate whose parts are about spatial loops or about loops of the "
          "reduction, got " +
              Text(c),
          {f.block});
    }
    (starts ? predicate : guards).push_back(c);
  }
  return {predicate, guards};
}

/// The block that computes partial results, one for each value of the loop.
std::pair<Block, Stmt> PartialNest(const Factored& f, const Array<Buffer>& partial) {
  const BlockRealize& realize = f.placed->realize;
  Map<Var, PrimExpr> new_loops, loop_iters;
  std::vector<For> loops = f.chain;
  for (For& loop : loops) {
    Var var = loop->loop_var.CopyWithSuffix("");
    new_loops.Set(loop->loop_var, var);
    Edit(&loop)->loop_var = var;
  }
  auto [predicate, guards] = SplitPredicate(f);
  std::unordered_set<const VarObj*> named = {f.loop->loop_var.get()};  // loops with iterators
  for (const For& loop : f.chain) {
    if (UsesAny(AllOf(guards), {loop->loop_var.get()})) named.insert(loop->loop_var.get());
  }
  Iters iters;
  auto add_loop = [&](const For& loop, IterVarType type) {
    Var v = iters.Add("v" + std::string(loop->loop_var->name_hint), DomainOf(loop), type,
                      new_loops[loop->loop_var]);
    loop_iters.Set(loop->loop_var, v);
    return v;
  };
  // Scripts rely on the order: the factor first, then what the block had. An iterator of the
  // reduction that is made of the factor gives its place to the other loops it is made of.
  Var factor = add_loop(f.loop, IterVarType::kDataPar);
  bool reduces = false;
  for (size_t i = 0; i < realize->iter_values.size(); ++i) {
    const IterVar& iter = f.block->iter_vars[i];
    const PrimExpr& value = realize->iter_values[i];
    bool is_reduce = iter->iter_type == IterVarType::kCommReduce;
    if (!is_reduce || !UsesAny(value, named)) {
      reduces |= is_reduce;
      iters.Keep(iter, Substitute(value, new_loops));
      continue;
    }
    for (const For& loop : f.chain) {
      if (loop_iters.count(loop->loop_var) || !UsesAny(value, {loop->loop_var.get()})) continue;
      add_loop(loop, IterVarType::kCommReduce);
      reduces = true;
    }
    iters.old.Set(iter->var, Substitute(value, loop_iters));
  }
  Array<PrimExpr> sources = Substitute(f.reduction.sources, iters.old);
  if (!guards.empty()) {
    for (size_t i = 0; i < sources.size(); ++i) {
      sources.Set(i, if_then_else(Substitute(AllOf(guards), loop_iters), sources[i],
                                  Substitute(f.reduction.reducer->identity_element[i], iters.old)));
    }
  }
  Array<PrimExpr> indices =
      Inserted<PrimExpr>(Substitute(f.reduction.indices, iters.old), f.axis, factor);
  Reduction r = f.reduction;
  r.reducer = CommReducer(r.reducer->lhs, r.reducer->rhs, r.reducer->result,
                          Substitute(r.reducer->identity_element, iters.old));
  Stmt body = reduces ? Update(r, partial, indices, sources) : Stores(partial, indices, sources);
  Optional<Stmt> init;
  if (reduces) init = Stores(partial, indices, r.reducer->identity_element);
  Block block = WithInferredRegions(Block(iters.iters, {}, {}, f.block->name_hint + "_rf", body,
                                          init, {}, {}, f.block->annotations));
  PrimExpr where = Substitute(AllOf(predicate), new_loops);
  return {block, InLoops(loops, BlockRealize(iters.values, where, block))};
}

/// The block that reduces the partial results.
std::pair<Block, Stmt> FinalNest(const Factored& f, const Array<Buffer>& partial) {
  const BlockRealize& realize = f.placed->realize;
  std::vector<For> loops;
  std::unordered_set<const VarObj*> gone;
  for (const For& loop : f.chain) {
    if (loop.same_as(f.loop) || !(UseOf(loop, realize) & kReduce)) {
      loops.push_back(loop);
    }
    if (UseOf(loop, realize) & kReduce) gone.insert(loop->loop_var.get());
  }
  Iters iters;
  Var factor = iters.Add("v" + std::string(f.loop->loop_var->name_hint), DomainOf(f.loop),
                         IterVarType::kCommReduce, f.loop->loop_var);
  for (size_t i = 0; i < realize->iter_values.size(); ++i) {
    const IterVar& iter = f.block->iter_vars[i];
    if (iter->iter_type == IterVarType::kDataPar) iters.Keep(iter, realize->iter_values[i]);
  }
  std::vector<PrimExpr> predicate;
  for (const PrimExpr& c : Conjuncts(realize->predicate)) {
    if (!UsesAny(c, gone)) predicate.push_back(c);
  }
  Array<PrimExpr> indices = Substitute(f.reduction.indices, iters.old);
  Array<PrimExpr> at = Inserted<PrimExpr>(indices, f.axis, factor);
  Reduction r = f.reduction;
  r.reducer = CommReducer(r.reducer->lhs, r.reducer->rhs, r.reducer->result,
                          Substitute(r.reducer->identity_element, iters.old));
  Array<PrimExpr> sources =
      partial.Map([&](const Buffer& b) -> PrimExpr { return BufferLoad(b, at); });
  Block block = WithInferredRegions(
      Block(iters.iters, {}, {}, f.block->name_hint, Update(r, r.buffers, indices, sources),
            Stores(r.buffers, indices, r.reducer->identity_element), {}, {}, f.block->annotations));
  return {block, InLoops(loops, BlockRealize(iters.values, AllOf(predicate), block))};
}
}  // namespace

BlockId RFactor(State& state, LoopId loop, int64_t factor_axis) {
  std::vector<BlockId> below = state.ChildBlocks(loop);
  if (below.size() != 1) {
    Refuse("expected a loop with one block below it, got " + std::to_string(below.size()),
           {state.inner_stmt(loop)});
  }
  Focus at(state, below[0]);
  Factored f = Check(state, at, loop, factor_axis);
  Array<Buffer> partial;
  Block scope = at.scope.block;
  for (const Buffer& b : f.reduction.buffers) {
    partial.push_back(NewBufferLike(b, Inserted<PrimExpr>(b->shape, f.axis, f.loop->extent),
                                    b->name + "_rf", b.scope()));
    scope = WithAllocated(scope, partial.back());
  }
  if (!IsZero(f.loop->min))
    Refuse("expected a loop from 0, got one from " + Text(f.loop->min), {f.loop});
  auto [rf_block, rf_nest] = PartialNest(f, partial);
  auto [wb_block, wb_nest] = FinalNest(f, partial);
  Stmt body = ReplaceStmts(scope->body, {{f.top.get(), Sequence({rf_nest, wb_nest})}});
  Commit(state, at.scope_id, WithBody(scope, body), {{wb_block.get(), f.block}});
  return state.Find(rf_block.get());
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "RFactor", "rfactor", &RFactor, &Schedule::RFactor,
      "Makes a loop of a reduction spatial: a new block, which is returned, computes one partial "
      "result for each of its iterations, in a buffer with one more dimension at `factor_axis`; "
      "the "
      "old one reduces these.",
      {kRowSums,
       R"(i, k = sch.get_loops("B")
ko, ki = sch.split(k, factors=[None, 4])
sch.rfactor(ki, 1))"},
      Arg("loop"), Arg("factor_axis"));
}
}  // namespace

}  // namespace tvm::tir
