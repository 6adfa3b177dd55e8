// SPDX-License-Identifier: Apache-2.0
// Whether functions obey the rules of the IR, with complaints that say what is wrong.
#include <map>
#include <unordered_set>

#include "tir/analysis/complaint.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/target.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
/// Walks definitions and uses: each variable is defined once, used only below its definition; each
/// buffer is declared before it is used; block iterators are not used outside their block.
struct WellFormedChecker
    : Visitor<WellFormedChecker, VarObj, ForObj, LetStmtObj, LetObj, AllocateObj, AllocateConstObj,
              BlockObj, BlockRealizeObj, DeclBufferObj, BufferRealizeObj, AttrStmtObj, ReduceObj,
              CommReducerObj, BufferObj, GlobalVarObj, OpObj, StmtObj> {
  bool check_buffers = true;
  Complaint complaint;
  const StmtObj* at = nullptr;  // the statement being looked at
  std::unordered_map<const VarObj*, int> active, ever;
  std::unordered_map<const BufferObj*, int> buffers;
  bool defined_twice = false;

  void Complain(const std::string& text) {
    if (complaint.text.empty()) complaint = {text, at ? at->span : Optional<Span>()};
  }
  void Begin(const Var& v, const char* what) {
    if (ever[v.get()]++ > 0) {
      defined_twice = true;
      Complain("variable " + std::string(v->name_hint) + " is defined twice, the second time by " +
               what);
    }
    ++active[v.get()];
  }
  void End(const Var& v) { --active[v.get()]; }
  template <class F>
  void With(const Array<Var>& vars, const char* what, F&& body) {
    for (const Var& v : vars) Begin(v, what);
    body();
    for (const Var& v : vars) End(v);
  }
  void Visit(const VarObj* op) {
    if (active[op] > 0) return;
    std::string name(op->name_hint);
    Complain(ever[op] ? "variable " + name + " is used outside of what defines it"
                      : "variable " + name + " is not defined");
  }
  void Visit(const GlobalVarObj*) {}
  void Visit(const OpObj*) {}
  void Visit(const BufferObj* op) {
    if (check_buffers && buffers[op] <= 0) {
      Complain("buffer " + std::string(op->name) +
               " is used where it is not declared (by a parameter, T.alloc_buffer, T.match_buffer "
               "or T.decl_buffer)");
    }
    (*this)(op->data);
  }
  void Visit(const ForObj* op) {
    at = op;
    (*this)(op->min), (*this)(op->extent);
    if (op->step.has_value()) (*this)(op->step.value());
    With({op->loop_var}, "a loop", [&] { (*this)(op->body); });
  }
  void Visit(const LetStmtObj* op) {
    at = op;
    (*this)(op->value);
    With({op->var}, "a let", [&] { (*this)(op->body); });
  }
  void Visit(const LetObj* op) {
    (*this)(op->value);
    With({op->var}, "a let", [&] { (*this)(op->body); });
  }
  void Visit(const AllocateObj* op) {
    at = op;
    for (const PrimExpr& e : op->extents) (*this)(e);
    (*this)(op->condition);
    With({op->buffer_var}, "an allocation", [&] { (*this)(op->body); });
  }
  void Visit(const AllocateConstObj* op) {
    at = op;
    for (const PrimExpr& e : op->extents) (*this)(e);
    With({op->buffer_var}, "an allocation", [&] { (*this)(op->body); });
  }
  void Visit(const DeclBufferObj* op) {
    at = op;
    (*this)(op->buffer->data);
    ++buffers[op->buffer.get()];
    (*this)(op->body);
    --buffers[op->buffer.get()];
  }
  void Visit(const BufferRealizeObj* op) {
    at = op;
    for (const Range& r : op->bounds) (*this)(r);
    (*this)(op->condition);
    ++buffers[op->buffer.get()];
    With({op->buffer->data}, "a realization", [&] { (*this)(op->body); });
    --buffers[op->buffer.get()];
  }
  void Visit(const AttrStmtObj* op) {
    at = op;
    (*this)(op->value);
    auto iv = op->node.as<IterVar>();
    bool defines =
        iv && (op->attr_key == attr::kThreadExtent || op->attr_key == attr::kVirtualThread);
    if (!defines) return (*this)(op->body);
    // The index of a thread may be named by several attributes.
    ++ever[(*iv)->var.get()], ++active[(*iv)->var.get()];
    (*this)(op->body);
    --active[(*iv)->var.get()];
  }
  void Visit(const BlockRealizeObj* op) {
    at = op;
    for (const PrimExpr& e : op->iter_values) (*this)(e);
    (*this)(op->predicate);
    VisitBlock(op->block.get());
  }
  void Visit(const StmtObj* op) {
    at = op;
    VisitChildren(op, *this);
  }
  void Visit(const BlockObj* op) {
    at = op;
    Complain("block " + std::string(op->name_hint) + " has no realization: nothing binds its axes");
    VisitBlock(op);
  }
  void VisitBlock(const BlockObj* op) {
    at = op->span.has_value() ? op : at;
    Array<Var> vars;
    for (const IterVar& iv : op->iter_vars) {
      if (iv->dom.has_value()) (*this)(iv->dom.value());
      vars.push_back(iv->var);
    }
    for (const Buffer& b : op->alloc_buffers) vars.push_back(b->data);
    auto add = [&](const PrimExpr& e) {
      auto* v = e.as<VarObj>();
      if (v && active[v] == 0) vars.push_back(ffi::GetRef<Var>(v));
    };
    for (const MatchBufferRegion& m : op->match_buffers) {
      vars.push_back(m->buffer->data);
      for (const PrimExpr& e : m->buffer->shape) add(e);
      for (const PrimExpr& e : m->buffer->strides) add(e);
      add(m->buffer->elem_offset);
    }
    With(vars, "a block", [&] {
      for (const Buffer& b : op->alloc_buffers) ++buffers[b.get()];
      for (const MatchBufferRegion& m : op->match_buffers) (*this)(m->source);
      for (const MatchBufferRegion& m : op->match_buffers) ++buffers[m->buffer.get()];
      for (const BufferRegion& r : op->reads) (*this)(r);
      for (const BufferRegion& r : op->writes) (*this)(r);
      if (op->init.has_value()) (*this)(op->init.value());
      (*this)(op->body);
      for (const Buffer& b : op->alloc_buffers) --buffers[b.get()];
      for (const MatchBufferRegion& m : op->match_buffers) --buffers[m->buffer.get()];
    });
  }
  void Visit(const ReduceObj* op) {
    Array<Var> vars;
    for (const IterVar& iv : op->axis) vars.push_back(iv->var);
    With(vars, "a reduction", [&] {
      for (const PrimExpr& e : op->source) (*this)(e);
      (*this)(op->condition);
    });
  }
  void Visit(const CommReducerObj*) {}

  void Check(const PrimFunc& func) {
    Array<Var> vars = func->params;
    std::unordered_set<const VarObj*> known;
    for (const Var& p : func->params) known.insert(p.get());
    auto add = [&](const PrimExpr& e) {
      // A dimension that is a variable is defined by the tensor; one that is an expression uses it.
      if (auto* v = e.as<VarObj>(); v && known.insert(v).second)
        vars.push_back(ffi::GetRef<Var>(v));
    };
    for (const Var& p : func->params) {
      Buffer b = func.BufferOf(p);
      if (!b.defined()) continue;
      add(b->data);
      for (const PrimExpr& e : b->shape) add(e);
      for (const PrimExpr& e : b->strides) add(e);
      add(b->elem_offset);
      ++buffers[b.get()];
    }
    With(vars, "a parameter", [&] {
      for (const auto& [param, b] : func->buffer_map) {
        for (const PrimExpr& e : b->shape) (*this)(e);
        for (const PrimExpr& e : b->strides) (*this)(e);
      }
      (*this)(func->body);
    });
  }
};
}  // namespace

