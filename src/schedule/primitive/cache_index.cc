// SPDX-License-Identifier: Apache-2.0
// cache_index: blocks compute the indices that a block uses, which reads them.
#include "schedule/primitive/cache.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

/// Puts visit(index) in the place of the indices of all loads; blocks that change get inferred
/// regions and are noted in `same`. The indices of stores stay: they tell what a block writes.
struct IndexRewriter : Mutator<IndexRewriter, BufferLoadObj, BlockObj> {
  std::function<PrimExpr(const PrimExpr&)> visit;
  BlockMap same;
  explicit IndexRewriter(std::function<PrimExpr(const PrimExpr&)> visit)
      : visit(std::move(visit)) {}
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    Array<PrimExpr> indices = load->indices.Map(visit);
    if (!indices.same_as(load->indices)) Edit(&load)->indices = indices;
    return load;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = ffi::GetRef<Block>(op), with = block;
    Stmt body = Mutate(op->body);
    Optional<Stmt> init = op->init;
    if (init.has_value()) init = Mutate(init.value());
    if (body.same_as(op->body) && init.same_as(op->init)) return block;
    auto* n = Edit(&with);
    n->body = body;
    n->init = init;
    with = WithInferredRegions(with);
    same.emplace(with.get(), block);
    return with;
  }
};

/// A computation in indices, and how often it occurs.
struct Computation {
  PrimExpr value;
  int64_t count = 0;
  int64_t size = 0;
  Buffer buffer;              // of its values
  std::vector<IterVar> used;  // the iterators it is computed from
};

struct Collector {
  const Block& block;
  std::unordered_set<const VarObj*> known;  // iterators, and what is defined outside of the scope
  std::vector<Computation> found;

  Collector(const Focus& at, const Block& block) : block(block) {
    for (const Var& var : UndefinedVars(at.scope.block)) known.insert(var.get());
    for (const IterVar& iter : block->iter_vars) known.insert(iter->var.get());
  }
  bool CanCache(const PrimExpr& e) const {
    bool composite = !e.as<VarObj>() && !AsConstInt(e);
    return composite && e.dtype().is_scalar() && (e.dtype().is_int() || e.dtype().is_uint()) &&
           SideEffect(e) <= CallEffectKind::kPure &&
           !UsesVar(e, [&](const VarObj* v) { return !known.count(v); }) &&
           UsesVar(e, [&](const VarObj* v) { return IsIter(v); });
  }
  bool IsIter(const VarObj* var) const {
    return std::any_of(block->iter_vars.begin(), block->iter_vars.end(),
                       [&](const IterVar& iter) { return iter->var.get() == var; });
  }
  Computation* Find(const PrimExpr& e) {
    for (Computation& c : found) {
      if (ExprDeepEqual(c.value, e)) return &c;
    }
    return nullptr;
  }
  void Count(const PrimExpr& e) {
    if (!CanCache(e)) return;
    Computation* c = Find(e);
    if (!c) {
      int64_t size = 0;
      PostOrderVisit(e, [&](const ObjectRef&) { ++size; });
      c = &found.emplace_back(Computation{e, 0, size, {}, {}});
    }
    ++c->count;
  }
};

bool Contains(const PrimExpr& e, const PrimExpr& part) {
  bool found = false;
  PostOrderVisit(e, [&](const ObjectRef& n) {
    auto below = n.as<PrimExpr>();
    found |= below && ExprDeepEqual(*below, part);
  });
  return found;
}

/// The block that computes it for all values of the iterators.
CopyNest ComputeAhead(Computation* c, const Block& block, size_t number, const String& scope) {
  Array<IterVar> iters;
  std::vector<For> loops;
  Array<PrimExpr> values, at_iters, shape;
  Map<Var, PrimExpr> map;
  for (const IterVar& iter : block->iter_vars) {
    if (!UsesAny(c->value, {iter->var.get()})) continue;
    const Range& dom = iter->dom.value();
    if (!IsZero(dom->min)) {
      Refuse("expected iterators that start at 0, got " + std::string(iter->var->name_hint),
             {block});
    }
    std::string axis = std::to_string(c->used.size());
    Var loop("ax" + axis, dom->extent.dtype()), v("v" + axis, dom->extent.dtype());
    loops.push_back(For(loop, dom->min, dom->extent, ForKind::kSerial, Evaluate::Nothing()));
    iters.push_back(IterVar(dom, v, IterVarType::kDataPar));
    values.push_back(loop);
    at_iters.push_back(v);
    shape.push_back(dom->extent);
    map.Set(iter->var, v);
    c->used.push_back(iter);
  }
  c->buffer = Buffer::Decl(shape, c->value.dtype(), "index_var_" + std::to_string(number), scope);
  BufferStore store(c->buffer, Substitute(c->value, map), at_iters);
  Block ahead = WithInferredRegions(Block(iters, {}, {}, "index_" + std::to_string(number), store));
  return {ahead, InLoops(loops, BlockRealize(values, const_true(), ahead))};
}

