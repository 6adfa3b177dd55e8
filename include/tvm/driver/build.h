// SPDX-License-Identifier: Apache-2.0
// From a module to code that runs.
#pragma once
#include <tvm/ffi/extra/module.h>

#include "tvm/ir/module.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"

namespace tvm {

/// Compiles the functions of a module, language by language. Without a target it is the current
/// one, else this machine. Pipelines are by language ("tir"); a language without one has the
/// default pipeline of the target. The result is called like a function, or its functions are taken
/// by name.
ffi::Module Build(IRModule mod, Target target = Target(),
                  const Map<String, transform::Pass>& pipelines = {});

}  // namespace tvm
