// SPDX-License-Identifier: Apache-2.0
// The first few elements of a row in order, by a heap of indices.
#pragma once
#include "topi/merge_sort.h"

namespace tvm::topi {

/// Fills `heap` with the indices of the first `count` of `extent` elements in order, of equal ones
/// those that stand in front. Of the best so far the last one is on top of the heap: nearly all
/// elements are only compared with it.
struct HeapSelect {
  PrimExpr extent, count;  // count <= extent
  std::function<PrimExpr(const PrimExpr&)> value;
  bool ascending;
  Buffer heap;

  DataType type() const { return extent.dtype(); }
  PrimExpr Number(int64_t n) const { return MakeConst(type(), n); }
  PrimExpr At(const PrimExpr& i) const { return Load(heap, {i}); }
  /// Whether element x stands behind element y.
  PrimExpr Behind(const PrimExpr& x, const PrimExpr& y) const {
    PrimExpr a = value(x), b = value(y);
    return Before(b, a, ascending) || (!Before(a, b, ascending) && x > y);
  }
  /// Puts `moving` into the heap of the first `size`, at `top` or below.
  Stmt SiftDown(const PrimExpr& top, const PrimExpr& size, const PrimExpr& moving) const {
    Scalar place("place", type()), child("child", type());
    auto below = [&](const PrimExpr& i) { return i * Number(2) + Number(1); };
    PrimExpr left = child.Get(), right = left + Number(1);
    Stmt choose = tir::IfThenElse(right < size,
                                  tir::IfThenElse(Behind(At(right), At(left)), child.Set(right)));
    Stmt up = Steps({Store(heap, {place.Get()}, At(child.Get())), place.Set(child.Get()),
                     child.Set(below(place.Get()))});
    Stmt step =
        Steps({choose, tir::IfThenElse(Behind(At(child.Get()), moving), up, child.Set(size))});
    Stmt all = Steps({place.Set(top), child.Set(below(top)), tir::While(child.Get() < size, step),
                      Store(heap, {place.Get()}, moving)});
    return WithBuffer(place.buffer, WithBuffer(child.buffer, all));
  }
  Stmt Run() const {
    PrimExpr half = floordiv(count, Number(2));
    Stmt start = Loop("i", count, [&](const Var& i) { return Store(heap, {i}, i); });
    Stmt order = Loop("i", half, [&](const Var& i) {
      return Let("top", half - Number(1) - i, [&](const Var& top) {
        return Let("moving", At(top), [&](const Var& m) { return SiftDown(top, count, m); });
      });
    });
    Scalar last("last", value(Number(0)).dtype());
    Stmt keep = last.Set(value(At(Number(0))));
    Stmt scan = Loop("i", extent - count, [&](const Var& i) {
      return Let("next", i + count, [&](const Var& next) {
        return tir::IfThenElse(Before(value(next), last.Get(), ascending),
                               Steps({SiftDown(Number(0), count, next), keep}));
      });
    });
    Stmt sort = Loop("i", count, [&](const Var& i) {
      return Let("end", count - Number(1) - i, [&](const Var& end) {
        return Let("moving", At(end), [&](const Var& m) {
          return Steps({Store(heap, {end}, At(Number(0))), SiftDown(Number(0), end, m)});
        });
      });
    });
    return WithBuffer(last.buffer, Steps({start, order, keep, scan, sort}));
  }
};

}  // namespace tvm::topi
