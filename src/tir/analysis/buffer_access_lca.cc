// SPDX-License-Identifier: Apache-2.0
// The innermost loop or block around all accesses of a buffer.
#include <algorithm>
#include <deque>

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
struct Scope {
  const Scope* parent;
  const StmtObj* stmt;             // a For or a Block; null for the function
  const BlockRealizeObj* realize;  // of a Block
  int depth;
};
const Scope* CommonScope(const Scope* a, const Scope* b) {
  if (!a || !b) return a ? a : b;
  while (a != b) {
    if (a->depth >= b->depth)
      a = a->parent;
    else
      b = b->parent;
  }
  return a;
}

const ForObj* LoopOf(const Scope* s) {
  bool is_loop = s->stmt && s->stmt->type_index() == ForObj::RuntimeTypeIndex();
  return is_loop ? static_cast<const ForObj*>(s->stmt) : nullptr;
}

struct LcaDetector : Visitor<LcaDetector, ForObj, BlockRealizeObj, BlockObj, DeclBufferObj,
                             BufferStoreObj, BufferObj, VarObj> {
  bool for_allocation;
  std::deque<Scope> scopes{{nullptr, nullptr, nullptr, 0}};
  const Scope* current = &scopes.front();
  const BlockRealizeObj* realize = nullptr;  // of the block that is entered next
  std::unordered_map<const BufferObj*, const Scope*> lca;
  std::unordered_map<const BufferObj*, const Scope*> home;  // the block that allocates a buffer
  std::vector<Buffer> order;                                // of first mention
  std::unordered_map<const VarObj*, std::vector<const BufferObj*>> owners;  // by data pointer

  explicit LcaDetector(bool for_allocation) : for_allocation(for_allocation) {}

  void Know(const Buffer& buffer) {
    if (!lca.emplace(buffer.get(), nullptr).second) return;
    order.push_back(buffer);
    owners[buffer->data.get()].push_back(buffer.get());
  }
  /// Whether a value cannot be carried from one iteration of `loop` to the next, for an access
  /// inside `block` (or outside all blocks with iterators). Iterators say that iterations are
  /// independent, those of a reduction only for what it reads; so does the kind of a parallel loop.
  bool IsIndependent(const ForObj* loop, const BlockRealizeObj* block, bool is_write) const {
    if (IsOne(loop->extent)) return true;
    bool is_spatial = false;
    for (size_t i = 0; block && i < block->iter_values.size(); ++i) {
      auto is_loop_var = [&](const VarObj* v) { return v == loop->loop_var.get(); };
      if (!UsesVar(block->iter_values[i], is_loop_var)) continue;
      if (block->block->iter_vars[i]->iter_type != IterVarType::kDataPar) return !is_write;
      is_spatial = true;
    }
    return is_spatial || !for_allocation ||
           (loop->kind != ForKind::kSerial && loop->kind != ForKind::kUnrolled);
  }
  /// The innermost scope at which memory may begin to exist for an access here.
  const Scope* Place(bool is_write) const {
    const Scope* place = current;
    const BlockRealizeObj* block = nullptr;
    for (const Scope* s = current; s; s = s->parent) {
      if (s->realize && !s->realize->iter_values.empty()) block = s->realize;
      const ForObj* loop = LoopOf(s);
      if (loop && !IsIndependent(loop, block, is_write)) place = s->parent;
    }
    return place;
  }
  /// An access at `place` counts. No loop around the block that allocates the buffer carries what
  /// is in it: there it is new memory each time.
  void Add(const BufferObj* buffer, const Scope* place) {
    auto it = home.find(buffer);
    if (it != home.end() && it->second->depth > place->depth) place = it->second;
    const Scope*& known = lca[buffer];
    known = CommonScope(known, place);
  }
  void Touch(const BufferObj* buffer, bool is_write) {
    const Scope* place = Place(is_write);
    if (!lca.count(buffer)) Know(ffi::GetRef<Buffer>(buffer));
    Add(buffer, place);
    for (const BufferObj* owner : owners[buffer->data.get()]) Add(owner, place);
  }
  template <class F>
  void Inside(const StmtObj* stmt, F&& body) {
    scopes.push_back({current, stmt, realize, current->depth + 1});
    realize = nullptr;
    current = &scopes.back();
    body();
    current = current->parent;
  }
  void Visit(const ForObj* op) {
    (*this)(op->min);
    (*this)(op->extent);
    Inside(op, [&] { (*this)(op->body); });
  }
  void Visit(const BlockRealizeObj* op) {
    for (const PrimExpr& e : op->iter_values) (*this)(e);
    (*this)(op->predicate);
    realize = op;
    Visit(op->block.get());
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) Know(b);
    Inside(op, [&] {
      for (const Buffer& b : op->alloc_buffers) home[b.get()] = current;
      for (const MatchBufferRegion& m : op->match_buffers) {
        Know(m->buffer);
        auto is_source = [&](const BufferRegion& r) {
          return r->buffer.same_as(m->source->buffer);
        };
        bool is_write = std::any_of(op->writes.begin(), op->writes.end(), is_source);
        Touch(m->source->buffer.get(), is_write);
      }
      for (const BufferRegion& r : op->reads) (*this)(r);
      for (const BufferRegion& r : op->writes) {
        Touch(r->buffer.get(), true);
        for (const Range& range : r->region) (*this)(range);
      }
      if (op->init.has_value()) (*this)(op->init.value());
      (*this)(op->body);
    });
  }
  void Visit(const DeclBufferObj* op) {
    Know(op->buffer);
    (*this)(op->buffer->data);
    (*this)(op->body);
  }
  void Visit(const BufferStoreObj* op) {
    Touch(op->buffer.get(), true);
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const BufferObj* op) { Touch(op, false); }
  void Visit(const VarObj* op) {
    auto it = owners.find(op);
    if (it == owners.end()) return;
    const Scope* place = Place(true);
    for (const BufferObj* b : it->second) Add(b, place);
  }
};

Map<Buffer, Optional<Stmt>> Detect(const PrimFunc& func, bool for_allocation) {
  LcaDetector detect(for_allocation);
  for (const auto& [param, buffer] : func->buffer_map) detect.Know(buffer);
  detect(func->body);
  Map<Buffer, Optional<Stmt>> result;
  for (const Buffer& buffer : detect.order) {
    const Scope* scope = detect.lca[buffer.get()];
    if (!scope) continue;
    Optional<Stmt> stmt;
    if (scope->stmt) stmt = ffi::GetRef<Stmt>(scope->stmt);
    result.Set(buffer, stmt);
  }
  return result;
}
}  // namespace

Map<Buffer, Optional<Stmt>> DetectBufferAccessLCA(const PrimFunc& func) {
  return Detect(func, false);
}
Map<Buffer, Optional<Stmt>> DetectAllocationPlace(const PrimFunc& func) {
  return Detect(func, true);
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis.detect_buffer_access_lca",
      [](PrimFunc func) { return OnDeepStack([&] { return DetectBufferAccessLCA(func); }); },
      "For each buffer that is used, the innermost loop or block around all its accesses (None: "
      "the function).",
      Arg("func"));
}
}  // namespace
}  // namespace tvm::tir
