// SPDX-License-Identifier: Apache-2.0
// The index of blocks and loops, and how it follows a change of the program.
#include "tvm/schedule/state.h"

#include <algorithm>

#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {

bool IsNode(const Object* stmt) {
  return stmt->IsInstance<ForObj>() || stmt->IsInstance<BlockRealizeObj>();
}
bool IsLeaf(const Object* stmt) {
  return stmt->IsInstance<BufferStoreObj>() || stmt->IsInstance<EvaluateObj>();
}
const Stmt& BodyOf(const Stmt& node) {
  if (auto* loop = node.as<ForObj>()) return loop->body;
  return static_cast<const BlockRealizeObj*>(node.get())->block->body;
}
const Object* KeyOf(const Stmt& node) {
  if (auto* loop = node.as<ForObj>()) return loop->loop_var.get();
  return static_cast<const BlockRealizeObj*>(node.get())->block.get();
}
uint64_t Key(const Object* object) { return reinterpret_cast<uint64_t>(object); }

template <class F>
void Nearest(const Stmt& stmt, F&& visit) {
  Recurse([&] {
    if (IsNode(stmt.get())) return visit(stmt);
    if (IsLeaf(stmt.get())) return;
    VisitChildren(stmt.get(), [&](const ObjectRef& child) {
      if (auto* below = child.as<StmtObj>()) Nearest(ffi::GetRef<Stmt>(below), visit);
    });
  });
}

/// `stmt` with `child`, one of its nearest nodes, replaced.
Stmt ReplaceNearest(const Stmt& stmt, const Object* child, const Stmt& with) {
  return Recurse([&]() -> Stmt {
    if (stmt.get() == child) return with;
    if (IsNode(stmt.get()) || IsLeaf(stmt.get())) return stmt;
    if (auto* seq = stmt.as<SeqStmtObj>()) {
      for (size_t i = 0; i < seq->seq.size(); ++i) {
        Stmt replaced = ReplaceNearest(seq->seq[i], child, with);
        if (replaced.same_as(seq->seq[i])) continue;
        Array<Stmt> all = seq->seq;
        all.Set(i, replaced);
        // Most often one node stands in the place of another: there is nothing to flatten.
        if (!IsNode(replaced.get())) return SeqStmt::Flatten(all, seq->span);
        auto same = ffi::GetRef<SeqStmt>(seq);
        Edit(&same)->seq = std::move(all);
        return same;
      }
      return stmt;
    }
    ObjectRef mapped = MapChildren(stmt.get(), [&](const ObjectRef& below) -> ObjectRef {
      auto* next = below.as<StmtObj>();
      return next ? ObjectRef(ReplaceNearest(ffi::GetRef<Stmt>(next), child, with)) : below;
    });
    return Any(mapped).cast<Stmt>();
  });
}

}  // namespace

void VisitNearest(const Stmt& stmt, const std::function<void(const Stmt&)>& visit) {
  Nearest(stmt, visit);
}

const std::vector<DepEdge>& Scope::From(BlockId src) const {
  static const std::vector<DepEdge> kNone;
  auto it = by_src.find(src);
  return it == by_src.end() ? kNone : it->second;
}
const std::vector<DepEdge>& Scope::To(BlockId dst) const {
  static const std::vector<DepEdge> kNone;
  auto it = by_dst.find(dst);
  return it == by_dst.end() ? kNone : it->second;
}
const std::vector<BlockId>& Scope::WritersOf(const Buffer& buffer) const {
  static const std::vector<BlockId> kNone;
  auto it = writers.find(buffer->data.get());
  return it == writers.end() ? kNone : it->second;
}

/// What one Replace has seen so far.
struct State::Change {
  const BlockReuse& reuse;
  std::unordered_map<NodeId, bool> kept = {};  // id -> whether all below it stayed
  // The child blocks of the scope around, or unchanged subtrees of it, before and after: equal
  // lists of blocks with the same regions have the same dependences.
  std::vector<NodeId> before = {}, after = {};
  bool same_regions = true;
  int depth = 0;  // blocks between the replaced node and here
};

