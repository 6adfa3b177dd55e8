// SPDX-License-Identifier: Apache-2.0
// CUDA's driver, loaded on first use: nothing of CUDA is needed to build or to start.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tvm/runtime/device.h"

namespace tvm::runtime::cuda {

// The driver's own types; all handles are pointers, all results numbers of which 0 is success.
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemoryPool = struct CUmemPoolHandle_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char value[64];
    unsigned cluster[3];  ///< Extents, of the attribute kClusterDimension.
  };
};
/// What the copy engine knows of a tensor: a parameter that is passed by value.
struct alignas(64) CUtensorMap {
  uint64_t words[16];
};
struct CUlaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  CUstream stream;
  CUlaunchAttribute* attrs;
  unsigned num_attrs;
};

// Numbers of the driver's enumerations that are used here.
enum Result { kSuccess = 0, kOutOfMemory = 2, kNotReady = 600 };
enum Attribute {
  kMaxThreadsPerBlock = 1,
  kMaxBlockDimX = 2,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kClockRate = 13,
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
};
constexpr int kFuncMaxDynamicSharedBytes = 8, kPoolReleaseThreshold = 4, kStreamNonBlocking = 1,
              kCaptureRelaxed = 2, kClusterDimension = 4;

//  result of each: CUresult; name of the method, symbol of the library, parameters
#define TVM_CUDA_DRIVER(ROW)                                                                      \
  ROW(Init, cuInit, (unsigned))                                                                   \
  ROW(DriverGetVersion, cuDriverGetVersion, (int*))                                               \
  ROW(GetErrorName, cuGetErrorName, (CUresult, const char**))                                     \
  ROW(GetErrorString, cuGetErrorString, (CUresult, const char**))                                 \
  ROW(DeviceGetCount, cuDeviceGetCount, (int*))                                                   \
  ROW(DeviceGet, cuDeviceGet, (CUdevice*, int))                                                   \
  ROW(DeviceGetName, cuDeviceGetName, (char*, int, CUdevice))                                     \
  ROW(DeviceGetAttribute, cuDeviceGetAttribute, (int*, int, CUdevice))                            \
  ROW(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t*, CUdevice))                                   \
  ROW(PrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                         \
  ROW(CtxGetCurrent, cuCtxGetCurrent, (CUcontext*))                                               \
  ROW(CtxSetCurrent, cuCtxSetCurrent, (CUcontext))                                                \
  ROW(MemGetInfo, cuMemGetInfo_v2, (size_t*, size_t*))                                            \
  ROW(DeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, (CUmemoryPool*, CUdevice))              \
  ROW(MemPoolSetAttribute, cuMemPoolSetAttribute, (CUmemoryPool, int, void*))                     \
  ROW(MemPoolTrimTo, cuMemPoolTrimTo, (CUmemoryPool, size_t))                                     \
  ROW(MemAllocAsync, cuMemAllocAsync, (CUdeviceptr*, size_t, CUstream))                           \
  ROW(MemFreeAsync, cuMemFreeAsync, (CUdeviceptr, CUstream))                                      \
  ROW(MemHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                                   \
  ROW(MemFreeHost, cuMemFreeHost, (void*))                                                        \
  ROW(MemcpyAsync, cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                   \
  ROW(MemcpyPeerAsync, cuMemcpyPeerAsync,                                                         \
      (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                         \
  ROW(MemsetD8Async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))             \
  ROW(StreamCreate, cuStreamCreate, (CUstream*, unsigned))                                        \
  ROW(StreamDestroy, cuStreamDestroy_v2, (CUstream))                                              \
  ROW(StreamSynchronize, cuStreamSynchronize, (CUstream))                                         \
  ROW(StreamWaitEvent, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                          \
  ROW(StreamBeginCapture, cuStreamBeginCapture_v2, (CUstream, int))                               \
  ROW(StreamEndCapture, cuStreamEndCapture, (CUstream, CUgraph*))                                 \
  ROW(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec*, CUgraph, unsigned long long)) \
  ROW(GraphLaunch, cuGraphLaunch, (CUgraphExec, CUstream))                                        \
  ROW(GraphDestroy, cuGraphDestroy, (CUgraph))                                                    \
  ROW(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec))                                        \
  ROW(EventCreate, cuEventCreate, (CUevent*, unsigned))                                           \
  ROW(EventDestroy, cuEventDestroy_v2, (CUevent))                                                 \
  ROW(EventRecord, cuEventRecord, (CUevent, CUstream))                                            \
  ROW(EventQuery, cuEventQuery, (CUevent))                                                        \
  ROW(EventSynchronize, cuEventSynchronize, (CUevent))                                            \
  ROW(EventElapsedTime, cuEventElapsedTime, (float*, CUevent, CUevent))                           \
  ROW(ModuleLoadData, cuModuleLoadData, (CUmodule*, const void*))                                 \
  ROW(ModuleUnload, cuModuleUnload, (CUmodule))                                                   \
  ROW(ModuleGetFunction, cuModuleGetFunction, (CUfunction*, CUmodule, const char*))               \
  ROW(ModuleGetGlobal, cuModuleGetGlobal_v2, (CUdeviceptr*, size_t*, CUmodule, const char*))      \
  ROW(MemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr, const void*, size_t))                            \
  ROW(FuncSetAttribute, cuFuncSetAttribute, (CUfunction, int, int))                               \
  ROW(TensorMapEncodeTiled, cuTensorMapEncodeTiled,                                               \
      (CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,     \
       const uint32_t*, int, int, int, int))                                                      \
  ROW(LaunchKernelEx, cuLaunchKernelEx, (const CUlaunchConfig*, CUfunction, void**, void**))

constexpr int kMaxDevices = 64;

/// The functions of the driver.
struct Driver {
#define ROW(name, symbol, params) CUresult(*name) params = nullptr;
  TVM_CUDA_DRIVER(ROW)
#undef ROW
  int devices = 0;
  std::string error;  ///< Why there are no devices.

  /// Loads it; where there is none, `devices` is 0.
  static const Driver& Get();
  /// RuntimeError that says what failed where a result is none of success.
  void Check(CUresult result, const std::string& what) const;
};

/// The functions of the driver with the primary context of a device current in this thread;
/// RuntimeError where there is no such device.
const Driver& Use(int device_id);
/// The primary context, which PyTorch and others share.
CUcontext ContextOf(int device_id);

}  // namespace tvm::runtime::cuda
