// SPDX-License-Identifier: Apache-2.0
// What can be computed before the inputs are known: from weights alone.
#include <unordered_set>

#include "relax/analysis/symbolic_vars.h"
#include "tvm/relax/analysis.h"

namespace tvm::relax {
namespace {
/// Weights, then the variables that depend on nothing else, in order.
Array<Var> ComputableAtCompileTime(Function func) {
  auto inputs = func->GetAttr<int64_t>("num_input");
  if (!inputs) {
    TVM_FFI_THROW(ValueError)
        << "computable_at_compile_time: expected a function with the attribute "
           "num_input, which says how many parameters are no weights";
  }
  if (inputs.value() < 0 || inputs.value() > static_cast<int64_t>(func->params.size())) {
    TVM_FFI_THROW(ValueError) << "computable_at_compile_time: expected num_input of at most "
                              << func->params.size() << ", got " << inputs.value();
  }
  Array<Var> result;
  std::unordered_set<const Object*> known, symbolic;
  auto add = [&](const Var& var) {
    known.insert(var->vid.get());
    result.push_back(var);
  };
  auto define = [&](const StructInfo& info) {
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(info)) symbolic.insert(var.get());
  };
  for (size_t i = inputs.value(); i < func->params.size(); ++i) {
    add(func->params[i]);
    define(GetStructInfo(func->params[i]));
  }
  for (const BindingBlock& block : func->body->blocks) {
    for (const Binding& binding : block->bindings) {
      Expr value = ValueOf(binding);
      bool computable = !FindImpureCall(value);
      for (const Var& var : FreeVars(value)) computable = computable && known.count(var->vid.get());
      for (const tir::Var& var : FreeSymbolicVars(value))
        computable = computable && symbolic.count(var.get());
      if (!computable) continue;
      if (auto* cast = binding.as<MatchCastObj>()) define(cast->struct_info);
      add(binding->var);
    }
  }
  return result;
}

TVM_REGISTER() {
  Def("relax.analysis.computable_at_compile_time", &ComputableAtCompileTime,
      "Variables that depend on weights alone: parameters behind num_input, and what is computed "
      "from them.",
      Arg("func"));
}
}  // namespace
}  // namespace tvm::relax
