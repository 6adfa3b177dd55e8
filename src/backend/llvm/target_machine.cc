// SPDX-License-Identifier: Apache-2.0
// Target -> LLVM's TargetMachine, with every name checked before LLVM sees it.
#include "backend/llvm/target_machine.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "runtime/cpu_features.h"
#include "tvm/ir/transform.h"

// Every backend's registration functions; which of them run is decided per triple.
#define LLVM_TARGET(Name)                             \
  extern "C" void LLVMInitialize##Name##Target();     \
  extern "C" void LLVMInitialize##Name##TargetInfo(); \
  extern "C" void LLVMInitialize##Name##TargetMC();
#include <llvm/Config/Targets.def>
#define LLVM_ASM_PRINTER(Name) extern "C" void LLVMInitialize##Name##AsmPrinter();
#include <llvm/Config/AsmPrinters.def>
#define LLVM_ASM_PARSER(Name) extern "C" void LLVMInitialize##Name##AsmParser();
#include <llvm/Config/AsmParsers.def>

namespace tvm::codegen {
namespace {
// LLVM's functions took texts until they took triples.
#if LLVM_VERSION_MAJOR >= 22
llvm::Triple TripleArg(const std::string& triple) { return llvm::Triple(triple); }
#else
const std::string& TripleArg(const std::string& triple) { return triple; }
#endif

struct Backend {
  std::string_view name;
  void (*target)() = nullptr;
  void (*mc)() = nullptr;
  void (*printer)() = nullptr;
  void (*parser)() = nullptr;
};
std::vector<Backend> Backends() {
  std::vector<Backend> all = {
#define LLVM_TARGET(Name) {#Name, &LLVMInitialize##Name##Target, &LLVMInitialize##Name##TargetMC},
#include <llvm/Config/Targets.def>
  };
  auto set = [&](std::string_view name, void (*Backend::*part)(), void (*init)()) {
    for (Backend& b : all) {
      if (b.name == name) b.*part = init;
    }
  };
#define LLVM_ASM_PRINTER(Name) set(#Name, &Backend::printer, &LLVMInitialize##Name##AsmPrinter);
#include <llvm/Config/AsmPrinters.def>
#define LLVM_ASM_PARSER(Name) set(#Name, &Backend::parser, &LLVMInitialize##Name##AsmParser);
#include <llvm/Config/AsmParsers.def>
  return all;
}
std::mutex registry_mutex;

void CheckNames(const llvm::MCSubtargetInfo& info, const std::string& cpu,
                const Array<String>& features) {
  auto names = [](const auto& rows) {
    std::vector<std::string_view> out;
    for (const auto& row : rows) out.emplace_back(row.Key);
    return out;
  };
  if (!cpu.empty() && !info.isCPUStringValid(cpu)) {
    TVM_FFI_THROW(ValueError) << "target: expected a CPU that LLVM knows for "
                              << info.getTargetTriple().str() << " as mcpu, got '" << cpu << "'"
                              << DidYouMean(cpu, names(info.getAllProcessorDescriptions()));
  }
  auto known = names(info.getAllProcessorFeatures());
  for (const String& feature : features) {
    std::string_view name = View(feature);
    bool sign = !name.empty() && (name[0] == '+' || name[0] == '-');
    if (sign) name.remove_prefix(1);
    if (!sign || !std::binary_search(known.begin(), known.end(), name)) {
      TVM_FFI_THROW(ValueError) << "target: expected '+' or '-' and a feature of "
                                << info.getTargetTriple().getArchName().str() << " in mattr, got '"
                                << View(feature) << "'" << DidYouMean(name, known);
    }
  }
}
}  // namespace

const llvm::Target* FindBackend(const std::string& triple) {
  static const std::vector<Backend> backends = Backends();
  std::lock_guard lock(registry_mutex);
  static std::map<std::string, const llvm::Target*> found;
  if (auto it = found.find(triple); it != found.end()) return it->second;
  static const bool infos = [] {  // cheap: only names
#define LLVM_TARGET(Name) LLVMInitialize##Name##TargetInfo();
#include <llvm/Config/Targets.def>
    return true;
  }();
  (void)infos;
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(TripleArg(triple), error);
  if (!target) {
    TVM_FFI_THROW(ValueError)
        << "target: expected a triple LLVM generates code for as mtriple, got '" << triple << "'";
  }
  for (const Backend& b : backends) {
    if (b.name != target->getBackendName()) continue;
    for (auto init : {b.target, b.mc, b.printer, b.parser}) {
      if (init) init();
    }
  }
  return found[triple] = target;
}

std::unique_ptr<llvm::MCSubtargetInfo> SubtargetOf(const std::string& triple,
                                                   const std::string& cpu,
                                                   const std::string& features) {
  const llvm::Target* target = FindBackend(triple);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target->createMCSubtargetInfo(TripleArg(triple), cpu, features));
}

