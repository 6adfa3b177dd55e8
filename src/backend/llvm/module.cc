// SPDX-License-Identifier: Apache-2.0
// The module that compilation for an `llvm` target gives: callable in this process, writable as
// files.
#include "tvm/ir/module.h"

#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "backend/llvm/codegen.h"
#include "backend/llvm/compile.h"
#include "backend/llvm/interrupt.h"
#include "tvm/runtime/disk_cache.h"
#include "tvm/runtime/module.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::codegen {
namespace {
constexpr const char* kSystemLibPrefix = "system_lib_prefix";
constexpr std::string_view kPackedPrefix = ffi::symbol::tvm_ffi_symbol_prefix;

/// The functions of one LLVM module: compiled together, internal ones visible to each other.
using Group = FunctionList;

struct Compiled {
  std::string object;
  std::vector<std::string> context_pointers;
};

// ---- groups -------------------------------------------------------------------------------------
/// Functions of the module that a function calls, and how many nodes it has.
struct Uses : Visitor<Uses, GlobalVarObj, StmtObj, PrimExprObj> {
  std::set<std::string> called;
  size_t nodes = 0;
  void Visit(const GlobalVarObj* var) { called.insert(std::string(var->name_hint)); }
  void Visit(const StmtObj* n) { ++nodes, VisitChildren(n, *this); }
  void Visit(const PrimExprObj* n) { ++nodes, VisitChildren(n, *this); }
};

/// Splits a large module so that its parts compile at the same time. Visible functions are spread
/// by size; internal functions go along with their callers, into several groups where need be.
constexpr size_t kWorthAThread = 2000;  // nodes
std::vector<Group> Split(const Group& all, size_t most, size_t* total_nodes) {
  std::map<std::string, size_t> index;
  std::vector<Uses> uses(all.size());
  size_t total = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    index[std::string(all[i].first->name_hint)] = i;
    uses[i](all[i].second.func->body);
    total += uses[i].nodes;
  }
  *total_nodes = total;
  std::vector<size_t> roots;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!all[i].second.internal) roots.push_back(i);
  }
  size_t count = std::min({most, roots.size(), total / kWorthAThread});
  if (count < 2) return {all};

  auto closure = [&](size_t root) {
    std::set<size_t> seen = {root};
    std::vector<size_t> open = {root};
    while (!open.empty()) {
      size_t i = open.back();
      open.pop_back();
      for (const std::string& name : uses[i].called) {
        auto it = index.find(name);
        if (it != index.end() && all[it->second].second.internal &&
            seen.insert(it->second).second) {
          open.push_back(it->second);
        }
      }
    }
    return seen;
  };
  std::vector<std::pair<size_t, std::set<size_t>>> pieces;
  for (size_t root : roots) {
    auto members = closure(root);
    size_t nodes = 0;
    for (size_t i : members) nodes += uses[i].nodes;
    pieces.emplace_back(nodes, std::move(members));
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<std::pair<size_t, std::set<size_t>>> bins(count);
  for (auto& [nodes, members] : pieces) {
    auto bin = std::min_element(bins.begin(), bins.end(),
                                [](auto& a, auto& b) { return a.first < b.first; });
    bin->first += nodes;
    bin->second.insert(members.begin(), members.end());
  }
  std::vector<Group> groups;
  for (const auto& [nodes, members] : bins) {
    Group& group = groups.emplace_back();
    for (size_t i : members) group.push_back(all[i]);
  }
  return groups;
}

