// SPDX-License-Identifier: Apache-2.0
// Bindings that only give another name go.
#pragma once
#include "tvm/relax/expr.h"

namespace tvm::relax {

/// y = x; z = (a, b)[0]  ->  uses of x and a; casts that say nothing new go.
Function CanonicalizeRelaxBindings(Function func, IRModule mod);

}  // namespace tvm::relax
