// SPDX-License-Identifier: Apache-2.0
// Contexts of passes from C++.
#pragma once
#include "tvm/ir/transform.h"

namespace tvm::transform {

/// Makes a context the current one of this thread for as long as the scope lives.
class ContextScope {
 public:
  explicit ContextScope(const PassContext& context) : context_(context) {
    static const Function enter = Function::GetGlobalRequired("transform.EnterPassContext");
    enter(context_);
  }
  ~ContextScope() {
    static const Function leave = Function::GetGlobalRequired("transform.ExitPassContext");
    leave(context_);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  PassContext context_;
};

}  // namespace tvm::transform
