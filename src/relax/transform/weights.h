// SPDX-License-Identifier: Apache-2.0
// Which parameters of a function are weights.
#pragma once
#include "tvm/relax/expr.h"

namespace tvm::relax {

/// How many of the first parameters are inputs, by the attribute num_input; nothing without it.
/// ValueError when there are not so many.
std::optional<size_t> NumInputs(const Function& func, const char* pass);

}  // namespace tvm::relax
