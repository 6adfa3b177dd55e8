// SPDX-License-Identifier: Apache-2.0
// Systems of linear equations and inequalities over the integers.
#pragma once
#include "tvm/arith/analyzer.h"

namespace tvm::arith {

/// Bounds of one variable: coef * var >= each of lower, == each of equal, <= each of upper.
struct IntGroupBoundsObj : NodeObj {
  PrimExpr coef;
  Array<PrimExpr> lower, equal, upper;
  static void Fields(auto&& def) {
    def("coef", &IntGroupBoundsObj::coef);
    def("lower", &IntGroupBoundsObj::lower);
    def("equal", &IntGroupBoundsObj::equal);
    def("upper", &IntGroupBoundsObj::upper);
  }
  void Init();
  /// The range from one lower to one upper bound that has the fewest members; none without both.
  Optional<Range> FindBestRange(const Map<Var, Range>& ranges = {}) const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IntGroupBounds", IntGroupBoundsObj, NodeObj);
};
struct IntGroupBounds : ObjectRef {
  IntGroupBounds(PrimExpr coef, Array<PrimExpr> lower, Array<PrimExpr> equal,
                 Array<PrimExpr> upper);
  static IntGroupBounds FromRange(const Range& range);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IntGroupBounds, ObjectRef, IntGroupBoundsObj);
};

/// Variables, their ranges, and conditions on them.
struct IntConstraintsObj : NodeObj {
  Array<Var> variables;
  Map<Var, Range> ranges;
  Array<PrimExpr> relations;
  static void Fields(auto&& def) {
    def("variables", &IntConstraintsObj::variables);
    def("ranges", &IntConstraintsObj::ranges);
    def("relations", &IntConstraintsObj::relations);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IntConstraints", IntConstraintsObj, NodeObj);
};
struct IntConstraints : ObjectRef {
  IntConstraints(Array<Var> variables, Map<Var, Range> ranges, Array<PrimExpr> relations);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IntConstraints, ObjectRef, IntConstraintsObj);
};

/// Two systems with the same solutions, and how to get from the variables of one to those of the
/// other.
struct IntConstraintsTransformObj : NodeObj {
  IntConstraints src, dst;
  Map<Var, PrimExpr> src_to_dst, dst_to_src;
  static void Fields(auto&& def) {
    def("src", &IntConstraintsTransformObj::src);
    def("dst", &IntConstraintsTransformObj::dst);
    def("src_to_dst", &IntConstraintsTransformObj::src_to_dst);
    def("dst_to_src", &IntConstraintsTransformObj::dst_to_src);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IntConstraintsTransform", IntConstraintsTransformObj,
                                    NodeObj);
};
TVM_NODE_REF(IntConstraintsTransform, ObjectRef, IntConstraintsTransformObj);

/// The solutions of the equations among the relations in new, independent variables.
IntConstraintsTransform SolveLinearEquations(const IntConstraints& system);
/// Ranges for the variables, each in terms of those before it; what ranges cannot say stays a
/// relation.
IntConstraints SolveInequalitiesToRange(const IntConstraints& system);
/// The same with new variables whose ranges start at 0.
IntConstraintsTransform SolveInequalitiesDeskewRange(const IntConstraints& system);

}  // namespace tvm::arith
