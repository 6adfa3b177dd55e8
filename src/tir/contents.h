// SPDX-License-Identifier: Apache-2.0
// What occurs in the body of a function: most passes are about few kinds of nodes or types, and
// most functions have none of them.
#pragma once
#include <algorithm>
#include <bitset>
#include <concepts>
#include <vector>

#include "tvm/expr/builtin.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

/// The classes of nodes in a program, its buffers included, the types of its values, and what it
/// calls.
class Contents {
 public:
  /// Whether nodes of one of these classes occur.
  template <class... Obj>
  bool Has() const {
    static_assert((Obj::_type_final && ...), "expected classes without subclasses");
    return (kinds_[Obj::RuntimeTypeIndex()] || ...);
  }
  /// Whether some call is of this operator, or of one that `pred` holds for.
  bool Calls(const Op& op) const {
    return Calls([&](const Object* other) { return other == op.get(); });
  }
  template <std::predicate<const Object*> F>
  bool Calls(F&& pred) const {
    return std::any_of(ops_.begin(), ops_.end(), pred);
  }
  /// Whether `pred` holds for the type of some value, of what a pointer refers to included.
  template <class F>
  bool HasType(F&& pred) const {
    return std::any_of(types_.begin(), types_.end(), pred);
  }

 private:
  friend struct ContentsCollector;
  std::bitset<kMaxTypes> kinds_;
  std::vector<DataType> types_;
  std::vector<const Object*> ops_;
};

/// What is in the body. The answer for the last body is kept until the passes that run in this
/// thread are done: many passes ask about a function between two that change it. Good until the
/// next call.
const Contents& ContentsOf(const Stmt& body);

}  // namespace tvm::tir