State::State(IRModule mod) : mod_(std::move(mod)) {
  auto names = std::make_shared<std::vector<GlobalVar>>();
  BlockReuse none;
  Change change{none};  // of all functions: two may share statements
  for (const auto& [name, func] : mod_->Sorted()) {
    auto prim_func = func.as<PrimFunc>();
    if (!prim_func || !(*prim_func)->body->IsInstance<BlockRealizeObj>()) continue;
    auto index = static_cast<NodeId>(names->size());
    names->push_back(name);
    // A loop or block that is there twice: each gets its own variables.
    PrimFunc (*const kForms[])(const PrimFunc&) = {
        [](const PrimFunc& f) { return f; },
        [](const PrimFunc& f) { return ConvertSSA(f); },
        [](const PrimFunc& f) { return RenewDefs(ConvertSSA(f)); },
    };
    State before = *this;
    for (size_t i = 0;; ++i) {
      PrimFunc form = kForms[i](*prim_func);
      Change trial = change;
      try {
        Add(form->body, ~index, &trial);
      } catch (const Refusal&) {
        if (i + 1 == std::size(kForms)) throw;
        *this = before;
        continue;
      }
      if (i > 0) changed_.push_back(index);
      funcs_.Set(index, form);
      change.kept = std::move(trial.kept);
      break;
    }
  }
  names_ = std::move(names);
}

const IRModule& State::mod() const {
  if (!changed_.empty()) {
    mod_ = Any(CopyNode(mod_.get())).cast<IRModule>();
    auto* n = const_cast<IRModuleObj*>(mod_.get());
    for (size_t index : changed_) n->functions.Set((*names_)[index], *funcs_.Find(index));
    changed_.clear();
  }
  return mod_;
}
void State::SetFunc(size_t index, PrimFunc func) {
  Edit(&func)->scheduled_by_hand = true;
  funcs_.Set(index, std::move(func));
  if (std::find(changed_.begin(), changed_.end(), index) == changed_.end()) {
    changed_.push_back(index);
  }
}

// ---- nodes --------------------------------------------------------------------------------------
const State::Entry& State::entry(NodeId id) const {
  const Entry* found = entries_.Find(id);
  if (!found) TVM_FFI_THROW(InternalError) << "expected a block or loop of the program, got " << id;
  return *found;
}
bool State::IsBlock(NodeId id) const { return entry(id).stmt->IsInstance<BlockRealizeObj>(); }
const Stmt& State::stmt(NodeId id) const { return entry(id).stmt; }
const ForObj* State::loop(LoopId id) const {
  return static_cast<const ForObj*>(entry(id).stmt.get());
}
const BlockRealizeObj* State::realize(BlockId id) const {
  return static_cast<const BlockRealizeObj*>(entry(id).stmt.get());
}
Stmt State::inner_stmt(NodeId id) const {
  const Stmt& node = entry(id).stmt;
  if (auto* realize = node.as<BlockRealizeObj>()) return realize->block;
  return node;
}
NodeId State::parent(NodeId id) const { return std::max(entry(id).parent, kNoNode); }

// ---- places -------------------------------------------------------------------------------------
BlockId State::ScopeOf(NodeId id) const {
  do id = parent(id);
  while (id != kNoNode && !IsBlock(id));
  return {id};
}
BlockId State::RootOf(NodeId id) const {
  for (NodeId up; (up = parent(id)) != kNoNode;) id = up;
  return {id};
}
std::vector<LoopId> State::LoopsAbove(NodeId id) const {
  std::vector<LoopId> loops;
  for (id = parent(id); id != kNoNode && !IsBlock(id); id = parent(id)) loops.push_back({id});
  std::reverse(loops.begin(), loops.end());
  return loops;
}
std::vector<BlockId> State::ChildBlocks(NodeId id) const {
  std::vector<BlockId> blocks;
  std::function<void(const Stmt&)> visit = [&](const Stmt& node) {
    if (auto* realize = node.as<BlockRealizeObj>()) {
      blocks.push_back(Find(realize->block.get()));
    } else {
      Nearest(BodyOf(node), visit);
    }
  };
  Nearest(BodyOf(stmt(id)), visit);
  return blocks;
}
std::vector<NodeId> State::Children(NodeId id) const {
  std::vector<NodeId> nodes;
  Nearest(BodyOf(stmt(id)), [&](const Stmt& node) { nodes.push_back(Lookup(KeyOf(node))); });
  return nodes;
}
bool State::IsAncestor(NodeId above, NodeId below) const {
  for (below = parent(below); below != kNoNode; below = parent(below)) {
    if (below == above) return true;
  }
  return false;
}
NodeId State::CommonAncestor(NodeId a, NodeId b) const {
  std::vector<NodeId> path;
  for (NodeId n = a; n != kNoNode; n = parent(n)) path.push_back(n);
  for (NodeId n = b; n != kNoNode; n = parent(n)) {
    if (std::find(path.begin(), path.end(), n) != path.end()) return n;
  }
  return kNoNode;
}
const GlobalVar& State::FunctionOf(NodeId id) const { return (*names_)[~entry(RootOf(id)).parent]; }
const PrimFunc& State::FuncOf(NodeId id) const { return *funcs_.Find(~entry(RootOf(id)).parent); }
BlockId State::Root(const String& function) const {
  for (size_t i = 0; i < names_->size(); ++i) {
    if ((*names_)[i]->name_hint != function) continue;
    auto* realize = (*funcs_.Find(i))->body.as<BlockRealizeObj>();
    return Find(realize->block.get());
  }
  return {};
}
std::vector<BlockId> State::BlocksNamed(const String& name, const String& function) const {
  std::vector<BlockId> found;
  entries_.ForEach([&](const Entry& e) {
    auto* realize = e.stmt.as<BlockRealizeObj>();
    if (!realize || realize->block->name_hint != name) return;
    BlockId id = Find(realize->block.get());
    if (FunctionOf(id)->name_hint == function) found.push_back(id);
  });
  std::sort(found.begin(), found.end());
  return found;
}

