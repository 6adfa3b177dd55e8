// SPDX-License-Identifier: Apache-2.0
// Functions of a module under other names.
#pragma once
#include "tvm/ir/module.h"

namespace tvm {

/// The module with functions renamed, calls included; a function whose global symbol was its name
/// gets the new one. ValueError when names would not be unique.
IRModule ReplaceGlobalVars(const IRModule& mod, const Map<GlobalVar, GlobalVar>& replacements);

}  // namespace tvm
