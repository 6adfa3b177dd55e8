// SPDX-License-Identifier: Apache-2.0
// What a region covers while variables run over their ranges.
#include "arith/impl.h"
#include "tvm/arith/iter_affine_map.h"

namespace tvm::arith {
namespace {
/// The domains of the variables, cut down by conditions that limit one variable alone.
DomMap Narrowed(const Map<Var, Range>& var_dom, const PrimExpr& predicate) {
  DomMap domains = AsIntSets(var_dom);
  auto visit = [&](auto&& self, const PrimExpr& cond) -> void {
    if (auto* n = cond.as<AndObj>()) {
      self(self, n->a);
      return self(self, n->b);
    }
    if (auto* n = cond.as<CallObj>(); n && n->Is(builtin::likely())) return self(self, n->args[0]);
    for (const auto& [var, range] : var_dom) {
      if (!UsesVar(cond, [&](const VarObj* v) { return v == var.get(); })) continue;
      bool alone = !UsesVar(cond, [&](const VarObj* v) {
        return v != var.get() && var_dom.count(ffi::GetRef<Var>(v));
      });
      // The values for which the condition can hold: with nothing to relax that is the exact set.
      IntSet allowed = alone ? DeduceBound(var, cond, {}, {}) : IntSet::Nothing();
      if (!allowed.IsNothing()) domains.Set(var, Intersect({domains.at(var), allowed}));
    }
  };
  visit(visit, predicate);
  return domains;
}
void CheckBool(const PrimExpr& predicate, const char* name) {
  if (!predicate.dtype().is_bool())
    TVM_FFI_THROW(TypeError) << name << ": expected a bool predicate, got " << predicate.dtype();
}
}  // namespace

Array<IntSet> EstimateRegionUpperBound(const Array<Range>& region, const Map<Var, Range>& var_dom,
                                       const PrimExpr& predicate, Analyzer* analyzer) {
  CheckBool(predicate, "estimate_region_upper_bound");
  // Exact where the indices are an iterator map; a cover of each dimension otherwise.
  if (auto exact = EstimateRegionStrictBound(region, var_dom, predicate, analyzer))
    return exact.value();
  DomMap domains = Narrowed(var_dom, predicate);
  return region.Map([&](const Range& r) -> IntSet {
    // A dimension alone may be an iterator map.
    if (auto one = EstimateRegionStrictBound({r}, var_dom, predicate, analyzer))
      return one.value()[0];
    IntSet low = EvalSet(r->min, domains, analyzer);
    PrimExpr last = analyzer->Simplify(r->min + r->extent - MakeConst(r->extent.dtype(), 1));
    return IntSet::Interval(low.min(), EvalSet(last, domains, analyzer).max());
  });
}

Optional<Array<IntSet>> EstimateRegionStrictBound(const Array<Range>& region,
                                                  const Map<Var, Range>& var_dom,
                                                  const PrimExpr& predicate, Analyzer* analyzer) {
  CheckBool(predicate, "estimate_region_strict_bound");
  Array<PrimExpr> starts = region.Map([](const Range& r) { return r->min; });
  IterMapResult maps =
      DetectIterMap(starts, var_dom, predicate, IterMapLevel::kSurjective, analyzer);
  if (maps->indices.empty() && !region.empty()) return {};
  Array<IntSet> result;
  for (size_t i = 0; i < region.size(); ++i) {
    const IterSumExpr& sum = maps->indices[i];
    PrimExpr extent = region[i]->extent, one = MakeConst(extent.dtype(), 1);
    if (UsesVar(extent, [&](const VarObj* v) { return var_dom.count(ffi::GetRef<Var>(v)) != 0; }))
      return {};
    if (sum->args.empty()) {
      result.push_back(IntSet::FromMinExtent(sum->base, extent));
      continue;
    }
    if (sum->args.size() != 1) return {};
    IterSplitExpr split = sum->args[0];
    PrimExpr span = split->scale * (split->extent - MakeConst(split.dtype(), 1));
    bool forward = analyzer->CanProveGreaterEqual(split->scale, 1),
         backward = analyzer->CanProveLess(split->scale, 0);
    // Steps longer than what is read at each leave gaps.
    PrimExpr step = forward ? split->scale : -split->scale;
    if ((!forward && !backward) || !analyzer->CanProve(step <= extent)) return {};
    PrimExpr low = analyzer->Simplify(forward ? sum->base : sum->base + span);
    PrimExpr last = forward ? sum->base + span : sum->base;
    PrimExpr high = analyzer->Simplify(IsOne(extent) ? last : last + extent - one);
    result.push_back(IntSet::Interval(low, high));
  }
  return result;
}
Optional<Array<IntSet>> EstimateRegionLowerBound(const Array<Range>& region,
                                                 const Map<Var, Range>& var_dom,
                                                 const PrimExpr& predicate, Analyzer* analyzer) {
  return EstimateRegionStrictBound(region, var_dom, predicate, analyzer);
}

namespace {
template <auto Estimate>
Any Run(Array<Range> region, Map<Var, Range> var_dom, PrimExpr predicate) {
  Analyzer analyzer;
  return Estimate(region, var_dom, predicate, &analyzer);
}
TVM_REGISTER() {
  Arg region("region"), var_dom("var_dom"), predicate("predicate");
  Def("arith.estimate_region_lower_bound", &Run<&EstimateRegionLowerBound>,
      "What the region certainly covers, one interval per dimension, or None where that is not "
      "known.",
      region, var_dom, predicate);
  Def("arith.estimate_region_strict_bound", &Run<&EstimateRegionStrictBound>,
      "Exactly what the region covers, one interval per dimension, or None where it is no box.",
      region, var_dom, predicate);
  Def("arith.estimate_region_upper_bound", &Run<&EstimateRegionUpperBound>,
      "Intervals that cover the region.", region, var_dom, predicate);
}
}  // namespace
}  // namespace tvm::arith
