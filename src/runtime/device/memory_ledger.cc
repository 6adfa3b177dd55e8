// SPDX-License-Identifier: Apache-2.0
// How much memory of a device is in use, and how much may be.
#include "runtime/device/memory_ledger.h"

#include <algorithm>

namespace tvm::runtime {

void MemoryLedger::CheckLimit(DLDevice device, uint64_t nbytes) const {
  MemoryStats now = stats();
  if (now.limit == 0 || (nbytes <= now.limit && now.used <= now.limit - nbytes)) return;
  ThrowNoMemory(device, nbytes, static_cast<int64_t>(now.limit - std::min(now.limit, now.used)));
}
void MemoryLedger::ThrowNoMemory(DLDevice device, uint64_t nbytes, const Any& free_bytes) const {
  MemoryStats now = stats();
  std::string text = DeviceName(device.device_type) + ":" + std::to_string(device.device_id) +
                     ": cannot allocate " + std::to_string(nbytes) +
                     " bytes: " + std::to_string(now.used) + " are in use";
  if (auto free = free_bytes.as<int64_t>()) text += ", " + std::to_string(*free) + " are free";
  if (now.limit != 0) text += ", the limit is " + std::to_string(now.limit);
  TVM_FFI_THROW(MemoryError) << text;
  TVM_FFI_UNREACHABLE();
}
void MemoryLedger::Add(void* data, uint64_t nbytes) {
  std::lock_guard lock(mutex_);
  sizes_[data] = nbytes;
  stats_.used += nbytes;
  stats_.peak = std::max(stats_.peak, stats_.used);
  ++stats_.allocations;
}
uint64_t MemoryLedger::Remove(void* data) {
  std::lock_guard lock(mutex_);
  auto it = sizes_.find(data);
  if (it == sizes_.end()) return 0;
  uint64_t nbytes = it->second;
  stats_.used -= nbytes;
  sizes_.erase(it);
  return nbytes;
}
void MemoryLedger::SetLimit(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  stats_.limit = bytes;
}
MemoryStats MemoryLedger::stats() const {
  std::lock_guard lock(mutex_);
  MemoryStats now = stats_;
  now.reserved = std::max(now.reserved, now.used);
  return now;
}

}  // namespace tvm::runtime
