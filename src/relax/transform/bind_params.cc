// SPDX-License-Identifier: Apache-2.0
// Parameters of a function fixed to constants.
#include "relax/transform/signature.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
IRModule BindParamsOf(IRModule mod, String func_name, Map<Variant<String, Var>, Expr> params) {
  GlobalVar var = mod->GetGlobalVar(func_name);
  auto func = mod->Lookup(var).as<Function>();
  if (!func) {
    TVM_FFI_THROW(TypeError) << "BindParams: expected a function of the graph language, got '"
                             << func_name << "', a " << mod->Lookup(var)->GetTypeKey();
  }
  return ChangeSignatures(mod, {{std::string(func_name), {BindParams(*func, params)}}});
}
TVM_REGISTER() {
  ::tvm::transform::DefPass("relax.transform.BindParams", &BindParamsOf,
                            "def main(x, w): y = f(x, w)  ->  def main(x): y = f(x, constant): "
                            "parameters, by name or variable, are fixed to constants, whose shapes "
                            "say what the parameters' symbolic dimensions are.",
                            {.name = "BindParams"}, Arg("func_name"), Arg("params"));
}
}  // namespace
}  // namespace tvm::relax
