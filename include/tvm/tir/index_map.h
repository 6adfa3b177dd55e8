// SPDX-License-Identifier: Apache-2.0
// Maps between the indices of two layouts of a buffer.
#pragma once
#include <utility>

#include "tvm/arith/analyzer.h"

namespace tvm::tir {

/// lambda initial_indices: final_indices
struct IndexMapObj : NodeObj {
  Array<Var> initial_indices;
  Array<PrimExpr> final_indices;
  Optional<ObjectRef> inverse_index_map;  // an IndexMap given by the user where none can be derived
  static void Fields(auto&& def) {
    def("initial_indices", &IndexMapObj::initial_indices, Binds());
    def("final_indices", &IndexMapObj::final_indices);
    def("inverse_index_map", &IndexMapObj::inverse_index_map, Default(nullptr), Ignored());
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.IndexMap", IndexMapObj, NodeObj);
};
struct IndexMap : ObjectRef {
  IndexMap(Array<Var> initial_indices, Array<PrimExpr> final_indices,
           Optional<IndexMap> inverse_index_map = std::nullopt);
  /// lambda i0, i1, …: i0, i1, …
  static IndexMap Identity(size_t ndim, DataType dtype = DataType::Int(32));

  Array<PrimExpr> MapIndices(const Array<PrimExpr>& indices, arith::Analyzer* analyzer) const;
  /// The box that covers where a box goes.
  Array<Range> MapRanges(const Array<Range>& ranges, arith::Analyzer* analyzer) const;
  Array<PrimExpr> MapShape(const Array<PrimExpr>& shape, arith::Analyzer* analyzer) const;
  /// A tensor in host memory in the other layout; elements that nothing maps to are 0.
  ffi::Tensor MapTensor(const ffi::Tensor& source) const;
  /// The map back, when this one is one-to-one from `ranges` onto a box; ValueError otherwise.
  IndexMap Inverse(const Array<Range>& ranges, arith::Analyzer* analyzer) const;
  /// The map back for one that may leave gaps, and the condition (over its indices) for being in
  /// one.
  std::pair<IndexMap, PrimExpr> NonSurjectiveInverse(const Array<Range>& ranges,
                                                     arith::Analyzer* analyzer) const;
  /// Whether both map all indices alike.
  bool IsEquivalentTo(const IndexMap& other) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IndexMap, ObjectRef, IndexMapObj);
};

}  // namespace tvm::tir
