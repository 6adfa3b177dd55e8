// SPDX-License-Identifier: Apache-2.0
// How long the values of a function are needed, and which of them share memory.
#pragma once
#include <climits>
#include <deque>
#include <unordered_map>
#include <vector>

#include "tvm/relax/expr.h"

namespace tvm::relax {

/// What a variable is bound to. Scopes are sequences: the body of a function, a branch. Positions
/// count the bindings of a scope; what happens in a branch happens at the position of its `If`.
struct LiveValue {
  static constexpr int kForever = INT_MAX;
  Var var;
  Expr value;                     // undefined for a parameter
  int scope = 0;                  // of the function's body: 0
  int begin = -1;                 // where it is bound; -1 for a parameter
  int end = -1;                   // the last position where it, or what shares its memory, is used
  bool escapes = false;           // somebody that is not looked into may keep it
  bool is_leaf = false;           // a parameter: the caller has it too
  std::vector<LiveValue*> bases;  // what it shares memory with: tuples and views of them, storages
  bool LeavesScope() const { return end == kForever; }
  bool IsUsed() const { return end > begin; }
  /// Whether it is only another name of its base.
  bool IsAlias() const { return value.defined() && value.as<VarObj>(); }
};

struct Lifetimes {
  std::deque<LiveValue> values;                        // in the order of their bindings
  std::vector<std::vector<const BindingObj*>> scopes;  // the bindings of each, by position
  const LiveValue* Find(const Var& var) const {
    auto it = by_id.find(var->vid.get());
    return it == by_id.end() ? nullptr : it->second;
  }
  std::unordered_map<const Object*, LiveValue*> by_id;
};

enum class OpaqueCalls {
  kKeepNothing,    ///< Values are counted by reference: what a callee keeps, it keeps itself.
  kMayKeepMemory,  ///< A result may be in the memory of an argument, an object may hold one.
};
/// Lifetimes of the values of a function in normal form, without local functions' insides; linear
/// in its size.
Lifetimes FindLifetimes(const Function& func, OpaqueCalls opaque);

/// Whether values of the kind refer to memory: tensors, objects, and tuples of them.
bool HoldsMemory(const StructInfo& info);

}  // namespace tvm::relax
