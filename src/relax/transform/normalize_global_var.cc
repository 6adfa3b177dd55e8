// SPDX-License-Identifier: Apache-2.0
// Names of functions: those that the outside knows come first.
#include "ir/global_vars.h"
#include "relax/ir/builder_impl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
IRModule NormalizeGlobalVar(IRModule mod) {
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
