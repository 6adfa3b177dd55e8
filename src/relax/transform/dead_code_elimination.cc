// SPDX-License-Identifier: Apache-2.0
// Bindings and functions that nobody uses go.
#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Functions that are named anywhere: by kernels, in attributes, in scalars of graphs. Buffers and
/// variables name none.
struct NameFinder : Visitor<NameFinder, GlobalVarObj, tir::BufferObj, tir::VarObj, IntImmObj> {
  std::vector<GlobalVar> found;
  void Visit(const GlobalVarObj* var) { found.push_back(ffi::GetRef<GlobalVar>(var)); }
  void Visit(const Object*) {}
};
/// The same in a graph, whose struct info, which is most of it, is not looked at.
struct CalleeFinder : ExprVisitor {
  NameFinder names;
  void VisitVarDef(const Var&) final {}
  void VisitExpr_(const GlobalVarObj* op) final { names.Visit(op); }
  void VisitExpr_(const PrimValueObj* op) final { names(op->value); }
  void VisitExpr_(const ShapeExprObj* op) final {
    for (const PrimExpr& e : op->values) names(e);
  }
  void VisitExpr_(const CallObj* op) final {
    if (op->attrs && op->attrs.value().defined()) names(op->attrs.value());
    ExprVisitor::VisitExpr_(op);
  }
};

IRModule DeadCodeElimination(IRModule mod, Optional<Array<String>> entry_functions) {
  Map<GlobalVar, BaseFunc> functions;
  std::vector<GlobalVar> open;
  for (const String& name : entry_functions.value_or({})) open.push_back(mod->GetGlobalVar(name));
  if (open.empty()) {
    for (const auto& [var, func] : mod->Sorted()) {
      if (func->GetAttr<String>(attr::kGlobalSymbol)) open.push_back(var);
    }
  }
  // Where nothing is public, everything may be called.
  if (open.empty()) {
    for (const auto& [var, func] : mod->functions) open.push_back(var);
  }
  std::unordered_set<const Object*> reached;
  while (!open.empty()) {
    GlobalVar var = open.back();
    open.pop_back();
    if (!reached.insert(var.get()).second) continue;
    BaseFunc func = mod->Lookup(var);
    if (auto* graph = func.as<FunctionObj>()) func = RemoveAllUnused(ffi::GetRef<Function>(graph));
    functions.Set(var, func);
    CalleeFinder callees;
    if (func.as<FunctionObj>()) {
      callees.VisitExpr(func);
    } else {
      callees.names(func);
    }
    for (const GlobalVar& named : callees.names.found) {
      if (GlobalVar callee = mod->FindGlobalVar(named->name_hint); callee.defined())
        open.push_back(callee);
    }
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    DeadCodeElimination, 1,
    "Removes bindings without side effect that nobody uses, and functions that the entry "
    "functions (by default the public ones) do not reach.",
    Arg("entry_functions", nullptr));
}  // namespace tvm::relax
