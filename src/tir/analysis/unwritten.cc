// SPDX-License-Identifier: Apache-2.0
// Reads of memory that a function allocates and never writes.
#include <unordered_map>
#include <unordered_set>

#include "tir/analysis/complaint.h"
#include "tvm/expr/builtin.h"

namespace tvm::tir {
namespace {
struct Finder : Visitor<Finder, StmtObj, BlockObj, AllocateObj, BufferStoreObj, DeclBufferObj,
                        BufferLoadObj, CallObj, VarObj, BufferObj> {
  struct Read {
    std::string buffer;
    Optional<Span> span;
  };
  std::vector<const VarObj*> own;  // in the order of allocation
  std::unordered_map<const VarObj*, Read> reads;
  std::unordered_set<const VarObj*> written;                 // or known elsewhere
  std::unordered_map<const VarObj*, const VarObj*> view_of;  // what match_buffer makes
  Optional<Span> at;

  const VarObj* Memory(const Buffer& buffer) const {
    const VarObj* data = buffer->data.get();
    for (auto it = view_of.find(data); it != view_of.end(); it = view_of.find(data))
      data = it->second;
    return data;
  }
  void Visit(const StmtObj* op) {
    at = op->span;
    VisitChildren(op, *this);
  }
  void Visit(const AllocateObj* op) {
    own.push_back(op->buffer_var.get());
    for (const PrimExpr& e : op->extents) (*this)(e);
    (*this)(op->body);
  }
  void Visit(const DeclBufferObj* op) { (*this)(op->body); }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) own.push_back(b->data.get());
    for (const MatchBufferRegion& m : op->match_buffers)
      view_of[m->buffer->data.get()] = m->source->buffer->data.get();
    if (op->init.has_value()) (*this)(op->init.value());
    (*this)(op->body);
  }
  void Visit(const BufferStoreObj* op) {
    at = op->span;
    written.insert(Memory(op->buffer));
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const BufferLoadObj* op) {
    reads.try_emplace(Memory(op->buffer), Read{op->buffer->name, at});
    for (const PrimExpr& i : op->indices) (*this)(i);
    if (op->predicate.has_value()) (*this)(op->predicate.value());
  }
  void Visit(const CallObj* op) {
    // Whoever gets an element of a call that is not pure may take its address.
    bool is_pure = EffectOf(op->op) <= CallEffectKind::kPure && !op->Is(builtin::address_of());
    for (const PrimExpr& arg : op->args) {
      if (auto* load = arg.as<BufferLoadObj>(); load && !is_pure)
        written.insert(Memory(load->buffer));
      (*this)(arg);
    }
  }
  void Visit(const VarObj* op) {
    auto it = view_of.find(op);
    written.insert(it == view_of.end() ? op : it->second);
  }
  void Visit(const BufferObj*) {}
};
}  // namespace

Complaint FindUnwritten(const PrimFunc& func) {
  Finder find;
  find(func->body);
  for (const VarObj* data : find.own) {
    auto it = find.reads.find(data);
    if (it == find.reads.end() || find.written.count(data)) continue;
    return {"buffer " + it->second.buffer + " is read although nothing writes it", it->second.span};
  }
  return {};
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis._complaint",
      [](PrimFunc func) -> Array<Any> {
        return OnDeepStack([&]() -> Array<Any> {
          Complaint found = FindBrokenRule(func);
          bool is_broken = !found.text.empty();
          if (!is_broken) found = FindUnwritten(func);
          if (found.text.empty()) return {};
          return {String(found.text), found.span, is_broken};
        });
      },
      "[what is wrong with a function, where, whether it breaks a rule of the IR or is only "
      "strange]; nothing if all is well.",
      Arg("func"));
}
}  // namespace
}  // namespace tvm::tir
