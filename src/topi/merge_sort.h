// SPDX-License-Identifier: Apache-2.0
// A stable merge sort of indices, as loops over buffers.
#pragma once
#include "topi/loops.h"

namespace tvm::topi {

/// Whether x stands before y. NaN is larger than any number, in both directions last.
inline PrimExpr Before(const PrimExpr& x, const PrimExpr& y, bool ascending) {
  PrimExpr before = ascending ? x < y : x > y;
  if (!x.dtype().is_float()) return before;
  return before || (tvm::isnan(y) && !tvm::isnan(x));
}
/// How often runs of 1 element double until one holds them all.
inline PrimExpr Passes(const PrimExpr& count) {
  DataType t = count.dtype();
  if (auto n = AsConstInt(count)) {
    int64_t passes = 0;
    while ((int64_t{1} << passes) < *n) ++passes;
    return MakeConst(t, passes);
  }
  PrimExpr one = MakeConst(t, 1);
  PrimExpr bits = MakeConst(t, t.bits()) - tvm::cast(t, clz(count - one));
  return tir::Select(count <= one, MakeZero(t), bits);
}
/// Fills `order` (one element per place along the axis) with the indices of row `row` in order.
/// `value(i)` is element i of the row, `count` how many of them are sorted.
struct MergeSort {
  PrimExpr count;
  std::function<PrimExpr(const PrimExpr&)> value;
  bool ascending;
  Buffer order, other;

  PrimExpr At(const Buffer& b, const PrimExpr& i) const { return Load(b, {i}); }
  /// Merges the runs [low, middle) and [middle, high) of `from` into `to`.
  Stmt Merge(const Buffer& from, const Buffer& to, const PrimExpr& low, const PrimExpr& middle,
             const PrimExpr& high) const {
    Scalar left("left", count.dtype()), right("right", count.dtype());
    PrimExpr one = MakeConst(count.dtype(), 1);
    Stmt loop = Loop("k", high - low, [&](const Var& k) {
      auto take = [&](const Scalar& side) {
        return Steps({Store(to, {low + k}, At(from, side.Get())), side.Set(side.Get() + one)});
      };
      // Of equal elements the left one goes first: the order is stable.
      PrimExpr right_wins =
          Before(value(At(from, right.Get())), value(At(from, left.Get())), ascending);
      Stmt both = tir::IfThenElse(right_wins, take(right), take(left));
      Stmt without_left = tir::IfThenElse(left.Get() < middle, take(left), take(right));
      return tir::IfThenElse(left.Get() < middle && right.Get() < high, both, without_left);
    });
    return WithBuffer(left.buffer,
                      WithBuffer(right.buffer, Steps({left.Set(low), right.Set(middle), loop})));
  }
  Stmt Pass(const Buffer& from, const Buffer& to, const PrimExpr& width) const {
    PrimExpr two = MakeConst(count.dtype(), 2);
    return Loop("run", ceildiv(count, width * two), [&](const Var& run) {
      PrimExpr low = run * width * two;
      return Merge(from, to, low, min(low + width, count), min(low + width * two, count));
    });
  }
  Stmt Run() const {
    DataType t = count.dtype();
    PrimExpr zero = MakeZero(t), one = MakeConst(t, 1), two = MakeConst(t, 2);
    Stmt start = Loop("i", count, [&](const Var& i) { return Store(order, {i}, i); });
    PrimExpr passes = Passes(count);
    // Passes go there and back; an odd number of them ends in the other buffer.
    Stmt merge = Loop("pass", passes, [&](const Var& pass) {
      return Let("width", shift_left(one, pass), [&](const Var& width) {
        return tir::IfThenElse(equal(floormod(pass, two), zero), Pass(order, other, width),
                               Pass(other, order, width));
      });
    });
    Stmt back = Loop("i", count, [&](const Var& i) { return Store(order, {i}, At(other, i)); });
    return Steps({start, merge, tir::IfThenElse(equal(floormod(passes, two), one), back)});
  }
};

}  // namespace tvm::topi
