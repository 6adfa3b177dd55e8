// SPDX-License-Identifier: Apache-2.0
// Whether functions obey the rules of the IR, with complaints that say what is wrong.
#include "tir/analysis/complaint.h"
#include "tir/analysis/scoped_visitor.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"
#include "tvm/ir/target.h"
#include "tvm/tir/analysis.h"

namespace tvm::tir {
namespace {
/// Each variable is defined once and used only below its definition (a buffer is known by its
/// pointer: it need not be declared); a block has a realization, which binds its iterators; a block
/// that has iterators knows the loops around it through them alone, up to the next block without
/// any, which is a program of its own.
struct WellFormedChecker : ScopedVisitor<WellFormedChecker> {
  using ScopedVisitor::Visit;
  Complaint complaint;
  const StmtObj* at = nullptr;  // the statement being looked at
  std::unordered_map<const VarObj*, int> active, ever;
  /// Where a loop or block is: in how many blocks with and without iterators.
  struct Place {
    const BlockObj* block;
    size_t blocks, opaque;
  };
  std::vector<Place> blocks;  // around, that have iterators
  size_t opaque = 0;          // how many have none
  std::unordered_map<const VarObj*, Place> loop_vars;
  std::unordered_map<const VarObj*, PrimExpr> lets;  // inside of expressions
  bool defined_twice = false;

  void Complain(const std::string& text) {
    if (complaint.text.empty()) complaint = {text, at ? at->span : Optional<Span>()};
  }
  void At(const StmtObj* op) {
    if (op->span.has_value() || !op->IsInstance<BlockObj>()) at = op;
  }
  bool IsDefined(const VarObj* v) { return active[v] > 0; }
  void Begin(const Array<Var>& vars, std::string_view what) {
    for (const Var& v : vars) {
      // The index of a thread may be named by several attributes; memory of a parameter is realized
      // where it is computed.
      bool may_repeat = what == "a thread" || (what == "a realization" && active[v.get()] > 0);
      if (ever[v.get()]++ > 0 && !may_repeat) {
        defined_twice = true;
        std::string name(v->name_hint);
        Complain((active[v.get()] > 0
                      ? "the TIR is ill-formed, due to multiple nested definitions of variable "
                      : "there are multiple definitions of variable ") +
                 name + ", the second time by " + std::string(what));
      }
      ++active[v.get()];
      if (what == "a loop") loop_vars[v.get()] = {nullptr, blocks.size(), opaque};
    }
  }
  void InBlock(const BlockObj* op, int by) {
    if (op->iter_vars.empty())
      opaque += by;
    else if (by > 0)
      blocks.push_back({op, blocks.size(), opaque});
    else
      blocks.pop_back();
  }
  void End(const Array<Var>& vars, std::string_view) {
    for (const Var& v : vars) --active[v.get()];
  }
  void Use(const VarObj* op) {
    bool is_defined = IsDefined(op);
    if (is_defined && blocks.empty()) return;
    std::string name(op->name_hint);
    if (is_defined) {
      auto it = loop_vars.find(op);
      if (it == loop_vars.end() || it->second.blocks >= blocks.size()) return;
      const Place& below = blocks[it->second.blocks];
      if (below.opaque == it->second.opaque) {
        Complain("loop variable " + name + " is used inside block " +
                 std::string(below.block->name_hint) +
                 ", which has iterators: bind one of them to it");
      }
      return;
    }
    Complain("there is an Invalid use of undefined variable " + name +
             (ever[op] ? ", outside of what defines it" : ""));
  }
  void UseBuffer(const BufferObj* op) { Go(op->data); }
  void UseDeclared(const BufferObj* op) { Go(op->data); }
  void Declare(const BufferObj*, int) {}
  /// The same let may stand in several expressions.
  void Visit(const LetObj* op) {
    auto [it, is_new] = lets.emplace(op->var.get(), op->value);
    if (!is_new && !IsDefined(op->var.get()) && StructuralEqual(it->second, op->value))
      ever[op->var.get()] = 0;
    ScopedVisitor::Visit(op);
  }
  void Visit(const BlockObj* op) {
    At(op);
    Complain("block " + std::string(op->name_hint) + " has no realization: nothing binds its axes");
    VisitBlock(op);
  }
  void Visit(const CommReducerObj*) {}  // several reductions may share it

  void Check(const PrimFunc& func) {
    With(Parameters(func.get()), "a parameter", [&] {
      for (const auto& [param, b] : func->buffer_map) {
        GoAll(b->shape);
        GoAll(b->strides);
      }
      Go(func->body);
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
  check.Check(func);
  return !check.defined_twice;
}
namespace {
/// Whether there is no complaint; one raises in `assert_mode`.
bool Accept(const std::string& complaint, const PrimFunc& func, bool assert_mode) {
  if (!complaint.empty() && assert_mode) {
    auto symbol = func->GetAttr<String>(::tvm::attr::kGlobalSymbol);
    TVM_FFI_THROW(ValueError) << "verify_well_formed: expected a well-formed function, but in "
                              << symbol.value_or(String("the function")) << " " << complaint;
  }
  return complaint.empty();
}
}  // namespace
bool VerifyWellFormed(const PrimFunc& func, bool assert_mode) {
  return Accept(FindIllFormed(func), func, assert_mode);
}
bool VerifyWellFormed(const IRModule& mod, bool assert_mode) {
  std::unordered_set<const VarObj*> defined;  // by the functions before
  for (const auto& [global, node] : mod->Sorted()) {
    auto* f = node.as<PrimFuncObj>();
    if (!f) continue;
    PrimFunc func = ffi::GetRef<PrimFunc>(f);
    WellFormedChecker check;
    check.Check(func);
    std::string complaint = check.complaint.text;
    for (const auto& [var, count] : check.ever) {
      if (count > 0 && !defined.insert(var).second && complaint.empty())
        complaint = "there are multiple definitions of variable " + std::string(var->name_hint) +
                    ", which is that of another function";
    }
    if (!Accept(complaint, func, assert_mode)) return false;
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
      "Whether variables are defined once and used only where they are defined; with assert_mode a "
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