// ---- change -------------------------------------------------------------------------------------
void State::Add(const Stmt& stmt, NodeId parent, Change* change) {
  const Object* key = KeyOf(stmt);
  NodeId id = Lookup(key);
  auto* realize = stmt.as<BlockRealizeObj>();
  if (id == kNoNode && realize) {
    if (auto it = change->reuse.find(key); it != change->reuse.end()) {
      id = Lookup(it->second.get());
      if (id != kNoNode) ids_.Erase(Key(it->second.get()));
    }
  }
  const Entry* old = id == kNoNode ? nullptr : &entry(id);
  bool unchanged = old && KeyOf(old->stmt) == key && (realize || old->stmt.same_as(stmt));
  if (!old) id = next_id_++;
  bool in_scope = change->depth == 0;
  if (in_scope && (unchanged || realize)) change->after.push_back(id);
  if (in_scope && realize && !unchanged) {
    const BlockObj *now = realize->block.get(), *was = nullptr;
    if (old) was = static_cast<const BlockRealizeObj*>(old->stmt.get())->block.get();
    change->same_regions &=
        was && was->reads.same_as(now->reads) && was->writes.same_as(now->writes);
  }
  if (!change->kept.emplace(id, unchanged).second) {
    Refuse("expected each loop and block once in the program", {stmt});
  }
  if (unchanged) {
    if (old->parent != parent || !old->stmt.same_as(stmt)) Set(id, {stmt, parent, old->scope});
    return;
  }
  Set(id, {stmt, parent, realize ? std::make_shared<ScopeCell>() : nullptr});
  ids_.Set(Key(key), id);
  change->depth += realize != nullptr;
  Nearest(BodyOf(stmt), [&](const Stmt& below) { Add(below, id, change); });
  change->depth -= realize != nullptr;
}

/// Forgets what was below the replaced node and is no more.
void State::Drop(const Stmt& stmt, Change* change) {
  // A block that goes on in another Block is not found by the old one any more.
  const Object* key = KeyOf(stmt);
  NodeId id = Lookup(key);
  auto it = id == kNoNode ? change->kept.end() : change->kept.find(id);
  bool is_block = stmt->IsInstance<BlockRealizeObj>();
  if (id == kNoNode) {
    for (const auto& [now, was] : change->reuse) {
      if (was.get() == key) id = Lookup(now);
    }
    it = change->kept.find(id);
  }
  bool unchanged = it != change->kept.end() && it->second;
  if (change->depth == 0 && (unchanged || is_block)) change->before.push_back(id);
  if (unchanged) return;
  change->depth += is_block;
  Nearest(BodyOf(stmt), [&](const Stmt& below) { Drop(below, change); });
  change->depth -= is_block;
  if (it == change->kept.end() && id != kNoNode) {
    entries_.Erase(id);
    ids_.Erase(Key(key));
  }
}

