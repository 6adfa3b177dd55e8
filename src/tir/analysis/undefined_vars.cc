// SPDX-License-Identifier: Apache-2.0
// Variables that a program uses and does not define.
#include <unordered_set>

#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
struct UndefinedFinder
    : Visitor<UndefinedFinder, VarObj, ForObj, LetStmtObj, LetObj, AllocateObj, AllocateConstObj,
              BlockObj, BlockRealizeObj, AttrStmtObj, ReduceObj, CommReducerObj, BufferObj,
              PrimFuncObj, GlobalVarObj, OpObj> {
  std::unordered_map<const VarObj*, int> defined;
  std::unordered_set<const Object*> seen;
  Array<Var> result;

  template <class F>
  void With(const Array<Var>& vars, F&& body) {
    for (const Var& v : vars) ++defined[v.get()];
    body();
    for (const Var& v : vars) --defined[v.get()];
  }
  void Visit(const VarObj* op) {
    auto it = defined.find(op);
    if (it != defined.end() && it->second > 0) return;
    if (seen.insert(op).second) result.push_back(ffi::GetRef<Var>(op));
  }
  void Visit(const GlobalVarObj*) {}
  void Visit(const OpObj*) {}
  /// An access needs the data pointer and what locates the element: strides or, for compact
  /// buffers, the inner extents.
  void Visit(const BufferObj* op) {
    (*this)(op->data);
    for (size_t i = 1; op->strides.empty() && i < op->shape.size(); ++i) (*this)(op->shape[i]);
    for (const PrimExpr& e : op->strides) (*this)(e);
    (*this)(op->elem_offset);
  }
  void Visit(const ForObj* op) {
    (*this)(op->min), (*this)(op->extent);
    if (op->step.has_value()) (*this)(op->step.value());
    With({op->loop_var}, [&] { (*this)(op->body); });
  }
  void Visit(const LetStmtObj* op) {
    (*this)(op->value);
    With({op->var}, [&] { (*this)(op->body); });
  }
  void Visit(const LetObj* op) {
    (*this)(op->value);
    With({op->var}, [&] { (*this)(op->body); });
  }
  void Visit(const AllocateObj* op) {
    for (const PrimExpr& e : op->extents) (*this)(e);
    (*this)(op->condition);
    With({op->buffer_var}, [&] { (*this)(op->body); });
  }
  void Visit(const AllocateConstObj* op) {
    for (const PrimExpr& e : op->extents) (*this)(e);
    With({op->buffer_var}, [&] { (*this)(op->body); });
  }
  void Visit(const AttrStmtObj* op) {
    (*this)(op->value);
    auto iv = op->node.as<IterVar>();
    bool defines =
        iv && (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread);
    if (defines)
      With({(*iv)->var}, [&] { (*this)(op->body); });
    else
      (*this)(op->body);
  }
  void Visit(const BlockRealizeObj* op) {
    for (const PrimExpr& e : op->iter_values) (*this)(e);
    (*this)(op->predicate);
    (*this)(op->block);
  }
  void Visit(const BlockObj* op) {
    Array<Var> vars;
    for (const IterVar& iv : op->iter_vars) {
      if (iv->dom.has_value()) (*this)(iv->dom.value());
      vars.push_back(iv->var);
    }
    for (const Buffer& b : op->alloc_buffers) vars.push_back(b->data);
    auto add = [&](const PrimExpr& e) {
      if (auto* v = e.as<VarObj>()) vars.push_back(ffi::GetRef<Var>(v));
    };
    for (const MatchBufferRegion& m : op->match_buffers) {
      vars.push_back(m->buffer->data);
      for (const PrimExpr& e : m->buffer->shape) add(e);
      for (const PrimExpr& e : m->buffer->strides) add(e);
      add(m->buffer->elem_offset);
    }
    With(vars, [&] {
      for (const MatchBufferRegion& m : op->match_buffers) (*this)(m->source);
      for (const BufferRegion& r : op->reads) (*this)(r);
      for (const BufferRegion& r : op->writes) (*this)(r);
      if (op->init.has_value()) (*this)(op->init.value());
      (*this)(op->body);
    });
  }
  void Visit(const ReduceObj* op) {
    Array<Var> vars;
    for (const IterVar& iv : op->axis) {
      if (iv->dom.has_value()) (*this)(iv->dom.value());
      vars.push_back(iv->var);
    }
    (*this)(op->combiner);
    With(vars, [&] {
      for (const PrimExpr& e : op->source) (*this)(e);
      for (const PrimExpr& e : op->init) (*this)(e);
      (*this)(op->condition);
    });
  }
  void Visit(const CommReducerObj* op) {
    With(op->lhs, [&] {
      With(op->rhs, [&] {
        for (const PrimExpr& e : op->result) (*this)(e);
      });
    });
    for (const PrimExpr& e : op->identity_element) (*this)(e);
  }
  void Visit(const PrimFuncObj* op) {
    Array<Var> vars = op->params;
    auto add = [&](const PrimExpr& e) {
      if (auto* v = e.as<VarObj>()) vars.push_back(ffi::GetRef<Var>(v));
    };
    for (const auto& [param, b] : op->buffer_map) {
      vars.push_back(b->data);
      for (const PrimExpr& e : b->shape) add(e);
      for (const PrimExpr& e : b->strides) add(e);
      add(b->elem_offset);
    }
    With(vars, [&] { (*this)(op->body); });
  }
};
}  // namespace

Array<Var> UndefinedVars(const ObjectRef& node, const Array<Var>& defined) {
  UndefinedFinder find;
  find.With(defined, [&] { find(node); });
  return find.result;
}

namespace {
TVM_REGISTER() {
  Def(
      "tir.analysis.undefined_vars",
      [](ObjectRef node, Optional<Array<Var>> defs) {
        return OnDeepStack([&] { return UndefinedVars(node, defs.value_or(Array<Var>())); });
      },
      "Variables that the node uses and neither it nor defs define, in the order of their first "
      "use.",
      Arg("node"), Arg("defs", nullptr));
}
}  // namespace
}  // namespace tvm::tir
