// SPDX-License-Identifier: Apache-2.0
// Memory of running programs: allocators per device, storages, tensors inside a storage.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "tvm/runtime/tensor.h"

namespace tvm::runtime {

enum class AllocatorKind : int {
  kNaive = 1,   ///< Gives everything back at once.
  kPooled = 2,  ///< Keeps what is freed for the next request of about the size.
};

/// One per device and kind, made on first use and never destroyed: storages outlive the virtual
/// machine that asked for them. All methods may be called from any thread.
class Allocator {
 public:
  struct Stats {
    uint64_t used = 0;  ///< Bytes in storages.
    uint64_t kept = 0;  ///< Bytes that wait for the next request.
    uint64_t peak = 0;  ///< The most bytes that ever were used.
    uint64_t allocations = 0;
  };

  static Allocator* Get(DLDevice device, AllocatorKind kind);
  /// Frees what all allocators keep.
  static void ClearAll();

  /// At least `*nbytes` bytes; `*nbytes` becomes how many. MemoryError when there are none even
  /// after giving back what is kept.
  void* Alloc(uint64_t* nbytes, std::string_view scope);
  void Free(void* data, uint64_t nbytes, std::string_view scope);
  void Clear();
  Stats stats();
  DLDevice device() const { return device_; }

 private:
  Allocator(DLDevice device, AllocatorKind kind);
  bool Pools(std::string_view scope) const;

  const DLDevice device_;
  const bool pooled_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> free_;  // by size
  Stats stats_;
};

/// A piece of memory that tensors are placed in.
struct StorageObj : Object {
  Allocator* allocator;
  void* data;
  uint64_t nbytes;
  std::string scope;

  StorageObj(Allocator* allocator, uint64_t nbytes, std::string_view scope);
  ~StorageObj() { allocator->Free(data, nbytes, scope); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("vm.Storage", StorageObj, Object);
};
class Storage : public ObjectRef {
 public:
  Storage(Allocator* allocator, uint64_t nbytes, std::string_view scope = "");
  /// Contiguous, `byte_offset` behind the begin; keeps the storage. ValueError when it does not fit.
  Tensor AllocTensor(int64_t byte_offset, ShapeView shape, DLDataType dtype) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(Storage, ObjectRef, StorageObj);
};

}  // namespace tvm::runtime
