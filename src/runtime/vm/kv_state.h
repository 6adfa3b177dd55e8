// SPDX-License-Identifier: Apache-2.0
// States of sequences that models keep from call to call: attention caches, recurrent states.
#pragma once
#include <mutex>

#include "tvm/runtime/tensor.h"

namespace tvm::runtime::vm {

/// Between BeginForward and EndForward a model runs over the sequences it named; nothing else may
/// change. An error leaves the state as it was. Each method locks, so that threads may share one.
class KVStateObj : public ffi::Object {
 public:
  static constexpr bool _type_mutable = true;
  virtual ~KVStateObj() = default;
  virtual void Clear() = 0;
  virtual void AddSequence(int64_t id) = 0;
  virtual void RemoveSequence(int64_t id) = 0;
  /// `child` begins as the first `position` tokens of `parent`; -1: all of them.
  virtual void ForkSequence(int64_t parent, int64_t child, int64_t position) = 0;
  virtual void PopN(int64_t id, int64_t n) = 0;
  /// `lengths[i]` tokens follow in sequence `ids[i]`. With `parents`, those of each sequence are a
  /// tree: for each token the index of its parent among those not committed, or -1.
  virtual void BeginForward(const Shape& ids, const Shape& lengths,
                            const Optional<Shape>& parents) = 0;
  virtual void EndForward() = 0;
  TVM_FFI_DECLARE_OBJECT_INFO("relax.vm.KVState", KVStateObj, ffi::Object);

 protected:
  std::mutex mutex_;
};
class KVState : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NOTNULLABLE(KVState, ffi::ObjectRef, KVStateObj);
};

}  // namespace tvm::runtime::vm
