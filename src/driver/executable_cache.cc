// SPDX-License-Identifier: Apache-2.0
// An executable is kept as the library that export writes of it, with its kernels as they were
// before they were scheduled.
#include "driver/executable_cache.h"

#include <mutex>

#include "driver/choose_target.h"
#include "ir/context_scope.h"
#include "ir/digest.h"
#include "runtime/elf.h"
#include "runtime/identity.h"
#include "tvm/driver/build.h"
#include "tvm/driver/export.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/structural.h"
#include "tvm/runtime/disk_cache.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/vm.h"

namespace tvm::relax {
namespace {
using runtime::DiskCache, transform::PassContext;

/// The symbol of the library that holds what its kernels are compiled of, as JSON: the module, the
/// target, the options of passes.
constexpr const char* kKernels = "__tvm_kept_kernels";

/// The code of an executable that was found: it runs as it lies in the file.
class FoundCodeObj final : public ffi::ModuleObj {
 public:
  FoundCodeObj(std::string kind, ffi::Module library, std::shared_ptr<runtime::MappedFile> file)
      : kind_(std::move(kind)), library_(std::move(library)), file_(std::move(file)) {}
  const char* kind() const final { return kind_.c_str(); }
  int GetPropertyMask() const final {
    return ffi::Module::kRunnable | ffi::Module::kCompilationExportable;
  }
  Optional<Function> GetFunction(const String& name) final {
    bool is_about_code =
        View(name) == runtime::kLibraryInfo || View(name) == runtime::kFunctionNames;
    if (is_about_code) return Compiled()->GetFunction(name);
    return library_->GetFunction(name);
  }
  String InspectSource(const String& format) const final {
    return Compiled()->InspectSource(format);
  }
  Array<String> GetWriteFormats() const final { return Compiled()->GetWriteFormats(); }
  void WriteToFile(const String& file_name, const String& format) const final {
    Compiled()->WriteToFile(file_name, format);
  }

 private:
  ffi::Module Compiled() const {
    std::lock_guard lock(mutex_);
    if (!compiled_.has_value()) {
      String text(std::string(runtime::SymbolData(file_->bytes(), kKernels)));
      auto parts = LoadJson(text).cast<Array<Any>>();
      transform::ContextScope scope(parts[2].cast<PassContext>());
      compiled_ = tvm::Build(parts[0].cast<IRModule>(), parts[1].cast<Target>());
    }
    return compiled_.value();
  }

  std::string kind_;
  ffi::Module library_;
  std::shared_ptr<runtime::MappedFile> file_;
  mutable std::mutex mutex_;
  mutable Optional<ffi::Module> compiled_;
};

uint64_t BytesOfConstants(const ffi::Module& executable) {
  uint64_t bytes = 0;
  auto* program = dynamic_cast<const runtime::vm::ExecutableObj*>(executable.get());
  for (const Any& constant : program->constants) {
    if (auto tensor = runtime::vm::As<runtime::Tensor>(constant))
      bytes += runtime::DataSize(tensor->shape(), tensor->dtype());
  }
  return bytes;
}
/// The constants of a library that is found are not read.
DiskCache::Range ConstantsIn(const std::string& library) {
  runtime::MappedFile file(library);
  std::string_view data = runtime::SymbolData(file.bytes(), runtime::kLibraryData);
  if (data.empty()) return {};
  return {static_cast<uint64_t>(data.data() - file.bytes().data()), data.size()};
}
}  // namespace

std::optional<std::string> ExecutableKey(const IRModule& mod, const Target& target,
                                         const BuildOptions& options) {
  PassContext context = PassContext::Current();
  if (DiskCache::Global().limit() == 0 || !context->GetConfig<bool>("relax.cache_executables"))
    return std::nullopt;
  bool is_own = !options.relax_pipeline.has_value() && !options.tir_pipeline.has_value() &&
                context->instruments.empty() && !runtime::IsChanged();
  // Source text is compiled by compilers that we do not know.
  const Backend& backend = Backend::Of(target);
  if (!is_own || options.system_lib || !backend.is_host || backend.join.empty() || !backend.Load())
    return std::nullopt;
  std::string compiler = runtime::BuildIds();
  if (compiler.empty()) return std::nullopt;
  auto digest = DigestOf(Array<Any>{mod, target, Machine::Of(target), context, options.compiled});
  if (!digest) return std::nullopt;
  return "executable " + compiler + digest->Hex();
}

Optional<ffi::Module> FindExecutable(const std::string& key) {
  auto found = DiskCache::Global().FindFile(key);
  if (!found) return std::nullopt;
  try {
    ffi::Module executable = runtime::LoadModule(found->path);
    auto library = executable->imports()[0].cast<ffi::Module>();
    executable->ClearImports();
    std::string kind = DefaultHost()->kind->name;
    executable->ImportModule(
        ffi::Module(ffi::make_object<FoundCodeObj>(kind, library, found->mapped)));
    return executable;
  } catch (const ffi::Error&) {  // another process removed it
    return std::nullopt;
  }
}

void KeepExecutable(const std::string& key, const ffi::Module& executable, const IRModule& kernels,
                    const Target& target) {
  const Array<Any>& imports = executable->imports();
  if (imports.size() != 1 || !imports[0].cast<ffi::Module>()->imports().empty()) return;
  auto write = [&](const std::string& path) {
    ExportOptions options;
    options.texts[kKernels] = SaveJson(Array<Any>{kernels, target, PassContext::Current()});
    ExportLibrary(executable, path, options);
    runtime::LoadModule(path);
    return ConstantsIn(path);
  };
  try {
    DiskCache::Global().StoreFile(key, BytesOfConstants(executable), write);
  } catch (const ffi::Error& error) {
    if (error.kind() != "OSError" && error.kind() != "ValueError") throw;
  }
}

TVM_REGISTER() {
  transform::DefConfig<bool>("relax.cache_executables", true,
                             "Executables of graphs are kept on disk, in the cache of compiled "
                             "functions, and found there.");
}
}  // namespace tvm::relax
