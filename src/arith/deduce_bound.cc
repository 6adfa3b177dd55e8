// SPDX-License-Identifier: Apache-2.0
// DeduceBound: for which values of a variable a condition certainly holds.
#include "tvm/arith/analyzer.h"
#include "tvm/arith/int_set.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::arith {
using namespace tir;
namespace {
/// An expression that is not negative exactly where a comparison holds, or an undefined one.
PrimExpr NonNegativeWhere(const PrimExpr& cond) {
  if (auto* n = cond.as<LTObj>()) return n->b - n->a - 1;
  if (auto* n = cond.as<LEObj>()) return n->b - n->a;
  if (auto* n = cond.as<GTObj>()) return n->a - n->b - 1;
  if (auto* n = cond.as<GEObj>()) return n->a - n->b;
  return PrimExpr();
}
}  // namespace

IntSet DeduceBound(const PrimExpr& var, const PrimExpr& cond, const DomMap& hint_map,
                   const DomMap& relax_map) {
  if (auto* n = cond.as<AndObj>()) {
    return Intersect({DeduceBound(var, n->a, hint_map, relax_map),
                      DeduceBound(var, n->b, hint_map, relax_map)});
  }
  if (auto* call = cond.as<CallObj>(); call && call->Is(builtin::likely())) {
    return DeduceBound(var, call->args[0], hint_map, relax_map);
  }
  PrimExpr value = NonNegativeWhere(cond);
  if (!value.defined() || !value.dtype().is_index()) return IntSet::Nothing();
  // value = coeff * var + rest
  Analyzer analyzer;
  auto at = [&](int64_t v) {
    return analyzer.Simplify(Substitute(value, [&](const Var& x) {
      return x.same_as(var) ? MakeConst(var.dtype(), v) : PrimExpr();
    }));
  };
  PrimExpr rest = at(0);
  auto coeff = AsConstInt(analyzer.Simplify(at(1) - rest));
  if (!coeff || *coeff == 0) return IntSet::Nothing();
  PrimExpr factor = MakeConst(var.dtype(), *coeff);
  if (!analyzer.CanProveEqual(value, factor * var + rest)) return IntSet::Nothing();
  // It must hold for all values of the relaxed variables: for the smallest rest.
  IntSet range = EvalSet(rest, relax_map);
  if (!range.HasLowerBound()) return IntSet::Nothing();
  PrimExpr smallest = range.min();
  if (*coeff > 0) {
    PrimExpr least = analyzer.Simplify(ceildiv(MakeZero(var.dtype()) - smallest, factor));
    return IntervalSet(least, pos_inf());
  }
  PrimExpr most = analyzer.Simplify(floordiv(smallest, MakeConst(var.dtype(), -*coeff)));
  return IntervalSet(neg_inf(), most);
}
}  // namespace tvm::arith
