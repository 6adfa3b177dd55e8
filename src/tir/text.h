// SPDX-License-Identifier: Apache-2.0
// Expressions in messages.
#pragma once
#include <string>

#include "tvm/ir/node.h"

namespace tvm::tir {

/// `node` as it is written in a program. The printer is a later part of the compiler: it is found
/// by its name.
inline std::string TextOf(const ObjectRef& node) {
  static const Function repr = Function::GetGlobalRequired("script._repr");
  return repr(node).cast<String>();
}

}  // namespace tvm::tir
