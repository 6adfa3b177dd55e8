// SPDX-License-Identifier: Apache-2.0
// The target of a program that is built without one.
#pragma once
#include "tvm/ir/module.h"

namespace tvm {
/// `target`, else the current one, else that of a function, else this machine.
Target ChooseTarget(const IRModule& mod, Target target);
}  // namespace tvm
