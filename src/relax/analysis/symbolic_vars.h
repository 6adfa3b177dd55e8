// SPDX-License-Identifier: Apache-2.0
// Walks over the symbolic expressions of struct info.
#pragma once
#include <functional>

#include "tvm/expr/expr.h"
#include "tvm/relax/struct_info.h"

namespace tvm::relax {

/// Where an expression stands: as a dimension, as the value of a scalar, or inside of a function's
/// signature, which cannot define variables of the outside.
enum class SymbolicExpr { kDim, kScalar, kInFunction };
using SymbolicExprVisitor = std::function<void(const PrimExpr&, SymbolicExpr)>;
/// Calls `visit` on the dimensions and values of scalars; inside of functions only on variables
/// that the function's parameters do not define.
void VisitSymbolicExprs(const StructInfo& info, const SymbolicExprVisitor& visit);

/// Calls `visit(const tir::VarObj*)` on the variables of an expression.
template <class F>
void VisitVars(const PrimExpr& e, F&& visit) {
  struct Finder : Visitor<Finder, tir::VarObj> {
    F& visit;
    explicit Finder(F& visit) : visit(visit) {}
    void Visit(const tir::VarObj* var) { visit(var); }
  };
  if (e.as<IntImmObj>()) return;
  Finder finder(visit);
  finder(e);
}

}  // namespace tvm::relax