std::vector<std::string> EnabledFeatures(const MachineOptions& options) {
  static std::mutex mutex;
  static auto* known = new std::map<std::string, std::vector<std::string>>();
  std::lock_guard lock(mutex);
  auto [it, added] =
      known->try_emplace(options.triple + '|' + options.cpu + '|' + options.features);
  if (added) {
    auto info = SubtargetOf(options.triple, options.cpu, options.features);
    for (const auto& row : info->getAllProcessorFeatures()) {
      if (info->hasFeature(row.Value)) it->second.emplace_back(row.Key);
    }
  }
  return it->second;
}

bool IsInstructionSet(const std::string& feature) {
  // What systems and single programs ask for by name; hypervisors hide some of it.
  static const std::set<std::string, std::less<>> asked_for = {
      "cldemote",  "clflushopt", "clwb",  "clzero",   "enqcmd",   "fsgsbase", "hreset",
      "invpcid",   "kl",         "lwp",   "mwaitx",   "pconfig",  "pku",      "prefetchi",
      "prfchw",    "ptwrite",    "rdpid", "rdpru",    "rdrnd",    "rdseed",   "rtm",
      "serialize", "sgx",        "shstk", "tsxldtrk", "uintr",    "usermsr",  "waitpkg",
      "wbnoinvd",  "widekl",     "xsave", "xsavec",   "xsaveopt", "xsaves"};
  // What LLVM detects on a machine are instructions; its tables hold advice on tuning besides.
  static const auto* detected = [] {
    auto* names = new std::set<std::string, std::less<>>();
    for (const auto& f : llvm::sys::getHostCPUFeatures()) names->insert(f.first().str());
    return names;
  }();
  return detected->count(feature) > 0 && !asked_for.count(feature);
}

MachineOptions MachineOptions::From(const Target& target) {
  if (View(target->kind->name) != "llvm") {
    TVM_FFI_THROW(ValueError) << "LLVM code generation: expected a target of kind llvm, got "
                              << View(target->kind->name);
  }
  auto text = [&](const char* key) {
    return std::string(target->GetAttr<String>(key).value_or(""));
  };
  MachineOptions o;
  o.triple = text("mtriple");
  bool host = o.triple.empty();
  o.triple = host ? HostTriple() : llvm::Triple::normalize(o.triple);
  o.cpu = text("mcpu");
  auto features = target->GetAttr<Array<String>>("mattr").value_or(Array<String>());
  if (host && o.cpu.empty()) {
    o.cpu = HostCpu();
    o.features = HostFeatures();  // what the hypervisor hides of the named CPU is off here
  }
  CheckNames(*SubtargetOf(o.triple, "", ""), o.cpu, features);
  for (const String& f : features) {
    if (!o.features.empty()) o.features += ',';
    o.features += View(f);
  }
  o.abi = text("mabi");
  o.float_abi = text("mfloat-abi");
  o.opt_level = static_cast<int>(target->GetAttr<int64_t>("opt-level", 3));
  if (o.opt_level < 0 || o.opt_level > 3) {
    TVM_FFI_THROW(ValueError) << "target: expected opt-level from 0 to 3, got " << o.opt_level;
  }
  if (!o.float_abi.empty() && o.float_abi != "soft" && o.float_abi != "hard") {
    TVM_FFI_THROW(ValueError) << "target: expected mfloat-abi soft or hard, got '" << o.float_abi
                              << "'";
  }
  o.vector_width = static_cast<int>(target->GetAttr<int64_t>("vector-width", 0));
  // LLVM's tables prefer 256 bits on processors whose clock once dropped with 512.
  if (o.vector_width == 0 && llvm::Triple(o.triple).isX86()) {
    auto on = EnabledFeatures(o);
    if (std::binary_search(on.begin(), on.end(), "avx512f")) o.vector_width = 512;
  }
  bool all = target->GetAttr<bool>("fast-math", false);
  auto flag = [&](const char* name, bool fallback = false) {
    return target->GetAttr<bool>(name, all || fallback);
  };
  o.nnan = flag("fast-math-nnan");
  o.ninf = flag("fast-math-ninf");
  o.nsz = flag("fast-math-nsz");
  o.arcp = flag("fast-math-arcp");
  o.contract = flag("fast-math-contract", true);
  o.reassoc = flag("fast-math-reassoc");
  auto context = transform::PassContext::Current();
  o.debug_info = context->GetConfig<bool>("llvm.debug_info");
  o.quick_entry = context->GetConfig<bool>("llvm.quick_entry");
  o.command_line = ParseCommandLine(target->GetAttr<Array<String>>("cl-opt", Array<String>()));
  return o;
}

