// SPDX-License-Identifier: Apache-2.0
// How much memory of a device is in use, and how much may be.
#pragma once
#include <mutex>
#include <unordered_map>

#include "tvm/runtime/device.h"

namespace tvm::runtime {

/// Safe for many threads.
class MemoryLedger {
 public:
  /// MemoryError when so much more would be beyond the limit.
  void CheckLimit(DLDevice device, uint64_t nbytes) const;
  /// MemoryError that says what was asked for, held and free (None: not known).
  [[noreturn]] void ThrowNoMemory(DLDevice device, uint64_t nbytes, const Any& free_bytes) const;
  void Add(void* data, uint64_t nbytes);
  /// The size of what is no longer used; 0 for an address that was not added.
  uint64_t Remove(void* data);
  void SetLimit(uint64_t bytes);
  MemoryStats stats() const;

 private:
  mutable std::mutex mutex_;
  MemoryStats stats_;
  std::unordered_map<void*, uint64_t> sizes_;
};

}  // namespace tvm::runtime
