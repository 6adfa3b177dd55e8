// SPDX-License-Identifier: Apache-2.0
// reindex, reindex_cache_read, reindex_cache_write: a block uses a copy of a buffer that is laid
// out as its iterators run.
#include "schedule/primitive/layout.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using arith::Analyzer;

/// One access pattern of a block to a buffer, and the copy it uses instead.
struct Reindexed {
  const Placed* placed;
  Buffer buffer;
  bool is_read;
  Array<PrimExpr> access;     // indices of the buffer, over the block's iterators
  std::vector<IterVar> used;  // iterators that the access or the copy's indices use
  Array<PrimExpr> place;      // indices of the copy
  Buffer copy;
};

/// The indices of all accesses to the buffer in the block, which must be alike.
Array<PrimExpr> OneAccess(const Placed& p, const Buffer& buffer) {
  std::optional<Array<PrimExpr>> found;
  auto note = [&](const Buffer& b, const Array<PrimExpr>& indices) {
    if (!b.same_as(buffer)) return;
    if (!found) found = indices;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!indices[i].dtype().is_scalar()) {
        Refuse("expected " + NameOf(p) + " to access single elements of buffer " +
                   std::string(buffer->name) + ", got " + Text(indices[i]) + " as index",
               {p.realize->block});
      }
      if (!ExprDeepEqual(indices[i], (*found)[i])) {
        Refuse("expected " + NameOf(p) + " to access buffer " + std::string(buffer->name) +
                   " with the same indices everywhere, got " + Text((*found)[i]) + " and " +
                   Text(indices[i]),
               {p.realize->block});
      }
    }
  };
  auto visit = [&](const ObjectRef& node) {
    if (auto* load = node.as<BufferLoadObj>()) note(load->buffer, load->indices);
    if (auto* store = node.as<BufferStoreObj>()) note(store->buffer, store->indices);
  };
  PostOrderVisit(p.block()->body, visit);
  if (p.block()->init.has_value()) PostOrderVisit(p.block()->init.value(), visit);
  if (!found) Refuse("expected loads or stores of buffer " + std::string(buffer->name));
  return *found;
}

bool Uses(const Array<PrimExpr>& exprs, const IterVar& iter) {
  return std::any_of(exprs.begin(), exprs.end(), [&](const PrimExpr& e) {
    return UsesVar(e, [&](const VarObj* v) { return v == iter->var.get(); });
  });
}

