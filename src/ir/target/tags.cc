// SPDX-License-Identifier: Apache-2.0
// Target tags: names of machines that stand for a whole target.
#include "ir/target/target_tables.h"

namespace tvm {
namespace {
// clang-format off
/// NVIDIA GPUs with the common limits (1024 threads, 48 KiB of shared memory): "nvidia/" + name.
struct CudaRow { const char* arch; int registers_per_block; const char* names; };
constexpr CudaRow kCuda[] = {
    {"sm_20", 32768,
     "geforce-gtx-465 geforce-gtx-470 geforce-gtx-480 geforce-gtx-480m geforce-gtx-570 "
     "geforce-gtx-580 geforce-gtx-590 quadro-plex-7000 tesla-c2050 tesla-c2070 tesla-c2075 "},
    {"sm_21", 32768,
     "geforce-410m geforce-610m geforce-705m geforce-710m geforce-800m geforce-820m "
     "geforce-gt-415m geforce-gt-420m geforce-gt-430 geforce-gt-435m geforce-gt-440 "
     "geforce-gt-445m geforce-gt-520 geforce-gt-520m geforce-gt-520mx geforce-gt-525m "
     "geforce-gt-540m geforce-gt-550m geforce-gt-555m geforce-gt-610 geforce-gt-620 "
     "geforce-gt-620m geforce-gt-625m geforce-gt-630 geforce-gt-630m geforce-gt-635m "
     "geforce-gt-640-gddr3 geforce-gt-720m geforce-gt-730-ddr3,128bit geforce-gts-450 "
     "geforce-gtx-460 geforce-gtx-460m geforce-gtx-470m geforce-gtx-485m geforce-gtx-550-ti "
     "geforce-gtx-560-ti geforce-gtx-560m geforce-gtx-570m geforce-gtx-580m "
     "geforce-gtx-670m geforce-gtx-675m nvidia-nvs-310 nvidia-nvs-315 nvs-4200m nvs-5200m "
     "nvs-5400m "},
    {"sm_30", 65536,
     "geforce-gt-640m geforce-gt-640m-le geforce-gt-645m geforce-gt-650m geforce-gt-730m "
     "geforce-gt-735m geforce-gt-740 geforce-gt-740m geforce-gt-745m geforce-gt-750m "
     "geforce-gt-755m geforce-gtx-650 geforce-gtx-650-ti geforce-gtx-650-ti-boost "
     "geforce-gtx-660 geforce-gtx-660-ti geforce-gtx-660m geforce-gtx-670 geforce-gtx-670mx "
     "geforce-gtx-675mx geforce-gtx-680 geforce-gtx-680m geforce-gtx-680mx geforce-gtx-690 "
     "geforce-gtx-760 geforce-gtx-760m geforce-gtx-765m geforce-gtx-770 geforce-gtx-770m "
     "geforce-gtx-780m geforce-gtx-860m-sm-30 geforce-gtx-870m geforce-gtx-880m "
     "nvidia-nvs-510 quadro-410 quadro-k1100m quadro-k2000 quadro-k2000d quadro-k2100m "
     "quadro-k2200m quadro-k3100m quadro-k4000 quadro-k4100m quadro-k420 quadro-k4200 "
     "quadro-k4200m quadro-k5000 quadro-k500m quadro-k5100m quadro-k5200m quadro-k600 "
     "quadro-k6000m tesla-k10 "},
    {"sm_35", 65536,
     "geforce-920m geforce-gt-640-gddr5 geforce-gt-705 geforce-gt-720 geforce-gt-730 "
     "geforce-gtx-780 geforce-gtx-780-ti geforce-gtx-titan geforce-gtx-titan-black "
     "geforce-gtx-titan-z quadro-k510m quadro-k5200 quadro-k6000 quadro-k610m tesla-k20 "
     "tesla-k40 "},
    {"sm_37", 65536,
     "tesla-k80 "},
    {"sm_50", 65536,
     "geforce-830m geforce-840m geforce-930m geforce-940m geforce-gtx-750 "
     "geforce-gtx-750-ti geforce-gtx-850m geforce-gtx-860m-sm-50 geforce-gtx-950m "
     "geforce-gtx-960m nvidia-nvs-810 quadro-k1200 quadro-k2200 quadro-k620 quadro-k620m "
     "quadro-m1000m quadro-m1200 quadro-m2000m quadro-m3000m quadro-m4000m quadro-m5000m "
     "quadro-m500m quadro-m520 quadro-m600m "},
    {"sm_52", 65536,
     "geforce-910m geforce-gtx-950 geforce-gtx-960 geforce-gtx-965m geforce-gtx-970 "
     "geforce-gtx-970m geforce-gtx-980 geforce-gtx-980-ti geforce-gtx-980m "
     "geforce-gtx-titan-x quadro-m2000 quadro-m2200 quadro-m4000 quadro-m5000 quadro-m5500m "
     "quadro-m6000 quadro-m6000-24gb quadro-m620 tesla-m40 tesla-m60 "},
    {"sm_53", 32768,
     "jetson-nano jetson-tx1 tegra-x1 "},
    {"sm_60", 65536,
     "quadro-gp100 tesla-p100 "},
    {"sm_61", 65536,
     "geforce-gtx-1050 geforce-gtx-1060 geforce-gtx-1070 geforce-gtx-1070-ti "
     "geforce-gtx-1080 geforce-gtx-1080-ti nvidia-titan-x nvidia-titan-xp p520 p620 "
     "quadro-p1000 quadro-p2000 quadro-p2200 quadro-p3000 quadro-p3200 quadro-p400 "
     "quadro-p4000 quadro-p4200 quadro-p500 quadro-p5000 quadro-p5200 quadro-p600 "
     "quadro-p6000 quadro-p620 tesla-p4 tesla-p40 "},
    {"sm_62", 32768,
     "jetson-tx2 "},
    {"sm_70", 65536,
     "nvidia-titan-v nvidia-v100 quadro-gv100 "},
    {"sm_75", 65536,
     "geforce-rtx-2060 geforce-rtx-2070 geforce-rtx-2080 geforce-rtx-2080-ti nvidia-t4 "
     "nvidia-titan-rtx quadro-rtx-4000 quadro-rtx-5000 quadro-rtx-6000 quadro-rtx-8000 "
     "rtx-3000 rtx-4000 rtx-5000 t1000 t2000 "},
    {"sm_80", 65536,
     "nvidia-a30 "},
    {"sm_86", 65536,
     "geforce-rtx-3060 geforce-rtx-3070 geforce-rtx-3070-ti geforce-rtx-3080 "
     "geforce-rtx-3080-ti geforce-rtx-3090 geforce-rtx-3090-ti nvidia-a10 nvidia-a10g "
     "nvidia-a16 nvidia-a2 nvidia-a40 rtx-a6000 "},
};
/// All others, as JSON.
constexpr struct { const char *name, *json; } kOther[] = {
    {"apple/m1-gpu",
     R"({"kind": "metal", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m1"}, "max_function_args": 31, "thread_warp_size": 32, "max_shared_memory_per_block": 32768, "max_threads_per_block": 1024, "max_num_threads": 256})"},
    {"apple/m1-gpu-restricted",
     R"({"kind": "metal", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m1"}, "max_function_args": 31, "thread_warp_size": 32, "max_shared_memory_per_block": 32768, "max_threads_per_block": 256, "max_num_threads": 256})"},
    {"apple/m2-gpu",
     R"({"kind": "metal", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m2"}, "max_function_args": 31, "thread_warp_size": 32, "max_shared_memory_per_block": 32768, "max_threads_per_block": 1024, "max_num_threads": 256})"},
    {"arm/beagleai",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a15", "mtriple": "armv7a-linux-gnueabihf", "mattr": ["+neon", "+vfp4", "+thumb2"], "model": "beagleai", "device": "arm_cpu"})"},
    {"arm/mate10",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-linux-android", "mattr": ["+neon"], "model": "kirin970", "device": "arm_cpu"})"},
    {"arm/pixel2",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-linux-android", "mattr": ["+neon"], "model": "snapdragon835", "device": "arm_cpu"})"},
    {"arm/pynq",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "armv7a-linux-eabi", "mattr": ["+neon"], "model": "pynq", "device": "arm_cpu"})"},
    {"arm/rasp3b",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "armv7l-linux-gnueabihf", "mattr": ["+neon"], "model": "bcm2837", "device": "arm_cpu"})"},
    {"arm/rasp4b",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a72", "mtriple": "armv8l-linux-gnueabihf", "mattr": ["+neon"], "model": "bcm2711", "device": "arm_cpu"})"},
    {"arm/rasp4b64",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "bcm2711", "device": "arm_cpu"})"},
    {"arm/rk3399",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "rk3399", "device": "arm_cpu"})"},
    {"arm/stm32mp1",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a7", "mtriple": "armv7a-linux-gnueabihf", "mattr": ["+neon", "+vfp4", "+thumb2"], "model": "stm32mp1", "device": "arm_cpu"})"},
    {"arm/thunderx",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mcpu": "thunderxt88", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon", "+crc", "+lse"], "model": "thunderx", "device": "arm_cpu"})"},
    {"arm/ultra96",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "ultra96", "device": "arm_cpu"})"},
    {"aws/cpu/c5.12xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 24, "mcpu": "cascadelake"})"},
    {"aws/cpu/c5.18xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 36, "mcpu": "skylake-avx512"})"},
    {"aws/cpu/c5.24xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 48, "mcpu": "cascadelake"})"},
    {"aws/cpu/c5.2xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 4, "mcpu": "skylake-avx512"})"},
    {"aws/cpu/c5.4xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 8, "mcpu": "skylake-avx512"})"},
    {"aws/cpu/c5.9xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 18, "mcpu": "skylake-avx512"})"},
    {"aws/cpu/c5.large",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 1, "mcpu": "skylake-avx512"})"},
    {"aws/cpu/c5.xlarge",
     R"({"kind": "llvm", "keys": ["x86", "cpu"], "num-cores": 2, "mcpu": "skylake-avx512"})"},
    {"nvidia/geforce-rtx-4090",
     R"({"kind": "cuda", "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 75497472, "max_threads_per_block": 1024, "arch": "sm_89"})"},
    {"nvidia/geforce-rtx-5060-ti",
     R"({"kind": "cuda", "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 33554432, "max_threads_per_block": 1024, "arch": "sm_120"})"},
    {"nvidia/jetson-agx-orin-32gb",
     R"({"kind": "cuda", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 8, "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a78"}, "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"})"},
    {"nvidia/jetson-agx-orin-64gb",
     R"({"kind": "cuda", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 12, "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a78"}, "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"})"},
    {"nvidia/jetson-agx-thor",
     R"({"kind": "cuda", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 14, "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v3ae"}, "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 232448, "l2_cache_size_bytes": 33554432, "max_threads_per_block": 1024, "arch": "sm_110a"})"},
    {"nvidia/jetson-agx-xavier",
     R"({"kind": "cuda", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 8, "mtriple": "aarch64-linux-gnu", "mcpu": "carmel"}, "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_72"})"},
    {"nvidia/jetson-orin-nano",
     R"({"kind": "cuda", "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 6, "mtriple": "aarch64-linux-gnu", "mcpu": "carmel"}, "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"})"},
    {"nvidia/nvidia-a100",
     R"({"kind": "cuda", "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 41943040, "max_threads_per_block": 1024, "arch": "sm_80"})"},
    {"nvidia/nvidia-b100",
     R"({"kind": "cuda", "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 52428800, "max_threads_per_block": 1024, "arch": "sm_100a"})"},
    {"nvidia/nvidia-h100",
     R"({"kind": "cuda", "max_num_threads": 1024, "registers_per_block": 65536, "thread_warp_size": 32, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 52428800, "max_threads_per_block": 1024, "arch": "sm_90a"})"},
    {"qcom/adreno-opencl",
     R"({"kind": "opencl", "keys": ["adreno", "opencl", "gpu"], "image_base_address_alignment": 64, "max_function_args": 128, "texture_depth_limit": 2048, "texture_spatial_limit": 16384, "thread_warp_size": 1, "max_num_threads": 256, "max_shared_memory_per_block": 16384, "max_threads_per_block": 256, "device": "adreno"})"},
    {"qcom/adreno-opencl-clml",
     R"({"kind": "opencl", "keys": ["adreno", "opencl", "gpu", "clml"], "image_base_address_alignment": 64, "max_function_args": 128, "texture_depth_limit": 2048, "texture_spatial_limit": 16384, "thread_warp_size": 1, "max_num_threads": 256, "max_shared_memory_per_block": 16384, "max_threads_per_block": 256, "device": "adreno"})"},
    {"qcom/adreno-opencl-texture",
     R"({"kind": "opencl", "keys": ["adreno", "opencl", "gpu", "texture"], "image_base_address_alignment": 64, "max_function_args": 128, "texture_depth_limit": 2048, "texture_spatial_limit": 16384, "thread_warp_size": 1, "max_num_threads": 256, "max_shared_memory_per_block": 16384, "max_threads_per_block": 256, "device": "adreno"})"},
    {"qcom/adreno-vulkan",
     R"({"kind": "vulkan", "keys": ["adreno", "vulkan", "gpu"], "thread_warp_size": 1, "max_num_threads": 256, "supports_int32": true, "supports_float32": true, "max_threads_per_block": 256, "device": "adreno"})"},
    {"qcom/adreno-vulkan-texture",
     R"({"kind": "vulkan", "keys": ["adreno", "vulkan", "gpu", "texture"], "thread_warp_size": 1, "max_num_threads": 256, "supports_int32": true, "supports_float32": true, "max_threads_per_block": 256, "device": "adreno"})"},
    {"qcom/hexagon-v65",
     R"({"kind": "hexagon", "vtcm-capacity": 262144, "num-cores": 4, "mcpu": "hexagonv65", "mtriple": "hexagon", "mattr": ["+hvxv65", "+hvx-length128b"]})"},
    {"qcom/hexagon-v66",
     R"({"kind": "hexagon", "vtcm-capacity": 262144, "num-cores": 4, "mcpu": "hexagonv66", "mtriple": "hexagon", "mattr": ["+hvxv66", "+hvx-length128b"]})"},
    {"qcom/hexagon-v68",
     R"({"kind": "hexagon", "vtcm-capacity": 4194304, "num-cores": 4, "llvm-options": ["-force-hvx-float"], "mcpu": "hexagonv68", "mtriple": "hexagon", "mattr": ["+hvxv68", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]})"},
    {"qcom/hexagon-v69",
     R"({"kind": "hexagon", "vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv69", "mtriple": "hexagon", "mattr": ["+hvxv69", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]})"},
    {"qcom/hexagon-v73",
     R"({"kind": "hexagon", "vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv73", "mtriple": "hexagon", "mattr": ["+hvxv73", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]})"},
    {"qcom/hexagon-v75",
     R"({"kind": "hexagon", "vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv75", "mtriple": "hexagon", "mattr": ["+hvxv75", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]})"},
    {"raspberry-pi/4b-aarch64",
     R"({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 4, "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}, "num-cores": 4, "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]})"},
    {"riscv/licheepi3a",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "num-cores": 8, "mabi": "lp64d", "mfloat-abi": "hard", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "spacemit-x60", "device": "riscv_cpu"})"},
    {"riscv/sifive-e31",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "mabi": "ilp32", "mtriple": "riscv32-unknown-linux-gnu", "mcpu": "sifive-e31", "model": "sifive-e31", "device": "riscv_cpu"})"},
    {"riscv/sifive-e76",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "mabi": "ilp32", "mtriple": "riscv32-unknown-linux-gnu", "mcpu": "sifive-e76", "model": "sifive-e76", "device": "riscv_cpu"})"},
    {"riscv/sifive-u54",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "mabi": "lp64d", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "sifive-u54", "model": "sifive-u54", "device": "riscv_cpu"})"},
    {"riscv/sifive-u74",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "mabi": "lp64d", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "sifive-u74", "model": "sifive-u74", "device": "riscv_cpu"})"},
    {"riscv/spacemit-k3",
     R"({"kind": "llvm", "keys": ["riscv_cpu", "cpu"], "num-cores": 8, "mabi": "lp64d", "mfloat-abi": "hard", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "spacemit-x100", "device": "riscv_cpu"})"},
};
// clang-format on
}  // namespace

std::map<std::string, std::string, std::less<>> BuiltinTags() {
  std::map<std::string, std::string, std::less<>> tags;
  for (const auto& [name, json] : kOther) tags.emplace(name, json);
  for (const CudaRow& row : kCuda) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      size_t end = rest.find(' ');
      tags.emplace("nvidia/" + std::string(rest.substr(0, end)),
                   std::string("cuda -arch=") + row.arch +
                       " -registers_per_block=" + std::to_string(row.registers_per_block) +
                       " -max_shared_memory_per_block=49152 -max_threads_per_block=1024");
      rest.remove_prefix(end + 1);
    }
  }
  return tags;
}
}  // namespace tvm
