// SPDX-License-Identifier: Apache-2.0
// Changing what a buffer looks like wherever it is used.
#pragma once
#include "schedule/primitive/cache.h"
#include "tvm/schedule/schedule.h"

namespace tvm::tir {

Buffer ResolveBuffer(const State& state, BlockId block, BufferRef& ref);

/// A map of indices, or a Python function that gives one.
using IndexMapLike = Variant<IndexMap, Function>;
/// The map, of `rank` indices of type `t`; a function becomes one.
IndexMap ResolveIndexMap(IndexMapLike& map, size_t rank, DataType t);

/// The map as Python writes it.
std::string Spelled(const IndexMap& map);

/// Where a buffer is defined: the block that allocates it or, for a parameter, the root block.
struct Definition {
  BlockId block;
  Var param;  // undefined for an allocated buffer
};
Definition FindDefinition(const State& state, BlockId block, const Buffer& buffer);
/// Puts `to` in the place of `from` everywhere, with indices changed by `indices`; `finish`, if
/// given, changes the body of the defining block after that, and says which blocks it replaced.
void ChangeBuffer(State& state, const Definition& at, const Buffer& from, const Buffer& to,
                  const std::function<Array<PrimExpr>(const Array<PrimExpr>&)>& indices,
                  const std::function<Stmt(Stmt, BlockMap*)>& finish = nullptr);

/// Puts `block`, which defines `to`, in the place of the block or the parameter at `at`.
void Redefine(State& state, const Definition& at, const Buffer& to, const Block& block,
              BlockMap same);

}  // namespace tvm::tir
