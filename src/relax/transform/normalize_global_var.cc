// SPDX-License-Identifier: Apache-2.0
// Names of functions: those that the outside knows come first.
#include "ir/global_vars.h"
#include "relax/ir/builder_impl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Whether public functions have their names and those of private ones are identifiers.
bool IsNormal(const IRModule& mod) {
  const String key = attr::kGlobalSymbol;
  for (const auto& [var, func] : mod->functions) {
    auto symbol = func->GetAttr<String>(key);
    if (symbol ? symbol.value() != var->name_hint : !IsIdentifier(View(var->name_hint)))
      return false;
  }
  return true;
}
}  // namespace
IRModule NormalizeGlobalVar(IRModule mod) {
  if (IsNormal(mod)) return mod;
  NameTable names;
  for (const auto& [var, func] : mod->functions) {
    if (auto symbol = func->GetAttr<String>(attr::kGlobalSymbol)) names.Take(View(symbol.value()));
  }
  Map<GlobalVar, GlobalVar> renamed;
  for (const auto& [var, func] : mod->Sorted()) {
    auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
    String name = symbol ? symbol.value() : names.Unique(View(var->name_hint));
    if (name == var->name_hint) continue;
    GlobalVar now(name);
    const_cast<GlobalVarObj*>(now.get())->struct_info_ = var->struct_info_;
    renamed.Set(var, now);
  }
  return ReplaceGlobalVars(mod, renamed);
}
TVM_RELAX_PASS(NormalizeGlobalVar, 0,
               "Public functions have the name of their global symbol; private ones of that name "
               "get another.");

}  // namespace tvm::relax
