// SPDX-License-Identifier: Apache-2.0
// Questions about processors and intrinsics that LLVM's tables answer.
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <set>

#include "backend/llvm/target_machine.h"
#include "tvm/ir/machine.h"

namespace tvm::codegen {
namespace {
/// The target asked about: a Target, a text or a dict; else the current one, else this machine.
Target TargetAsked(const Any& target) {
  if (auto text = target.try_cast<String>()) return Target(*text);
  if (auto config = target.try_cast<Map<String, Any>>()) return Target(*config);
  if (target != nullptr) return target.cast<Target>();
  Target current = Target::Current();
  return current.defined() && current->kind->name == "llvm" ? current : Target("llvm");
}
MachineOptions Asked(const Any& target) { return MachineOptions::From(TargetAsked(target)); }
/// Whether one of `sorted` is `name`.
bool Has(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

Map<String, Any> DescribeHost() {
  // What the hypervisor or firmware hides of a processor, and what it adds.
  std::set<std::string> implied;
  MachineOptions by_name;
  by_name.triple = HostTriple();
  by_name.cpu = HostCpu();
  for (std::string& f : EnabledFeatures(by_name)) implied.insert(std::move(f));
  std::set<std::string_view> known;
  auto info = SubtargetOf(by_name.triple, "", "");
  for (const auto& row : info->getAllProcessorFeatures()) known.insert(row.Key);
  Array<String> differences;
  std::string features = HostFeatures();
  for (size_t at = 0; at < features.size();) {
    size_t end = std::min(features.find(',', at), features.size());
    std::string feature = features.substr(at, end - at);
    bool on = feature[0] == '+';
    std::string name = feature.substr(1);
    if (known.count(name) && on != (implied.count(name) > 0)) differences.push_back(feature);
    at = end + 1;
  }
  return {{"name", String(HostCpu())}, {"triple", String(HostTriple())}, {"mattr", differences}};
}

Array<String> CpuFeatures(Any target) {
  Array<String> names;
  for (const std::string& f : EnabledFeatures(Asked(target))) names.push_back(f);
  return names;
}
bool HasFeatures(Variant<String, Array<String>> features, Any target) {
  auto on = EnabledFeatures(Asked(target));
  if (auto one = features.as<String>()) return Has(on, std::string(*one));
  for (const String& f : features.get<Array<String>>()) {
    if (!Has(on, std::string(f))) return false;
  }
  return true;
}
Array<String> CpuNames(Any target) {
  Array<String> names;
  auto info = SubtargetOf(Asked(target).triple, "", "");
  for (const auto& row : info->getAllProcessorDescriptions()) names.push_back(row.Key);
  return names;
}
Array<String> Backends() {
  FindBackend(HostTriple());
  std::set<std::string> names;
  for (const auto& t : llvm::TargetRegistry::targets()) names.insert(t.getName());
  Array<String> result;
  for (const std::string& n : names) result.push_back(n);
  return result;
}
int64_t LookupIntrinsic(String name) {
  return static_cast<int64_t>(llvm::Intrinsic::lookupIntrinsicID(std::string(name)));
}
String IntrinsicName(int64_t id) {
  if (id <= 0 || id >= llvm::Intrinsic::num_intrinsics) {
    TVM_FFI_THROW(ValueError)
        << "llvm_get_intrinsic_name: expected the number of an intrinsic, got " << id;
  }
  return llvm::Intrinsic::getBaseName(static_cast<llvm::Intrinsic::ID>(id)).str();
}
int64_t VectorWidth(Any target) { return Machine::Of(TargetAsked(target))->vector_bits; }
String SystemTriple() { return HostTriple(); }
String SystemCpu() { return HostCpu(); }
String X86Vendor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel") ? "intel" : __builtin_cpu_is("amd") ? "amd" : "unknown";
#else
  return "";
#endif
}

TVM_REGISTER() {
  Def(
      "backend.llvm.version", [] { return String(LLVM_VERSION_STRING); },
      "Version of the LLVM linked into libtvm_llvm.");
  Def("target.llvm.host_cpu", &DescribeHost,
      "This machine: the processor's name, its triple, and mattr: the features in which it differs "
      "from what the name implies.");
  Def("target.codegen.llvm_get_system_triple", &SystemTriple, "The triple of this machine.");
  Def("target.codegen.llvm_get_system_cpu", &SystemCpu, "LLVM's name of this machine's processor.");
  Def("target.codegen.llvm_get_system_x86_vendor", &X86Vendor,
      "intel, amd or unknown; empty for other processors.");
  Def("target.codegen.llvm_get_targets", &Backends, "The architectures LLVM generates code for.");
  Def("target.codegen.llvm_get_cpu_archlist", &CpuNames,
      "The processors LLVM knows of a target's architecture.", Arg("target", nullptr));
  Def("target.codegen.llvm_get_cpu_features", &CpuFeatures, "The features of a target.",
      Arg("target", nullptr));
  for (const char* name :
       {"target.codegen.llvm_cpu_has_features", "target.codegen.target_has_features"}) {
    Def(name, &HasFeatures, "Whether a target has all of some features.", Arg("cpu_features"),
        Arg("target", nullptr));
  }
  Def("target.codegen.llvm_get_vector_width", &VectorWidth,
      "Bits of the widest vectors of a target.", Arg("target", nullptr));
  Def("target.codegen.llvm_lookup_intrinsic_id", &LookupIntrinsic,
      "The number of an LLVM intrinsic, 0 when there is none.", Arg("name"));
  Def("target.codegen.llvm_get_intrinsic_name", &IntrinsicName, "The name of an LLVM intrinsic.",
      Arg("intrin_id"));
}
}  // namespace
}  // namespace tvm::codegen
