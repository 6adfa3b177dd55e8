// SPDX-License-Identifier: Apache-2.0
// Mathematical functions as arithmetic: what every backend and constant folding share.
#pragma once
#include "tvm/expr/op.h"
#include "tvm/ir/target.h"

namespace tvm {

/// A call of a mathematical function (TVM_UNARY_MATH, TVM_BINARY_MATH, pow) as multiply-adds,
/// selections and operations on bits: no calls of a library, no branches, for scalars and vectors
/// alike, so that loops over it vectorise. Products of fixed-point numbers and dot products of
/// bytes expand as well. What a backend has as an instruction (sqrt, rounding, fma, fabs, copysign)
/// stays; any other call is returned as it is. The target may be undefined.
///
/// float32 and float64 results are within 2 units in the last place on the whole range, with the
/// special values of IEEE 754; float16, bfloat16 and smaller compute in float32 and round once.
PrimExpr ExpandMath(const tir::CallObj* call, const Target& target);

/// A division of a vector by one number as products with its reciprocal, where that is faster: the
/// same bits. Else the division itself.
PrimExpr ExpandDivision(const tir::DivObj* op, const Target& target);

/// The value of a call of a pure operator on constants, bit for bit what running its expansion
/// gives; the call itself when an argument is not constant or the operator has no value at compile
/// time.
PrimExpr FoldMath(const PrimExpr& call);

}  // namespace tvm
