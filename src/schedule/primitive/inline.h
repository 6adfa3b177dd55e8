// SPDX-License-Identifier: Apache-2.0
// What inlining needs to know of a block that stores one value.
#pragma once
#include "schedule/rewrite.h"

namespace tvm::tir {

void ComputeInline(State& state, BlockId block);
void ReverseComputeInline(State& state, BlockId block);

/// The iterators of a block as functions of the indices it accesses a buffer with.
struct StoreForm {
  Array<Var> places;  // stand for the indices
  Array<PrimExpr> iter_values;
  /// The iterators' values for an access at `where`.
  Array<PrimExpr> At(const Array<PrimExpr>& where) const;
};
/// Why the indices do not determine the iterators; else fills `form`.
std::string WhyNoStoreForm(const BlockObj* block, const Array<PrimExpr>& indices, StoreForm* form);
/// Why the indices do not reach every element of the buffer while the iterators run.
std::string WhyNotWhole(const BlockObj* block, const Buffer& buffer,
                        const Array<PrimExpr>& indices);

}  // namespace tvm::tir
