// SPDX-License-Identifier: Apache-2.0
// The targets of a program: the one it is built for where none is given, and its host.
#pragma once
#include "tvm/ir/module.h"

namespace tvm {
/// `target`, else the current one, else that of a function, else this machine.
Target ChooseTarget(const IRModule& mod, Target target);
/// The target itself where it is a CPU, else its host, else this machine.
Target HostOf(const Target& target);
}  // namespace tvm
