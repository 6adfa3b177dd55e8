// SPDX-License-Identifier: Apache-2.0
// Rewriting the statements of a scope.
#include "schedule/rewrite.h"

#include "tvm/expr/op.h"

namespace tvm::tir {

Block WithInferredRegions(const Block& block) {
  Map<Var, Buffer> of_data;
  for (const Array<BufferRegion>& regions : {block->reads, block->writes}) {
    for (const BufferRegion& r : regions) of_data.Set(r->buffer->data, r->buffer);
  }
  Array<Array<BufferRegion>> found = GetBlockAccessRegion(block, of_data);
  // What is used through its pointer keeps the regions that were declared.
  auto complete = [&](Array<BufferRegion> regions, const Array<BufferRegion>& declared) {
    for (const BufferRegion& opaque : found[2]) {
      Array<BufferRegion> others;
      for (const BufferRegion& r : regions) {
        if (!r->buffer.same_as(opaque->buffer)) others.push_back(r);
      }
      for (const BufferRegion& r : declared) {
        if (r->buffer.same_as(opaque->buffer)) others.push_back(r);
      }
      regions = others;
    }
    return regions;
  };
  Block result = block;
  auto* n = Edit(&result);
  n->reads = complete(found[0], block->reads);
  n->writes = complete(found[1], block->writes);
  return result;
}

namespace {
BlockId CheckedScope(const State& state, BlockId id) {
  BlockId scope = state.ScopeOf(id);
  if (scope == kNoNode)
    Refuse("expected a block inside of another one, got the root block", {state.inner_stmt(id)});
  return scope;
}
/// Rewrites statements only: expressions, buffers and signatures are not visited.
struct StmtReplacer : Mutator<StmtReplacer, StmtObj, ForObj, SeqStmtObj, PrimExprObj, BufferObj,
                              IterVarObj, BlockRealizeObj> {
  const StmtMap& with;
  explicit StmtReplacer(const StmtMap& with) : with(with) {}
  template <class Ref>
  ObjectRef Apply(const typename Ref::ContainerType* op) {
    if (auto it = with.find(op); it != with.end()) return it->second;
    return Below<Ref>(op);
  }
  ObjectRef Rewrite(const StmtObj* op) { return Apply<Stmt>(op); }
  ObjectRef Rewrite(const BlockRealizeObj* op) {  // a scope ends where its blocks begin
    auto it = with.find(op);
    return it == with.end() ? ffi::GetRef<Stmt>(op) : it->second;
  }
  ObjectRef Rewrite(const ForObj* op) {
    ObjectRef result = Apply<Stmt>(op);
    auto* loop = result.as<ForObj>();
    return loop && IsNothing(loop->body) ? Evaluate::Nothing() : result;
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    if (auto it = with.find(op); it != with.end()) return it->second;
    Array<Stmt> seq = op->seq.Map([&](const Stmt& s) { return Mutate(s); });
    for (size_t i = 0; i < seq.size(); ++i) {
      if (!seq[i].same_as(op->seq[i])) return SeqStmt::Flatten(seq);
    }
    return ffi::GetRef<Stmt>(op);
  }
  template <class N>
  ObjectRef Rewrite(const N* op) {
    return ffi::GetRef<ObjectRef>(op);
  }
};
}  // namespace

Stmt ReplaceStmts(const Stmt& root, const StmtMap& with) { return StmtReplacer(with).Mutate(root); }

Stmt RemoveBlock(const Stmt& root, const Placed& block) {
  return ReplaceStmts(root, {{block.realize.get(), Evaluate::Nothing()}});
}

Focus::Focus(const State& state, BlockId id)
    : scope_id(CheckedScope(state, id)),
      scope(ffi::GetRef<Block>(state.block(scope_id))),
      block(scope.Find(state.block(id))) {}

void Commit(State& state, BlockId scope, const Block& with, BlockMap same) {
  same.emplace(with.get(), ffi::GetRef<Block>(state.block(scope)));
  BlockRealize realize = ffi::GetRef<BlockRealize>(state.realize(scope));
  Edit(&realize)->block = with;
  state.Replace(scope, realize, same);
}

void Require(const std::string& why, std::initializer_list<ObjectRef> about) {
  if (!why.empty()) Refuse(why, about);
}

Block WithBody(Block scope, Stmt body) {
  Edit(&scope)->body = std::move(body);
  return scope;
}
Block WithAllocated(Block scope, const Buffer& buffer) {
  Edit(&scope)->alloc_buffers.push_back(buffer);
  return scope;
}
Block WithoutAllocated(Block scope, const Buffer& buffer) {
  Array<Buffer> others;
  for (const Buffer& b : scope->alloc_buffers) {
    if (!b.same_as(buffer)) others.push_back(b);
  }
  Edit(&scope)->alloc_buffers = others;
  return scope;
}

Stmt InLoops(const std::vector<For>& nest, Stmt body) {
  for (auto loop = nest.rbegin(); loop != nest.rend(); ++loop) {
    For copy = *loop;
    Edit(&copy)->body = std::move(body);
    body = copy;
  }
  return body;
}

namespace {
struct AccessRewriter
    : Mutator<AccessRewriter, BufferLoadObj, BufferStoreObj, BlockObj, MatchBufferRegionObj> {
  const AccessRewrite& rewrite;
  BlockMap* same;
  AccessRewriter(const AccessRewrite& rewrite, BlockMap* same) : rewrite(rewrite), same(same) {}
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    if (!rewrite.load || !load->buffer.same_as(rewrite.from)) return load;
    return rewrite.load(load);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Below<BufferStore>(op);
    if (!rewrite.store || !store->buffer.same_as(rewrite.from)) return store;
    return rewrite.store(store);
  }
  ObjectRef Rewrite(const MatchBufferRegionObj* op) {
    if (!rewrite.region || !op->source->buffer.same_as(rewrite.from))
      return ffi::GetRef<ObjectRef>(op);
    return MatchBufferRegion(op->buffer, rewrite.region(op->source));
  }
  ObjectRef Rewrite(const BlockObj* op) {
    // The signature follows from the body; a copy without it keeps the mutator from seeing it.
    Block block = ffi::GetRef<Block>(op), bare = block;
    auto* n = Edit(&bare);
    n->body = Mutate(op->body);
    if (op->init.has_value()) n->init = Mutate(op->init.value());
    n->match_buffers = op->match_buffers.Map([&](const MatchBufferRegion& m) { return Mutate(m); });
    if (n->body.same_as(op->body) && n->match_buffers.same_as(op->match_buffers) &&
        (!op->init.has_value() || n->init.value().same_as(op->init.value())))
      return block;
    bare = WithInferredRegions(bare);
    if (same) same->emplace(bare.get(), block);
    return bare;
  }
};
}  // namespace

