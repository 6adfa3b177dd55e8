// SPDX-License-Identifier: Apache-2.0
// Bringing indices to one integer type.
#pragma once
#include "tvm/expr/op.h"

namespace tvm::tir {

/// An index in type `t`: arithmetic is done in `t`, an operand of another kind (a loaded value) is
/// cast. What `t` may not hold stays wider.
PrimExpr ToIndexType(const PrimExpr& e, DataType t);

/// A comparison of indices, done in type `t` when an operand is a variable of that type which was
/// cast to another; otherwise `e` itself.
PrimExpr CompareInIndexType(const PrimExpr& e, DataType t);

}  // namespace tvm::tir
