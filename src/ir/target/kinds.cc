// SPDX-License-Identifier: Apache-2.0
// Target kinds: device, keys and options, one row each.
#include "ir/target/target_tables.h"

namespace tvm {
namespace {
constexpr auto kInt = OptionType::kInt;
constexpr auto kBool = OptionType::kBool;
constexpr auto kString = OptionType::kString;
constexpr auto kStrings = OptionType::kStrings;
constexpr int64_t kCudaThreads = 1024;  // what a block of any CUDA device has at most

std::vector<TargetOption> Bools(std::initializer_list<const char*> names) {
  std::vector<TargetOption> options;
  for (const char* name : names) options.push_back({name, kBool});
  return options;
}
std::vector<TargetOption> Ints(std::initializer_list<const char*> names) {
  std::vector<TargetOption> options;
  for (const char* name : names) options.push_back({name, kInt});
  return options;
}
/// Sizes and numbers of something that is there.
std::vector<TargetOption> Positive(std::initializer_list<const char*> names) {
  std::vector<TargetOption> options;
  for (const char* name : names) options.push_back({name, kInt, nullptr, 1});
  return options;
}
std::vector<TargetOption> operator+(std::vector<TargetOption> a,
                                    const std::vector<TargetOption>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
}  // namespace

const std::vector<TargetKindRow>& TargetKindTable() {
  static const auto* table = new std::vector<TargetKindRow>{
      {"llvm",
       kDLCPU,
       {"cpu"},
       std::vector<TargetOption>{{"mattr", kStrings},
                                 {"mcpu", kString},
                                 {"mtriple", kString},
                                 {"mfloat-abi", kString},
                                 {"mabi", kString},
                                 {"num-cores", kInt, nullptr, 1},
                                 {"opt-level", kInt},
                                 {"cl-opt", kStrings},
                                 {"jit", kString},
                                 {"vector-width", kInt, nullptr, 64}} +
           Bools({"fast-math", "fast-math-nnan", "fast-math-ninf", "fast-math-nsz",
                  "fast-math-arcp", "fast-math-contract", "fast-math-reassoc"}) +
           Positive({"l1-cache-bytes", "l1-cache-ways", "l2-cache-bytes", "l2-cache-ways",
                     "l3-cache-bytes", "cache-line-bytes"})},
      {"c",
       kDLCPU,
       {"cpu"},
       {{"mcpu", kString},
        {"march", kString},
        {"workspace-byte-alignment", kInt},
        {"constants-byte-alignment", kInt},
        {"num-cores", kInt, nullptr, 1},
        {"mattr", kStrings},
        {"mtriple", kString}}},
      {"cuda",
       kDLCUDA,
       {"cuda", "gpu"},
       {{"mcpu", kString},
        {"arch", kString},
        {"max_shared_memory_per_block", kInt, nullptr, 1},
        {"max_threads_per_block", kInt, nullptr, 1, kCudaThreads},
        {"thread_warp_size", kInt, 32, 1},
        {"registers_per_block", kInt, nullptr, 1},
        {"l2_cache_size_bytes", kInt},
        {"max_num_threads", kInt, kCudaThreads, 1, kCudaThreads}}},
      {"nvptx",
       kDLCUDA,
       {"cuda", "gpu"},
       {{"mcpu", kString},
        {"mtriple", kString},
        {"max_num_threads", kInt, kCudaThreads, 1, kCudaThreads},
        {"thread_warp_size", kInt, 32, 1}}},
      {"rocm",
       kDLROCM,
       {"rocm", "gpu"},
       {{"mcpu", kString},
        {"mtriple", kString},
        {"mattr", kStrings},
        {"max_num_threads", kInt, 256, 1},
        {"max_threads_per_block", kInt, 256, 1},
        {"max_shared_memory_per_block", kInt, 65536, 1},
        {"thread_warp_size", kInt, 64, 1}}},
      {"opencl",
       kDLOpenCL,
       {"opencl", "gpu"},
       {{"max_threads_per_block", kInt, 256, 1},
        {"max_shared_memory_per_block", kInt, 16384, 1},
        {"max_num_threads", kInt, 256, 1},
        {"thread_warp_size", kInt, 1, 1},
        {"texture_spatial_limit", kInt, 16384},
        {"texture_depth_limit", kInt, 2048},
        {"max_function_args", kInt, 128},
        {"image_base_address_alignment", kInt, 64}}},
      {"metal",
       kDLMetal,
       {"metal", "gpu"},
       {{"max_num_threads", kInt, 256, 1},
        {"max_threads_per_block", kInt, 256, 1},
        {"max_shared_memory_per_block", kInt, 32768, 1},
        {"thread_warp_size", kInt, 16, 1},
        {"max_function_args", kInt, 31}}},
      {"vulkan",
       kDLVulkan,
       {"vulkan", "gpu"},
       std::vector<TargetOption>{{"mattr", kStrings},
                                 {"supports_float32", kBool, true},
                                 {"supports_int32", kBool, true},
                                 {"max_num_threads", kInt, 256, 1},
                                 {"max_threads_per_block", kInt, 256, 1},
                                 {"thread_warp_size", kInt, 1, 1},
                                 {"device_type", kString},
                                 {"device_name", kString},
                                 {"driver_name", kString}} +
           Bools({"supports_float16", "supports_float64", "supports_int8", "supports_int16",
                  "supports_int64", "supports_8bit_buffer", "supports_16bit_buffer",
                  "supports_storage_buffer_storage_class", "supports_push_descriptor",
                  "supports_dedicated_allocation", "supports_integer_dot_product",
                  "supports_cooperative_matrix"}) +
           Ints({"supported_subgroup_operations", "max_block_size_x", "max_block_size_y",
                 "max_block_size_z", "max_push_constants_size", "max_uniform_buffer_range",
                 "max_storage_buffer_range", "max_per_stage_descriptor_storage_buffer",
                 "max_shared_memory_per_block", "driver_version", "vulkan_api_version",
                 "max_spirv_version"})},
      {"webgpu", kDLWebGPU, {"webgpu", "gpu"}, {{"max_num_threads", kInt, 256, 1}}},
      {"hexagon",
       kDLHexagon,
       {"hexagon", "cpu"},
       {{"mattr", kStrings},
        {"mcpu", kString},
        {"mtriple", kString},
        {"llvm-options", kStrings},
        {"num-cores", kInt, nullptr, 1},
        {"vtcm-capacity", kInt}}},
      {"ext_dev", kDLExtDev, {}, {}},
      {"composite", kDLCPU, {}, {{"devices", OptionType::kTargets}}},
      {"test", kDLCPU, {}, {}},
  };
  return *table;
}

const std::vector<TargetOption>& CommonTargetOptions() {
  static const auto* options = new std::vector<TargetOption>{
      {"keys", kStrings}, {"tag", kString},  {"device", kString},   {"model", kString},
      {"libs", kStrings}, {"host", kString}, {"from_device", kInt}, {"target_device_type", kInt}};
  return *options;
}

const std::map<std::string, const char*, std::less<>>& DeadTargetOptions() {
  static const auto* options = new std::map<std::string, const char*, std::less<>>{
      {"executor", "tvm.compile decides by the program"},
      {"interface-api", "kernels take the arguments of apache-tvm-ffi"},
      {"link-params", "relax.transform.BindParams makes parameters part of the program"},
      {"runtime", "there is one"},
      {"system-lib", "write the attribute system_lib_prefix of the module"},
      {"unpacked-api", "kernels take the arguments of apache-tvm-ffi"}};
  return *options;
}
}  // namespace tvm