Stmt RewriteAccesses(const Stmt& stmt, const AccessRewrite& rewrite, BlockMap* same) {
  return AccessRewriter(rewrite, same).Mutate(stmt);
}

namespace {
/// The views of a buffer below a node, and views of them.
std::vector<Buffer> ViewsOf(const ObjectRef& node, const Buffer& buffer) {
  std::vector<MatchBufferRegion> matches;
  PostOrderVisit(node, [&](const ObjectRef& n) {
    if (auto match = n.as<MatchBufferRegion>()) matches.push_back(*match);
  });
  std::vector<Buffer> views;
  // Blocks inside were visited before those around them, which they may view.
  for (auto m = matches.rbegin(); m != matches.rend(); ++m) {
    const Buffer& source = (*m)->source->buffer;
    bool is_view =
        source.same_as(buffer) ||
        std::any_of(views.begin(), views.end(), [&](const Buffer& b) { return b.same_as(source); });
    if (is_view) views.push_back((*m)->buffer);
  }
  return views;
}
/// `buffer` with the memory scope and the type of the elements of another.
Buffer LikeOf(const Buffer& buffer, const Buffer& other) {
  Buffer like = buffer;
  auto* n = Edit(&like);
  n->dtype = other->dtype;
  n->data = Var(buffer->data->name_hint, PointerType(PrimType(other->dtype), other.scope()));
  return like;
}
struct BufferReplacer : Mutator<BufferReplacer, BlockObj, BufferLoadObj, BufferStoreObj, VarObj> {
  BlockMap* same;
  std::unordered_map<const VarObj*, Var> pointers;
  std::unordered_map<const BufferObj*, Buffer> converted;
  BufferReplacer(const ObjectRef& node, const Buffer& from, const Buffer& to, BlockMap* same)
      : same(same) {
    Add(from, to);
    if (from->dtype == to->dtype && from.scope() == to.scope()) return;
    for (const Buffer& view : ViewsOf(node, from)) Add(view, LikeOf(view, to));
  }
  void Add(const Buffer& from, const Buffer& to) {
    Remap(from, to);
    if (!from->data.same_as(to->data)) pointers.emplace(from->data.get(), to->data);
    if (from->dtype != to->dtype) converted[from.get()] = to;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    if (same && block.get() != op) same->emplace(block.get(), ffi::GetRef<Block>(op));
    return block;
  }
  ObjectRef Rewrite(const VarObj* op) {
    auto it = pointers.find(op);
    return it == pointers.end() ? ffi::GetRef<Var>(op) : it->second;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    PrimExpr load = Below<PrimExpr>(op);
    return converted.count(op->buffer.get()) ? cast(op->dtype, load) : load;
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    auto it = converted.find(op->buffer.get());
    if (it == converted.end()) return Below<BufferStore>(op);
    Optional<PrimExpr> predicate = op->predicate;
    if (predicate.has_value()) predicate = Mutate(predicate.value());
    DataType type = it->second->dtype.with_lanes(op->value.dtype().lanes());
    return BufferStore(it->second, cast(type, Mutate(op->value)),
                       op->indices.Map([&](const PrimExpr& i) { return Mutate(i); }), predicate,
                       op->span);
  }
};
}  // namespace

