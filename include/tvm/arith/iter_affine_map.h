// SPDX-License-Identifier: Apache-2.0
// Iterator maps: index expressions as sums of pieces of iterators, so that one can tell whether a
// map is one to one, invert it, and divide its space.
#pragma once
#include "tvm/arith/analyzer.h"

namespace tvm::arith {

/// An iterator over [0, extent): a variable, or a sum of pieces of others.
struct IterMarkObj : NodeObj {
  PrimExpr source, extent;
  static void Fields(auto&& def) {
    def("source", &IterMarkObj::source);
    def("extent", &IterMarkObj::extent);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IterMark", IterMarkObj, NodeObj);
};
struct IterMark : ObjectRef {
  IterMark(PrimExpr source, PrimExpr extent);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IterMark, ObjectRef, IterMarkObj);
};

struct IterMapExprObj : PrimExprObj {
  static constexpr uint32_t _type_child_slots = 2;
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO("arith.IterMapExpr", IterMapExprObj, PrimExprObj);
};
TVM_NODE_REF(IterMapExpr, PrimExpr, IterMapExprObj);

/// (source // lower_factor) % extent * scale
struct IterSplitExprObj : IterMapExprObj {
  IterMark source;
  PrimExpr lower_factor, extent, scale;
  static void Fields(auto&& def) {
    def("source", &IterSplitExprObj::source);
    def("lower_factor", &IterSplitExprObj::lower_factor);
    def("extent", &IterSplitExprObj::extent);
    def("scale", &IterSplitExprObj::scale);
  }
  void Init() { dtype = source->source.dtype(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IterSplitExpr", IterSplitExprObj, IterMapExprObj);
};
struct IterSplitExpr : IterMapExpr {
  /// The whole iterator.
  explicit IterSplitExpr(IterMark source);
  IterSplitExpr(IterMark source, PrimExpr lower_factor, PrimExpr extent, PrimExpr scale);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IterSplitExpr, IterMapExpr, IterSplitExprObj);
};

/// The sum of args and base, which no iterator is in.
struct IterSumExprObj : IterMapExprObj {
  Array<IterSplitExpr> args;
  PrimExpr base;
  static void Fields(auto&& def) {
    def("args", &IterSumExprObj::args);
    def("base", &IterSumExprObj::base);
  }
  void Init() { dtype = base.dtype(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IterSumExpr", IterSumExprObj, IterMapExprObj);
};
struct IterSumExpr : IterMapExpr {
  IterSumExpr(Array<IterSplitExpr> args, PrimExpr base);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IterSumExpr, IterMapExpr, IterSumExprObj);
};

/// What a map must be. The values are part of the interface.
enum class IterMapLevel : int {
  kBijective =
      0,  ///< Different iterations give different indices, and all of the iterators is used.
  kSurjective =
      1,  ///< The indices take every value of a box; outer parts of iterators may be unused.
  kNoCheck = 3,
};

struct IterMapResultObj : NodeObj {
  Array<IterSumExpr> indices;  // empty when detection failed
  Array<String> errors;
  PrimExpr padding_predicate;  // where an index stands for no iteration (see kNoCheck)
  static void Fields(auto&& def) {
    def("indices", &IterMapResultObj::indices);
    def("errors", &IterMapResultObj::errors);
    def("padding_predicate", &IterMapResultObj::padding_predicate);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.IterMapResult", IterMapResultObj, NodeObj);
};
TVM_NODE_REF(IterMapResult, ObjectRef, IterMapResultObj);

/// The indices as iterator maps of the variables, where `predicate` holds. With kNoCheck splits
/// that do not divide are padded.
IterMapResult DetectIterMap(const Array<PrimExpr>& indices, const Map<Var, Range>& input_iters,
                            const PrimExpr& predicate, IterMapLevel check_level, Analyzer* analyzer,
                            bool simplify_trivial_iterators = true);
/// The indices simplified as iterator maps, or as they are when they are none.
Array<PrimExpr> IterMapSimplify(const Array<PrimExpr>& indices, const Map<Var, Range>& input_iters,
                                const PrimExpr& predicate, IterMapLevel check_level,
                                Analyzer* analyzer, bool simplify_trivial_iterators = true);
/// The plain expression of an iterator map.
PrimExpr NormalizeIterMapToExpr(const PrimExpr& expr);
/// `index` as a sum of pieces of iterators, those with the largest scale first.
IterSumExpr NormalizeToIterSum(const PrimExpr& index, const Map<Var, Range>& input_iters,
                               Analyzer* analyzer);
/// Divides each binding in an outer and an inner part, binding = outer * inner extent + inner,
/// where inner uses only `sub_iters` and outer none of them. The last pair holds the predicates of
/// both parts. Empty when there is no such division.
Array<Array<IterMark>> SubspaceDivide(const Array<PrimExpr>& bindings,
                                      const Map<Var, Range>& input_iters,
                                      const Array<Var>& sub_iters, const PrimExpr& predicate,
                                      IterMapLevel check_level, Analyzer* analyzer,
                                      bool simplify_trivial_iterators = true);
/// The variables as functions of the values of a one-to-one map.
Map<Var, PrimExpr> InverseAffineIterMap(const Array<IterSumExpr>& iter_map,
                                        const Array<PrimExpr>& outputs);

}  // namespace tvm::arith
