// SPDX-License-Identifier: Apache-2.0
// Parameters that importers keep at a function, taken off it.
#include "tvm/ir/module.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {
namespace {
Array<Any> DetachParams(const IRModule& mod) {
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  Map<String, Array<ffi::Tensor>> params;
  for (const auto& [var, func] : mod->functions) {
    auto kept = func->GetAttr<Array<ffi::Tensor>>("params");
    auto* function = func.as<FunctionObj>();
    if (!function || !kept) continue;
    params.Set(var->name_hint, *kept);
    functions.Set(var, WithoutAttr(ffi::GetRef<Function>(function), "params"));
  }
  return {IRModule(functions, mod->attrs, mod->global_infos), params};
}
}  // namespace

TVM_REGISTER() {
  Def("relax.frontend._detach_params", &DetachParams,
      "The module without the attribute \"params\" of its functions, and those by function.",
      Arg("mod"));
}

}  // namespace tvm::relax
