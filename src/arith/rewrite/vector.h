// SPDX-License-Identifier: Apache-2.0
// Simplification of vectors: Ramp and Broadcast through arithmetic.
#pragma once
#include "arith/impl.h"

namespace tvm::arith {
/// The vector node `e` (or comparison of vectors) in fewer vector operations, or undefined.
PrimExpr SimplifyVector(const PrimExpr& e, Analyzer::Impl* facts);
}  // namespace tvm::arith
