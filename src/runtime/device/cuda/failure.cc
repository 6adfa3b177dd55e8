// SPDX-License-Identifier: Apache-2.0
// Errors that kernels find, handed over in memory of the host that they write to.
#include "runtime/device/cuda/failure.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace tvm::runtime::cuda {
namespace {
/// The text of kernels (backend/cuda/codegen_call.cc) has the same struct.
struct Failure {
  std::atomic<int32_t> state;  // 0: none, 1: being written, 2: to be read
  int32_t count;
  int64_t numbers[4];
  char kind[32], text[440];
};
std::array<std::atomic<Failure*>, kMaxDevices> failures{};

Failure* FailureOf(int device_id) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  std::atomic<Failure*>& failure = failures.at(device_id);
  if (!failure.load()) {
    const Driver& driver = Use(device_id);
    void* memory = nullptr;
    constexpr unsigned kPortableAndMapped = 3;
    driver.Check(driver.MemHostAlloc(&memory, sizeof(Failure), kPortableAndMapped),
                 "cuMemHostAlloc");
    std::memset(memory, 0, sizeof(Failure));
    failure.store(static_cast<Failure*>(memory));
  }
  return failure.load();
}
}  // namespace

void ConnectFailures(int device_id, CUmodule module) {
  const Driver& driver = Use(device_id);
  CUdeviceptr variable = 0;
  size_t size = 0;
  if (driver.ModuleGetGlobal(&variable, &size, module, kFailureVariable) != kSuccess) return;
  Failure* failure = FailureOf(device_id);
  driver.Check(driver.MemcpyHtoD(variable, &failure, sizeof(failure)), "cuMemcpyHtoD");
}
void RaiseFailure(int device_id) {
  Failure* failure = failures.at(device_id).load(std::memory_order_relaxed);
  if (!failure || failure->state.load(std::memory_order_acquire) != 2) return;
  char message[1024];
  const int64_t* n = failure->numbers;
  // The text is that of the compiler, with a place for each number.
  std::snprintf(message, sizeof(message), failure->text, static_cast<long long>(n[0]),
                static_cast<long long>(n[1]), static_cast<long long>(n[2]),
                static_cast<long long>(n[3]));
  std::string kind = failure->kind;
  failure->state.store(0, std::memory_order_release);
  throw ffi::Error(kind, message, "");
}

}  // namespace tvm::runtime::cuda
