// SPDX-License-Identifier: Apache-2.0
// Whether a function has anything that a pass over few operators looks for.
#pragma once
#include "tvm/ir/op.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {

/// Whether there is a call of a `wanted` operator in the expression, local functions and branches
/// included. Most functions have none: to find out takes a third of the time in which a mutator
/// makes the same function again.
bool CallsOp(const Expr& expr, bool (*wanted)(const OpObj*));

}  // namespace tvm::relax
