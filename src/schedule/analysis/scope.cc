// SPDX-License-Identifier: Apache-2.0
// The children of a scope, what they read and write, and how they depend on each other.
#include "schedule/analysis.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {

std::vector<For> Placed::Loops() const {
  std::vector<For> loops;
  for (const Stmt& s : path) {
    if (auto loop = s.as<For>()) loops.push_back(*loop);
  }
  return loops;
}
bool Placed::IsConditional() const {
  for (const Stmt& s : path) {
    if (s.as<IfThenElseObj>() || s.as<WhileObj>()) return true;
  }
  return false;
}
bool Placed::IsBelow(const StmtObj* ancestor) const {
  for (const Stmt& s : path) {
    if (s.get() == ancestor) return true;
  }
  return false;
}

std::vector<For> CommonLoops(const Placed& a, const Placed& b) {
  std::vector<For> common;
  for (size_t i = 0; i < a.path.size() && i < b.path.size() && a.path[i].same_as(b.path[i]); ++i) {
    if (auto loop = a.path[i].as<For>()) common.push_back(*loop);
  }
  return common;
}

Map<Var, Range> DomainsOf(const std::vector<For>& loops) {
  Map<Var, Range> domains;
  for (const For& loop : loops) {
    domains.Set(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent));
  }
  return domains;
}

Array<BufferRegion> ReadsOf(const BlockObj* block) {
  if (!block->init.has_value()) return block->reads;
  Array<BufferRegion> reads;
  for (const BufferRegion& read : block->reads) {
    bool own = false;
    for (const BufferRegion& write : block->writes) own |= write->buffer.same_as(read->buffer);
    if (!own) reads.push_back(read);
  }
  return reads;
}

namespace {
struct ChildCollector : Visitor<ChildCollector, BlockRealizeObj, StmtObj, BufferLoadObj, BufferObj,
                                BufferStoreObj, VarObj> {
  ScopeInfo* scope;
  std::vector<Stmt> path;
  bool in_realize = false;
  explicit ChildCollector(ScopeInfo* scope) : scope(scope) {}
  void Visit(const BlockRealizeObj* op) {
    in_realize = true;
    for (const PrimExpr& value : op->iter_values) (*this)(value);
    (*this)(op->predicate);
    in_realize = false;
    scope->children.push_back(
        {ffi::GetRef<BlockRealize>(op), path, static_cast<int>(scope->children.size())});
  }
  void Visit(const StmtObj* op) {
    path.push_back(ffi::GetRef<Stmt>(op));
    VisitChildren(op, *this);
    path.pop_back();
  }
  void Visit(const BufferStoreObj* op) {
    scope->loose.insert(op->buffer->data.get());
    VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) {
    if (in_realize) {
      scope->asked[op->buffer->data.get()].push_back(static_cast<int>(scope->children.size()));
    } else {
      scope->loose.insert(op->buffer->data.get());
    }
    VisitChildren(op, *this);
  }
  void Visit(const BufferObj*) {}
  void Visit(const VarObj* op) {
    if (op->dtype.is_handle()) scope->loose.insert(op);
  }
};
void Count(std::unordered_map<const VarObj*, std::vector<int>>* map, const BufferRegion& region,
           int order) {
  std::vector<int>& list = (*map)[region->buffer->data.get()];
  if (list.empty() || list.back() != order) list.push_back(order);
}
}  // namespace

ScopeInfo::ScopeInfo(const Block& block) : block(block) {
  ChildCollector visit(this);
  visit(block->body);
  for (const Placed& child : children) {
    for (const BufferRegion& r : ReadsOf(child.block())) Count(&readers, r, child.order);
    for (const BufferRegion& r : child.block()->writes) Count(&writers, r, child.order);
  }
}

const Placed* ScopeInfo::Find(const BlockObj* wanted) const {
  for (const Placed& child : children) {
    if (child.block() == wanted) return &child;
  }
  return nullptr;
}

namespace {
std::vector<const Placed*> Lookup(const std::vector<Placed>& children,
                                  const std::unordered_map<const VarObj*, std::vector<int>>& map,
                                  const Buffer& buffer) {
  std::vector<const Placed*> found;
  if (auto it = map.find(buffer->data.get()); it != map.end()) {
    for (int i : it->second) found.push_back(&children[i]);
  }
  return found;
}
/// The blocks that `lookup` gives for the buffers of the regions, without `self`, in order.
template <class F>
std::vector<const Placed*> Union(const ScopeInfo& scope, const Array<BufferRegion>& regions,
                                 int self, F&& lookup) {
  std::vector<bool> marked(scope.children.size());
  for (const BufferRegion& r : regions) {
    for (const Placed* p : lookup(r->buffer)) marked[p->order] = true;
  }
  std::vector<const Placed*> found;
  for (const Placed& child : scope.children) {
    if (marked[child.order] && child.order != self) found.push_back(&child);
  }
  return found;
}
}  // namespace

std::vector<const Placed*> ScopeInfo::WritersOf(const Buffer& b) const {
  return Lookup(children, writers, b);
}
std::vector<const Placed*> ScopeInfo::ReadersOf(const Buffer& b) const {
  return Lookup(children, readers, b);
}
std::vector<const Placed*> ScopeInfo::ConsumersOf(const Placed& p) const {
  return Union(*this, p.block()->writes, p.order, [&](const Buffer& b) { return ReadersOf(b); });
}
std::vector<const Placed*> ScopeInfo::ProducersOf(const Placed& p) const {
  return Union(*this, ReadsOf(p.block()), p.order, [&](const Buffer& b) { return WritersOf(b); });
}

bool ScopeInfo::Owns(const Buffer& buffer) const {
  for (const Buffer& own : block->alloc_buffers) {
    if (own.same_as(buffer)) return true;
  }
  return false;
}

int UseOf(const For& loop, const BlockRealize& realize) {
  int use = kUnused;
  for (size_t i = 0; i < realize->iter_values.size(); ++i) {
    auto is_var = [&](const VarObj* v) { return v == loop->loop_var.get(); };
    if (!UsesVar(realize->iter_values[i], is_var)) continue;
    IterVarType type = realize->block->iter_vars[i]->iter_type;
    use |= type == IterVarType::kDataPar      ? kSpatial
           : type == IterVarType::kCommReduce ? kReduce
                                              : kOther;
  }
  return use;
}

}  // namespace tvm::tir
