// SPDX-License-Identifier: Apache-2.0
// The bounding box of a region over all values of its variables.
#include "tvm/arith/int_set.h"
#include "tvm/arith/analyzer.h"

namespace tvm::arith {
Array<IntSet> EstimateRegionUpperBound(const Array<Range>& region, const Map<Var, Range>& var_dom,
                                       const PrimExpr& predicate, Analyzer* analyzer) {
  Map<Var, IntSet> sets;
  for (const auto& [var, range] : var_dom) sets.Set(var, IntSet::FromRange(range));
  Array<IntSet> result;
  for (const Range& r : region) result.push_back(EvalSet(r, sets));
  return result;
}
}  // namespace tvm::arith
