// SPDX-License-Identifier: Apache-2.0
// A target's machine, from what the target says and the instruction set implies.
#include "tvm/ir/machine.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "ir/target/instructions.h"
#include "ir/target/target_tables.h"
#include "runtime/cpu_features.h"
#include "tvm/ir/backend.h"

namespace tvm {
namespace {
/// The first word of the triple; this machine's where the target has none.
std::string ArchOf(const Target& target) {
  std::string triple(target->GetAttr<String>("mtriple", ""));
  if (!triple.empty()) return triple.substr(0, triple.find('-'));
#if defined(__aarch64__)
  return "aarch64";
#elif defined(__riscv)
  return "riscv64";
#else
  return "x86_64";
#endif
}
bool IsX86(std::string_view arch) {
  return arch == "x86_64" || arch == "amd64" || (arch.size() == 4 && arch.ends_with("86"));
}
/// All features that are on: from LLVM's tables, or where it is not asked from what this machine
/// has and the target says.
Array<String> FeaturesOf(const Target& target) {
  if (Backend::Of(target).takes_llvm_intrinsics && KnowsProcessors()) {
    static const Function features =
        Function::GetGlobalRequired("target.codegen.llvm_get_cpu_features");
    return features(target).cast<Array<String>>();
  }
  std::set<std::string, std::less<>> on;
  auto given = [&](const char* option) { return target->attrs.count(option) > 0; };
  bool is_this =
      target->DeviceType() == kDLCPU && !given("mtriple") && !given("mcpu") && !given("march");
  if (is_this) {
    for (const auto& [name, has] : runtime::CpuFeatures()) {
      if (has) on.insert(name);
    }
  }
  for (const String& f : target->GetAttr<Array<String>>("mattr", {})) {
    if (!f.empty()) Switch(&on, View(f).substr(1), View(f)[0] == '+');
  }
  // Only LLVM's intrinsics reach these.
  std::erase_if(on, [](const std::string& f) { return f.starts_with("amx-"); });
  Array<String> features;
  for (const std::string& f : on) features.push_back(f);
  return features;
}
int VectorBits(const MachineObj& machine, std::string_view arch) {
  if (IsX86(arch)) return machine.Has("avx512f") ? 512 : machine.Has("avx") ? 256 : 128;
  if (arch.starts_with("riscv")) {
    for (int width = 65536; width > 64; width /= 2) {
      if (machine.Has("zvl" + std::to_string(width) + "b")) return width;
    }
    return 64;
  }
  if (arch.starts_with("wasm")) return machine.Has("simd128") ? 128 : 64;
  return 128;
}
int VectorRegisters(const MachineObj& machine, std::string_view arch) {
  if (IsX86(arch)) return machine.Has("avx512f") ? 32 : 16;
  bool many = arch.starts_with("aarch64") || arch.starts_with("arm64") || arch.starts_with("riscv");
  return many ? 32 : 16;
}
/// The lowest compute capability that a target names: 80 for sm_80 and for sm_90,sm_80; 0 where it
/// names none.
int ComputeCapability(const Target& target) {
  std::string archs(target->GetAttr<String>("arch", ""));
  int lowest = 0;
  for (size_t at = archs.find("sm_"); at != std::string::npos; at = archs.find("sm_", at + 1)) {
    int capability = std::atoi(archs.c_str() + at + 3);
    lowest = lowest == 0 ? capability : std::min(lowest, capability);
  }
  return lowest;
}
/// The largest GPU of an architecture: multiprocessors, and what a block of threads may have of the
/// memory of one.
struct GpuRow {
  int capability, multiprocessors;
  int64_t shared_bytes;
};
constexpr GpuRow kGpus[] = {
    {120, 188, 99 << 10}, {110, 20, 227 << 10}, {100, 148, 227 << 10}, {90, 132, 227 << 10},
    {89, 142, 99 << 10},  {87, 16, 163 << 10},  {86, 84, 99 << 10},    {80, 108, 163 << 10},
    {75, 68, 64 << 10},   {0, 80, 48 << 10},
};
Machine Describe(const Target& target) {
  const Backend& backend = Backend::Of(target);
  auto number = [&](const char* option, int64_t fallback) {
    return target->GetAttr<int64_t>(option, fallback);
  };
  return New<Machine>([&](MachineObj* m) {
    m->is_host = target->DeviceType() == kDLCPU;
    m->is_gpu = target->HasKey("gpu");
    m->takes_vectors = backend.takes_vectors;
    m->features = FeaturesOf(target);
    std::string arch = ArchOf(target);
    m->cores = static_cast<int>(number("num-cores", 1));
    m->vector_bits = static_cast<int>(number("vector-width", VectorBits(*m, arch)));
    m->vector_registers = VectorRegisters(*m, arch);
    m->line_bytes = number("cache-line-bytes", m->line_bytes);
    m->l1_bytes = number("l1-cache-bytes", m->l1_bytes);
    m->l1_ways = number("l1-cache-ways", m->l1_ways);
    m->l2_bytes = number("l2-cache-bytes", m->l2_bytes);
    m->l2_ways = number("l2-cache-ways", m->l2_ways);
    m->l3_bytes = number("l3-cache-bytes", m->l3_bytes);
    if (backend.takes_llvm_intrinsics) {
      m->has_masks = IsX86(arch) && m->Has("avx512f");
      m->instructions = InstructionsOf(*m);
    }
    m->max_threads = number("max_threads_per_block", number("max_num_threads", m->max_threads));
    m->warp = number("thread_warp_size", 1);
    m->shared_bytes = number("max_shared_memory_per_block", m->shared_bytes);
    m->registers = number("registers_per_block", m->registers);
    if (m->is_gpu) {
      int capability = ComputeCapability(target);
      const GpuRow& row = *std::find_if(std::begin(kGpus), std::end(kGpus), [&](const GpuRow& r) {
        return capability >= r.capability;
      });
      m->has_tensor_cores = capability >= 70;
      // The last one: functions of float32 that are as precise as our expansion and shorter.
      if (capability >= 80) {
        m->features = {"async-copy", "bf16-rounding", "cached-loads", "float32-functions"};
        if (target->GetAttr<String>("arch", "") == "sm_90a") m->features.push_back("warpgroup-mma");
      } else if (capability > 0) {
        m->features = {"cached-loads", "float32-functions"};
      }
      m->cores = row.multiprocessors;
      m->l1_bytes = row.shared_bytes;
      m->l2_bytes = number("l2_cache_size_bytes", m->l2_bytes);
    }
    if (m->is_gpu && m->warp > m->max_threads) {
      TVM_FFI_THROW(ValueError) << "Target: expected warps of at most as many threads as a block ("
                                << m->max_threads << "), got thread_warp_size " << m->warp << " in "
                                << target->str();
    }
  });
}
}  // namespace

bool MachineObj::Has(std::string_view feature) const {
  auto at = std::lower_bound(features.begin(), features.end(), feature,
                             [](const String& a, std::string_view b) { return View(a) < b; });
  return at != features.end() && View(*at) == feature;
}
const MachineInstruction* MachineObj::Find(MachineInstruction::Kind kind, int bits) const {
  for (const MachineInstruction* row : instructions) {
    if (row->kind == kind && row->bits == bits) return row;
  }
  return nullptr;
}
const Machine& Machine::Of(const Target& target) {
  // Functions of one module have one target.
  static thread_local std::pair<Target, const Machine*> last;
  if (last.first.defined() && last.first.same_as(target)) return *last.second;
  static std::mutex mutex;
  static auto* machines = new std::map<std::string, Machine>();
  std::string key(target->str());
  std::unique_lock lock(mutex);
  auto it = machines->find(key);
  if (it == machines->end()) {
    lock.unlock();  // asking LLVM may load its library, which registers functions
    Machine machine = Describe(target);
    lock.lock();
    it = machines->try_emplace(key, machine).first;
  }
  last = {target, &it->second};
  return it->second;
}
bool TargetObj::HasFeature(const String& feature) const {
  return Machine::Of(ffi::GetRef<Target>(this))->Has(View(feature));
}

TVM_REGISTER() {
  RegisterNode<MachineObj>("What code for a target is made for.");
  Def(
      "target.Target.machine", [](Target target) { return Machine::Of(target); },
      "What is known of the machine behind the target: vectors, caches, threads, features.",
      Arg("self"));
}
}  // namespace tvm
