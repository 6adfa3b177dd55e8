// SPDX-License-Identifier: Apache-2.0
// The module that results: C text, compiled by the system's compiler when a function of it is asked
// for.
#include "tvm/runtime/module.h"

#include <tvm/ffi/extra/module.h>

#include <fstream>
#include <mutex>
#include <optional>
#include <set>

#include "backend/c/codegen.h"
#include "backend/c/compile.h"
#include "runtime/cpu_features.h"
#include "tvm/ir/backend.h"
#include "tvm/ir/machine.h"

namespace tvm::codegen::c {
namespace {
class CModuleObj : public ffi::ModuleObj {
 public:
  CModuleObj(const FunctionList& functions, Target target) : target_(std::move(target)) {
    ModuleText text(functions, Machine::Of(target_)->vector_bits);
    source_ = text.Source();
    header_ = text.Header();
    for (const auto& [var, info] : functions) {
      if (info.packed) names_.insert(info.symbol);
    }
  }

  /// Of a text that somebody wrote, with the functions that it defines.
  CModuleObj(String source, const Array<String>& names, Target target)
      : target_(std::move(target)), source_(source) {
    for (const String& name : names) names_.insert(std::string(name));
  }

  const char* kind() const final { return "c"; }
  int GetPropertyMask() const final {
    return ffi::Module::kRunnable | ffi::Module::kCompilationExportable;
  }
  bool ImplementsFunction(const String& name) final { return names_.count(std::string(name)) > 0; }
  Optional<Function> GetFunction(const String& name) final {
    if (View(name) == runtime::kFunctionNames) {
      Array<String> names;
      for (const std::string& n : names_) names.push_back(n);
      return Function::FromTyped([names]() { return names; });
    }
    if (View(name) == runtime::kLibraryInfo) {
      Map<String, String> info{{"target", target_->str()}, {"cpu_features", Features()}};
      return Function::FromTyped([info]() { return info; });
    }
    if (!names_.count(std::string(name))) return std::nullopt;
    return Library()->GetFunction(name);
  }
  /// Generated code looks its imports up in the library.
  void ImportModule(const ffi::Module& other) final {
    ffi::ModuleObj::ImportModule(other);
    std::lock_guard lock(mutex_);
    if (library_) (*library_)->ImportModule(other);
  }
  void ClearImports() final {
    ffi::ModuleObj::ClearImports();
    std::lock_guard lock(mutex_);
    if (library_) (*library_)->ClearImports();
  }

  String InspectSource(const String& format) const final {
    return Render(format.empty() ? "c" : std::string(format), "inspect_source");
  }
  Array<String> GetWriteFormats() const final { return {"o", "obj", "c", "h"}; }
  void WriteToFile(const String& file_name, const String& format) const final {
    std::string name(file_name), kind(format);
    if (kind.empty()) kind = name.substr(name.find_last_of('.') + 1);
    std::ofstream file(name, std::ios::binary);
    file << Render(kind, "write_to_file");
    file.close();
    if (!file) TVM_FFI_THROW(OSError) << "cannot write " << name;
  }

 private:
  std::string Render(const std::string& kind, const char* what) const {
    if (kind == "c" || kind == "cc") return source_;
    if (kind == "h") return header_;
    if (kind == "o" || kind == "obj")
      return Compiler::For(target_).Compile(source_, Compiler::Output::kObject);
    TVM_FFI_THROW(ValueError) << what << ": expected the format c, h, o or obj, got '" << kind
                              << "'";
    TVM_FFI_UNREACHABLE();
  }
  /// What the compiler may have used of this CPU, in LLVM's names.
  std::string Features() const {
    std::string list;
    auto given = [&](const char* option) { return !target_->GetAttr<String>(option, "").empty(); };
    if (given("march") || given("mcpu") || given("mtriple")) return list;
    for (const auto& [name, has] : runtime::CpuFeatures()) {
      if (has) list += (list.empty() ? "" : ",") + name;
    }
    return list;
  }
  const ffi::Module& Library() {
    std::lock_guard lock(mutex_);
    if (library_) return *library_;
    std::string bytes = Compiler::For(target_).Compile(source_, Compiler::Output::kShared);
    ffi::Module library = runtime::LoadModuleFromBytes(bytes);
    for (const Any& import : imports_) library->ImportModule(import.cast<ffi::Module>());
    return library_.emplace(library);
  }

  Target target_;
  std::string source_, header_;
  std::set<std::string> names_;
  std::mutex mutex_;
  std::optional<ffi::Module> library_;
};

ffi::Module Build(IRModule mod, Target target) {
  FunctionList functions = FunctionsOf(mod, "target.build.c");
  return ffi::Module(ffi::make_object<CModuleObj>(functions, target));
}

ffi::Module FromSource(String code, String fmt, Array<String> func_names,
                       Array<String> const_vars) {
  if (fmt != "c" || !const_vars.empty()) {
    TVM_FFI_THROW(ValueError) << "CSourceModuleCreate: expected the format c without const_vars, "
                                 "got '"
                              << fmt << "' and " << const_vars.size() << " const_vars";
  }
  return ffi::Module(ffi::make_object<CModuleObj>(code, func_names, Target("c")));
}

TVM_REGISTER() {
  // C has no type for float16.
  RegisterBackend({.kind = "c",
                   .is_host = true,
                   .final_passes = {"tir.FP16ComputeLegalize"},
                   .link = "codegen.link_with_compiler"});
  Def("target.build.c", &Build, "Writes the lowered functions of a module as C.", Arg("mod"),
      Arg("target"));
  Def("runtime.CSourceModuleCreate", &FromSource,
      "A module of C that defines __tvm_ffi_<name>(self, args, num_args, result) for each of "
      "`func_names`; it is compiled when one of them is asked for.",
      Arg("code"), Arg("fmt"), Arg("func_names"), Arg("const_vars", Array<String>()));
}
}  // namespace
}  // namespace tvm::codegen::c
