// SPDX-License-Identifier: Apache-2.0
// Ranges as begin:end, so that printing and parsing give the same extent.
#pragma once
#include "tvm/ir/expr.h"

namespace tvm::script {

/// The extent of [begin, end).
PrimExpr ExtentOf(PrimExpr begin, PrimExpr end);
/// An `end` with ExtentOf(begin, end) == extent.
PrimExpr EndOf(const PrimExpr& begin, const PrimExpr& extent);

}  // namespace tvm::script
