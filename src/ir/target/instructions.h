// SPDX-License-Identifier: Apache-2.0
// What instruction sets imply.
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tvm/ir/machine.h"

namespace tvm {
/// Whether a feature of x86 is off where another one is.
bool Needs(std::string_view feature, std::string_view other);
/// Turns a feature on with all that it needs, or off with all that need it.
void Switch(std::set<std::string, std::less<>>* on, std::string_view feature, bool is_on);
/// The instructions whose features a machine has.
std::vector<const MachineInstruction*> InstructionsOf(const MachineObj& machine);
}  // namespace tvm
