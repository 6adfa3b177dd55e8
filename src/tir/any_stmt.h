// SPDX-License-Identifier: Apache-2.0
// Whether a program has statements that a pass is about: most functions have nothing for most
// passes, and looking at statements alone is much cheaper than rewriting all expressions.
#pragma once
#include "threads.h"
#include "tvm/expr/builtin.h"

namespace tvm::tir {

/// Whether some statement of a class satisfies `pred`: AnyStmt<ForObj>(body, [](auto* loop) {…}).
template <class Obj, class F>
bool AnyStmt(const Stmt& root, F&& pred) {
  struct Finder : Visitor<Finder, Obj, PrimExprObj> {
    F& pred;
    bool found = false;
    explicit Finder(F& pred) : pred(pred) {}
    void Visit(const Obj* op) {
      found = found || pred(op);
      if (!found) VisitChildren(op, *this);
    }
    void Visit(const PrimExprObj*) {}
  } finder(pred);
  finder(root);
  return finder.found;
}

template <class Obj>
bool HasStmt(const Stmt& root) {
  return AnyStmt<Obj>(root, [](auto*) { return true; });
}
/// Whether loops are bound to indices of a launch or to virtual threads.
inline bool HasThreadLoops(const Stmt& body) {
  return AnyStmt<ForObj>(body, [](auto* op) { return op->kind == ForKind::kThreadBinding; });
}
inline bool HasAttr(const Stmt& body, std::string_view key) {
  return AnyStmt<AttrStmtObj>(body, [&](auto* op) { return View(op->attr_key) == key; });
}
/// The data pointer of the buffer that a statement is marked with, for the pass `who`.
inline const VarObj* MarkedData(const AttrStmtObj* mark, const char* who) {
  if (auto* var = mark->node.as<VarObj>()) return var;
  auto* buffer = mark->node.as<BufferObj>();
  if (!buffer) {
    TVM_FFI_THROW(TypeError) << who << ": expected a buffer or its data pointer in "
                             << mark->attr_key << ", got " << mark->node.GetTypeKey();
  }
  return buffer->data.get();
}
/// Whether break or continue in the body of a loop belong to that loop. AnnotateIrregularLoop has
/// marked such loops, if it has run.
inline bool HasJumps(const Stmt& body) {
  struct Finder : Visitor<Finder, EvaluateObj, ForObj, WhileObj, PrimExprObj> {
    bool found = false;
    void Visit(const EvaluateObj* op) {
      auto* call = op->value.as<CallObj>();
      found |= call && (call->Is(builtin::break_loop()) || call->Is(builtin::continue_loop()));
    }
    void Visit(const ForObj*) {}
    void Visit(const WhileObj*) {}
    void Visit(const PrimExprObj*) {}
  } finder;
  finder(body);
  return finder.found;
}

}  // namespace tvm::tir