/// Rebuilds what is above a replaced node.
void State::Splice(NodeId parent, const Object* old_child, Stmt child) {
  Stmt keep_alive;
  while (parent >= 0) {
    Entry now = entry(parent);
    Stmt old = now.stmt;
    Stmt body = ReplaceNearest(BodyOf(old), old_child, child);
    if (auto loop = old.as<For>()) {
      Edit(&*loop)->body = body;
      now.stmt = *loop;
    } else {
      auto realize = old.as<BlockRealize>().value();
      Block block = realize->block;
      Edit(&block)->body = body;
      ids_.Erase(Key(realize->block.get()));
      ids_.Set(Key(block.get()), parent);
      Edit(&realize)->block = block;
      now.stmt = realize;
    }
    child = now.stmt;
    NodeId up = now.parent;
    Set(parent, std::move(now));
    parent = up;
    keep_alive = old;
    old_child = keep_alive.get();
  }
  PrimFunc func = *funcs_.Find(~parent);
  Edit(&func)->body = child;
  SetFunc(~parent, std::move(func));
}

void State::Replace(NodeId id, const Stmt& with, const BlockReuse& reuse) {
  Stmt old = stmt(id);
  if (old.same_as(with)) return;
  NodeId above = entry(id).parent;
  if (above < 0 && !with->IsInstance<BlockRealizeObj>()) {
    TVM_FFI_THROW(InternalError) << "the body of a function stays a block";
  }
  Change change{reuse};
  BlockId scope = ScopeOf(id);
  Nearest(with, [&](const Stmt& node) { Add(node, above, &change); });
  Drop(old, &change);
  if (scope != kNoNode && (!change.same_regions || change.before != change.after)) {
    Entry around = entry(scope);
    around.scope = std::make_shared<ScopeCell>();
    Set(scope, std::move(around));
  }
  Splice(above, old.get(), with);
}
void State::ReplaceBlock(BlockId id, const Block& with) {
  BlockRealize now = ffi::GetRef<BlockRealize>(realize(id));
  Block old = now->block;
  if (old.same_as(with)) return;
  Edit(&now)->block = with;
  Replace(id, now, {{with.get(), old}});
}
void State::ReplaceBody(NodeId id, const Stmt& body, const BlockReuse& reuse) {
  if (IsBlock(id)) {
    BlockRealize now = ffi::GetRef<BlockRealize>(realize({id}));
    Block block = now->block;
    Edit(&block)->body = body;
    BlockReuse all = reuse;
    all.emplace(block.get(), now->block);
    Edit(&now)->block = block;
    Replace(id, now, all);
  } else {
    For now = ffi::GetRef<For>(loop({id}));
    Edit(&now)->body = body;
    Replace(id, now, reuse);
  }
}
void State::ReplaceRealize(BlockId id, const BlockRealize& with) {
  Replace(id, with, {{with->block.get(), realize(id)->block}});
}
void State::ReplaceFunc(NodeId root, const PrimFunc& func, const BlockReuse& reuse) {
  NodeId index = ~entry(root).parent;
  Replace(root, func->body, reuse);
  SetFunc(index, func);
}

std::string State::FindInconsistency() const {
  size_t count = 0;
  std::string problem;
  std::function<void(const Stmt&, NodeId)> check = [&](const Stmt& node, NodeId parent) {
    NodeId id = Lookup(KeyOf(node));
    ++count;
    if (!Has(id)) {
      problem = "a loop or block of the program is not in the index";
    } else if (!stmt(id).same_as(node)) {
      problem = "the index has another statement than the program";
    } else if (entry(id).parent != parent) {
      problem = "the index has another parent than the program";
    }
    if (problem.empty()) Nearest(BodyOf(node), [&](const Stmt& below) { check(below, id); });
  };
  for (size_t i = 0; i < names_->size(); ++i) {
    const PrimFunc& func = *funcs_.Find(i);
    if (!func.same_as(mod()->functions[(*names_)[i]])) return "the module has another function";
    check(func->body, ~static_cast<NodeId>(i));
    if (!problem.empty()) return problem;
  }
  if (count != entries_.size() || count != ids_.size()) {
    return "the index has " + std::to_string(entries_.size()) + " nodes, the program " +
           std::to_string(count);
  }
  return "";
}

void Refuse(std::string reason, std::vector<ObjectRef> about) {
  throw Refusal{std::move(reason), std::move(about)};
}

}  // namespace tvm::tir
