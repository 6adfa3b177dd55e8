// SPDX-License-Identifier: Apache-2.0
// Sets of integers with symbolic bounds, and the set an expression can take values in.
#pragma once
#include "tvm/expr/expr.h"

namespace tvm::arith {
using tir::IterVar, tir::Var;

class Analyzer;

/// The unbounded ends of an interval.
PrimExpr pos_inf();
PrimExpr neg_inf();
bool is_pos_inf(const PrimExpr& e);
bool is_neg_inf(const PrimExpr& e);

struct IntSetObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 4;
  TVM_FFI_DECLARE_OBJECT_INFO("ir.IntSet", IntSetObj, NodeObj);
};
/// A set of integers. All sets made here are intervals: a superset where the true set is none.
struct IntSet : ObjectRef {
  static IntSet Nothing();
  static IntSet Everything();
  static IntSet SinglePoint(PrimExpr point);
  /// All the values of a vector.
  static IntSet Vector(PrimExpr vec);
  static IntSet FromRange(const Range& range);
  static IntSet FromMinExtent(PrimExpr min, PrimExpr extent);
  /// [min, max], both ends included; the ends may be infinite.
  static IntSet Interval(PrimExpr min, PrimExpr max);

  /// The least and largest member (neg_inf() and pos_inf() when there is none).
  PrimExpr min() const;
  PrimExpr max() const;
  bool IsNothing() const;
  bool IsEverything() const;
  bool IsSinglePoint() const;
  bool HasLowerBound() const;
  bool HasUpperBound() const;
  /// The only member of a set for which IsSinglePoint() holds.
  PrimExpr PointValue() const;
  /// Whether every member is above, below, not below, not above zero.
  bool CanProvePositive() const;
  bool CanProveNegative() const;
  bool CanProveNonNegative() const;
  bool CanProveNonPositive() const;
  /// The range that covers the set, or `max_range` when the set is unbounded.
  Range CoverRange(const Range& max_range) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IntSet, ObjectRef, IntSetObj);
};

/// [min_value, max_value]
struct IntervalSetObj : IntSetObj {
  PrimExpr min_value, max_value;
  static void Fields(auto&& def) {
    def("min_value", &IntervalSetObj::min_value);
    def("max_value", &IntervalSetObj::max_value);
  }
  void Init();
  bool HasLowerBound() const { return !is_neg_inf(min_value); }
  bool HasUpperBound() const { return !is_pos_inf(max_value); }
  bool IsSinglePoint() const { return min_value.same_as(max_value) && HasLowerBound(); }
  bool IsEmpty() const { return is_pos_inf(min_value) || is_neg_inf(max_value); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IntervalSet", IntervalSetObj, IntSetObj);
};
struct IntervalSet : IntSet {
  IntervalSet(PrimExpr min_value, PrimExpr max_value);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IntervalSet, IntSet, IntervalSetObj);
};

using DomMap = Map<Var, IntSet>;
/// The values `e` takes while the variables range over their sets; other variables stay symbolic.
IntSet EvalSet(const PrimExpr& e, const DomMap& dom_map);
IntSet EvalSet(const PrimExpr& e, const Map<Var, Range>& dom_map);
IntSet EvalSet(const Range& range, const DomMap& dom_map);
IntSet EvalSet(const PrimExpr& e, const DomMap& dom_map, Analyzer* analyzer);
/// One set per dimension of a region.
Array<IntSet> EvalSet(const Array<Range>& region, const DomMap& dom_map);
DomMap AsIntSets(const Map<Var, Range>& var_dom);

/// The smallest interval that covers all; `UnionLowerBound`: an interval certainly inside the
/// union, or nothing where that is not known.
IntSet Union(const Array<IntSet>& sets);
IntSet UnionLowerBound(const Array<IntSet>& sets);
IntSet Intersect(const Array<IntSet>& sets);
/// One union per dimension.
Array<IntSet> UnionRegion(const Array<Array<IntSet>>& regions);
Array<IntSet> UnionRegionLowerBound(const Array<Array<IntSet>>& regions);

/// The union of `region` over all values of the variables where `predicate` holds. Upper: covers
/// it. Lower and strict: exactly it, or None where that is not an interval per dimension; strict
/// has also proved that no point of the box is skipped.
Array<IntSet> EstimateRegionUpperBound(const Array<Range>& region, const Map<Var, Range>& var_dom,
                                       const PrimExpr& predicate, Analyzer* analyzer);
Optional<Array<IntSet>> EstimateRegionLowerBound(const Array<Range>& region,
                                                 const Map<Var, Range>& var_dom,
                                                 const PrimExpr& predicate, Analyzer* analyzer);
Optional<Array<IntSet>> EstimateRegionStrictBound(const Array<Range>& region,
                                                  const Map<Var, Range>& var_dom,
                                                  const PrimExpr& predicate, Analyzer* analyzer);

/// The values of `var` for which `cond` certainly holds while the variables of `relax_map` run over
/// their sets; `hint_map` gives what is known of the others. Nothing when there is no such
/// interval.
IntSet DeduceBound(const PrimExpr& var, const PrimExpr& cond, const DomMap& hint_map,
                   const DomMap& relax_map);

}  // namespace tvm::arith
