// SPDX-License-Identifier: Apache-2.0
// Conditions that end before their scope does.
#pragma once
#include <functional>

#include "tvm/arith/analyzer.h"

namespace tvm::arith {

/// Conditions about an expression that `changes` accepts hold no longer: memory it reads was
/// written.
void Forget(Analyzer* analyzer, const std::function<bool(const PrimExpr&)>& changes);

}  // namespace tvm::arith
