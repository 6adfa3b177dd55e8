// SPDX-License-Identifier: Apache-2.0
// Visits a program with the definitions that hold where it is.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "ir/once.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

/// Calls, in the order of evaluation, `Begin(vars, what)` and `End(vars, what)` around the part of
/// the program where variables are defined, and `Use(const VarObj*)` where one is used. `what`
/// names the definition for messages. Buffers: `UseBuffer(const BufferObj*)` where one is accessed,
/// `UseDeclared(const BufferObj*)` where a view is declared, and `Declare(const BufferObj*, by)`
/// with 1 and -1 around the part where one is known. `At(const StmtObj*)` sees each statement
/// first, `InBlock(const BlockObj*, by)` is called around what is inside a block.
template <class Self>
struct ScopedVisitor
    : Visitor<Self, VarObj, PrimExprObj, StmtObj, ForObj, LetStmtObj, LetObj, AllocateObj,
              AllocateConstObj, BlockObj, BlockRealizeObj, DeclBufferObj, BufferRealizeObj,
              AttrStmtObj, ReduceObj, CommReducerObj, BufferObj, GlobalVarObj, OpObj> {
  Self* self() { return static_cast<Self*>(this); }
  void Go(const ObjectRef& node) { (*this)(node); }
  template <class T>
  void GoAll(const Array<T>& nodes) {
    for (const T& n : nodes) Go(n);
  }
  template <class F>
  void With(const Array<Var>& vars, const char* what, F&& body) {
    self()->Begin(vars, what);
    once_ = Once();
    body();
    once_ = Once();
    self()->End(vars, what);
  }
  void At(const StmtObj*) {}
  void InBlock(const BlockObj*, int) {}
  void Visit(const StmtObj* op) {
    self()->At(op);
    VisitChildren(op, *self());
  }
  void Visit(const VarObj* op) { self()->Use(op); }
  void Visit(const PrimExprObj* op) {
    if (once_(op)) VisitChildren(op, *self());
  }
  void Visit(const GlobalVarObj*) {}
  void Visit(const OpObj*) {}
  void Visit(const BufferObj* op) { self()->UseBuffer(op); }
  void Visit(const ForObj* op) {
    self()->At(op);
    Go(op->min);
    Go(op->extent);
    if (op->step.has_value()) Go(op->step.value());
    // The index of a thread may be used in blocks that have no iterator for it.
    bool is_thread = op->kind == ForKind::kThreadBinding;
    With({op->loop_var}, is_thread ? "a loop over threads" : "a loop", [&] { Go(op->body); });
  }
  void Visit(const LetStmtObj* op) {
    self()->At(op);
    Go(op->value);
    With({op->var}, "a let", [&] { Go(op->body); });
  }
  void Visit(const LetObj* op) {
    Go(op->value);
    With({op->var}, "a let", [&] { Go(op->body); });
  }
  void Visit(const AllocateObj* op) {
    self()->At(op);
    GoAll(op->extents);
    Go(op->condition);
    With({op->buffer_var}, "an allocation", [&] { Go(op->body); });
  }
  void Visit(const AllocateConstObj* op) {
    self()->At(op);
    GoAll(op->extents);
    With({op->buffer_var}, "an allocation", [&] { Go(op->body); });
  }
  void Visit(const DeclBufferObj* op) {
    self()->At(op);
    self()->UseDeclared(op->buffer.get());
    self()->Declare(op->buffer.get(), 1);
    once_ = Once();
    Go(op->body);
    once_ = Once();
    self()->Declare(op->buffer.get(), -1);
  }
  void Visit(const BufferRealizeObj* op) {
    self()->At(op);
    GoAll(op->bounds);
    Go(op->condition);
    self()->Declare(op->buffer.get(), 1);
    With({op->buffer->data}, "a realization", [&] { Go(op->body); });
    self()->Declare(op->buffer.get(), -1);
  }
  void Visit(const AttrStmtObj* op) {
    self()->At(op);
    Go(op->value);
    auto iv = op->node.template as<IterVar>();
    bool defines =
        iv && (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread);
    if (defines)
      With({(*iv)->var}, "a thread", [&] { Go(op->body); });
    else
      Go(op->body);
  }
  void Visit(const BlockRealizeObj* op) {
    self()->At(op);
    GoAll(op->iter_values);
    Go(op->predicate);
    VisitBlock(op->block.get());
  }
  void Visit(const BlockObj* op) { VisitBlock(op); }
  void VisitBlock(const BlockObj* op) {
    self()->At(op);
    Array<Var> vars;
    for (const IterVar& iv : op->iter_vars) {
      if (iv->dom.has_value()) Go(iv->dom.value());
      vars.push_back(iv->var);
    }
    for (const Buffer& b : op->alloc_buffers) vars.push_back(b->data);
    for (const MatchBufferRegion& m : op->match_buffers) {
      vars.push_back(m->buffer->data);
      AddDefined(m->buffer, &vars);
    }
    self()->InBlock(op, 1);
    With(vars, "a block", [&] {
      for (const Buffer& b : op->alloc_buffers) self()->Declare(b.get(), 1);
      for (const MatchBufferRegion& m : op->match_buffers) Go(m->source);
      for (const MatchBufferRegion& m : op->match_buffers) self()->Declare(m->buffer.get(), 1);
      GoAll(op->reads);
      GoAll(op->writes);
      if (op->init.has_value()) Go(op->init.value());
      Go(op->body);
      for (const Buffer& b : op->alloc_buffers) self()->Declare(b.get(), -1);
      for (const MatchBufferRegion& m : op->match_buffers) self()->Declare(m->buffer.get(), -1);
    });
    self()->InBlock(op, -1);
  }
  void Visit(const ReduceObj* op) {
    Array<Var> vars;
    for (const IterVar& iv : op->axis) {
      if (iv->dom.has_value()) Go(iv->dom.value());
      vars.push_back(iv->var);
    }
    Go(op->combiner);
    With(vars, "a reduction", [&] {
      GoAll(op->source);
      GoAll(op->init);
      Go(op->condition);
    });
  }
  void Visit(const CommReducerObj* op) {
    Array<Var> vars = op->lhs;
    for (const Var& v : op->rhs) vars.push_back(v);
    With(vars, "a reducer", [&] { GoAll(op->result); });
    GoAll(op->identity_element);
  }
  /// What a buffer defines: its pointer, and the variables of its shape, strides and offset that
  /// are not defined yet.
  void AddDefined(const Buffer& b, Array<Var>* vars) {
    auto add = [&](const PrimExpr& e) {
      auto* v = e.as<VarObj>();
      bool is_new = v && !self()->IsDefined(v);
      for (const Var& known : *vars) is_new &= known.get() != v;
      if (is_new) vars->push_back(ffi::GetRef<Var>(v));
    };
    add(b->data);
    for (const PrimExpr& e : b->shape) add(e);
    for (const PrimExpr& e : b->strides) add(e);
    add(b->elem_offset);
  }
  /// The parameters of a function and what their buffers define.
  Array<Var> Parameters(const PrimFuncObj* func) {
    Array<Var> vars = func->params;
    for (const Var& p : func->params) {
      auto it = func->buffer_map.find(p);
      if (it != func->buffer_map.end()) AddDefined((*it).second, &vars);
    }
    return vars;
  }

 private:
  Once once_;  // where the same definitions hold
};

}  // namespace tvm::tir
