// SPDX-License-Identifier: Apache-2.0
// Reading and compiling models.
#include "driver/cli/program.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "runtime/elf.h"
#include "tvm/driver/relax_build.h"
#include "tvm/frontend/onnx.h"
#include "tvm/frontend/torch.h"
#include "tvm/ir/backend.h"
#include "tvm/relax/expr.h"

namespace tvm::cli {

void Progress(const std::string& text) { std::cerr << text << std::endl; }
bool HasSuffix(const std::string& path, const char* suffix) {
  return std::filesystem::path(path).extension() == suffix;
}
bool IsSource(const std::string& path) {
  auto has = [&](const char* suffix) { return HasSuffix(path, suffix); };
  const char* suffixes[] = {".onnx", ".pt2", ".json"};
  return std::any_of(std::begin(suffixes), std::end(suffixes), has);
}
IRModule ReadProgram(const std::string& path) {
  Progress("reading " + path);
  if (HasSuffix(path, ".pt2")) return frontend::ImportTorchArchive(path);
  if (HasSuffix(path, ".onnx")) {
    frontend::OnnxModule imported = frontend::ImportOnnx(path);
    for (const std::string& warning : imported.warnings) Progress("warning: " + warning);
    return imported.mod;
  }
  std::string text(runtime::MappedFile(path).bytes());
  std::string problem;
  try {
    auto mod = ffi::Function::GetGlobalRequired("ir.load_json")(text).try_cast<IRModule>();
    if (mod) return *mod;
  } catch (const ffi::Error& error) {
    problem = ": " + error.message();
  }
  TVM_FFI_THROW(ValueError) << path
                            << ": expected a model (.onnx, .pt2) or a module that was saved "
                            << "as JSON" << problem;
  TVM_FFI_UNREACHABLE();
}
ffi::Module Compiled(const IRModule& mod, const Options& options) {
  Target target = options.Has("--target") ? Target(String(options.Get("--target"))) : DefaultHost();
  Progress("compiling for " + std::string(target->str()));
  bool has_graphs =
      std::any_of(mod->functions.begin(), mod->functions.end(),
                  [](const auto& entry) { return entry.second.template as<relax::FunctionObj>(); });
  return has_graphs ? relax::Build(mod, target) : Build(mod, target);
}

}  // namespace tvm::cli
