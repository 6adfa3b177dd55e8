// SPDX-License-Identifier: Apache-2.0
// Kernels that a pass left without callers.
#pragma once
#include <string>
#include <unordered_set>

#include "tvm/relax/analysis.h"

namespace tvm::relax {

/// The module without those of the private functions named that no graph calls (any more).
inline IRModule RemoveUncalled(const IRModule& mod, std::unordered_set<std::string> names) {
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionObj>()) continue;
    for (const GlobalVar& callee : AllGlobalVars(Any(func).cast<Expr>()))
      names.erase(callee->name_hint);
  }
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : mod->functions) {
    if (!names.count(var->name_hint) || func->attrs.Has(attr::kGlobalSymbol))
      functions.Set(var, func);
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}

}  // namespace tvm::relax