MachineOptions MachineOptions::Host() {
  MachineOptions o;
  o.triple = HostTriple();
  o.cpu = HostCpu();
  o.features = HostFeatures();
  return o;
}

std::string MachineOptions::Key() const {
  std::string key;
  for (const std::string* part : {&triple, &cpu, &features, &abi, &float_abi}) key += *part + '|';
  for (const auto& [name, value] : command_line) key += name + '=' + value + '|';
  return key + std::to_string(opt_level);
}

namespace {
/// Machines that nobody uses at the moment. Leaked on purpose: threads may still compile at exit.
struct Pool {
  std::mutex mutex;
  std::multimap<std::string, std::unique_ptr<llvm::TargetMachine>> idle;
};
Pool& MachinePool() {
  static Pool* pool = new Pool;
  return *pool;
}
constexpr size_t kMaxIdle = 32;

std::unique_ptr<llvm::TargetMachine> NewMachine(const MachineOptions& o) {
  const llvm::Target* backend = FindBackend(o.triple);
  llvm::TargetOptions options;
  options.MCOptions.ABIName = o.abi;
  if (o.float_abi == "soft") options.FloatABIType = llvm::FloatABI::Soft;
  if (o.float_abi == "hard") options.FloatABIType = llvm::FloatABI::Hard;
  options.FunctionSections = true;
  static constexpr llvm::CodeGenOptLevel kLevels[] = {
      llvm::CodeGenOptLevel::None, llvm::CodeGenOptLevel::Less, llvm::CodeGenOptLevel::Default,
      llvm::CodeGenOptLevel::Aggressive};
  // Position independent: one object file serves the JIT and exported libraries.
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(TripleArg(o.triple), o.cpu, o.features, options,
                                   llvm::Reloc::PIC_, std::nullopt, kLevels[o.opt_level]));
  if (!machine) {
    TVM_FFI_THROW(ValueError) << "target: LLVM has no code generator for " << o.triple;
  }
  return machine;
}
}  // namespace

MachineLease::MachineLease(const MachineOptions& options) : key_(options.Key()) {
  Pool& pool = MachinePool();
  {
    std::lock_guard lock(pool.mutex);
    if (auto it = pool.idle.find(key_); it != pool.idle.end()) {
      machine_ = std::move(it->second);
      pool.idle.erase(it);
      return;
    }
  }
  machine_ = NewMachine(options);
}
MachineLease::~MachineLease() {
  Pool& pool = MachinePool();
  std::lock_guard lock(pool.mutex);
  if (pool.idle.size() < kMaxIdle) pool.idle.emplace(key_, std::move(machine_));
}

std::string HostCpu() {
  static const std::string name = llvm::sys::getHostCPUName().str();
  return name;
}
std::string HostTriple() {
  static const std::string triple = llvm::Triple::normalize(llvm::sys::getProcessTriple());
  return triple;
}
std::string HostFeatures() {
  static const std::string features = [] {
    std::vector<std::string> list;
    for (const auto& f : llvm::sys::getHostCPUFeatures()) {
      bool is_on = f.second && (!f.first().starts_with("amx") || runtime::RequestTiles());
      list.push_back((is_on ? "+" : "-") + f.first().str());
    }
    std::sort(list.begin(), list.end());
    return llvm::join(list, ",");
  }();
  return features;
}

}  // namespace tvm::codegen
