// SPDX-License-Identifier: Apache-2.0
// Removing bindings that nobody uses.
#include <unordered_map>
#include <unordered_set>

#include "relax/analysis/symbolic_vars.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {
namespace {
/// The bindings whose values call something with side effects. Each call is looked at once: a
/// branch is part of the values of all branches around it.
struct ImpureBindings : ExprVisitor {
  std::unordered_set<const Object*> ids;  // of their variables
  size_t calls = 0;
  void VisitBinding(const Binding& binding) final {
    size_t before = calls;
    ExprVisitor::VisitBinding(binding);
    if (calls != before) ids.insert(binding->var->vid.get());
  }
  void VisitExpr_(const CallObj* call) final {
    calls += IsImpureCall(call);
    ExprVisitor::VisitExpr_(call);
  }
  void VisitExpr_(const FunctionObj* func) final {  // making a local function calls nothing
    size_t before = calls;
    ExprVisitor::VisitExpr_(func);
    calls = before;
  }
};

/// Marks what is needed: from bodies and calls with side effects back to the values they use. One
/// binding is looked at once.
class UsageMarker : public ExprVisitor {
 public:
  std::unordered_set<const Object*> needed;  // ids of variables
  std::unordered_set<const Object*> symbolic;

  void Run(const Function& func) {
    impure_.VisitExpr(func);
    VisitExpr(func);
    while (!open_.empty()) {
      const BindingObj* binding = open_.back();
      open_.pop_back();
      ExprVisitor::VisitBinding(ffi::GetRef<Binding>(binding));
    }
  }

 private:
  void VisitExpr_(const VarObj* op) final { Need(op->vid.get()); }
  void VisitStructInfo(const StructInfo& info) final {
    VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr) { NeedSymbolic(e); });
    if (auto* tensor = info.as<TensorStructInfoObj>()) {
      if (tensor->shape && tensor->shape.value().as<VarObj>()) VisitExpr(tensor->shape.value());
    }
  }
  void VisitExpr_(const ShapeExprObj* op) final {
    for (const PrimExpr& e : op->values) NeedSymbolic(e);
  }
  void VisitExpr_(const PrimValueObj* op) final { NeedSymbolic(op->value); }
  void VisitBinding(const Binding& binding) final {
    const Object* id = binding->var->vid.get();
    if (needed.count(id) || impure_.ids.count(id)) {
      needed.insert(id);
      ExprVisitor::VisitBinding(binding);
      return;
    }
    waiting_[id] = binding.get();
    auto* cast = binding.as<MatchCastObj>();
    if (!cast) return;
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(cast->struct_info)) {
      if (symbolic.count(var.get())) return Need(id);
      defines_[var.get()].push_back(id);
    }
  }
  void Need(const Object* id) {
    if (!needed.insert(id).second) return;
    auto it = waiting_.find(id);
    if (it != waiting_.end()) open_.push_back(it->second);
  }
  void NeedSymbolic(const PrimExpr& e) {
    VisitVars(e, [&](const tir::VarObj* var) {
      if (!symbolic.insert(var).second) return;
      auto it = defines_.find(var);
      if (it == defines_.end()) return;
      for (const Object* id : it->second) Need(id);
    });
  }
  ImpureBindings impure_;
  std::unordered_map<const Object*, const BindingObj*> waiting_;
  std::unordered_map<const Object*, std::vector<const Object*>> defines_;
  std::vector<const BindingObj*> open_;
};

class UnusedRemover : public ExprMutator {
 public:
  explicit UnusedRemover(const std::unordered_set<const Object*>& needed) : needed_(needed) {}
  void VisitBinding(const Binding& binding) final {
    if (needed_.count(binding->var->vid.get())) ExprMutator::VisitBinding(binding);
  }

 private:
  const std::unordered_set<const Object*>& needed_;
};
}  // namespace

Function RemoveAllUnused(const Function& func) {
  return OnDeepStack([&] {
    UsageMarker marker;
    marker.Run(func);
    return As<Function>(UnusedRemover(marker.needed).VisitExpr(func));
  });
}

namespace {
TVM_REGISTER() {
  Def("relax.analysis.remove_all_unused", &RemoveAllUnused,
      "The function without bindings that nobody uses and that have no side effect.", Arg("func"));
}
}  // namespace
}  // namespace tvm::relax