/// Finds the iterators in use; `map` gives the places from all iterators, without it they are the
/// iterators that the access uses.
void Plan(Reindexed* r, const std::optional<IndexMap>& map, const String& name,
          const String& storage_scope) {
  const BlockObj* block = r->placed->block();
  ObjectRef where = r->placed->realize->block;
  CheckPlainUse(*r->placed, r->buffer);
  r->access = OneAccess(*r->placed, r->buffer);
  Analyzer analyzer;
  Map<Var, Range> domains;
  for (const IterVar& iter : block->iter_vars) {
    analyzer.Bind(iter->var, iter->dom.value());
    if (!IsZero(iter->dom.value()->min))
      Refuse("expected iterators that start at 0, got " + std::string(iter->var->name_hint),
             {where});
  }
  if (map) r->place = map->MapIndices(ValuesOf(block->iter_vars), &analyzer);
  for (const IterVar& iter : block->iter_vars) {
    bool in_access = Uses(r->access, iter), in_place = map && Uses(r->place, iter);
    if (!in_access && !in_place) continue;
    r->used.push_back(iter);
    domains.Set(iter->var, iter->dom.value());
    if (!map) r->place.push_back(iter->var);
    if (!r->is_read && iter->iter_type != IterVarType::kDataPar) {
      Refuse("expected spatial iterators in the indices of what is written, got " +
                 std::string(iter->var->name_hint),
             {where});
    }
  }
  // Iterations that share a place in the copy must share the element.
  auto injective = [&](const Array<PrimExpr>& indices, const char* what) {
    arith::IterMapResult found = arith::DetectIterMap(indices, domains, const_true(),
                                                      arith::IterMapLevel::kBijective, &analyzer);
    if (found->indices.empty() && !domains.empty()) {
      Refuse(std::string("expected ") + what + " to be different for different iterators, got " +
                 Text(indices),
             {where});
    }
  };
  injective(r->place, "the indices of the copy");
  if (!r->is_read) injective(r->access, "the indices of what is written");
  // The copy touches every element of the access, also where the block has a condition.
  for (size_t i = 0; i < r->access.size(); ++i) {
    const PrimExpr& e = r->access[i];
    if (!analyzer.CanProve(e >= MakeZero(e.dtype())) ||
        !analyzer.CanProve(e < r->buffer->shape[i])) {
      Refuse("cannot prove that index " + Text(e) + " of buffer " + std::string(r->buffer->name) +
                 " is always inside",
             {where});
    }
  }
  arith::DomMap sets = arith::AsIntSets(domains);
  Array<PrimExpr> shape;
  for (const PrimExpr& e : r->place) {
    arith::IntSet set = arith::EvalSet(e, sets, &analyzer);
    shape.push_back(analyzer.Simplify(set.max() + MakeConst(e.dtype(), 1)));
    if (!analyzer.CanProve(set.min() >= MakeZero(e.dtype())))
      Refuse("expected the indices of the copy not to be negative, got " + Text(e), {where});
  }
  r->copy = NewBufferLike(r->buffer, shape, name, storage_scope);
}

BlockId Apply(State& state, const Focus& at, const Reindexed& r) {
  const Placed& p = *r.placed;
  // The block that copies, over the iterators in use.
  Array<IterVar> iters;
  std::vector<For> loops;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> map;
  for (size_t i = 0; i < r.used.size(); ++i) {
    const Range& dom = r.used[i]->dom.value();
    Var loop("ax" + std::to_string(i), dom->extent.dtype());
    Var v("v" + std::to_string(i), dom->extent.dtype());
    loops.push_back(For(loop, dom->min, dom->extent, ForKind::kSerial, Evaluate::Nothing()));
    iters.push_back(IterVar(dom, v, IterVarType::kDataPar));
    values.push_back(loop);
    map.Set(r.used[i]->var, v);
  }
  Array<PrimExpr> access = Substitute(r.access, map), place = Substitute(r.place, map);
  const Buffer &from = r.is_read ? r.buffer : r.copy, &to = r.is_read ? r.copy : r.buffer;
  const Array<PrimExpr>&from_at = r.is_read ? access : place, &to_at = r.is_read ? place : access;
  Block copy(iters, {BufferRegion::Point(from, from_at)}, {BufferRegion::Point(to, to_at)},
             r.copy->name, BufferStore(to, BufferLoad(from, from_at), to_at));
  Stmt nest = InLoops(loops, BlockRealize(values, const_true(), copy));

  BlockMap same;
  AccessRewrite rewrite{
      r.buffer, [&](const BufferLoad&) -> PrimExpr { return BufferLoad(r.copy, r.place); },
      [&](const BufferStore& s) -> Stmt { return BufferStore(r.copy, s->value, r.place); }};
  StmtMap changes{{p.realize.get(), RewriteAccesses(p.realize, rewrite, &same)}};

  std::vector<const Placed*> involved{&p};
  std::vector<const Placed*> others =
      r.is_read ? at.scope.WritersOf(r.buffer) : at.scope.ReadersOf(r.buffer);
  for (const Placed* o : others) {
    involved.push_back(o);
  }
  Gap gap(at, involved, others.empty());
  bool shared = !gap.loops.empty();
  for (const Placed* o : others) shared |= gap.PositionOf(*o) == gap.PositionOf(p);
  if (shared) {
    Refuse("expected " + NameOf(p) + " not to share loops with the blocks that " +
               (r.is_read ? "write" : "read") + " buffer " + std::string(r.buffer->name),
           {p.realize->block});
  }
  int position = gap.PositionOf(p) + (r.is_read ? 0 : 1);
  Stmt body = gap.Insert(at, position, nest, changes);
  Commit(state, at.scope_id, WithAllocated(WithBody(at.scope.block, body), r.copy), same);
  return state.Find(copy.get());
}

