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

/// Bytes of one device that this process holds.
struct MemoryStats {
  uint64_t used = 0;      ///< In tensors and workspaces.
  uint64_t peak = 0;      ///< The most that was ever used.
  uint64_t reserved = 0;  ///< Used, and kept for later.
  uint64_t limit = 0;     ///< What may be used; 0: all there is.
  uint64_t allocations = 0;
};

using Stream = TVMFFIStreamHandle;  ///< Null: the default stream of a device.
using Event = void*;

/// One per device kind, registered once and never destroyed. All methods may be called from any
/// thread. Work is queued on streams: what is on one stream runs in order, streams run beside each
/// other. A device without queues does the work at once.
class DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  virtual Any GetAttr(DLDevice device, DeviceAttr attr) = 0;

  // ---- memory ----
  /// Memory that what is queued on the current stream from now on may use. Raises MemoryError,
  /// which says how much was asked for, held and free. `scope` names a kind of memory of the
  /// device, "" the usual one.
  virtual void* Alloc(DLDevice device, uint64_t nbytes, size_t alignment,
                      std::string_view scope = "") = 0;
  /// The memory stays until what was queued on the current stream is done.
  virtual void Free(DLDevice device, void* data) = 0;
  virtual MemoryStats Memory(DLDevice device) = 0;
  /// 0: no limit.
  virtual void SetMemoryLimit(DLDevice device, uint64_t bytes) = 0;
  /// Gives memory that is kept for later back to the system.
  virtual void Trim(DLDevice) {}

  // ---- in the order of a stream ----
  /// Copies contiguous bytes between two devices, of which one is of this kind and the other too,
  /// or memory of the host. The caller keeps both until the stream is done.
  virtual void Copy(DLDevice from_device, const void* from, DLDevice to_device, void* to,
                    uint64_t nbytes, Stream stream) = 0;
  virtual void Fill(DLDevice device, void* data, uint8_t byte, uint64_t nbytes, Stream stream) = 0;
  virtual Stream CreateStream(DLDevice device) = 0;
  virtual void FreeStream(DLDevice device, Stream stream) = 0;
  /// Waits for everything queued on the stream.
  virtual void Sync(DLDevice device, Stream stream) = 0;
  /// What is queued on `waiting` from now on runs after what is on `awaited` now.
  virtual void WaitForStream(DLDevice device, Stream waiting, Stream awaited);

  // ---- points in a stream ----
  virtual Event CreateEvent(DLDevice device) = 0;
  virtual void FreeEvent(DLDevice device, Event event) = 0;
  virtual void Record(DLDevice device, Event event, Stream stream) = 0;
  virtual void WaitForEvent(DLDevice device, Stream stream, Event event) = 0;
  virtual bool IsDone(DLDevice device, Event event) = 0;
  /// Between two recorded events, both of which are waited for.
  virtual double Seconds(DLDevice device, Event begin, Event end) = 0;
};
/// The stream of this thread for a device: that of tvm-ffi, and so of PyTorch during a call with
/// its tensors.
Stream CurrentStream(DLDevice device);
/// The device of a kind that this thread works on: what generated code set last, 0 at first.
DLDevice CurrentDevice(DLDeviceType type);
void SetCurrentDevice(DLDevice device);
/// Whether the CPU can read the memory.
inline bool IsHostMemory(DLDeviceType type) {
  return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;
}

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
