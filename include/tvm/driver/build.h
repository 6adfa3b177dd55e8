// SPDX-License-Identifier: Apache-2.0
// From a module to code that runs.
#pragma once
#include <tvm/ffi/extra/module.h>

#include "tvm/ir/module.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"

namespace tvm {

/// Compiles the PrimFuncs of a module. Without a target it is the current one, else this machine;
/// without a pipeline the default one of the target. The result is called like a function, or its
/// functions are taken by name.
ffi::Module Build(IRModule mod, Target target = Target(),
                  Optional<transform::Pass> pipeline = std::nullopt);

}  // namespace tvm
