// SPDX-License-Identifier: Apache-2.0
// Symbolic variables fixed to values.
#include "relax/transform/signature.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using SymbolicMap = Map<Variant<String, tir::Var>, PrimExpr>;

bool IsKeyOf(const Variant<String, tir::Var>& key, const tir::Var& var) {
  auto name = key.as<String>();
  return name ? var->name_hint == *name : var.same_as(*key.as<tir::Var>());
}

IRModule BindSymbolicVarsIn(IRModule mod, SymbolicMap binding_map, Optional<String> func_name) {
  std::unordered_map<std::string, NewSignature> changed;
  SymbolicMap unknown = binding_map;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* graph = base.as<FunctionObj>();
    if (!graph || (func_name && func_name.value() != var->name_hint)) continue;
    auto func = ffi::GetRef<Function>(graph);
    SymbolicMap own;
    for (const tir::Var& defined : DefinedSymbolicVars(func)) {
      for (const auto& [key, value] : binding_map) {
        if (!IsKeyOf(key, defined)) continue;
        own.Set(key, value);
        unknown.erase(key);
      }
    }
    if (!own.empty()) changed[std::string(var->name_hint)] = {BindSymbolicVars(func, own)};
  }
  if (func_name) mod->GetGlobalVar(func_name.value());  // raises when there is none
  for (const auto& [key, value] : unknown) {
    auto name = key.as<String>();
    TVM_FFI_THROW(ValueError) << "BindSymbolicVars: expected a symbolic variable of "
                              << (func_name ? "'" + std::string(func_name.value()) + "'"
                                            : std::string("a function of the module"))
                              << ", got '" << (name ? *name : (*key.as<tir::Var>())->name_hint)
                              << "'";
  }
  return ChangeSignatures(mod, changed);
}
TVM_REGISTER() {
  ::tvm::transform::DefPass(
      "relax.transform.BindSymbolicVars", &BindSymbolicVarsIn,
      "x: R.Tensor((\"n\",))  ->  x: R.Tensor((4,)), with {\"n\": 4}: symbolic variables, by name "
      "or variable, of one function or of all are replaced by values.",
      {.opt_level = 1, .name = "BindSymbolicVars"}, Arg("binding_map"), Arg("func_name", nullptr));
}
}  // namespace
}  // namespace tvm::relax
