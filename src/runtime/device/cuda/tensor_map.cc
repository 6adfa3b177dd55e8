// SPDX-License-Identifier: Apache-2.0
// What the copy engine (TMA) is told of a tensor.
#include <array>

#include "runtime/device/cuda/driver.h"
#include "tvm/runtime/def.h"

namespace tvm::runtime::cuda {
namespace {
constexpr int kMostDimensions = 5;

/// The driver's number of a type.
int TypeNumber(DLDataType t) {
  struct Row {
    uint8_t code, bits;
    int number;
  };
  constexpr Row kRows[] = {{kDLUInt, 8, 0},   {kDLInt, 8, 0},    {kDLUInt, 16, 1},
                           {kDLInt, 16, 1},   {kDLUInt, 32, 2},  {kDLInt, 32, 3},
                           {kDLUInt, 64, 4},  {kDLInt, 64, 5},   {kDLFloat, 16, 6},
                           {kDLFloat, 32, 7}, {kDLFloat, 64, 8}, {kDLBfloat, 16, 9}};
  for (const Row& row : kRows) {
    if (row.code == t.code && row.bits == t.bits && t.lanes == 1) return row.number;
  }
  // 8-bit floats are moved as bytes.
  if (t.bits == 8 && t.lanes == 1) return 0;
  TVM_FFI_THROW(ValueError) << "runtime.cuTensorMapEncodeTiled: expected a type of 8, 16, 32 or 64 "
                               "bits, got "
                            << ffi::DLDataTypeToString(t);
  TVM_FFI_UNREACHABLE();
}
/// (map, type, rank, pointer, sizes, strides of all but the innermost dimension in bytes, sizes of
/// a box, steps in it, interleave, swizzle, l2 promotion, fill), the innermost dimension first.
void Encode(ffi::PackedArgs args, Any*) {
  constexpr const char* kName = "runtime.cuTensorMapEncodeTiled";
  constexpr int kFixed = 8;  // arguments that are there once
  int64_t rank = args.size() > 2 ? args[2].cast<int64_t>() : 0;
  if (rank < 1 || rank > kMostDimensions || args.size() != kFixed + 4 * rank - 1) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a rank of 1 to 5 and 7 + 4 * rank arguments, "
                              << "got the rank " << rank << " and " << args.size() << " arguments";
  }
  auto* map = static_cast<CUtensorMap*>(args[0].cast<void*>());
  auto type = args[1].cast<DLDataType>();
  void* data = args[3].cast<void*>();
  std::array<uint64_t, kMostDimensions> sizes{}, strides{};
  std::array<uint32_t, kMostDimensions> box{}, steps{};
  int next = 4;
  for (int i = 0; i < rank; ++i) sizes[i] = args[next++].cast<int64_t>();
  for (int i = 0; i + 1 < rank; ++i) strides[i] = args[next++].cast<int64_t>();
  for (int i = 0; i < rank; ++i) box[i] = static_cast<uint32_t>(args[next++].cast<int64_t>());
  for (int i = 0; i < rank; ++i) steps[i] = static_cast<uint32_t>(args[next++].cast<int64_t>());
  int modes[4];
  for (int& mode : modes) mode = args[next++].cast<int>();
  // Nothing is copied of a tensor without elements; the engine knows none.
  for (int i = 0; i < rank; ++i) {
    if (sizes[i] == 0) return;
  }
  const Driver& driver = Driver::Get();
  if (!driver.TensorMapEncodeTiled) {
    TVM_FFI_THROW(RuntimeError) << kName << ": " << driver.error;
  }
  CUresult result = driver.TensorMapEncodeTiled(
      map, TypeNumber(type), static_cast<uint32_t>(rank), data, sizes.data(), strides.data(),
      box.data(), steps.data(), modes[0], modes[1], modes[2], modes[3]);
  if (result == kSuccess) return;
  std::string shown;
  for (int i = 0; i < rank; ++i) {
    shown += " " + std::to_string(sizes[i]) + " (box " + std::to_string(box[i]);
    if (i > 0) shown += ", stride " + std::to_string(strides[i - 1]) + " bytes";
    shown += ")";
  }
  driver.Check(result, std::string(kName) + " of " + ffi::DLDataTypeToString(type) + " at " +
                           std::to_string(reinterpret_cast<uint64_t>(data)) +
                           ", the innermost dimension first:" + shown);
}
TVM_REGISTER() {
  Function::SetGlobal("runtime.cuTensorMapEncodeTiled", Function::FromPacked(&Encode));
}
}  // namespace
}  // namespace tvm::runtime::cuda
