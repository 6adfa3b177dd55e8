// SPDX-License-Identifier: Apache-2.0
// Build: choose the target, then language by language from the highest level down; the code of
// each is linked with that of those below.
#include "tvm/driver/build.h"

#include "driver/choose_target.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/language.h"

namespace tvm {
Target ChooseTarget(const IRModule& mod, Target target) {
  if (target.defined()) return target;
  if (target = Target::Current(); target.defined()) return target;
  for (const auto& [var, func] : mod->Sorted()) {
    if (auto own = func->GetAttr<Target>(attr::kTarget)) return *own;
  }
  return DefaultHost();
}

Target HostOf(const Target& target) {
  if (auto host = target.Host()) return *host;
  return target->DeviceType() == kDLCPU ? target : DefaultHost();
}

namespace {
/// The language to compile next.
const Language& Highest(const IRModule& mod) {
  const Language* highest = nullptr;
  for (const auto& [var, func] : mod->Sorted()) {
    const Language& language = Language::Of(var, func);
    if (!highest || language.level > highest->level) highest = &language;
  }
  return *highest;
}
void CheckAreGone(const Language& language, const IRModule& rest) {
  for (const auto& [var, func] : rest->Sorted()) {
    if (&Language::Of(var, func) != &language) continue;
    TVM_FFI_THROW(ValueError) << "build: expected the language " << language.name
                              << " to leave none of its functions, got '" << var->name_hint << "'";
  }
}
}  // namespace

ffi::Module Build(IRModule mod, Target target, const Map<String, transform::Pass>& pipelines) {
  if (mod->functions.empty())
    TVM_FFI_THROW(ValueError) << "build: expected a module with functions, got none";
  target = ChooseTarget(mod, target);
  std::vector<Function> links;
  while (!mod->functions.empty()) {
    const Language& language = Highest(mod);
    auto own = pipelines.find(language.name);
    auto pipeline = own == pipelines.end() ? Optional<transform::Pass>() : (*own).second;
    Compiled compiled = language.compile(mod, target, pipeline);
    CheckAreGone(language, compiled.rest);
    if (compiled.link.has_value()) links.push_back(compiled.link.value());
    mod = compiled.rest;
  }
  Optional<ffi::Module> code;
  for (auto link = links.rbegin(); link != links.rend(); ++link)
    code = (*link)(code).cast<ffi::Module>();
  if (!code.has_value())
    TVM_FFI_THROW(ValueError) << "build: expected code of some function, got none";
  return code.value();
}

TVM_REGISTER() {
  using transform::Pass;
  Def(
      "driver.Build",
      [](IRModule mod, Optional<Target> target,
         Optional<Variant<Pass, Map<String, Pass>>> pipeline) {
        Map<String, Pass> pipelines;
        if (pipeline.has_value()) {
          if (auto tir = pipeline.value().as<Pass>()) {
            pipelines.Set("tir", *tir);
          } else {
            pipelines = pipeline.value().get<Map<String, Pass>>();
          }
        }
        return Build(mod, target.value_or(Target()), pipelines);
      },
      "Compiles the functions of a module. `pipeline` is that of TIR, or one for each language by "
      "name.",
      Arg("mod"), Arg("target", nullptr), Arg("pipeline", nullptr));
}
}  // namespace tvm
