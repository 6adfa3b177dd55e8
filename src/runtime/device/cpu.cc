// SPDX-License-Identifier: Apache-2.0
// The CPU as a device.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "runtime/device/memory_ledger.h"
#include "runtime/hooks.h"
#include "tvm/runtime/device.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime {
namespace {
/// The text after "key   : " of the first line with that key.
std::string Lookup(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    size_t colon = line.find(':');
    size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "";
}
Any PositiveOrNone(double value) {
  return value > 0 ? Any(static_cast<int64_t>(value)) : Any(nullptr);
}
/// In kB in /proc/meminfo; None where there is no such file.
Any MemInfo(std::string_view key) {
  return PositiveOrNone(std::atof(Lookup("/proc/meminfo", key).c_str()) * 1024);
}

class CpuDevice : public DeviceAPI {
 public:
  Any GetAttr(DLDevice device, DeviceAttr attr) final {
    switch (attr) {
      case DeviceAttr::kExist:
        return device.device_id == 0;
      case DeviceAttr::kDeviceName: {
        std::string name = Lookup("/proc/cpuinfo", "model name");
        return name.empty() ? Any(nullptr) : Any(String(name));
      }
      case DeviceAttr::kMaxClockRate:
        return PositiveOrNone(std::atof(Lookup("/proc/cpuinfo", "cpu MHz").c_str()) * 1000);
      case DeviceAttr::kMultiProcessorCount:
        return AvailableCpus();
#ifdef _SC_LEVEL2_CACHE_SIZE
      case DeviceAttr::kL2CacheSizeBytes:
        return PositiveOrNone(sysconf(_SC_LEVEL2_CACHE_SIZE));
#endif
      case DeviceAttr::kTotalGlobalMemory:
        return MemInfo("MemTotal");
      case DeviceAttr::kAvailableGlobalMemory:
        return MemInfo("MemAvailable");
      default:
        return nullptr;
    }
  }
  void* Alloc(DLDevice device, uint64_t nbytes, size_t alignment, std::string_view scope) final {
    if (!scope.empty() && scope != "global") {
      TVM_FFI_THROW(ValueError) << "cpu: expected the memory scope 'global', got '" << scope << "'";
    }
    constexpr uint64_t kHuge = uint64_t{2} << 20;
    void* data = nullptr;
    ledger_.CheckLimit(device, nbytes);
    nbytes = std::max<uint64_t>(nbytes, 1);
    const TVMModelAllocator* hook = allocator_hook.load(std::memory_order_acquire);
    if (nbytes <= uint64_t{PTRDIFF_MAX}) {
      if (hook) {
        data = hook->alloc(hook->self, nbytes, alignment);
      } else if (posix_memalign(&data, nbytes >= kHuge ? kHuge : alignment, nbytes) != 0) {
        data = nullptr;
      }
    }
    if (!data) {
      ledger_.ThrowNoMemory(device, nbytes, MemInfo("MemAvailable"));
    }
    ledger_.Add(data, nbytes);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    // Fewer TLB misses on large tensors, weights of a layer among them: how fast they are read does
    // not depend on where pages happen to lie. Only whole huge pages inside the block are affected.
    if (!hook && nbytes >= kHuge) {
      uint64_t begin = (reinterpret_cast<uint64_t>(data) + kHuge - 1) / kHuge * kHuge;
      uint64_t end = (reinterpret_cast<uint64_t>(data) + nbytes) / kHuge * kHuge;
      madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
#endif
    return data;
  }
  void Free(DLDevice, void* data) final {
    uint64_t nbytes = ledger_.Remove(data);
    if (const TVMModelAllocator* hook = allocator_hook.load(std::memory_order_acquire)) {
      hook->free(hook->self, data, nbytes);
    } else {
      std::free(data);
    }
  }
  MemoryStats Memory(DLDevice) final { return ledger_.stats(); }
  void SetMemoryLimit(DLDevice, uint64_t bytes) final { ledger_.SetLimit(bytes); }

  // Functions on the CPU return when they are done: there is one stream, null.
  void Copy(DLDevice, const void* from, DLDevice, void* to, uint64_t nbytes, Stream stream) final {
    CheckStream(stream);
    std::memmove(to, from, nbytes);
  }
  void Fill(DLDevice, void* data, uint8_t byte, uint64_t nbytes, Stream stream) final {
    CheckStream(stream);
    std::memset(data, byte, nbytes);
  }
  Stream CreateStream(DLDevice) final { return nullptr; }
  void FreeStream(DLDevice, Stream stream) final { CheckStream(stream); }
  void Sync(DLDevice, Stream stream) final { CheckStream(stream); }
  void WaitForStream(DLDevice, Stream waiting, Stream awaited) final {
    CheckStream(waiting);
    CheckStream(awaited);
  }
  // An event is the time of its recording.
  Event CreateEvent(DLDevice) final { return new Clock::time_point(); }
  void FreeEvent(DLDevice, Event event) final { delete static_cast<Clock::time_point*>(event); }
  void Record(DLDevice, Event event, Stream stream) final {
    CheckStream(stream);
    *static_cast<Clock::time_point*>(event) = Clock::now();
  }
  void WaitForEvent(DLDevice, Stream stream, Event) final { CheckStream(stream); }
  bool IsDone(DLDevice, Event) final { return true; }
  double Seconds(DLDevice, Event begin, Event end) final {
    auto time = [](Event event) { return *static_cast<Clock::time_point*>(event); };
    return std::chrono::duration<double>(time(end) - time(begin)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  MemoryLedger ledger_;
  static void CheckStream(Stream stream) {
    if (stream) TVM_FFI_THROW(ValueError) << "cpu: expected the stream 0, got " << stream;
  }
};
TVM_REGISTER() { RegisterDeviceAPI(kDLCPU, new CpuDevice()); }
}  // namespace
}  // namespace tvm::runtime