Stmt ReplaceBuffer(const Stmt& stmt, const Buffer& from, const Buffer& to, BlockMap* same) {
  return BufferReplacer(stmt, from, to, same).Mutate(stmt);
}

namespace {
struct OtherUses : Visitor<OtherUses, BufferObj, VarObj, MatchBufferRegionObj, CallObj> {
  Buffer buffer;
  bool found = false, with_views = true;
  explicit OtherUses(const Buffer& buffer) : buffer(buffer) {}
  void Visit(const BufferObj* op) { found |= op != buffer.get() && op->data.same_as(buffer->data); }
  void Visit(const VarObj* op) { found |= op == buffer->data.get(); }
  void Visit(const MatchBufferRegionObj* op) {
    found |= with_views && op->source->buffer.same_as(buffer);
  }
  void Visit(const CallObj* op) {
    if (op->Is(builtin::address_of())) {
      auto* load = op->args[0].as<BufferLoadObj>();
      found |= load && load->buffer.same_as(buffer);
    }
    VisitChildren(op, *this);
  }
};
}  // namespace

bool IsUsedOtherwise(const ObjectRef& node, const Buffer& buffer) {
  OtherUses visit(buffer);
  visit(node);
  return visit.found;
}
bool IsUsedThroughPointer(const ObjectRef& node, const Buffer& buffer) {
  std::vector<Buffer> all = ViewsOf(node, buffer);
  all.push_back(buffer);
  return std::any_of(all.begin(), all.end(), [&](const Buffer& b) {
    OtherUses visit(b);
    visit.with_views = false;
    visit(node);
    return visit.found;
  });
}

Buffer NewBufferLike(const Buffer& buffer, const Array<PrimExpr>& shape, const String& name,
                     const String& scope) {
  return Buffer::Decl(shape, buffer->dtype, name, scope);
}

Array<PrimExpr> ValuesOf(const Array<IterVar>& iters) {
  Array<PrimExpr> values;
  for (const IterVar& iter : iters) values.push_back(iter->var);
  return values;
}

PrimExpr BoundCondition(const BlockRealize& realize, const PrimExpr& condition) {
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < realize->iter_values.size(); ++i)
    values.Set(realize->block->iter_vars[i]->var, realize->iter_values[i]);
  return Substitute(condition, values);
}

std::vector<PrimExpr> Conjuncts(const PrimExpr& condition) {
  std::vector<PrimExpr> parts;
  auto split = [&](auto&& self, const PrimExpr& e) -> void {
    if (auto* both = e.as<AndObj>()) {
      self(self, both->a);
      return self(self, both->b);
    }
    auto* call = e.as<CallObj>();
    if (call && call->Is(builtin::likely())) return self(self, call->args[0]);
    if (!IsTrue(e)) parts.push_back(e);
  };
  split(split, condition);
  return parts;
}
PrimExpr AllOf(const std::vector<PrimExpr>& conditions) {
  PrimExpr all = const_true();
  for (const PrimExpr& c : conditions) all = IsTrue(all) ? c : all && c;
  return all;
}
bool UsesAny(const ObjectRef& node, const std::unordered_set<const VarObj*>& vars) {
  return UsesVar(node, [&](const VarObj* v) { return vars.count(v) > 0; });
}

}  // namespace tvm::tir