Complaint FindBrokenRule(const PrimFunc& func) {
  WellFormedChecker check;
  check.Check(func);
  return check.complaint;
}
std::string FindIllFormed(const PrimFunc& func) { return FindBrokenRule(func).text; }
bool VerifySSA(const PrimFunc& func) {
  WellFormedChecker check;
  check.check_buffers = false;
  check.Check(func);
  return !check.defined_twice;
}
bool VerifyWellFormed(const PrimFunc& func, bool assert_mode) {
  std::string complaint = FindIllFormed(func);
  if (!complaint.empty() && assert_mode) {
    auto symbol = func->GetAttr<String>(::tvm::attr::kGlobalSymbol);
    TVM_FFI_THROW(ValueError) << "verify_well_formed: expected a well-formed function, but in "
                              << symbol.value_or(String("the function")) << " " << complaint;
  }
  return complaint.empty();
}
bool VerifyWellFormed(const IRModule& mod, bool assert_mode) {
  for (const auto& [var, func] : mod->Sorted()) {
    if (auto* f = func.as<PrimFuncObj>();
        f && !VerifyWellFormed(ffi::GetRef<PrimFunc>(f), assert_mode))
      return false;
  }
  return true;
}

namespace {
/// Accesses of memory outside the regions that run on the device.
struct HostAccessFinder
    : Visitor<HostAccessFinder, AttrStmtObj, ForObj, BufferLoadObj, BufferStoreObj> {
  std::string found;
  void Visit(const AttrStmtObj* op) {
    if (op->attr_key != attr::kThreadExtent && op->attr_key != "pipeline_exec_scope")
      VisitChildren(op, *this);
  }
  void Visit(const ForObj* op) {
    if (op->kind != ForKind::kThreadBinding) VisitChildren(op, *this);
  }
  void Visit(const BufferLoadObj* op) { found = op->buffer->name, VisitChildren(op, *this); }
  void Visit(const BufferStoreObj* op) { found = op->buffer->name, VisitChildren(op, *this); }
};
std::string HostAccess(const PrimFunc& func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  bool is_device = target.has_value() && target.value()->HasKey("gpu");
  if (!is_device || func->GetAttr<int64_t>(::tvm::attr::kCallingConv, 0) != 0) return "";
  HostAccessFinder find;
  find(func->body);
  return find.found;
}
}  // namespace
bool VerifyMemory(const PrimFunc& func) { return HostAccess(func).empty(); }

