// SPDX-License-Identifier: Apache-2.0
// Intervals with symbolic ends, and their set operations.
#include "tvm/arith/int_set.h"

#include "arith/impl.h"

namespace tvm::arith {
namespace {
PrimExpr Limit(const char* name) { return StringImm(name); }
bool IsLimit(const PrimExpr& e, std::string_view name) {
  auto* text = e.as<StringImmObj>();
  return text && View(text->value) == name;
}
bool IsFinite(const PrimExpr& e) { return !is_pos_inf(e) && !is_neg_inf(e); }
const IntervalSetObj* AsInterval(const IntSet& set) {
  auto* interval = set.as<IntervalSetObj>();
  if (!interval) {
    TVM_FFI_THROW(TypeError) << "IntSet: expected an interval, got " << set->GetTypeKey();
  }
  return interval;
}
/// The smaller (or larger) of two ends, infinite ones included.
PrimExpr End(const PrimExpr& a, const PrimExpr& b, bool smaller, Analyzer* analyzer) {
  auto absorbing = smaller ? &is_neg_inf : &is_pos_inf;
  if (absorbing(a)) return a;
  if (absorbing(b)) return b;
  if (!IsFinite(a)) return b;
  if (!IsFinite(b)) return a;
  if (ExprDeepEqual(a, b)) return a;
  return analyzer->Simplify(smaller ? min(a, b) : max(a, b));
}
}  // namespace

PrimExpr pos_inf() {
  static const PrimExpr limit = Limit("pos_inf");
  return limit;
}
PrimExpr neg_inf() {
  static const PrimExpr limit = Limit("neg_inf");
  return limit;
}
bool is_pos_inf(const PrimExpr& e) { return IsLimit(e, "pos_inf"); }
bool is_neg_inf(const PrimExpr& e) { return IsLimit(e, "neg_inf"); }

void IntervalSetObj::Init() {
  for (const PrimExpr& end : {min_value, max_value}) {
    DataType t = end.dtype();
    if (IsFinite(end) && !t.is_integer() && !t.is_bool()) {
      TVM_FFI_THROW(TypeError) << "IntervalSet: expected integer ends, got " << t;
    }
  }
  // One spelling for the empty set and for points.
  if (is_pos_inf(min_value) || is_neg_inf(max_value)) {
    min_value = pos_inf();
    max_value = neg_inf();
  } else if (IsFinite(min_value) && IsFinite(max_value)) {
    auto a = AsConstInt(min_value), b = AsConstInt(max_value);
    // Large constants of uint64 are stored as negative numbers.
    bool stored_exactly = !min_value.dtype().is_uint() || (a && b && *a >= 0 && *b >= 0);
    if (a && b && stored_exactly && *a > *b) {
      min_value = pos_inf();
      max_value = neg_inf();
    } else if (ExprDeepEqual(min_value, max_value))
      max_value = min_value;
  }
}
IntervalSet::IntervalSet(PrimExpr min_value, PrimExpr max_value) {
  *this = New<IntervalSet>(
      [&](IntervalSetObj* n) { n->min_value = min_value, n->max_value = max_value; });
}

IntSet IntSet::Nothing() { return IntervalSet(pos_inf(), neg_inf()); }
IntSet IntSet::Everything() { return IntervalSet(neg_inf(), pos_inf()); }
IntSet IntSet::SinglePoint(PrimExpr point) { return IntervalSet(point, point); }
IntSet IntSet::Interval(PrimExpr min, PrimExpr max) { return IntervalSet(min, max); }
IntSet IntSet::FromMinExtent(PrimExpr min, PrimExpr extent) {
  if (IsOne(extent)) return SinglePoint(min);
  return IntervalSet(min, Analyzer().Simplify(min + extent - MakeConst(extent.dtype(), 1)));
}
IntSet IntSet::FromRange(const Range& range) { return FromMinExtent(range->min, range->extent); }
IntSet IntSet::Vector(PrimExpr vec) { return EvalSet(vec, DomMap()); }

PrimExpr IntSet::min() const { return AsInterval(*this)->min_value; }
PrimExpr IntSet::max() const { return AsInterval(*this)->max_value; }
bool IntSet::IsNothing() const { return AsInterval(*this)->IsEmpty(); }
bool IntSet::IsEverything() const {
  return is_neg_inf(AsInterval(*this)->min_value) && is_pos_inf(AsInterval(*this)->max_value);
}
bool IntSet::IsSinglePoint() const { return AsInterval(*this)->IsSinglePoint(); }
bool IntSet::HasLowerBound() const { return AsInterval(*this)->HasLowerBound(); }
bool IntSet::HasUpperBound() const { return AsInterval(*this)->HasUpperBound(); }
PrimExpr IntSet::PointValue() const {
  if (!IsSinglePoint()) TVM_FFI_THROW(ValueError) << "IntSet: expected a single point";
  return min();
}
bool IntSet::CanProvePositive() const {
  return IsFinite(min()) && Analyzer().CanProveGreaterEqual(min(), 1);
}
bool IntSet::CanProveNonNegative() const {
  return IsFinite(min()) && Analyzer().CanProveGreaterEqual(min(), 0);
}
bool IntSet::CanProveNegative() const {
  return IsFinite(max()) && Analyzer().CanProveLess(max(), 0);
}
bool IntSet::CanProveNonPositive() const {
  return IsFinite(max()) && Analyzer().CanProveLess(max(), 1);
}
Range IntSet::CoverRange(const Range& max_range) const {
  if (!IsFinite(min()) || !IsFinite(max())) return max_range;
  Analyzer analyzer;
  PrimExpr extent = analyzer.Simplify(max() - min() + MakeConst(max().dtype(), 1));
  return Range::FromMinExtent(min(), extent);
}

// ---- set operations ---------------------------------------------------------------------------
IntSet Union(const Array<IntSet>& sets) {
  Analyzer analyzer;
  IntSet result = IntSet::Nothing();
  for (const IntSet& set : sets) {
    if (set.IsNothing()) continue;
    if (result.IsNothing()) {
      result = set;
      continue;
    }
    result = IntervalSet(End(result.min(), set.min(), true, &analyzer),
                         End(result.max(), set.max(), false, &analyzer));
  }
  return result;
}
IntSet Intersect(const Array<IntSet>& sets) {
  Analyzer analyzer;
  IntSet result = IntSet::Everything();
  for (const IntSet& set : sets) {
    if (result.IsNothing() || set.IsNothing()) return IntSet::Nothing();
    // The larger lower end; an infinite one gives way.
    auto pick = [&](const PrimExpr& a, const PrimExpr& b, bool smaller) {
      if (!IsFinite(a)) return b;
      return IsFinite(b) ? End(a, b, smaller, &analyzer) : a;
    };
    result = IntervalSet(pick(result.min(), set.min(), false), pick(result.max(), set.max(), true));
  }
  return result;
}
IntSet UnionLowerBound(const Array<IntSet>& sets) {
  Analyzer analyzer;
  IntSet result = IntSet::Nothing();
  for (const IntSet& set : sets) {
    if (set.IsNothing()) continue;
    if (result.IsNothing()) {
      result = set;
      continue;
    }
    // Only sets that certainly touch have an interval as their union.
    auto reaches = [&](const PrimExpr& max, const PrimExpr& min) {
      if (is_pos_inf(max) || is_neg_inf(min)) return true;
      return IsFinite(max) && IsFinite(min) &&
             analyzer.CanProve(min <= max + MakeConst(max.dtype(), 1));
    };
    if (!reaches(result.max(), set.min()) || !reaches(set.max(), result.min()))
      return IntSet::Nothing();
    result = IntervalSet(End(result.min(), set.min(), true, &analyzer),
                         End(result.max(), set.max(), false, &analyzer));
  }
  return result;
}
namespace {
Array<IntSet> PerDimension(const Array<Array<IntSet>>& regions,
                           IntSet (*merge)(const Array<IntSet>&), const char* name) {
  Array<IntSet> result;
  if (regions.empty()) return result;
  for (size_t d = 0; d < regions[0].size(); ++d) {
    Array<IntSet> sets;
    for (const auto& region : regions) {
      if (region.size() != regions[0].size()) {
        TVM_FFI_THROW(ValueError) << name << ": expected regions of " << regions[0].size()
                                  << " dimensions, got " << region.size();
      }
      sets.push_back(region[d]);
    }
    result.push_back(merge(sets));
  }
  return result;
}
}  // namespace
Array<IntSet> UnionRegion(const Array<Array<IntSet>>& regions) {
  return PerDimension(regions, &Union, "UnionRegion");
}
Array<IntSet> UnionRegionLowerBound(const Array<Array<IntSet>>& regions) {
  return PerDimension(regions, &UnionLowerBound, "UnionRegionLowerBound");
}
DomMap AsIntSets(const Map<Var, Range>& var_dom) {
  DomMap result;
  for (const auto& [var, range] : var_dom) result.Set(var, IntSet::FromRange(range));
  return result;
}

namespace {
TVM_REGISTER() {
  RegisterBase<IntSetObj>("A set of integers.");
  RegisterNode<IntervalSetObj>("The integers from min_value to max_value, both included.");
  Def(
      "ir.IntSet.is_nothing", [](IntSet s) { return s.IsNothing(); }, "Whether the set is empty.",
      Arg("self"));
  Def(
      "ir.IntSet.is_everything", [](IntSet s) { return s.IsEverything(); },
      "Whether the set has no bound.", Arg("self"));
  Def(
      "arith._single_point", [](PrimExpr p) { return IntSet::SinglePoint(p); },
      "The set of one number.", Arg("point"));
  Def(
      "arith._vector", [](PrimExpr v) { return IntSet::Vector(v); },
      "The set that covers the lanes of a vector.", Arg("vec"));
  Def("arith.int_set.pos_inf", &pos_inf, "The upper end of a set without upper bound.");
  Def("arith.int_set.neg_inf", &neg_inf, "The lower end of a set without lower bound.");
  Def("arith.int_set.union_lower_bound", &UnionLowerBound,
      "An interval that the union of the sets certainly fills, or the empty set.", Arg("sets"));
}
}  // namespace
}  // namespace tvm::arith
