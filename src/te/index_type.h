// SPDX-License-Identifier: Apache-2.0
// Loop variables, shapes and indices of one function share one integer type.
#pragma once
#include "tvm/te/te.h"

namespace tvm::te {

/// The widest type among shapes and iterators of the operations; int32 when there are none.
DataType WidestIndexType(const std::vector<Operation>& ops);

/// An index in type `t`: arithmetic is done in `t`, an operand of another kind (a loaded value) is
/// cast. What `t` may not hold stays wider.
PrimExpr ToIndexType(const PrimExpr& e, DataType t);

/// A comparison of indices, done in type `t` when an operand comes from there; otherwise `e`
/// itself.
PrimExpr CompareInIndexType(const PrimExpr& e, DataType t);

}  // namespace tvm::te
