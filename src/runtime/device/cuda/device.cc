// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs as devices, and memory of the host that they can read.
#include <algorithm>
#include <deque>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/memory_ledger.h"

namespace tvm::runtime::cuda {
namespace {
CUstream AsStream(Stream stream) { return static_cast<CUstream>(stream); }
CUevent AsEvent(Event event) { return static_cast<CUevent>(event); }
CUdeviceptr AsPointer(const void* data) { return reinterpret_cast<CUdeviceptr>(data); }

class CudaDevice : public DeviceAPI {
 public:
  Any GetAttr(DLDevice device, DeviceAttr attr) final {
    const Driver& driver = Driver::Get();
    bool exists = device.device_id >= 0 && device.device_id < driver.devices;
    if (attr == DeviceAttr::kExist) return exists;
    if (!exists) return nullptr;
    auto number = [&](int which) -> Any {
      int value = 0;
      if (driver.DeviceGetAttribute(&value, which, device.device_id) != kSuccess) return nullptr;
      return value;
    };
    auto digits = [&](int which) { return std::to_string(number(which).cast<int>()); };
    switch (attr) {
      case DeviceAttr::kMaxThreadsPerBlock:
        return number(kMaxThreadsPerBlock);
      case DeviceAttr::kWarpSize:
        return number(kWarpSize);
      case DeviceAttr::kMaxSharedMemoryPerBlock:
        return number(kMaxSharedMemoryPerBlock);
      case DeviceAttr::kComputeVersion:
        return String(digits(kComputeCapabilityMajor) + "." + digits(kComputeCapabilityMinor));
      case DeviceAttr::kDeviceName: {
        char name[256] = {};
        driver.Check(driver.DeviceGetName(name, sizeof(name), device.device_id), "cuDeviceGetName");
        return String(name);
      }
      case DeviceAttr::kMaxClockRate:
        return number(kClockRate);
      case DeviceAttr::kMultiProcessorCount:
        return number(kMultiprocessorCount);
      case DeviceAttr::kMaxThreadDimensions:
        return String("[" + digits(kMaxBlockDimX) + ", " + digits(kMaxBlockDimX + 1) + ", " +
                      digits(kMaxBlockDimX + 2) + "]");
      case DeviceAttr::kApiVersion:
        return 12000;
      case DeviceAttr::kDriverVersion: {
        int version = 0;
        driver.Check(driver.DriverGetVersion(&version), "cuDriverGetVersion");
        return version;
      }
      case DeviceAttr::kL2CacheSizeBytes:
        return number(kL2CacheSize);
      case DeviceAttr::kTotalGlobalMemory: {
        size_t bytes = 0;
        driver.Check(driver.DeviceTotalMem(&bytes, device.device_id), "cuDeviceTotalMem");
        return static_cast<int64_t>(bytes);
      }
      case DeviceAttr::kAvailableGlobalMemory:
        return FreeBytes(device);
      default:
        return nullptr;
    }
  }

