// SPDX-License-Identifier: Apache-2.0
// Passes over functions that are given by a callback, and passes that choose among functions.
#include "tvm/ir/transform.h"
#include "tvm/tir/function.h"

namespace tvm::tir {
using ::tvm::transform::PassContext;

/// A pass given by a function (PrimFunc, IRModule, PassContext) -> PrimFunc. A result of None
/// removes the function.
struct PrimFuncPassObj : ::tvm::transform::PassObj {
  Function pass_func;
  static void Fields(auto&& def) {
    def("pass_func", &PrimFuncPassObj::pass_func);
    def("info", &PassObj::info);
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override {
    Map<GlobalVar, BaseFunc> functions = mod->functions;
    for (const auto& [var, func] : mod->functions) {
      if (!func.as<PrimFuncObj>()) continue;
      Any result = OnHomeStack([&] { return pass_func(func, mod, ctx); });
      if (result == nullptr) {
        functions.erase(var);
        continue;
      }
      auto changed = result.as<PrimFunc>();
      if (!changed) {
        TVM_FFI_THROW(TypeError) << info->name << ": expected the pass to return a PrimFunc, got "
                                 << result.GetTypeKey();
      }
      if (!changed->same_as(func)) functions.Set(var, *changed);
    }
    if (functions.same_as(mod->functions)) return mod;
    return IRModule(functions, mod->attrs, mod->global_infos);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.PrimFuncPass", PrimFuncPassObj, PassObj);
};
struct PrimFuncPass : ::tvm::transform::Pass {
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimFuncPass, Pass, PrimFuncPassObj);
};

namespace {
PrimFuncPass CreatePrimFuncPass(Function pass_func, ::tvm::transform::PassInfo info) {
  return New<PrimFuncPass>([&](PrimFuncPassObj* n) { n->pass_func = pass_func, n->info = info; });
}
/// The functions for which fcond holds.
IRModule Filter(IRModule mod, Function fcond) {
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<PrimFuncObj>() || OnHomeStack([&] { return fcond(func); }).cast<bool>())
      functions.Set(var, func);
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
IRModule Apply(IRModule mod, Function ftransform) {
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, func] : mod->functions) {
    if (func.as<PrimFuncObj>())
      functions.Set(var, OnHomeStack([&] { return ftransform(func); }).cast<PrimFunc>());
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}

TVM_REGISTER() {
  RegisterNode<PrimFuncPassObj>("A pass given by a function (func, mod, ctx) -> func.");
  Def("tir.transform.CreatePrimFuncPass", &CreatePrimFuncPass,
      "A pass over functions from a callback.", Arg("pass_func"), Arg("info"));
}
TVM_PASS(tir, Filter, R"(Keeps the functions for which fcond(func) is true.

options: fcond=lambda f: f.attrs["global_symbol"] == "main"
before:
    @T.prim_func
    def main(A: T.Buffer((1,), "float32")):
        A[0] = 1.0

    @T.prim_func
    def other(A: T.Buffer((1,), "float32")):
        A[0] = 2.0
after:
    @T.prim_func
    def main(A: T.Buffer((1,), "float32")):
        A[0] = T.float32(1))",
         Arg("fcond"))
TVM_PASS(tir, Apply, R"(Replaces each function by ftransform(func).

options: ftransform=lambda f: f.with_attr("tir.noalias", True)
before(A: T.Buffer((1,), "float32")):
    A[0] = 1.0
after:
    T.func_attr({"tir.noalias": True})
    A[0] = T.float32(1))",
         Arg("ftransform"))
}  // namespace
}  // namespace tvm::tir
