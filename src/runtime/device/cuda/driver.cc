// SPDX-License-Identifier: Apache-2.0
// Loads CUDA's driver and keeps a context for each device.
#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>

#include <mutex>
#include <vector>

namespace tvm::runtime::cuda {
namespace {
Driver Load() {
  Driver driver;
  void* library = nullptr;
  for (const char* name : {"libcuda.so.1", "libcuda.so"}) {
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) {
    const char* why = dlerror();
    driver.error = std::string("cannot load NVIDIA's driver: ") + (why ? why : "not found");
    return driver;
  }
  std::string missing;
#define ROW(name, symbol, params)                                              \
  driver.name = reinterpret_cast<CUresult(*) params>(dlsym(library, #symbol)); \
  if (!driver.name) missing = #symbol;
  TVM_CUDA_DRIVER(ROW)
#undef ROW
  if (!missing.empty()) {
    driver.error = "expected NVIDIA's driver for CUDA 12 or newer, got one without " + missing;
    return driver;
  }
  CUresult result = driver.Init(0);
  if (result == kSuccess) result = driver.DeviceGetCount(&driver.devices);
  if (result != kSuccess) {
    const char* name = nullptr;
    driver.GetErrorName(result, &name);
    driver.devices = 0;
    driver.error =
        std::string("NVIDIA's driver finds no device: ") + (name ? name : "unknown error");
  }
  return driver;
}
}  // namespace

const Driver& Driver::Get() {
  static const Driver driver = Load();
  return driver;
}
void Driver::Check(CUresult result, const std::string& what) const {
  if (result == kSuccess) return;
  const char *name = nullptr, *text = nullptr;
  GetErrorName(result, &name);
  GetErrorString(result, &text);
  TVM_FFI_THROW(RuntimeError) << "cuda: " << what << ": " << (text ? text : "unknown error") << " ("
                              << (name ? name : "?") << ", " << result << ")";
}
CUcontext ContextOf(int device_id) {
  const Driver& driver = Driver::Get();
  if (device_id < 0 || device_id >= driver.devices) {
    TVM_FFI_THROW(RuntimeError) << "cuda: expected a device below " << driver.devices << ", got "
                                << device_id << (driver.error.empty() ? "" : "; " + driver.error);
  }
  // Kept to the end of the process: others use the same context.
  static std::mutex mutex;
  static auto* contexts = new std::vector<CUcontext>(driver.devices);
  std::lock_guard lock(mutex);
  CUcontext& context = (*contexts)[device_id];
  if (!context) {
    CUdevice device = 0;
    driver.Check(driver.DeviceGet(&device, device_id), "cuDeviceGet");
    driver.Check(driver.PrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    // Memory that was freed stays in the pool: asking the system again costs a synchronisation.
    CUmemoryPool pool = nullptr;
    uint64_t all = UINT64_MAX;
    if (driver.DeviceGetDefaultMemPool(&pool, device) == kSuccess)
      driver.MemPoolSetAttribute(pool, kPoolReleaseThreshold, &all);
  }
  return context;
}
const Driver& Use(int device_id) {
  const Driver& driver = Driver::Get();
  thread_local int last = -1;
  thread_local CUcontext context = nullptr;
  if (last != device_id) {
    context = ContextOf(device_id);
    last = device_id;
  }
  CUcontext current = nullptr;
  driver.CtxGetCurrent(&current);
  if (current != context) driver.Check(driver.CtxSetCurrent(context), "cuCtxSetCurrent");
  return driver;
}

}  // namespace tvm::runtime::cuda
