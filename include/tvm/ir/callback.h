// SPDX-License-Identifier: Apache-2.0
// Calling functions that may be written in Python.
#pragma once
#include "tvm/ir/stack.h"
#include "tvm/runtime/def.h"

namespace tvm {

/// Calls `fn` wherever the caller is: one that is written in Python runs on the thread's own stack,
/// one written in C++ stays on the deep stack.
template <class... A>
Any CallBack(const Function& fn, const A&... args) {
  if (fn.get()->cpp_call != nullptr) return fn(args...);
  return OnHomeStack([&] { return fn(args...); });
}

}  // namespace tvm