BlockId Run(State& state, BlockId id, const Buffer& buffer, bool is_read,
            const std::optional<IndexMap>& map, const String& name, const String& scope) {
  Focus at(state, id);
  if (is_read) {
    for (const BufferRegion& w : at.block->block()->writes) {
      if (w->buffer->data.same_as(buffer->data))
        Refuse("expected a buffer that " + NameOf(*at.block) + " only reads, got " +
                   std::string(buffer->name),
               {at.block->realize->block});
    }
  } else {
    Require(WhyNotStage(at.scope, *at.block), {at.block->realize->block});
    Require(WhyNotCovering(*at.block), {at.block->realize->block});
  }
  Reindexed r{at.block, buffer, is_read, {}, {}, {}, {}};
  Plan(&r, map, name, scope);
  return Apply(state, at, r);
}

BlockId ReIndex(State& state, BlockId id, BufferRef& buffer) {
  Buffer resolved = ResolveBuffer(state, id, buffer);
  bool is_read = buffer.get<Array<Any>>()[0].cast<String>() == "read";
  return Run(state, id, resolved, is_read, {}, resolved->name + "_reindex", resolved.scope());
}

template <bool is_read>
BlockId ReindexCache(State& state, BlockId id, BufferIndex& index, String storage_scope,
                     IndexMapLike& index_map) {
  Focus at(state, id);
  const BlockObj* block = at.block->block();
  Buffer buffer = is_read ? BufferAt(*at.block, block->reads, index, "reads")
                          : BufferAt(*at.block, block->writes, index, "writes");
  DataType t = block->iter_vars.empty() ? DataType::Int(32) : block->iter_vars[0]->var.dtype();
  IndexMap map = ResolveIndexMap(index_map, block->iter_vars.size(), t);
  return Run(state, id, buffer, is_read, map, CacheName(buffer, storage_scope), storage_scope);
}

const char* kTransposed = R"(
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((8, 16), "float32")):
    for i, j in T.grid(8, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi] * 2.0)";

TVM_REGISTER() {
  DefPrimitive("ReIndex", "reindex", &ReIndex, &Schedule::ReIndex,
               "Makes a block use a copy of one of its buffers whose indices are the block's "
               "iterators. Returns the block that copies: before a block that reads the buffer, "
               "after one that writes it.",
               {kTransposed, R"(sch.reindex("B", ("read", 0)))"}, Arg("block"), Arg("buffer"));
  DefPrimitive("ReindexCacheRead", "reindex_cache_read", &ReindexCache<true>,
               &Schedule::ReindexCacheRead,
               "Makes a block read a copy of a buffer in another memory scope, laid out as "
               "index_map says of the block's iterators. Returns the block that copies.",
               {kTransposed, R"(sch.reindex_cache_read("B", 0, "local", lambda i, j: (i, j)))"},
               Arg("block"), Arg("read_buffer_index"), Arg("storage_scope"), Arg("index_map"));
  DefPrimitive("ReindexCacheWrite", "reindex_cache_write", &ReindexCache<false>,
               &Schedule::ReindexCacheWrite,
               "Makes a block write a copy of a buffer in another memory scope, laid out as "
               "index_map says of the block's iterators. Returns the block that copies back.",
               {kTransposed, R"(sch.reindex_cache_write("B", 0, "local", lambda i, j: (j, i)))"},
               Arg("block"), Arg("write_buffer_index"), Arg("storage_scope"), Arg("index_map"));
}
}  // namespace
}  // namespace tvm::tir
