// SPDX-License-Identifier: Apache-2.0
// Forms of expressions: linear in variables, limits of variables, parts that occur often.
#pragma once
#include "tvm/arith/analyzer.h"

namespace tvm::arith {

/// `e` = sum of coefficient * variable + base: the coefficients in the order of `vars`, then the
/// base; empty when `e` is not linear in them.
Array<PrimExpr> DetectLinearEquation(const PrimExpr& e, const Array<Var>& vars);
/// The limits that a conjunction of comparisons sets: [least, largest] for each variable one after
/// the other, none where there is no limit; empty when a part of `cond` limits no single variable.
Array<Optional<PrimExpr>> DetectClipBound(const PrimExpr& cond, const Array<Var>& vars);
/// Parts of `e` that occur at least `threshold` times, with their counts. A part that occurs only
/// inside a larger one of them is left out.
Map<PrimExpr, int64_t> DetectCommonSubExpr(const PrimExpr& e, int64_t threshold);

}  // namespace tvm::arith