// ---- compilation --------------------------------------------------------------------------------
/// Makes the LLVM module of a group, not optimised yet, and hands it to `use` while its machine is
/// there.
template <class F>
void WithModule(const Group& group, const Group& all, const MachineOptions& options, F&& use) {
  Guarded([&] {
    CommandLineScope command_line(options.command_line);
    MachineLease machine(options);
    llvm::LLVMContext context;
    ModuleGen gen(context, *machine, options, "tvm");
    for (const auto& [var, info] : group) gen.Declare(var, info);
    for (const auto& [var, info] : all) {
      // A visible function of another group.
      if (!info.internal && !gen.functions.count(std::string(var->name_hint)))
        gen.Declare(var, info);
    }
    for (const auto& [var, info] : group) gen.Define(info);
    auto module = gen.Finish();
    auto* features = machine->getMCSubtargetInfo();
    if (machine->getTargetTriple().isX86() && !features->checkFeatures("+avx512fp16")) {
      AddHalfConversions(*module, features->checkFeatures("+f16c"));
    }
    use(*module, *machine);
  });
}
/// Everything the object code of a module depends on; the version of passes is made of their
/// sources.
std::string CacheKey(const llvm::Module& module, const MachineOptions& options) {
  return TVM_VERSION " llvm " LLVM_VERSION_STRING " passes " TVM_PASSES_VERSION "\n" +
         OurCommandLine() + options.Key() + "\n" + WriteBitcode(module);
}
Compiled Compile(const Group& group, const Group& all, const MachineOptions& options) {
  Compiled out;
  WithModule(group, all, options, [&](llvm::Module& module, llvm::TargetMachine& machine) {
    for (const auto& global : module.globals()) {
      if (global.hasWeakAnyLinkage()) out.context_pointers.push_back(global.getName().str());
    }
    auto& cache = runtime::DiskCache::Global();
    std::string key = cache.limit() > 0 ? CacheKey(module, options) : "";
    if (auto found = cache.Find(key)) {
      out.object = std::move(*found);
      return;
    }
    Optimize(module, machine, options);
    if (IsAbandoned()) return;
    out.object = EmitCode(module, machine, Output::kObject);
    cache.Store(key, out.object);
  });
  return out;
}

std::vector<Compiled> CompileAll(const Group& all, const MachineOptions& options) {
  bool is_elf = llvm::Triple(options.triple).isOSBinFormatELF();
  size_t nodes = 0;
  auto groups = Split(all, is_elf ? runtime::NumThreads() : 1, &nodes);
  if (nodes < kWorthAThread) return {Compile(all, all, options)};
  auto compiled = std::make_shared<std::vector<Compiled>>(groups.size());
  RunInterruptibly([=] {  // owns all of it
    runtime::ParallelRun(static_cast<int>(groups.size()),
                         [&](int i, int) { (*compiled)[i] = Compile(groups[i], all, options); });
  });
  return std::move(*compiled);
}

