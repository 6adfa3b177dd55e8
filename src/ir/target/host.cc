// SPDX-License-Identifier: Apache-2.0
// What this machine is, and what features a target has.
#include <unistd.h>

#include <mutex>
#include <set>

#include "ir/target/target_tables.h"
#include "tvm/ir/backend.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm {
namespace {
/// Whether the LLVM library, which has tables of processors, is installed.
bool KnowsProcessors() {
  const Backend* llvm = Backend::Find("llvm");
  return llvm && llvm->Load();
}
/// name, triple and the features in which the machine differs from what its name implies. None
/// where the LLVM library, which knows, is not installed.
Optional<Map<String, Any>> HostCpu() {
  static const auto* host = new Optional<Map<String, Any>>([]() -> Optional<Map<String, Any>> {
    if (!KnowsProcessors()) return std::nullopt;
    return Function::GetGlobalRequired("target.llvm.host_cpu")().cast<Map<String, Any>>();
  }());
  return *host;
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
                                                  {"l2-cache-bytes", _SC_LEVEL2_CACHE_SIZE},
                                                  {"l3-cache-bytes", _SC_LEVEL3_CACHE_SIZE}};
    for (auto [key, name] : caches) {
      if (long size = sysconf(name); size > 0) set(key, int64_t{size});
    }
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
    // What the user says of a feature stands behind what was detected, and so wins.
    for (const String& f : (*attrs)["mattr"].cast<Array<String>>()) features.push_back(f);
    attrs->Set("mattr", features);
  }
}

bool TargetObj::HasFeature(const String& feature) const {
  bool from_cpu = false;
  if (kind->name == "llvm" && KnowsProcessors()) {
    static const Function has = Function::GetGlobalRequired("target.llvm.cpu_has_feature");
    from_cpu =
        has(GetAttr<String>("mtriple", ""), GetAttr<String>("mcpu", ""), feature).cast<bool>();
  }
  for (const String& f : GetAttr<Array<String>>("mattr", {})) {
    if (View(f).substr(1) == View(feature)) from_cpu = View(f)[0] == '+';
  }
  return from_cpu;
}
}  // namespace tvm
