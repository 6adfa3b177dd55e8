// SPDX-License-Identifier: Apache-2.0
// Functions of a module under other names, and others under the same names.
#pragma once
#include "tvm/ir/module.h"

namespace tvm {

/// The module with functions renamed, calls included; a function whose global symbol was its name
/// gets the new one. ValueError when names would not be unique.
IRModule ReplaceGlobalVars(const IRModule& mod, const Map<GlobalVar, GlobalVar>& replacements);

/// The module with other functions of the same variables, which are not looked at.
IRModule WithFunctions(const IRModule& mod, const Map<GlobalVar, BaseFunc>& functions);

}  // namespace tvm
