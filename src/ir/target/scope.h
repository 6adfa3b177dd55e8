// SPDX-License-Identifier: Apache-2.0
// The current target of a thread, for threads that work for another one.
#pragma once
#include "tvm/ir/target.h"

namespace tvm {
/// `target`, if defined, is the current one while the object lives.
class TargetScope {
 public:
  explicit TargetScope(const Target& target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;

 private:
  bool entered_;
};
}  // namespace tvm
