// SPDX-License-Identifier: Apache-2.0
// Where warnings go.
#include "ir/warn.h"

#include <iostream>

#include "tvm/runtime/def.h"

namespace tvm {
void Warn(const char* part, const std::string& message) {
  if (auto log = Function::GetGlobal("ir.warn")) {
    (*log)(part, String(message));
  } else {
    std::cerr << "warning: " << message << std::endl;
  }
}
}  // namespace tvm
