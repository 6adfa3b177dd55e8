// SPDX-License-Identifier: Apache-2.0
// Every function gets the name under which the library has it.
#include "ir/global_vars.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
IRModule AttachGlobalSymbol(IRModule mod) {
  std::string prefix(View(mod->attrs.Get<String>("system_lib_prefix").value_or("")));
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  Map<GlobalVar, GlobalVar> renamed;
  const String key = attr::kGlobalSymbol;
  for (const auto& [var, base] : mod->functions) {
    auto symbol = base->GetAttr<String>(key);
    std::string name(View(var->name_hint));
    if (auto func = base.as<Function>()) {
      if (!symbol || View(symbol.value()) != name)
        functions.Set(var, WithAttr(*func, key, String(name)));
    } else if (auto kernel = base.as<tir::PrimFunc>()) {
      // What has the prefix went through this pass before.
      if (symbol && View(symbol.value()) == name && name.starts_with(prefix)) continue;
      name = prefix + name;
      functions.Set(var, WithAttr(*kernel, key, String(name)));
      if (prefix.empty()) continue;
      GlobalVar now{String(name)};
      if (var->struct_info_) UpdateStructInfo(now, var->struct_info_.value());
      renamed.Set(var, now);
    }
  }
  return ReplaceGlobalVars(WithFunctions(mod, functions), renamed);
}
}  // namespace
TVM_RELAX_PASS(AttachGlobalSymbol, 0,
               "Functions get their name as global_symbol, PrimFuncs behind the module's "
               "system_lib_prefix.");
}  // namespace tvm::relax
