// SPDX-License-Identifier: Apache-2.0
// Walks over what is shared: y = x + x, z = y + y, ... is a tree of 2^n nodes made of n. A walk
// that has seen much remembers the shared nodes it comes to; short ones, which are most, pay
// nothing.
#pragma once
#include "ir/pointer_map.h"
#include "tvm/ir/node.h"

namespace tvm {

/// What a walk found for the nodes it came to.
template <class Value>
class SharedMemo {
 public:
  /// Counts one visit. What was found for the node before, or nullptr.
  Value* Find(const Object* node) {
    return ++visits_ > kFew && !node->unique() ? known_.Find(node) : nullptr;
  }
  void Keep(const Object* node, Value value) {
    if (visits_ > kFew && !node->unique()) known_.Insert(node, std::move(value));
  }
  int64_t visits() const { return visits_; }

 private:
  static constexpr int64_t kFew = 512;
  int64_t visits_ = 0;
  PointerMap<Value> known_;
};

/// Whether a walk comes to a node for the first time, as far as it remembers.
class Once {
 public:
  bool operator()(const Object* node) {
    if (seen_.Find(node)) return false;
    seen_.Keep(node, true);
    return true;
  }

 private:
  SharedMemo<bool> seen_;
};

}  // namespace tvm
