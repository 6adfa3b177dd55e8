// SPDX-License-Identifier: Apache-2.0
// Bindings and functions that nobody uses go.
#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
struct CalleeFinder : Visitor<CalleeFinder, GlobalVarObj> {
  std::vector<std::string> names;
  void Visit(const GlobalVarObj* var) { names.push_back(var->name_hint); }
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
    callees(func);
    for (const std::string& name : callees.names) {
      if (GlobalVar callee = mod->FindGlobalVar(name); callee.defined()) open.push_back(callee);
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