  // ---- memory: the driver's pool, in the order of streams ----
  void* Alloc(DLDevice device, uint64_t nbytes, size_t, std::string_view scope) final {
    if (!scope.empty() && scope != "global") {
      TVM_FFI_THROW(ValueError) << "cuda: expected the memory scope 'global', got '" << scope
                                << "'";
    }
    const Driver& driver = Use(device.device_id);
    MemoryLedger& ledger = LedgerOf(device);
    ledger.CheckLimit(device, nbytes);
    CUdeviceptr data = 0;
    size_t bytes = std::max<uint64_t>(nbytes, 1);
    CUstream stream = AsStream(CurrentStream(device));
    CUresult result = driver.MemAllocAsync(&data, bytes, stream);
    if (result == kOutOfMemory) {
      // Blocks that wait for their streams, and those the pool keeps, may be enough.
      driver.StreamSynchronize(stream);
      Trim(device);
      result = driver.MemAllocAsync(&data, bytes, stream);
    }
    if (result == kOutOfMemory) ledger.ThrowNoMemory(device, nbytes, FreeBytes(device));
    driver.Check(result, "cuMemAllocAsync of " + std::to_string(bytes) + " bytes");
    auto* memory = reinterpret_cast<void*>(data);
    ledger.Add(memory, nbytes);
    return memory;
  }
  void Free(DLDevice device, void* data) final {
    // Destructors call this, also after a kernel failed or when the process ends: errors are those
    // of somebody else, who has seen them.
    try {
      const Driver& driver = Use(device.device_id);
      LedgerOf(device).Remove(data);
      driver.MemFreeAsync(AsPointer(data), AsStream(CurrentStream(device)));
    } catch (const std::exception&) {
    }
  }
  MemoryStats Memory(DLDevice device) final { return LedgerOf(device).stats(); }
  void SetMemoryLimit(DLDevice device, uint64_t bytes) final { LedgerOf(device).SetLimit(bytes); }
  void Trim(DLDevice device) final {
    const Driver& driver = Use(device.device_id);
    CUmemoryPool pool = nullptr;
    driver.Check(driver.DeviceGetDefaultMemPool(&pool, device.device_id),
                 "cuDeviceGetDefaultMemPool");
    driver.Check(driver.MemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
  }

  // ---- streams ----
  void Copy(DLDevice from_device, const void* from, DLDevice to_device, void* to, uint64_t nbytes,
            Stream stream) final {
    bool both = from_device.device_type == kDLCUDA && to_device.device_type == kDLCUDA;
    int own = from_device.device_type == kDLCUDA ? from_device.device_id : to_device.device_id;
    const Driver& driver = Use(own);
    if (both && from_device.device_id != to_device.device_id) {
      CUcontext source = ContextOf(from_device.device_id), target = ContextOf(to_device.device_id);
      driver.Check(driver.MemcpyPeerAsync(AsPointer(to), target, AsPointer(from), source, nbytes,
                                          AsStream(stream)),
                   "cuMemcpyPeerAsync");
    } else {
      driver.Check(driver.MemcpyAsync(AsPointer(to), AsPointer(from), nbytes, AsStream(stream)),
                   "cuMemcpyAsync");
    }
  }
  void Fill(DLDevice device, void* data, uint8_t byte, uint64_t nbytes, Stream stream) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.MemsetD8Async(AsPointer(data), byte, nbytes, AsStream(stream)),
                 "cuMemsetD8Async");
  }
  Stream CreateStream(DLDevice device) final {
    const Driver& driver = Use(device.device_id);
    CUstream stream = nullptr;
    driver.Check(driver.StreamCreate(&stream, kStreamNonBlocking), "cuStreamCreate");
    return stream;
  }
  void FreeStream(DLDevice device, Stream stream) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.StreamDestroy(AsStream(stream)), "cuStreamDestroy");
  }
  void Sync(DLDevice device, Stream stream) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.StreamSynchronize(AsStream(stream)), "cuStreamSynchronize");
    RaiseFailure(device.device_id);
  }

  // ---- events ----
  Event CreateEvent(DLDevice device) final {
    const Driver& driver = Use(device.device_id);
    CUevent event = nullptr;
    driver.Check(driver.EventCreate(&event, 0), "cuEventCreate");
    return event;
  }
  void FreeEvent(DLDevice device, Event event) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.EventDestroy(AsEvent(event)), "cuEventDestroy");
  }
  void Record(DLDevice device, Event event, Stream stream) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.EventRecord(AsEvent(event), AsStream(stream)), "cuEventRecord");
  }
  void WaitForEvent(DLDevice device, Stream stream, Event event) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.StreamWaitEvent(AsStream(stream), AsEvent(event), 0), "cuStreamWaitEvent");
  }
  bool IsDone(DLDevice device, Event event) final {
    const Driver& driver = Use(device.device_id);
    CUresult result = driver.EventQuery(AsEvent(event));
    if (result != kNotReady) driver.Check(result, "cuEventQuery");
    return result == kSuccess;
  }
  double Seconds(DLDevice device, Event begin, Event end) final {
    const Driver& driver = Use(device.device_id);
    driver.Check(driver.EventSynchronize(AsEvent(end)), "cuEventSynchronize");
    RaiseFailure(device.device_id);
    float milliseconds = 0;
    driver.Check(driver.EventElapsedTime(&milliseconds, AsEvent(begin), AsEvent(end)),
                 "cuEventElapsedTime");
    return milliseconds * 1e-3;
  }

 private:
  static Any FreeBytes(DLDevice device) {
    const Driver& driver = Use(device.device_id);
    size_t free = 0, total = 0;
    driver.Check(driver.MemGetInfo(&free, &total), "cuMemGetInfo");
    return static_cast<int64_t>(free);
  }
  MemoryLedger& LedgerOf(DLDevice device) {
    std::lock_guard lock(mutex_);
    while (ledgers_.size() <= static_cast<size_t>(device.device_id)) ledgers_.emplace_back();
    return ledgers_[device.device_id];
  }
  std::mutex mutex_;
  std::deque<MemoryLedger> ledgers_;  // never moved
};

