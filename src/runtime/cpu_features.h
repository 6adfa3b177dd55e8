// SPDX-License-Identifier: Apache-2.0
// What this CPU can do, in LLVM's names.
#pragma once
#include <map>
#include <string>

namespace tvm::runtime {
/// Every feature this runtime can test for, and whether the CPU (and the operating system) has it.
const std::map<std::string, bool>& CpuFeatures();
/// Asks the operating system to let this process use tile registers (AMX), which it keeps from
/// those who have not asked: whether it does.
bool RequestTiles();
}  // namespace tvm::runtime
