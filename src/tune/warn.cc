// SPDX-License-Identifier: Apache-2.0
// Where warnings go.
#include "tune/warn.h"

#include <iostream>

#include "tvm/runtime/def.h"

namespace tvm::tune {
void Warn(const std::string& message) {
  if (auto log = Function::GetGlobal("meta_schedule.warn")) {
    (*log)(String(message));
  } else {
    std::cerr << "warning: " << message << std::endl;
  }
}
}  // namespace tvm::tune