/// Pinned memory of the host: the GPU reads it at full speed. The CPU sees what is in it.
class PinnedMemory : public DeviceAPI {
 public:
  Any GetAttr(DLDevice, DeviceAttr attr) final {
    return attr == DeviceAttr::kExist ? Any(Driver::Get().devices > 0) : Any(nullptr);
  }
  void* Alloc(DLDevice device, uint64_t nbytes, size_t, std::string_view) final {
    const Driver& driver = Use(0);
    ledger_.CheckLimit(device, nbytes);
    void* data = nullptr;
    constexpr unsigned kPortable = 1;
    CUresult result = driver.MemHostAlloc(&data, std::max<uint64_t>(nbytes, 1), kPortable);
    if (result == kOutOfMemory) ledger_.ThrowNoMemory(device, nbytes, nullptr);
    driver.Check(result, "cuMemHostAlloc");
    ledger_.Add(data, nbytes);
    return data;
  }
  void Free(DLDevice, void* data) final {
    ledger_.Remove(data);
    Use(0).MemFreeHost(data);
  }
  MemoryStats Memory(DLDevice) final { return ledger_.stats(); }
  void SetMemoryLimit(DLDevice, uint64_t bytes) final { ledger_.SetLimit(bytes); }
  // The rest is what the CPU does.
  void Copy(DLDevice from_device, const void* from, DLDevice to_device, void* to, uint64_t nbytes,
            Stream stream) final {
    Cpu()->Copy(from_device, from, to_device, to, nbytes, stream);
  }
  void Fill(DLDevice device, void* data, uint8_t byte, uint64_t nbytes, Stream stream) final {
    Cpu()->Fill(device, data, byte, nbytes, stream);
  }
  Stream CreateStream(DLDevice device) final { return Cpu()->CreateStream(device); }
  void FreeStream(DLDevice device, Stream stream) final { Cpu()->FreeStream(device, stream); }
  void Sync(DLDevice device, Stream stream) final { Cpu()->Sync(device, stream); }
  Event CreateEvent(DLDevice device) final { return Cpu()->CreateEvent(device); }
  void FreeEvent(DLDevice device, Event event) final { Cpu()->FreeEvent(device, event); }
  void Record(DLDevice device, Event event, Stream s) final { Cpu()->Record(device, event, s); }
  void WaitForEvent(DLDevice device, Stream stream, Event event) final {
    Cpu()->WaitForEvent(device, stream, event);
  }
  bool IsDone(DLDevice device, Event event) final { return Cpu()->IsDone(device, event); }
  double Seconds(DLDevice device, Event begin, Event end) final {
    return Cpu()->Seconds(device, begin, end);
  }

 private:
  static DeviceAPI* Cpu() { return GetDeviceAPI(kDLCPU); }
  MemoryLedger ledger_;
};

TVM_REGISTER() {
  RegisterDeviceAPI(kDLCUDA, new CudaDevice());
  RegisterDeviceAPI(kDLCUDAHost, new PinnedMemory());
  Def(
      "runtime.GetCudaDeviceCount", [] { return Driver::Get().devices; },
      "NVIDIA GPUs that the driver finds; 0 without a driver.");
  Def(
      "runtime.GetCudaFreeMemory",
      [] {
        const Driver& driver = Use(CurrentDevice(kDLCUDA).device_id);
        size_t free = 0, total = 0;
        driver.Check(driver.MemGetInfo(&free, &total), "cuMemGetInfo");
        return Array<int64_t>{static_cast<int64_t>(free), static_cast<int64_t>(total)};
      },
      "Free and total bytes of the current GPU.");
  Def(
      "runtime.get_cuda_stream",
      [] { return static_cast<void*>(CurrentStream(CurrentDevice(kDLCUDA))); },
      "The current stream of the current GPU.");
}
}  // namespace
}  // namespace tvm::runtime::cuda
