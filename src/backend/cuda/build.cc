// SPDX-License-Identifier: Apache-2.0
// Lowered kernels to a module: text, then a binary for the target's architecture.
#include <sstream>

#include "backend/cuda/codegen.h"
#include "backend/cuda/nvrtc.h"
#include "runtime/device/cuda/module.h"
#include "tune/parallel.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::codegen::cuda {
namespace {
/// All architectures that there shall be code for: "sm_80,sm_90a" names two.
std::vector<std::string> ArchsOf(const Target& target) {
  std::string given(target->GetAttr<String>("arch", ""));
  std::vector<std::string> archs;
  std::istringstream stream(given);
  for (std::string arch; std::getline(stream, arch, ',');) {
    if (arch.empty() || std::find(archs.begin(), archs.end(), arch) != archs.end()) {
      TVM_FFI_THROW(ValueError) << "target cuda: expected architectures once each in -arch, got "
                                << given;
    }
    archs.push_back(arch);
  }
  if (archs.empty()) {
    TVM_FFI_THROW(ValueError) << "target cuda: expected -arch (such as sm_90a) in target "
                              << target->str() << ", since there is no GPU to ask";
  }
  return archs;
}
std::vector<runtime::cuda::KernelInfo> KernelsOf(const FunctionList& functions) {
  std::vector<runtime::cuda::KernelInfo> kernels;
  for (const auto& [var, info] : functions) {
    runtime::cuda::KernelInfo kernel;
    kernel.name = info.symbol;
    for (const Var& param : info.func->params) {
      bool is_map = param->type_annotation.as<TensorMapTypeObj>();
      kernel.params.push_back(is_map ? DataType(kDLOpaqueHandle, 64, 16) : param.dtype());
    }
    for (const String& word :
         info.func->GetAttr<Array<String>>("tir.kernel_launch_params", Array<String>()))
      kernel.launch.emplace_back(word);
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}
/// What users hook in: (code, target) -> code.
std::string PostProcessed(std::string source, const Target& target) {
  if (auto hook = Function::GetGlobal("tvm_callback_cuda_postproc"))
    return std::string((*hook)(String(source), target).cast<String>());
  return source;
}
runtime::cuda::Binary Compile(const std::string& source, const std::string& arch) {
  return {"cubin", arch, CompileWithNvrtc(source, "cubin", arch, {"--std=c++17"}).code};
}
/// By the user's compiler, where there is one, else by NVRTC for each architecture.
std::vector<runtime::cuda::Binary> CompileAll(const std::string& source,
                                              const std::vector<std::string>& archs) {
  auto hook = Function::GetGlobal("tvm_callback_cuda_compile");
  if (!hook) {
    std::vector<runtime::cuda::Binary> binaries(archs.size());
    tune::ParallelFor(archs.size(), runtime::NumThreads(),
                      [&](size_t i) { binaries[i] = Compile(source, archs[i]); });
    return binaries;
  }
  Any result = (*hook)(String(source));
  std::string code;
  if (auto bytes = result.as<ffi::Bytes>()) {
    code.assign(bytes->data(), bytes->size());
  } else {
    code = std::string(result.cast<String>());
  }
  // A fatbin has binaries for several architectures, of which the driver takes the one that fits.
  constexpr const char *kElf = "\x7f\x45\x4c\x46", *kFatbin = "\x50\xed\x55\xba";
  bool is_elf = code.starts_with(kElf), is_fatbin = code.starts_with(kFatbin);
  return {{is_elf ? "cubin" : is_fatbin ? "fatbin" : "ptx", archs[0], code}};
}

bool HasHooks() {
  return Function::GetGlobal("tvm_callback_cuda_postproc").has_value() ||
         Function::GetGlobal("tvm_callback_cuda_compile").has_value();
}

ffi::Module Build(IRModule mod, Target target) {
  constexpr size_t kTogether = 4;  // kernels that are compiled as one text
  FunctionList functions = FunctionsOf(mod, "target.build.cuda");
  std::vector<runtime::cuda::KernelInfo> kernels = KernelsOf(functions);
  std::vector<std::string> archs = ArchsOf(target);
  std::string source = KernelFile(functions).Source();
  if (functions.size() <= kTogether || HasHooks()) {
    source = PostProcessed(source, target);
    return runtime::cuda::MakeModule(CompileAll(source, archs), kernels, source);
  }
  // Of many each by itself, on all cores.
  std::vector<runtime::cuda::Binary> binaries(functions.size() * archs.size());
  tune::ParallelFor(binaries.size(), runtime::NumThreads(), [&](size_t i) {
    size_t kernel = i / archs.size();
    binaries[i] = Compile(KernelFile({functions[kernel]}).Source(), archs[i % archs.size()]);
    if (i % archs.size() == 0) kernels[kernel].binary = i;
  });
  return runtime::cuda::MakeModule(binaries, kernels, source);
}
/// A module of one kernel that somebody wrote as text.
ffi::Module ModuleFromSource(String source, String name, Array<String> params, Array<String> launch,
                             Target target) {
  runtime::cuda::KernelInfo kernel;
  kernel.name = std::string(name);
  for (const String& type : params) kernel.params.push_back(DataType(type));
  for (const String& word : launch) kernel.launch.emplace_back(word);
  std::string text(source);
  return runtime::cuda::MakeModule(CompileAll(text, ArchsOf(target)), {kernel}, text);
}
TVM_REGISTER() {
  Def("cuda.module_from_source", &ModuleFromSource,
      "Compiles CUDA text to a module of one kernel, whose arguments have these types; after them "
      "come the values that launch names: blockIdx.x, threadIdx.x and so on.",
      Arg("source"), Arg("name"), Arg("params"), Arg("launch"), Arg("target"));
  RegisterBackend({.kind = "cuda", .final_passes = {"tir.FP16ComputeLegalize"}});
  Def("target.build.cuda", &Build, "Compiles the lowered kernels of a module for NVIDIA's GPUs.",
      Arg("mod"), Arg("target"));
}
}  // namespace
}  // namespace tvm::codegen::cuda
