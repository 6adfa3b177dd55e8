// SPDX-License-Identifier: Apache-2.0
// How PrimFuncs are compiled: lower, split by target, generate code, link host and devices.
#include <map>

#include "driver/choose_target.h"
#include "tir/analysis/complaint.h"
#include "tvm/driver/tir_pipeline.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/language.h"
#include "tvm/tir/function.h"

namespace tvm {
namespace {
using Functions = std::vector<std::pair<GlobalVar, BaseFunc>>;

IRModule Select(const IRModule& mod, const Functions& functions) {
  Map<GlobalVar, BaseFunc> selected;
  for (const auto& [var, func] : functions) selected.Set(var, func);
  return IRModule(selected, mod->attrs, mod->global_infos);
}

ffi::Module Generate(IRModule mod, const Target& target,
                     const Optional<transform::Pass>& pipeline) {
  Target host = HostOf(target);
  // Asked first: what cannot be generated need not be lowered.
  const Backend& host_backend = Backend::Of(host);
  host_backend.Generator(host);
  Backend::Of(target).Generator(target);
  mod = transform::GetPass("tir.BindTarget", {target.WithHost(host)})(mod);
  mod = (pipeline.has_value() ? pipeline.value() : tir::DefaultPipeline(target))(mod);

  // Functions by target; a function without one belongs to the host.
  Functions host_functions;
  std::map<std::string, std::pair<Target, Functions>> device_functions;
  for (const auto& [var, func] : mod->Sorted()) {
    Target own = func->GetAttr<Target>(attr::kTarget).value_or(host);
    if (Backend::Of(own).is_host) {
      host_functions.emplace_back(var, func);
    } else {
      auto& group = device_functions[own->str()];
      group.first = own;
      group.second.emplace_back(var, func);
    }
  }
  ffi::Module result = host_backend.Build(tir::FinalizeHost()(Select(mod, host_functions)), host);
  for (const auto& [name, group] : device_functions) {
    const auto& [own, functions] = group;
    IRModule device = tir::FinalizeDevice()(Select(mod, functions));
    result->ImportModule(Backend::Of(own).Build(device, own));
  }
  return result;
}
/// What is certain to touch memory that is not its own is not compiled.
void CheckIndices(const Functions& functions) {
  for (const auto& [var, func] : functions) {
    std::string problem = tir::FindCertainlyOutside(func.as<tir::PrimFunc>().value());
    if (!problem.empty())
      TVM_FFI_THROW(IndexError) << "build: " << var->name_hint << ": " << problem;
  }
}
/// Kernels call nothing of other languages: they are compiled to a module, and linked as one.
Compiled Compile(IRModule mod, Target target, Optional<transform::Pass> pipeline) {
  Functions own, others;
  for (const auto& [var, func] : mod->Sorted())
    (func.as<tir::PrimFuncObj>() ? own : others).emplace_back(var, func);
  CheckIndices(own);
  ffi::Module code = Generate(Select(mod, own), target, pipeline);
  auto link = [code](Optional<ffi::Module> below) {
    if (below.has_value()) code->ImportModule(below.value());
    return code;
  };
  return {Select(mod, others), Function::FromTyped(link)};
}
TVM_REGISTER() { RegisterLanguage({"tir", "tir.PrimFunc", /*level=*/0, &Compile}); }
}  // namespace
}  // namespace tvm
