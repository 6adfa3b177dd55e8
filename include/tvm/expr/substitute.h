// SPDX-License-Identifier: Apache-2.0
// Replacing variables.
#pragma once
#include <functional>

#include "tvm/expr/expr.h"

namespace tvm::tir {

/// What stands for a variable, or an undefined expression to keep it.
using VarMap = std::function<PrimExpr(const Var&)>;

/// `node` (an expression, statement, range, buffer or an array of them) with variables replaced; a
/// buffer whose shape, strides, offset or data change is replaced once and everywhere.
ObjectRef SubstituteNode(const ObjectRef& node, const VarMap& map);

template <class Ref>
Ref Substitute(const Ref& node, const VarMap& map) {
  return node.defined() ? Any(SubstituteNode(node, map)).cast<Ref>() : node;
}
template <class Ref>
Ref Substitute(const Ref& node, const Map<Var, PrimExpr>& map) {
  return map.empty() ? node : Substitute(node, [&](const Var& var) -> PrimExpr {
    auto it = map.find(var);
    return it == map.end() ? PrimExpr() : (*it).second;
  });
}
template <class T>
Array<T> Substitute(const Array<T>& nodes, const VarMap& map) {
  return nodes.Map([&](const T& n) { return Substitute(n, map); });
}
template <class T>
Array<T> Substitute(const Array<T>& nodes, const Map<Var, PrimExpr>& map) {
  return nodes.Map([&](const T& n) { return Substitute(n, map); });
}

/// Whether `node` uses a variable for which `pred` holds.
bool UsesVar(const ObjectRef& node, const std::function<bool(const VarObj*)>& pred);

/// Calls `visit` on every node below and including `node`, children first.
void PostOrderVisit(const ObjectRef& node, const std::function<void(const ObjectRef&)>& visit);
/// Parents first; `visit` returns whether to go on below.
void PreOrderVisit(const ObjectRef& node, const std::function<bool(const ObjectRef&)>& visit);

/// Structural equality without mapping of variables.
bool ExprDeepEqual(const PrimExpr& a, const PrimExpr& b);

}  // namespace tvm::tir