namespace {
IRModule VerifyMemoryPass(IRModule mod) {
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    std::string buffer = f ? HostAccess(ffi::GetRef<PrimFunc>(f)) : "";
    if (!buffer.empty()) {
      TVM_FFI_THROW(RuntimeError)
          << "VerifyMemory: expected " << var->name_hint << " to access buffer " << buffer
          << " inside loops bound to GPU threads only; did you forget to bind?";
    }
  }
  return mod;
}
IRModule VerifySSAPass(IRModule mod) {
  for (const auto& [var, func] : mod->Sorted()) {
    auto* f = func.as<PrimFuncObj>();
    if (f && !VerifySSA(ffi::GetRef<PrimFunc>(f))) {
      TVM_FFI_THROW(RuntimeError) << "VerifySSA: expected " << var->name_hint
                                  << " to define each variable once";
    }
  }
  return mod;
}

TVM_REGISTER() {
  Def(
      "tir.analysis.verify_ssa",
      [](PrimFunc func) { return OnDeepStack([&] { return VerifySSA(func); }); },
      "Whether each variable is defined once.", Arg("func"));
  Def(
      "tir.analysis.verify_memory",
      [](PrimFunc func) { return OnDeepStack([&] { return VerifyMemory(func); }); },
      "Whether a function for a GPU touches memory inside bound loops only.", Arg("func"));
  Def(
      "tir.analysis.verify_well_formed",
      [](Variant<PrimFunc, IRModule> obj, bool assert_mode) {
        return OnDeepStack([&] {
          if (auto func = obj.as<PrimFunc>()) return VerifyWellFormed(*func, assert_mode);
          return VerifyWellFormed(obj.get<IRModule>(), assert_mode);
        });
      },
      "Whether variables and buffers are defined once and used only where they are defined; with "
      "assert_mode a "
      "ValueError says what is wrong.",
      Arg("obj"), Arg("assert_mode", true));
  ::tvm::transform::DefPass(
      "tir.transform.VerifyMemory", &VerifyMemoryPass,
      R"(Raises unless functions for GPUs touch memory inside bound loops only.

before(A: T.Buffer((16,), "float32")):
    A[0] = 1.0
after:
    A[0] = T.float32(1))",
      {});
  ::tvm::transform::DefPass("tir.transform.VerifySSA", &VerifySSAPass,
                            R"(Raises unless each variable is defined once.

before(A: T.Buffer((16,), "float32")):
    A[0] = 1.0
after:
    A[0] = T.float32(1))",
                            {});
}
}  // namespace
}  // namespace tvm::tir
