// SPDX-License-Identifier: Apache-2.0
// Passes over the graph language.
#pragma once
#include <functional>

#include "tvm/ir/transform.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {

/// The module with what `change(variable, function)` makes of each function of the graph language,
/// in the order of their names; the module itself where nothing changes.
IRModule MapFunctions(const IRModule& mod,
                      const std::function<Function(const GlobalVar&, const Function&)>& change);
/// A pass over the functions of the graph language that sees the module: `fn` is
/// `Function (Function, IRModule, options...)`.
template <auto fn, class... A>
IRModule RunOnFunctions(IRModule mod, A... options) {
  return MapFunctions(
      mod, [&](const GlobalVar&, const Function& func) { return fn(func, mod, options...); });
}
template <auto fn, class... A>
constexpr auto FunctionPassOf(Function (*)(Function, IRModule, A...)) {
  return &RunOnFunctions<fn, A...>;
}

/// TVM_RELAX_PASS(FuseOps, 0, "doc", Arg(...)): `IRModule FuseOps(IRModule, ...)`, and
/// TVM_RELAX_FUNCTION_PASS alike for `Function F(Function, IRModule, ...)`; the number is the level
/// at which the pass runs. PassInfo has the name without a prefix.
#define TVM_RELAX_PASS(fn, level, doc, ...)                                                  \
  TVM_REGISTER() {                                                                           \
    ::tvm::transform::DefPass("relax.transform." #fn, &fn, doc,                              \
                              {.opt_level = level, .name = #fn} __VA_OPT__(, ) __VA_ARGS__); \
  }
#define TVM_RELAX_FUNCTION_PASS(fn, level, doc, ...)                                         \
  TVM_REGISTER() {                                                                           \
    ::tvm::transform::DefPass("relax.transform." #fn, FunctionPassOf<&fn>(&fn), doc,         \
                              {.opt_level = level, .name = #fn} __VA_OPT__(, ) __VA_ARGS__); \
  }

/// Names of functions in order: public ones have that of their global symbol, private ones yield.
IRModule NormalizeGlobalVar(IRModule mod);

}  // namespace tvm::relax