/// Puts what was computed ahead in the place of the computation.
struct UseComputed : Mutator<UseComputed, PrimExprObj> {
  const std::vector<const Computation*>& computations;  // larger ones first
  explicit UseComputed(const std::vector<const Computation*>& c) : computations(c) {}
  ObjectRef Rewrite(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
    for (const Computation* c : computations) {
      if (!ExprDeepEqual(c->value, e)) continue;
      Array<PrimExpr> indices;
      for (const IterVar& iter : c->used) indices.push_back(iter->var);
      return BufferLoad(c->buffer, indices);
    }
    return Below<PrimExpr>(op);
  }
};

std::vector<BlockId> CacheIndex(State& state, BlockId id, String storage_scope,
                                int64_t cse_thresh) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  if (cse_thresh < 0)
    Refuse(Text("expected cse_thresh not to be negative, got ", cse_thresh), {block});
  CheckNoOuterVars(p);
  Collector all(at, block);
  // Without a threshold whole indices are computed ahead, with one what they have in common.
  IndexRewriter([&](const PrimExpr& index) {
    if (cse_thresh == 0) {
      all.Count(index);
    } else {
      PostOrderVisit(index, [&](const ObjectRef& n) {
        if (auto e = n.as<PrimExpr>()) all.Count(*e);
      });
    }
    return index;
  }).Mutate(Stmt(block));
  std::vector<Computation> frequent, chosen;
  for (const Computation& c : all.found) {
    if (c.count >= cse_thresh) frequent.push_back(c);
  }
  // What is part of something larger that occurs as often is not computed by itself.
  for (const Computation& c : frequent) {
    bool covered =
        cse_thresh > 0 && std::any_of(frequent.begin(), frequent.end(), [&](auto& more) {
          return more.size > c.size && more.count >= c.count && Contains(more.value, c.value);
        });
    if (!covered) chosen.push_back(c);
  }
  if (chosen.empty()) return {};

  Block scope = at.scope.block;
  Array<Stmt> nests;
  std::vector<Block> blocks;
  for (size_t n = 0; n < chosen.size(); ++n) {
    Computation& c = chosen[n];
    CopyNest ahead = ComputeAhead(&c, block, n, storage_scope);
    blocks.push_back(ahead.block);
    nests.push_back(ahead.nest);
    scope = WithAllocated(scope, c.buffer);
  }

  // Larger computations first: smaller ones may be part of them.
  std::vector<const Computation*> by_size;
  for (const Computation& c : chosen) by_size.push_back(&c);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](auto* a, auto* b) { return a->size > b->size; });
  UseComputed use(by_size);
  IndexRewriter rewrite([&](const PrimExpr& index) { return use.Mutate(index); });
  Stmt with = rewrite.Mutate(Stmt(p.realize));
  Gap gap(at, {&p}, true);
  Stmt body = gap.Insert(at, gap.PositionOf(p), SeqStmt::Flatten(nests), {{p.realize.get(), with}});
  Commit(state, at.scope_id, WithBody(scope, body), rewrite.same);
  std::vector<BlockId> result;
  for (const Block& b : blocks) result.push_back(state.Find(b.get()));
  return result;
}

TVM_REGISTER() {
  DefPrimitive(
      "CacheIndex", "cache_index", &CacheIndex, &Schedule::CacheIndex,
      "Computes indices of a block ahead, into buffers in a memory scope, which the block reads. "
      "cse_thresh 0 takes every index of what is read that is more than an iterator; another "
      "number "
      "takes the computations in such indices that occur at least so often. Returns the blocks "
      "that compute, none "
      "if there is nothing to compute.",
      {R"(
def before(A: T.Buffer((40, 40), "float32"), B: T.Buffer((80, 80), "float32")):
    for i, j in T.grid(80, 80):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi // 4 + vj // 4, vj // 2])",
       R"(sch.cache_index("B", "global"))"},
      Arg("block"), Arg("storage_scope"), Arg("cse_thresh", 0));
}

}  // namespace
}  // namespace tvm::tir