// ---- files --------------------------------------------------------------------------------------
void WriteFile(const std::string& name, std::string_view bytes) {
  std::ofstream file(name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) TVM_FFI_THROW(OSError) << "cannot write " << name;
}
/// A file that is gone at the end of the scope.
struct TemporaryFile {
  llvm::SmallString<128> path;
  TemporaryFile() {
    if (auto error = llvm::sys::fs::createTemporaryFile("tvm", "o", path)) {
      TVM_FFI_THROW(OSError) << "cannot make a temporary file: " << error.message();
    }
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  std::string str() const { return path.str().str(); }
};
std::string MergeObjects(const std::vector<Compiled>& parts) {
  if (parts.size() == 1) return parts[0].object;
  std::vector<std::unique_ptr<TemporaryFile>> files;
  TemporaryFile out;
  std::vector<std::string> arguments = {"-r", "-o", out.str()};
  for (const Compiled& part : parts) {
    files.push_back(std::make_unique<TemporaryFile>());
    WriteFile(files.back()->str(), part.object);
    arguments.push_back(files.back()->str());
  }
  Link(arguments);
  std::ifstream file(out.str(), std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

// ---- the module ---------------------------------------------------------------------------------
class LLVMModuleObj : public ffi::ModuleObj {
 public:
  LLVMModuleObj(Group functions, const Target& target, Optional<String> system_lib_prefix)
      : target_(target),
        options_(MachineOptions::From(target)),
        functions_(std::move(functions)),
        system_lib_prefix_(std::move(system_lib_prefix)) {
    compiled_ = CompileAll(functions_, options_);
    for (const auto& [var, info] : functions_) {
      if (info.packed) names_.insert(info.symbol);
    }
  }

  const char* kind() const final { return "llvm"; }
  int GetPropertyMask() const final {
    return ffi::Module::kRunnable | ffi::Module::kCompilationExportable;
  }
  bool ImplementsFunction(const String& name) final { return names_.count(std::string(name)) > 0; }
  Optional<Function> GetFunction(const String& name) final {
    std::string text(name);
    if (text == runtime::kFunctionNames) {
      Array<String> names;
      for (const std::string& n : names_) names.push_back(n);
      return Function::FromTyped([names]() { return names; });
    }
    if (text == runtime::kLibraryInfo) {
      Map<String, String> info{{"target", target_->str()}, {"cpu_features", Features()}};
      if (system_lib_prefix_.has_value()) info.Set(kSystemLibPrefix, system_lib_prefix_.value());
      return Function::FromTyped([info]() { return info; });
    }
    if (!names_.count(text)) return std::nullopt;
    void* entry = Jit().Lookup(std::string(kPackedPrefix) + text);
    // The function keeps the module, and with it the code, alive.
    auto* self = new ffi::Module(ffi::GetRef<ffi::Module>(this));
    return Function::FromExternC(self, reinterpret_cast<TVMFFISafeCallType>(entry),
                                 [](void* p) { delete static_cast<ffi::Module*>(p); });
  }

  String InspectSource(const String& format) const final {
    return Render(format.empty() ? "ll" : std::string(format), "inspect_source");
  }
  Array<String> GetWriteFormats() const final { return {"o", "obj", "ll", "s", "asm", "bc"}; }
  void WriteToFile(const String& file_name, const String& format) const final {
    std::string name(file_name), kind(format);
    if (kind.empty()) kind = name.substr(name.find_last_of('.') + 1);
    WriteFile(name, Render(kind, "write_to_file"));
  }

 private:
  std::string Features() const {
    std::string list;
    for (const std::string& f : EnabledFeatures(options_)) list += (list.empty() ? "" : ",") + f;
    return list;
  }
  /// Texts are made anew from the functions: keeping the IR of every module would cost memory.
  std::string Render(const std::string& kind, const char* what) const {
    if (kind == "o" || kind == "obj") return MergeObjects(compiled_);
    if (kind != "ll" && kind != "s" && kind != "asm" && kind != "bc") {
      TVM_FFI_THROW(ValueError) << what << ": expected the format ll, asm, s, bc, o or obj, got '"
                                << kind << "'";
    }
    std::string text;
    WithModule(functions_, {}, options_, [&](llvm::Module& module, llvm::TargetMachine& machine) {
      Optimize(module, machine, options_);
      text = kind == "ll"   ? PrintIR(module)
             : kind == "bc" ? WriteBitcode(module)
                            : EmitCode(module, machine, Output::kAssembly);
    });
    return text;
  }
  void CheckRuns() const {
    if (options_.triple != HostTriple()) {
      TVM_FFI_THROW(ValueError) << "cannot run code for " << options_.triple << " on this machine ("
                                << HostTriple() << "); export it instead";
    }
    auto has = EnabledFeatures(MachineOptions::Host());
    std::string missing;
    for (const std::string& f : EnabledFeatures(options_)) {
      if (IsInstructionSet(f) && !std::binary_search(has.begin(), has.end(), f)) missing += " " + f;
    }
    if (!missing.empty()) {
      TVM_FFI_THROW(ValueError) << "cannot run code for " << View(target_->str())
                                << " on this machine, which lacks" << missing;
    }
  }
  JitLibrary& Jit() {
    std::lock_guard lock(mutex_);
    if (jit_) return *jit_;
    CheckRuns();
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
    ffi::Module::VisitContextSymbols(ffi::TypedFunction<void(String, void*)>(
        [&](String name, void* value) { fill(std::string(name), value); }));
    fill(ffi::symbol::tvm_ffi_library_ctx, static_cast<ffi::ModuleObj*>(this));
    jit_ = std::move(jit);
    return *jit_;
  }

  Target target_;
  MachineOptions options_;
  Group functions_;
  Optional<String> system_lib_prefix_;  // export writes code that registers the functions
  std::vector<Compiled> compiled_;
  std::set<std::string> names_;
  std::mutex mutex_;
  std::unique_ptr<JitLibrary> jit_;
};

ffi::Module Build(IRModule mod, Target target) {
  return ffi::Module(ffi::make_object<LLVMModuleObj>(FunctionsOf(mod, "target.build.llvm"), target,
                                                     mod->attrs.Get<String>(kSystemLibPrefix)));
}

TVM_REGISTER() {
  Def("target.build.llvm", &Build, "Compiles the lowered functions of a module with LLVM.",
      Arg("mod"), Arg("target"));
}
}  // namespace
}  // namespace tvm::codegen
