// SPDX-License-Identifier: Apache-2.0
// One view of a block for everything that schedules: the loops around it, what each is for it, how
// its accesses move along them.
#pragma once
#include <optional>
#include <vector>

#include "schedule/analysis.h"
#include "tvm/arith/analyzer.h"
#include "tvm/ir/machine.h"
#include "tvm/schedule/schedule.h"

namespace tvm::tir {

/// A loop around a block.
struct Axis {
  const ForObj* node;
  Var var;
  PrimExpr extent;
  std::optional<int64_t> size;  // the extent, where it is constant
  Var iter{};                   // the block's iterator that is this loop, where there is one
  int use = kUnused;     // kinds in LoopUse; what is neither spatial nor a reduction counts as one
  bool spatial = false;  // of a spatial iterator, maybe of others, too
  bool reduce = false;   // of an iterator that is not spatial, maybe of others, too
  LoopRV loop{};         // where it was asked for: that is a step of the trace
};

/// A load or store: how far it moves, in elements, when an axis makes a step. Words of several
/// elements count as one.
struct Access {
  Buffer buffer;
  bool is_store = false;
  bool linear = false;          // else the steps say nothing
  std::vector<PrimExpr> steps;  // by axis
  int64_t word = 1;             // elements at once
  int64_t Bytes() const { return word * buffer->dtype.bits() / 8; }
  bool Moves(size_t axis) const { return !linear || !IsZero(steps[axis]); }
  bool StepsBy(size_t axis, int64_t by) const { return linear && IsConstInt(steps[axis], by); }
  /// Whether steps along an axis fall on the same set of the first cache, which holds as many lines
  /// as its associativity.
  bool Collides(size_t axis, const Machine& machine) const;
  /// Whether a vector along an axis is one element, or few vectors of memory.
  bool IsNear(size_t axis) const;
};

struct BlockView {
  BlockRealize realize;
  Block block;
  std::vector<Axis> axes;                    // outermost first
  bool is_root = false, has_blocks = false;  // has_blocks: other blocks lie inside
  bool has_reduction = false;                // an iterator that is not spatial, or an init
  bool is_spatial = false;                   // it has iterators, and all are spatial

  BlockView() = default;
  BlockView(const Schedule& sch, const BlockRV& rv);
  /// The product of the constant extents of loops of one kind; 1 for none.
  double Iterations(LoopUse use) const;
  bool HasConstantExtents() const;
  /// Whether a loop belongs to a spatial iterator and to one of a reduction.
  bool HasMixedLoop() const;
  /// Whether elements are read again and again: an input does not depend on a spatial iterator.
  bool HasReuse() const;
  /// Whether every loop of the block is a plain one that no other block shares.
  bool IsAlone(const Schedule& sch) const;
  /// Whether an expression of the block changes along an axis.
  bool Moves(const PrimExpr& index, size_t axis) const;
  /// Whether regions stay in a row of their buffer along an axis: only the last index moves.
  bool StayInRow(const Array<BufferRegion>& regions, size_t axis) const;
};

/// What the accesses of one block do along its loops.
class AccessReader {
 public:
  explicit AccessReader(const BlockView* view);
  Access Of(const Buffer& buffer, const Array<PrimExpr>& indices, bool is_store);
  /// Whether a condition of the block holds in all iterations.
  bool IsAlways(const PrimExpr& condition);

 private:
  const BlockView* view_;
  Map<Var, PrimExpr> values_;  // of the iterators, in loops
  Array<Var> loops_;
  arith::Analyzer analyzer_;
  bool is_bound_ = false;
  PrimExpr InLoops(const PrimExpr& e) const;
  /// Steps by the place in memory: indices of a reshaped buffer are divided, their sum is not.
  void AlongWhole(const Array<PrimExpr>& indices, Access* access);
  /// Steps in words, where all of them are whole ones.
  void CountWords(const RampObj* word, Access* access);
  /// What is known of the loops is only asked for where indices are divided.
  void BindLoops();
};
}  // namespace tvm::tir
