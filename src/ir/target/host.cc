// SPDX-License-Identifier: Apache-2.0
// What this machine is.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "ir/target/instructions.h"
#include "ir/target/target_tables.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/device.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm {
bool KnowsProcessors() {
  const Backend* llvm = Backend::Find("llvm");
  return llvm && llvm->Load();
}
namespace {
/// name, triple and the features in which the machine differs from what its name implies. None
/// where the LLVM library, which knows, is not installed. TVM_HOST_CPU names another one: how code
/// for processors that are not at hand is tested.
Optional<Map<String, Any>> HostCpu() {
  static const auto* host = new Optional<Map<String, Any>>([]() -> Optional<Map<String, Any>> {
    if (!KnowsProcessors()) return std::nullopt;
    if (const char* cpu = std::getenv("TVM_HOST_CPU"); cpu && *cpu)
      return Map<String, Any>{{"name", String(cpu)}, {"mattr", Array<String>()}};
    return Function::GetGlobalRequired("target.llvm.host_cpu")().cast<Map<String, Any>>();
  }());
  return *host;
}
/// Bytes of the third cache that a core shares with its neighbours; 0 where nobody tells. (For a
/// processor that has several of them, sysconf adds them up.)
int64_t ThirdCacheBytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kilobytes = 0;
  char unit = 0;
  if (file >> kilobytes >> unit && unit == 'K') return kilobytes << 10;
  return std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
}
/// Whether what was detected of a feature stands against what somebody says of one.
bool IsOverruled(const String& detected, const String& given) {
  std::string_view name = View(detected).substr(1), other = View(given).substr(1);
  if (name == other) return true;
  return View(detected)[0] == '+' ? View(given)[0] == '-' && Needs(name, other)
                                  : View(given)[0] == '+' && Needs(other, name);
}
}  // namespace

void DetectHost(Map<String, Any>* attrs) {
  auto set = [&](const char* key, Any value) {
    if (!attrs->count(key)) attrs->Set(key, std::move(value));
  };
  bool is_foreign = attrs->count("mtriple") > 0;
  if (!is_foreign) {
    set("num-cores", int64_t{runtime::AvailableCpus()});
    const std::pair<const char*, int> caches[] = {{"l1-cache-bytes", _SC_LEVEL1_DCACHE_SIZE},
                                                  {"l1-cache-ways", _SC_LEVEL1_DCACHE_ASSOC},
                                                  {"l2-cache-bytes", _SC_LEVEL2_CACHE_SIZE},
                                                  {"l2-cache-ways", _SC_LEVEL2_CACHE_ASSOC},
                                                  {"cache-line-bytes", _SC_LEVEL1_DCACHE_LINESIZE}};
    for (auto [key, name] : caches) {
      if (long size = sysconf(name); size > 0) set(key, int64_t{size});
    }
    if (int64_t size = ThirdCacheBytes(); size > 0) set("l3-cache-bytes", size);
  }
  auto cpu = attrs->find("mcpu");
  bool is_this = cpu == attrs->end() || (*cpu).second.cast<String>() == "native";
  if (is_foreign || !is_this) return;
  if (auto host = HostCpu()) {
    attrs->Set("mcpu", (*host)["name"]);
    auto features = (*host)["mattr"].cast<Array<String>>();
    if (!attrs->count("mattr")) {
      if (!features.empty()) attrs->Set("mattr", features);
      return;
    }
    // What the user says of a feature wins.
    auto given = (*attrs)["mattr"].cast<Array<String>>();
    Array<String> merged;
    for (const String& f : features) {
      bool stays = std::none_of(given.begin(), given.end(),
                                [&](const String& g) { return g.empty() || IsOverruled(f, g); });
      if (stays) merged.push_back(f);
    }
    for (const String& f : given) merged.push_back(f);
    attrs->Set("mattr", merged);
  }
}

void DetectGpu(Map<String, Any>* attrs) {
  if (attrs->count("arch")) return;
  runtime::DeviceAPI* api = runtime::GetDeviceAPI(kDLCUDA);
  Any version = api->GetAttr({kDLCUDA, 0}, runtime::DeviceAttr::kComputeVersion);
  if (version == nullptr) return;
  std::string digits(version.cast<String>());
  digits.erase(digits.find('.'), 1);
  // Hopper's and later matrix instructions are those of one architecture alone.
  int number = std::stoi(digits);
  attrs->Set("arch", String("sm_" + digits + (number >= 90 && number < 120 ? "a" : "")));
}

void CheckFeatures(const Array<String>& features) {
  for (const String& on : features) {
    for (const String& off : features) {
      if (on.size() < 2 || off.size() < 2 || View(on)[0] != '+' || View(off)[0] != '-') continue;
      std::string_view name = View(on).substr(1), other = View(off).substr(1);
      if (name != other && !Needs(name, other)) continue;
      TVM_FFI_THROW(ValueError) << "Target: expected features in mattr that go together, got "
                                << View(on) << " and " << View(off)
                                << (name == other ? "" : ", without which it cannot be");
    }
  }
}
}  // namespace tvm
