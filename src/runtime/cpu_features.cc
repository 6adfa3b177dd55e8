// SPDX-License-Identifier: Apache-2.0
// What this CPU can do, in LLVM's names.
#include "runtime/cpu_features.h"

#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "tvm/runtime/def.h"

namespace tvm::runtime {

bool RequestTiles() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return true;
#endif
}

const std::map<std::string, bool>& CpuFeatures() {
  static const auto* features = new std::map<std::string, bool>([] {
    std::map<std::string, bool> f;
#if defined(__x86_64__) || defined(__i386__)
#define TVM_FEATURE(name) f[name] = __builtin_cpu_supports(name) != 0
    TVM_FEATURE("sse4.1");
    TVM_FEATURE("sse4.2");
    TVM_FEATURE("popcnt");
    TVM_FEATURE("avx");
    TVM_FEATURE("avx2");
    TVM_FEATURE("fma");
    TVM_FEATURE("bmi");
    TVM_FEATURE("bmi2");
    TVM_FEATURE("avx512f");
    TVM_FEATURE("avx512cd");
    TVM_FEATURE("avx512bw");
    TVM_FEATURE("avx512dq");
    TVM_FEATURE("avx512vl");
    TVM_FEATURE("avx512vbmi");
    TVM_FEATURE("avx512vbmi2");
    TVM_FEATURE("avx512ifma");
    TVM_FEATURE("avx512vnni");
    TVM_FEATURE("avx512bitalg");
    TVM_FEATURE("avx512vpopcntdq");
    TVM_FEATURE("avx512bf16");
#if defined(__GNUC__) && !defined(__clang__)
    TVM_FEATURE("f16c");
    TVM_FEATURE("avxvnni");
    TVM_FEATURE("avx512fp16");
    TVM_FEATURE("amx-tile");
    TVM_FEATURE("amx-int8");
    TVM_FEATURE("amx-bf16");
    for (const char* name : {"amx-tile", "amx-int8", "amx-bf16"}) f[name] &= RequestTiles();
#endif
#undef TVM_FEATURE
#elif defined(__linux__) && defined(__aarch64__)
    unsigned long caps = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    f["neon"] = caps & HWCAP_ASIMD;
    f["fullfp16"] = caps & HWCAP_ASIMDHP;
    f["dotprod"] = caps & HWCAP_ASIMDDP;
    f["sve"] = caps & HWCAP_SVE;
    f["sve2"] = more & HWCAP2_SVE2;
    f["i8mm"] = more & HWCAP2_I8MM;
    f["bf16"] = more & HWCAP2_BF16;
#endif
    return f;
  }());
  return *features;
}

namespace {
TVM_REGISTER() {
  Def(
      "runtime.cpu_features",
      [] {
        Map<String, bool> result;
        for (const auto& [name, has] : CpuFeatures()) result.Set(name, has);
        return result;
      },
      "Vector and matrix features by LLVM's name, and whether this CPU has them.");
}
}  // namespace
}  // namespace tvm::runtime
