// SPDX-License-Identifier: Apache-2.0
// How graphs are compiled: lower, generate code for the virtual machine, link it with the kernels.
#include "tvm/driver/relax_build.h"

#include "driver/choose_target.h"
#include "driver/executable_cache.h"
#include "ir/target/scope.h"
#include "relax/transform/fold_constant.h"
#include "tvm/driver/relax_pipeline.h"
#include "tvm/frontend/onnx.h"
#include "tvm/frontend/torch.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/language.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/vm.h"

namespace tvm::relax {
namespace {
using runtime::vm::ExecBuilder, transform::Pass;

constexpr const char* kExternalModules = "external_mods";

/// The executable with what it calls: compiled kernels, and modules that other compilers made.
ffi::Module Link(const ExecBuilder& builder, const Optional<ffi::Module>& kernels,
                 const Array<ffi::Module>& external) {
  ffi::Module executable = builder->Get();
  if (kernels.has_value()) executable->ImportModule(kernels.value());
  // Kernels may call them, too, and look into what they import.
  ffi::Module caller = kernels.value_or(executable);
  for (const ffi::Module& mod : external) caller->ImportModule(mod);
  return executable;
}

Compiled CompileAs(decltype(VMCodeGen)* generate, IRModule mod, const Target& target,
                   const Optional<Pass>& pipeline) {
  TargetScope scope(target);
  mod = (pipeline.has_value() ? pipeline.value() : DefaultPipeline(target))(mod);
  ExecBuilder builder;
  auto external = mod->attrs.Get<Array<ffi::Module>>(kExternalModules).value_or({});
  IRModule rest = generate(builder, mod);
  auto link = [builder, external](Optional<ffi::Module> kernels) {
    return Link(builder, kernels, external);
  };
  return {WithoutAttr(rest, kExternalModules), ffi::Function::FromTyped(link)};
}

Compiled Compile(IRModule mod, Target target, Optional<Pass> pipeline) {
  return CompileAs(&VMCodeGen, mod, target, pipeline);
}
/// Functions that are found by name at run time have no code.
Compiled WithoutExterns(IRModule mod, Target, Optional<Pass>) {
  Map<GlobalVar, BaseFunc> others;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<ExternFuncObj>()) others.Set(var, func);
  }
  return {IRModule(others, mod->attrs, mod->global_infos), std::nullopt};
}

/// `main` with some of its parameters bound.
IRModule WithParams(const IRModule& mod, const Map<String, runtime::Tensor>& params) {
  if (params.empty()) return mod;
  GlobalVar var = mod->GetGlobalVar("main");
  auto main = mod->Lookup(var).as<Function>();
  if (!main)
    TVM_FFI_THROW(TypeError) << "build: expected params for a graph 'main', got "
                             << mod->Lookup(var)->GetTypeKey();
  Map<Variant<String, Var>, Expr> values;
  for (const auto& [name, tensor] : params) values.Set(name, Constant(tensor));
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  functions.Set(var, BindParams(*main, values));
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace

ffi::Module Build(IRModule mod, Target target, const BuildOptions& options) {
  target = ChooseTarget(mod, target);
  if (options.system_lib) {
    if (Backend::Of(HostOf(target)).join.empty()) {
      TVM_FFI_THROW(ValueError) << "build: expected a host that writes objects for a system "
                                   "library, got "
                                << HostOf(target)->str();
    }
    mod = WithAttr(mod, "system_lib_prefix", String(""));
  }
  mod = WithParams(mod, options.params);
  std::optional<std::string> key = ExecutableKey(mod, target, options);
  if (key) {
    if (auto found = FindExecutable(*key)) return found.value();
  }
  Compiled own =
      CompileAs(options.compiled ? &VMTIRCodeGen : &VMCodeGen, mod, target, options.relax_pipeline);
  Optional<ffi::Module> kernels;
  if (!own.rest->functions.empty()) {
    Map<String, Pass> pipelines;
    if (options.tir_pipeline.has_value()) pipelines.Set("tir", options.tir_pipeline.value());
    kernels = tvm::Build(own.rest, target, pipelines);
  }
  auto executable = own.link.value()(kernels).cast<ffi::Module>();
  if (key && !own.rest->attrs.Has(kFoldingEndedEarly))
    KeepExecutable(*key, executable, own.rest, target);
  return executable;
}

namespace {
/// [executable, warnings] of a model's file: PyTorch's archives by their name, else ONNX.
Array<Any> BuildModelFile(const String& path, const Optional<Variant<Target, String>>& target) {
  frontend::OnnxModule imported;
  if (View(path).ends_with(".pt2")) {
    imported.mod = frontend::ImportTorchArchive(std::string(path));
  } else {
    imported = frontend::ImportOnnx(std::string(path));
  }
  Target chosen;
  if (target) {
    auto text = target.value().as<String>();
    chosen = text ? Target(*text) : target.value().get<Target>();
  }
  Array<String> warnings;
  for (const std::string& text : imported.warnings) warnings.push_back(text);
  return {Build(imported.mod, chosen, BuildOptions()), warnings};
}

TVM_REGISTER() {
  Def("driver.BuildModelFile", &BuildModelFile,
      "[executable, warnings] of a model's file, with nothing of what it is compiled through.",
      Arg("path"), Arg("target"));
  RegisterLanguage({"relax", "relax.expr.Function", /*level=*/2, &Compile});
  RegisterLanguage({"extern", "relax.expr.ExternFunc", /*level=*/1, &WithoutExterns});
  Def(
      "driver.BuildRelax",
      [](IRModule mod, Optional<Target> target, Map<String, runtime::Tensor> params,
         Optional<Pass> relax_pipeline, Optional<Pass> tir_pipeline, bool compiled,
         bool system_lib) {
        return Build(mod, target.value_or(Target()),
                     {params, relax_pipeline, tir_pipeline, compiled, system_lib});
      },
      "Compiles the graphs of a module to an executable of the virtual machine.", Arg("mod"),
      Arg("target"), Arg("params"), Arg("relax_pipeline"), Arg("tir_pipeline"), Arg("compiled"),
      Arg("system_lib", false));
  Def(
      "relax.VMLink",
      [](ExecBuilder builder, Optional<Target>, Optional<ffi::Module> lib,
         Optional<Array<ffi::Module>> ext_libs, Optional<Map<String, runtime::Tensor>>) {
        return Link(builder, lib, ext_libs.value_or({}));
      },
      "The executable of a builder with compiled kernels and modules of other compilers.",
      Arg("builder"), Arg("target"), Arg("lib", nullptr), Arg("ext_libs", nullptr),
      Arg("params", nullptr));
}
}  // namespace
}  // namespace tvm::relax
