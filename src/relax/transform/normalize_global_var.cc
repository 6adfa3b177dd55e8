// SPDX-License-Identifier: Apache-2.0
// Names of functions: those that the outside knows come first.
#include <unordered_map>

#include "relax/ir/builder_impl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
struct GlobalVarReplacer : Mutator<GlobalVarReplacer, GlobalVarObj> {
  std::unordered_map<const Object*, GlobalVar> replaced;
  ObjectRef Rewrite(const GlobalVarObj* var) {
    auto it = replaced.find(var);
    return it == replaced.end() ? ffi::GetRef<ObjectRef>(var) : ObjectRef(it->second);
  }
};
}  // namespace

IRModule NormalizeGlobalVar(IRModule mod) {
  NameTable names;
  for (const auto& [var, func] : mod->functions) {
    if (auto symbol = func->GetAttr<String>(attr::kGlobalSymbol)) names.Take(View(symbol.value()));
  }
  GlobalVarReplacer replacer;
  for (const auto& [var, func] : mod->Sorted()) {
    auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
    String name = symbol ? symbol.value() : names.Unique(View(var->name_hint));
    if (name == var->name_hint) continue;
    GlobalVar renamed(name);
    const_cast<GlobalVarObj*>(renamed.get())->struct_info_ = var->struct_info_;
    replacer.replaced[var.get()] = renamed;
  }
  if (replacer.replaced.empty()) return mod;
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : mod->functions)
    functions.Set(replacer.Mutate(var), replacer.Mutate(func));
  return IRModule(functions, mod->attrs, mod->global_infos);
}
TVM_RELAX_PASS(NormalizeGlobalVar, 0,
               "Public functions have the name of their global symbol; private ones of that name "
               "get another.");

}  // namespace tvm::relax
