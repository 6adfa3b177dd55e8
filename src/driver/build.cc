// SPDX-License-Identifier: Apache-2.0
// Build: choose targets, lower, split by target, generate code, link the modules together.
#include "tvm/driver/build.h"

#include <map>

#include "tvm/ir/libraries.h"
#include "tvm/tir/function.h"
#include "tvm/tir/pipeline.h"

namespace tvm {
namespace {
bool IsHostKind(const Target& target) {
  return target->kind->name == "llvm" || target->kind->name == "c";
}
/// The code generator for the host: LLVM where it is installed.
Target DefaultHost() { return Target(LoadLLVM() ? "llvm" : "c"); }

Target HostOf(const Target& target) {
  if (auto host = target.Host()) return *host;
  return target->DeviceType() == kDLCPU ? target : DefaultHost();
}
/// The attribute "target" of a function, or an undefined target.
Target TargetOf(const BaseFunc& func) {
  return func->GetAttr<Target>(attr::kTarget).value_or(Target());
}
Target ChooseTarget(const IRModule& mod, Target target) {
  if (target.defined()) return target;
  if (target = Target::Current(); target.defined()) return target;
  for (const auto& [var, func] : mod->Sorted()) {
    if (target = TargetOf(func); target.defined()) return target;
  }
  return DefaultHost();
}
/// The code generator of a target's kind; RuntimeError when this build has none.
Function CodeGenerator(const Target& target) {
  if (target->kind->name == "llvm" && !LoadLLVM()) {
    TVM_FFI_THROW(RuntimeError) << "build: expected the LLVM backend (libtvm_llvm) for target "
                                << target->str() << ", which is not installed";
  }
  auto generate = Function::GetGlobal("target.build." + std::string(target->kind->name));
  if (!generate) {
    TVM_FFI_THROW(RuntimeError) << "build: expected a target this build generates code for, got "
                                << target->str() << ": it has no code generator for kind "
                                << target->kind->name;
  }
  return *generate;
}
/// The lowered functions of one target.
IRModule Select(const IRModule& mod, const std::vector<std::pair<GlobalVar, BaseFunc>>& functions) {
  Map<GlobalVar, BaseFunc> selected;
  for (const auto& [var, func] : functions) selected.Set(var, func);
  return IRModule(selected, mod->attrs, mod->global_infos);
}
}  // namespace

ffi::Module Build(IRModule mod, Target target, Optional<transform::Pass> pipeline) {
  if (mod->functions.empty())
    TVM_FFI_THROW(ValueError) << "build: expected a module with functions, got none";
  for (const auto& [var, func] : mod->Sorted()) {
    if (!func.as<tir::PrimFuncObj>()) {
      TVM_FFI_THROW(TypeError) << "build: expected PrimFuncs, got '" << var->name_hint << "', a "
                               << func->GetTypeKey();
    }
  }
  target = ChooseTarget(mod, target);
  Target host = HostOf(target);
  // Asked first: what cannot be generated need not be lowered.
  Function generate_host = CodeGenerator(host);
  CodeGenerator(target);
  mod = transform::GetPass("tir.BindTarget", {target.WithHost(host)})(mod);
  mod = (pipeline.has_value() ? pipeline.value() : tir::DefaultPipeline(target))(mod);

  // Functions by target; a function without one belongs to the host.
  std::vector<std::pair<GlobalVar, BaseFunc>> host_functions;
  std::map<std::string, std::pair<Target, std::vector<std::pair<GlobalVar, BaseFunc>>>>
      device_functions;
  for (const auto& [var, func] : mod->Sorted()) {
    Target own = TargetOf(func);
    if (!own.defined() || IsHostKind(own)) {
      host_functions.emplace_back(var, func);
    } else {
      auto& group = device_functions[own->str()];
      group.first = own;
      group.second.emplace_back(var, func);
    }
  }
  IRModule host_module = tir::FinalizeHost()(Select(mod, host_functions));
  auto result = generate_host(host_module, host).cast<ffi::Module>();
  for (const auto& [name, group] : device_functions) {
    IRModule device = tir::FinalizeDevice()(Select(mod, group.second));
    result->ImportModule(CodeGenerator(group.first)(device, group.first).cast<ffi::Module>());
  }
  return result;
}

TVM_REGISTER() {
  Def(
      "driver.Build",
      [](IRModule mod, Optional<Target> target, Optional<transform::Pass> pipeline) {
        return Build(mod, target.value_or(Target()), pipeline);
      },
      "Compiles the PrimFuncs of a module.", Arg("mod"), Arg("target", nullptr),
      Arg("pipeline", nullptr));
}
}  // namespace tvm
