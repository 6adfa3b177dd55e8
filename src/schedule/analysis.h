// SPDX-License-Identifier: Apache-2.0
// Questions that primitives ask about the blocks of a scope, answered on plain TIR.
//
// A scope is a block; its children are the blocks below it with no other block in between. The
// reasons that functions here return are texts for error messages; an empty one means yes.
#pragma once
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tir/analysis/reduction.h"
#include "tvm/arith/iter_affine_map.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
// ---- scopes -------------------------------------------------------------------------------------
/// A block with the statements between its scope and it, outermost first.
struct Placed {
  BlockRealize realize;
  std::vector<Stmt> path;  // all statements that contain the realize, below the scope block
  int order = 0;           // among the children of the scope, in program order
  const BlockObj* block() const { return realize->block.get(); }
  /// The loops of the path, outermost first.
  std::vector<For> Loops() const;
  /// Whether a condition decides if the block runs: an `if` or `while` around it.
  bool IsConditional() const;
  bool IsBelow(const StmtObj* ancestor) const;
};
/// The loops of both paths that contain both blocks.
std::vector<For> CommonLoops(const Placed& a, const Placed& b);
Map<Var, Range> DomainsOf(const std::vector<For>& loops);

/// The children of a scope and what they do to buffers.
struct ScopeInfo {
  Block block;
  std::vector<Placed> children;
  // By data pointer, because several buffers may view one memory.
  std::unordered_map<const VarObj*, std::vector<int>> readers, writers;
  std::unordered_set<const VarObj*> loose;  // memory that statements outside of blocks touch
  std::unordered_map<const VarObj*, std::vector<int>> asked;  // that realizes of children read

  explicit ScopeInfo(const Block& block);
  const Placed* Find(const BlockObj* block) const;
  std::vector<const Placed*> WritersOf(const Buffer& buffer) const;
  std::vector<const Placed*> ReadersOf(const Buffer& buffer) const;
  /// Blocks that read what `block` writes, and that write what it reads, in program order.
  std::vector<const Placed*> ConsumersOf(const Placed& block) const;
  std::vector<const Placed*> ProducersOf(const Placed& block) const;
  /// Whether something outside of blocks uses the buffer, bindings and predicates of blocks, too.
  bool IsLoose(const Buffer& buffer) const {
    return loose.count(buffer->data.get()) || asked.count(buffer->data.get());
  }
  /// Whether the scope allocates the buffer.
  bool Owns(const Buffer& buffer) const;
};

/// The buffers that a block reads from outside: not the result of a reduction, which it only
/// updates.
Array<BufferRegion> ReadsOf(const BlockObj* block);

// ---- kinds of blocks ----------------------------------------------------------------------------
/// Whether the values are sums of digits `(loop // a) % b` with constant scales that continue each
/// other, every digit of every loop in one of them: then they take different values in different
/// iterations, and each takes all numbers of its range (the minimum and how many are added to
/// `ranges`). What is so may be so unnoticed.
bool AreDigits(const Array<PrimExpr>& values, const Map<Var, Range>& domains,
               std::vector<std::pair<int64_t, int64_t>>* ranges = nullptr);
/// Why iterator values are no iterator map of the loops around; then nothing can be said about
/// which iterations run.
std::string WhyNotAffine(const Placed& block);
/// Why some iterations of the block's domain may not run: the bindings do not cover it, or a
/// condition leaves some out.
std::string WhyNotCovering(const Placed& block);
/// Why the block is not the only writer of its buffers in the scope.
std::string WhyNotDominant(const ScopeInfo& scope, const Placed& block);
/// A complete block is dominant, all its iterators are spatial and it reads nothing that it
/// writes: running an iteration twice gives the same.
std::string WhyNotComplete(const ScopeInfo& scope, const Placed& block);
/// A reduction block is dominant, has an init, spatial and reduction iterators only, and no
/// reduction iterator in the indices of what it writes.
std::string WhyNotReduction(const ScopeInfo& scope, const Placed& block);
/// Complete or reduction.
std::string WhyNotStage(const ScopeInfo& scope, const Placed& block);
bool IsComplete(const ScopeInfo& scope, const Placed& block);
bool IsReduction(const ScopeInfo& scope, const Placed& block);
/// Why the block may write an element again in another iteration of `loops`, which are around it.
std::string WhyOverwrites(const Placed& block, const std::vector<For>& loops);

/// What a loop is for one block: the kinds of the iterators whose values use it.
enum LoopUse : int { kUnused = 0, kSpatial = 1, kReduce = 2, kMixed = 3, kOther = 4 };
int UseOf(const For& loop, const BlockRealize& realize);

// ---- regions ------------------------------------------------------------------------------------
/// A region of a block's signature in terms of the loops around.
Array<Range> BoundRegion(const BlockRealize& realize, const Array<Range>& region);
/// The box that covers a region while `loops` run, and whether the region is all of the box.
struct Relaxed {
  Array<arith::IntSet> box;
  bool exact;
};
Relaxed Relax(const Array<Range>& region, const std::vector<For>& loops, const PrimExpr& predicate,
              arith::Analyzer* analyzer);
/// Why the producers may not have written all that `consumer` reads, seen from the innermost loop
/// around both.
std::string WhyNotRegionCover(const ScopeInfo& scope, const Placed& consumer);
/// Whether the scope is a sequence of stages: every child complete or a reduction, and all that is
/// read was written before.
bool IsStagePipeline(const ScopeInfo& scope);

// ---- moving computation -------------------------------------------------------------------------
/// Why `block` may compute something else when it runs where `later` runs: a buffer it reads is
/// written in between.
std::string WhyNotStable(const ScopeInfo& scope, const Placed& block, const Placed& later);

// ---- shapes of computations ---------------------------------------------------------------------
/// Whether tiling several levels of the block pays: a buffer it reads is reused over an iterator.
bool NeedsMultiLevelTiling(const ScopeInfo& scope, const Placed& block);
/// Whether all the block does is store one value per iteration, its indices the iterators.
bool IsElementwiseStore(const BlockObj* block);
/// Whether the block writes a buffer that lives on after the scope.
bool IsOutputBlock(const ScopeInfo& scope, const Placed& block);

}  // namespace tvm::tir
