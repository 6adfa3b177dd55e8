// SPDX-License-Identifier: Apache-2.0
// Indices and regions as simple as the ranges of loops and iterators allow.
#pragma once
#include "tir/analyzed_mutator.h"

namespace tvm::tir {
struct IndexSimplifier
    : AnalyzedStmtMutator<IndexSimplifier, BufferLoadObj, BufferStoreObj, BufferRegionObj> {
  using Above =
      AnalyzedStmtMutator<IndexSimplifier, BufferLoadObj, BufferStoreObj, BufferRegionObj>;
  using Above::Rewrite;
  Array<PrimExpr> Simpler(const Array<PrimExpr>& indices) {
    return indices.Map([&](const PrimExpr& e) { return analyzer.Simplify(Mutate(e)); });
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    Array<PrimExpr> indices = Simpler(op->indices);
    if (indices.same_as(op->indices)) return ffi::GetRef<ObjectRef>(op);
    return BufferLoad(op->buffer, indices, op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Array<PrimExpr> indices = Simpler(op->indices);
    PrimExpr value = Mutate(op->value);
    if (indices.same_as(op->indices) && value.same_as(op->value)) return ffi::GetRef<ObjectRef>(op);
    return BufferStore(op->buffer, value, indices, op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferRegionObj* op) {
    Array<Range> region = op->region.Map([&](const Range& r) {
      PrimExpr min = analyzer.Simplify(r->min), extent = analyzer.Simplify(r->extent);
      bool same = min.same_as(r->min) && extent.same_as(r->extent);
      return same ? r : Range::FromMinExtent(min, extent);
    });
    if (region.same_as(op->region)) return ffi::GetRef<ObjectRef>(op);
    return BufferRegion(op->buffer, region);
  }
};
}  // namespace tvm::tir
