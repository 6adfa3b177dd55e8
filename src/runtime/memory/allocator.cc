// SPDX-License-Identifier: Apache-2.0
// Allocators: one per device and kind.
#include <algorithm>
#include <bit>
#include <memory>

#include "tvm/runtime/memory.h"

namespace tvm::runtime {
namespace {
struct AllocatorTable {
  std::mutex mutex;
  std::map<std::tuple<int, int, int>, std::unique_ptr<Allocator>> entries;
  static AllocatorTable& Global() {
    static auto* table = new AllocatorTable();
    return *table;
  }
};
/// Eight sizes between two powers of two: at most an eighth is wasted, and requests that differ a
/// little (a sequence that grows) find each other's memory.
uint64_t SizeClass(uint64_t nbytes) {
  uint64_t size = std::max<uint64_t>(nbytes, 1);
  if (size > uint64_t{1} << 62) return size;  // no such memory: the device says so
  uint64_t step = std::max<uint64_t>(std::bit_floor(size) / 8, kAllocAlignment);
  return (size + step - 1) / step * step;
}
}  // namespace

Allocator::Allocator(DLDevice device, AllocatorKind kind)
    : device_(device), pooled_(kind == AllocatorKind::kPooled) {}

/// The runtimes of other devices keep freed memory themselves, in the order of their streams.
bool Allocator::Pools(std::string_view scope) const {
  return pooled_ && device_.device_type == kDLCPU && (scope.empty() || scope == "global");
}

Allocator* Allocator::Get(DLDevice device, AllocatorKind kind) {
  if (kind != AllocatorKind::kNaive && kind != AllocatorKind::kPooled) {
    TVM_FFI_THROW(ValueError) << "allocator: expected 1 (naive) or 2 (pooled), got "
                              << static_cast<int>(kind);
  }
  GetDeviceAPI(device.device_type);  // raises where there is no runtime for it
  AllocatorTable& table = AllocatorTable::Global();
  std::lock_guard lock(table.mutex);
  auto& entry =
      table.entries[{device.device_type, device.device_id, static_cast<int>(kind)}];
  if (!entry) entry.reset(new Allocator(device, kind));
  return entry.get();
}
void Allocator::ClearAll() {
  AllocatorTable& table = AllocatorTable::Global();
  std::lock_guard lock(table.mutex);
  for (auto& [key, allocator] : table.entries) allocator->Clear();
}

void* Allocator::Alloc(uint64_t* nbytes, std::string_view scope) {
  bool pools = Pools(scope);
  if (pools) *nbytes = SizeClass(*nbytes);
  auto use = [&] {
    stats_.used += *nbytes;
    stats_.peak = std::max(stats_.peak, stats_.used);
    ++stats_.allocations;
  };
  if (pools) {
    std::lock_guard lock(mutex_);
    if (auto it = free_.find(*nbytes); it != free_.end() && !it->second.empty()) {
      void* data = it->second.back();
      it->second.pop_back();
      stats_.kept -= *nbytes;
      use();
      return data;
    }
  }
  DeviceAPI* api = GetDeviceAPI(device_.device_type);
  void* data = nullptr;
  try {
    data = api->Alloc(device_, *nbytes, kAllocAlignment, scope);
  } catch (const ffi::Error& error) {
    if (error.kind() != "MemoryError" || stats().kept == 0) throw;
    Clear();
    data = api->Alloc(device_, *nbytes, kAllocAlignment, scope);
  }
  std::lock_guard lock(mutex_);
  use();
  return data;
}

void Allocator::Free(void* data, uint64_t nbytes, std::string_view scope) {
  {
    std::lock_guard lock(mutex_);
    stats_.used -= nbytes;
    if (Pools(scope)) {
      free_[nbytes].push_back(data);
      stats_.kept += nbytes;
      return;
    }
  }
  FindDeviceAPI(device_.device_type)->Free(device_, data);
}

void Allocator::Clear() {
  std::map<uint64_t, std::vector<void*>> free;
  {
    std::lock_guard lock(mutex_);
    free.swap(free_);
    stats_.kept = 0;
  }
  for (auto& [size, blocks] : free) {
    for (void* data : blocks) FindDeviceAPI(device_.device_type)->Free(device_, data);
  }
}

Allocator::Stats Allocator::stats() {
  std::lock_guard lock(mutex_);
  return stats_;
}

namespace {
TVM_REGISTER() {
  Def("vm.builtin.memory_manager.clear", &Allocator::ClearAll,
      "Gives back the memory that allocators keep for later.");
  Def(
      "runtime.AllocatorStats",
      [](DLDevice device, int kind) {
        Allocator::Stats s = Allocator::Get(device, static_cast<AllocatorKind>(kind))->stats();
        auto number = [](uint64_t n) { return static_cast<int64_t>(n); };
        return Map<String, int64_t>{{"used", number(s.used)},
                                    {"kept", number(s.kept)},
                                    {"peak", number(s.peak)},
                                    {"allocations", number(s.allocations)}};
      },
      "Bytes that an allocator (1: naive, 2: pooled) has handed out and keeps for later.",
      Arg("device"), Arg("kind", 2));
}
}  // namespace
}  // namespace tvm::runtime
