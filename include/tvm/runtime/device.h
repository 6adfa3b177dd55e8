// SPDX-License-Identifier: Apache-2.0
// Devices: their names, and what the runtime asks of each kind.
#pragma once
#include <tvm/ffi/extra/c_env_api.h>

#include "tvm/runtime/def.h"

namespace tvm::runtime {

constexpr size_t kAllocAlignment =
    64;  ///< of every tensor and workspace: one cache line, one AVX-512 vector

/// What a device can tell about itself; None where it does not know.
enum class DeviceAttr : int {
  kExist,
  kMaxThreadsPerBlock,
  kWarpSize,
  kMaxSharedMemoryPerBlock,
  kComputeVersion,
  kDeviceName,
  kMaxClockRate,
  kMultiProcessorCount,
  kMaxThreadDimensions,
  kApiVersion,
  kDriverVersion,
  kL2CacheSizeBytes,
  kTotalGlobalMemory,
  kAvailableGlobalMemory,
  kTextureSpatialLimit,
  kCount,
};

/// One per device kind, registered once and never destroyed. All methods may be called from any
/// thread.
class DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  virtual Any GetAttr(DLDevice device, DeviceAttr attr) = 0;
  /// Raises MemoryError when there is none. `scope` names a kind of memory of the device, "" the
  /// usual one.
  virtual void* Alloc(DLDevice device, uint64_t nbytes, size_t alignment,
                      std::string_view scope = "") = 0;
  virtual void Free(DLDevice device, void* data) = 0;
  /// Copies contiguous bytes; one of the devices is of this kind, the other too or the CPU. Returns
  /// when the bytes may be used.
  virtual void Copy(DLDevice from_device, const void* from, DLDevice to_device, void* to,
                    uint64_t nbytes) = 0;
  virtual TVMFFIStreamHandle CreateStream(DLDevice device) = 0;
  virtual void FreeStream(DLDevice device, TVMFFIStreamHandle stream) = 0;
  /// Waits for everything queued on the stream (null: the current one).
  virtual void Sync(DLDevice device, TVMFFIStreamHandle stream) = 0;
};

void RegisterDeviceAPI(DLDeviceType type, DeviceAPI* api);
/// Null when this process has no runtime for the kind.
DeviceAPI* FindDeviceAPI(DLDeviceType type);
/// Raises RuntimeError, saying so, when this process has no runtime for the kind.
DeviceAPI* GetDeviceAPI(DLDeviceType type);

/// "cpu", "cuda", …
std::string DeviceName(DLDeviceType type);
/// From a device name ("cuda:1") or a target ("llvm -num-cores=2"); ValueError names the nearest.
DLDevice ParseDevice(std::string_view text, int device_id = 0);

}  // namespace tvm::runtime
