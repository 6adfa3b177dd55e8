// SPDX-License-Identifier: Apache-2.0
// The module that compilation for an `llvm` target gives: callable in this process, writable as files.
#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>
#include <tvm/ffi/extra/module.h>

#include <fstream>
#include <mutex>
#include <set>

#include "backend/llvm/codegen.h"
#include "backend/llvm/compile.h"
#include "tvm/ir/module.h"

namespace tvm::codegen {
namespace {

/// The functions of one LLVM module: compiled together, internal ones visible to each other.
using Group = std::vector<std::pair<GlobalVar, FunctionInfo>>;

struct Compiled {
  std::string object;
  std::vector<std::string> context_pointers;
};

FunctionInfo InfoOf(const GlobalVar& var, const PrimFunc& func) {
  FunctionInfo info;
  info.func = func;
  info.packed = func->GetAttr<int64_t>(tvm::attr::kCallingConv, 0) ==
                static_cast<int64_t>(CallingConv::kCPackedFunc);
  info.internal = func->HasNonzeroAttr("tir.private");
  String symbol = func->GetAttr<String>(tvm::attr::kGlobalSymbol, var->name_hint);
  info.symbol = (info.packed ? std::string(ffi::symbol::tvm_ffi_symbol_prefix) : "") + std::string(symbol);
  info.result = DataTypeOf(func->ret_type);
  return info;
}

/// Makes the LLVM module of a group and hands it to `use` while its machine is there.
template <class F>
void WithModule(const Group& group, const MachineOptions& options, F&& use) {
  Guarded([&] {
    MachineLease machine(options);
    llvm::LLVMContext context;
    ModuleGen gen(context, *machine, options, "tvm");
    for (const auto& [var, info] : group) gen.Declare(var, info);
    for (const auto& [var, info] : group) gen.Define(info);
    auto module = gen.Finish();
    Optimize(*module, *machine, options);
    use(*module, *machine);
  });
}

Compiled Compile(const Group& group, const MachineOptions& options) {
  Compiled out;
  WithModule(group, options, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    for (const auto& global : module.globals()) {
      if (global.hasWeakAnyLinkage()) out.context_pointers.push_back(global.getName().str());
    }
    out.object = EmitCode(module, machine, Output::kObject);
  });
  return out;
}

class LLVMModuleObj : public ffi::ModuleObj {
 public:
  LLVMModuleObj(Group functions, Target target) : target_(target), options_(MachineOptions::From(target)), functions_(std::move(functions)) {
    compiled_.push_back(Compile(functions_, options_));
    for (const auto& [var, info] : functions_) {
      if (info.packed) names_.insert(info.symbol.substr(std::string_view(ffi::symbol::tvm_ffi_symbol_prefix).size()));
    }
  }

  const char* kind() const final { return "llvm"; }
  int GetPropertyMask() const final {
    return ffi::Module::kRunnable | ffi::Module::kCompilationExportable;
  }
  bool ImplementsFunction(const String& name) final { return names_.count(std::string(name)) > 0; }
  Optional<Function> GetFunction(const String& name) final {
    std::string text(name);
    if (text == "__tvm_function_names") {
      Array<String> names;
      for (const std::string& n : names_) names.push_back(n);
      return Function::FromTyped([names]() { return names; });
    }
    if (text == "__tvm_library_info") {
      Map<String, String> info;
      info.Set("target", target_->str());
      std::string features;
      for (const std::string& f : EnabledFeatures(options_)) features += (features.empty() ? "" : ",") + f;
      info.Set("cpu_features", features);
      return Function::FromTyped([info]() { return info; });
    }
    if (!names_.count(text)) return std::nullopt;
    auto* entry = reinterpret_cast<TVMFFISafeCallType>(Jit().Lookup(ffi::symbol::tvm_ffi_symbol_prefix + text));
    // The function keeps the module, and with it the code, alive.
    auto* self = new ffi::Module(ffi::GetRef<ffi::Module>(this));
    return Function::FromExternC(self, entry, [](void* p) { delete static_cast<ffi::Module*>(p); });
  }

  String InspectSource(const String& format) const final { return Render(format.empty() ? "ll" : format, "inspect_source"); }
  Array<String> GetWriteFormats() const final { return {"o", "ll", "s", "bc"}; }
  void WriteToFile(const String& file_name, const String& format) const final {
    std::string name(file_name), kind(format);
    if (kind.empty()) kind = name.substr(name.find_last_of('.') + 1);
    std::string bytes = Render(kind, "save");
    std::ofstream file(name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) TVM_FFI_THROW(OSError) << "cannot write " << name;
  }

 private:
  /// Written anew from the functions: kept IR would cost memory that few need.
  std::string Render(const String& format, const char* what) const {
    std::string kind(format), text;
    if (kind == "o" || kind == "obj") return compiled_[0].object;
    if (kind != "ll" && kind != "s" && kind != "asm" && kind != "bc") {
      TVM_FFI_THROW(ValueError) << what << ": expected the format ll, asm, s, bc, o or obj, got '" << kind << "'";
    }
    WithModule(functions_, options_, [&](llvm::Module& module, llvm::TargetMachine& machine) {
      text = kind == "ll" ? PrintIR(module) : kind == "bc" ? WriteBitcode(module) : EmitCode(module, machine, Output::kAssembly);
    });
    return text;
  }
  JitLibrary& Jit() {
    std::lock_guard lock(mutex_);
    if (jit_) return *jit_;
    if (options_.triple != HostTriple()) {
      TVM_FFI_THROW(ValueError) << "cannot run code for " << options_.triple << " on this machine (" << HostTriple() << "); export it instead";
    }
    std::vector<std::string> objects;
    std::set<std::string> pointers;
    for (const Compiled& c : compiled_) {
      objects.push_back(c.object);
      pointers.insert(c.context_pointers.begin(), c.context_pointers.end());
    }
    auto jit = std::make_unique<JitLibrary>(objects);
    auto fill = [&](const std::string& name, void* value) {
      if (pointers.count(name)) *static_cast<void**>(jit->Lookup(name)) = value;
    };
    ffi::Module::VisitContextSymbols(ffi::TypedFunction<void(String, void*)>([&](String name, void* value) { fill(std::string(name), value); }));
    fill(ffi::symbol::tvm_ffi_library_ctx, static_cast<ffi::ModuleObj*>(this));
    jit_ = std::move(jit);
    return *jit_;
  }

  Target target_;
  MachineOptions options_;
  Group functions_;
  std::vector<Compiled> compiled_;
  std::set<std::string> names_;
  std::mutex mutex_;
  std::unique_ptr<JitLibrary> jit_;
};

ffi::Module Build(IRModule mod, Target target) {
  Group functions;
  for (const auto& [var, func] : mod->Sorted()) {
    if (auto prim = func.as<PrimFunc>()) functions.emplace_back(var, InfoOf(var, *prim));
  }
  return ffi::Module(ffi::make_object<LLVMModuleObj>(std::move(functions), target));
}

TVM_REGISTER() {
  Def("target.build.llvm", &Build, "Compiles the lowered functions of a module with LLVM.", Arg("mod"), Arg("target"));
}
}  // namespace
}  // namespace tvm::codegen
