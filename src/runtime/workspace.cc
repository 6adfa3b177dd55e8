// SPDX-License-Identifier: Apache-2.0
// Scratch memory of generated code (per thread, reused), and the runtime's entries in exported
// libraries.
#include <tvm/ffi/extra/c_env_api.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tvm/runtime/def.h"
#include "tvm/runtime/device.h"
#include "tvm/runtime/thread_pool.h"

namespace tvm::runtime {
namespace {
constexpr uint64_t kPage = 4096;

struct Block {
  DLDevice device;
  void* data;
  uint64_t size;
};
/// Blocks of one thread. A request takes the smallest free block that is large enough; where none
/// is, the largest free one goes back first, so that growing requests do not pile up.
class Workspace {
 public:
  ~Workspace() {
    for (const Block& b : free_) FindDeviceAPI(b.device.device_type)->Free(b.device, b.data);
  }
  void* Alloc(DLDevice device, uint64_t nbytes) {
    DeviceAPI* api = GetDeviceAPI(device.device_type);
    if (device.device_type != kDLCPU) {
      // Other devices have pools of their own, which know when a stream is done with a block.
      used_.push_back({device, api->Alloc(device, nbytes, kAllocAlignment), nbytes});
      return used_.back().data;
    }
    if (nbytes > uint64_t{1} << 62) {
      TVM_FFI_THROW(MemoryError) << "workspace: cannot allocate " << nbytes << " bytes";
    }
    uint64_t size = std::max(kPage, (nbytes + kPage - 1) / kPage * kPage);
    auto best = free_.end(), largest = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->size >= size && (best == free_.end() || it->size < best->size)) best = it;
      if (largest == free_.end() || it->size > largest->size) largest = it;
    }
    if (best == free_.end()) {
      if (largest != free_.end()) {
        api->Free(device, largest->data);
        free_.erase(largest);
      }
      used_.push_back({device, api->Alloc(device, size, kAllocAlignment), size});
    } else {
      used_.push_back(*best);
      free_.erase(best);
    }
    return used_.back().data;
  }
  void Free(void* data) {
    // Requests nest: the block is nearly always the last one.
    auto it =
        std::find_if(used_.rbegin(), used_.rend(), [&](const Block& b) { return b.data == data; });
    if (it == used_.rend()) {
      TVM_FFI_THROW(ValueError) << "workspace: expected an address that this thread allocated, got "
                                << data;
    }
    if (it->device.device_type == kDLCPU) {
      free_.push_back(*it);
    } else {
      GetDeviceAPI(it->device.device_type)->Free(it->device, data);
    }
    used_.erase(std::next(it).base());
  }

 private:
  std::vector<Block> used_, free_;
};
Workspace& ThreadWorkspace() {
  static thread_local Workspace workspace;
  return workspace;
}
}  // namespace

extern "C" void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int,
                                          int) {
  try {
    auto type = static_cast<DLDeviceType>(device_type);
    // Generated code says -1 for the device it runs on.
    DLDevice device = device_id < 0 ? CurrentDevice(type) : DLDevice{type, device_id};
    return ThreadWorkspace().Alloc(device, nbytes);
  } catch (...) {
    ReportException();
    return nullptr;
  }
}
extern "C" int TVMBackendFreeWorkspace(int, int, void* ptr) {
  try {
    ThreadWorkspace().Free(ptr);
    return 0;
  } catch (...) {
    return ReportException();
  }
}

namespace {
/// Exported libraries hold pointers of these names; tvm-ffi fills them on loading, and they stay
/// null in a process without this runtime.
TVM_REGISTER() {
  auto add = [](const char* name, auto* fn) {
    TVM_FFI_CHECK_SAFE_CALL(TVMFFIEnvModRegisterContextSymbol(name, reinterpret_cast<void*>(fn)));
  };
  add("__TVMBackendParallelLaunch", &TVMBackendParallelLaunch);
  add("__TVMBackendAllocWorkspace", &TVMBackendAllocWorkspace);
  add("__TVMBackendFreeWorkspace", &TVMBackendFreeWorkspace);
}
}  // namespace
}  // namespace tvm::runtime
