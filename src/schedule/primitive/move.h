// SPDX-License-Identifier: Apache-2.0
// Moving a block below a loop of other blocks: where it goes and which of its iterations run there.
#pragma once
#include <optional>

#include "schedule/rewrite.h"

namespace tvm::tir {

/// An index that one iterator determines: iters[iter] * scale + offset.
struct LinearIndex {
  size_t iter;
  int64_t scale;
  PrimExpr offset;
  /// Where the index falls (9 - v): the same for an axis that counts from its other end, of a range
  /// of `extent` from the index on, which is compared with [min, max].
  void TurnUpward(const PrimExpr& extent, PrimExpr* min, PrimExpr* max);
};
std::optional<LinearIndex> AsLinear(const PrimExpr& index, const Array<IterVar>& iters);

/// What a block touches of a buffer, among the regions that it reads or those that it writes, in
/// all iterations of some loops around it.
std::vector<Relaxed> Touched(const Placed& block, const Array<BufferRegion>& regions,
                             const Buffer& buffer, const std::vector<For>& loops,
                             arith::Analyzer* analyzer);

/// A loop in a scope, the blocks below it, and the statements its body consists of.
struct LoopPlace {
  For loop;
  std::vector<Stmt> path;  // from the scope to the loop, the loop last
  Array<Stmt> body;        // the statements of its body
  std::vector<For> outer;  // the loops of the path, the loop last
  /// Refuses a loop that the block cannot move to, and a block that cannot leave its place.
  LoopPlace(const Focus& at, const State& state, LoopId loop);
  /// The position in `body` of the statement that contains the block.
  int PositionOf(const Placed& block) const;
  /// The loops of a block below the place's loop.
  std::vector<For> LoopsBelow(const Placed& block) const;
  /// As a block that runs here would be placed.
  Placed AsPlaced(const Placed& block, int order) const;
};

/// Checks `index` (-1: last possible, -2: first possible) against the possible positions.
int ChoosePosition(int64_t index, int first, int last, const For& loop);

/// The range in which an iterator runs at the new place, both ends included; none: all of its
/// domain.
using IterRanges = std::vector<std::optional<std::pair<PrimExpr, PrimExpr>>>;
/// Loops and bindings with which the iterators run through their ranges. `exact`: no iteration
/// beyond the range may run; otherwise it only has to be in the iterator's domain.
struct NewNest {
  std::vector<For> loops;
  Array<PrimExpr> values;
  std::vector<PrimExpr> predicate;
  BlockRealize Realize(const Block& block) const;
};
NewNest NestFor(const Block& block, const IterRanges& ranges, const std::vector<For>& outer,
                bool preserve_unit_loops, bool exact);

/// Refuses when the block uses variables that statements around it define (loops, lets), which it
/// would leave.
void CheckNoOuterVars(const Placed& block);
/// Takes the block from where it is and puts `nest` around it at `position` of the loop's body.
void MoveBlock(State& state, const Focus& at, const LoopPlace& place, int position,
               const NewNest& nest);

}  // namespace tvm::tir
