// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis: a stable merge sort of indices, NaN behind everything else.
#include "topi/loops.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
/// Whether x stands before y. NaN is larger than any number, in both directions last.
PrimExpr Before(const PrimExpr& x, const PrimExpr& y, bool ascending) {
  PrimExpr before = ascending ? x < y : x > y;
  if (!x.dtype().is_float()) return before;
  return before || (tvm::isnan(y) && !tvm::isnan(x));
}
/// How often runs of 1 element double until one holds them all.
PrimExpr Passes(const PrimExpr& count) {
  DataType t = count.dtype();
  if (auto n = AsConstInt(count)) {
    int64_t passes = 0;
    while ((int64_t{1} << passes) < *n) ++passes;
    return MakeConst(t, passes);
  }
  PrimExpr one = MakeConst(t, 1);
  PrimExpr bits = MakeConst(t, t.bits()) - tvm::cast(t, clz(count - one));
  return Select(count <= one, MakeZero(t), bits);
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
      Stmt both = IfThenElse(right_wins, take(right), take(left));
      Stmt without_left = IfThenElse(left.Get() < middle, take(left), take(right));
      return IfThenElse(left.Get() < middle && right.Get() < high, both, without_left);
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
        return IfThenElse(equal(floormod(pass, two), zero), Pass(order, other, width),
                          Pass(other, order, width));
      });
    });
    Stmt back = Loop("i", count, [&](const Var& i) { return Store(order, {i}, At(other, i)); });
    return Steps({start, merge, IfThenElse(equal(floormod(passes, two), one), back)});
  }
};

/// Sorts every row along the axis and lets `emit` write what it wants of it. `valid` limits how
/// many elements of a row count.
Stmt SortRows(const Buffer& data, size_t axis, bool ascending,
              const std::function<PrimExpr(const Index& row)>& valid,
              const std::function<Stmt(const Index& row, const Buffer& order)>& emit) {
  const PrimExpr& extent = data->shape[axis];
  Buffer order = Buffer::Decl({extent}, extent.dtype(), "order");
  Buffer other = Buffer::Decl({extent}, extent.dtype(), "other");
  Stmt rows = Loops(Without(data->shape, axis), [&](const Index& row) {
    auto value = [&](const PrimExpr& i) { return Load(data, Inserted(row, axis, i)); };
    PrimExpr count = valid ? valid(row) : extent;
    if (!valid)
      return Steps({MergeSort{count, value, ascending, order, other}.Run(), emit(row, order)});
    return Let("count", count, [&](const Var& n) {
      return Steps({MergeSort{n, value, ascending, order, other}.Run(), emit(row, order)});
    });
  });
  return WithBuffer(order, WithBuffer(other, rows));
}

Tensor Sort(const Tensor& data, int64_t axis, bool is_ascend) {
  size_t at = Axis("sort", axis, data->shape.size());
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return SortRows(in[0], at, is_ascend, nullptr, [&](const Index& row, const Buffer& order) {
      return Loop("k", data->shape[at], [&](const Var& k) {
        PrimExpr value = Load(in[0], Inserted(row, at, Load(order, {k})));
        return Store(out[0], Inserted(row, at, k), value);
      });
    });
  };
  return Extern("sort_cpu", {data}, {{data->shape, data->dtype}}, body)[0];
}
/// With `valid_count` only so many elements of each row are sorted; the others stay where they are.
Tensor Argsort(const Tensor& data, const Optional<Tensor>& valid_count, int64_t axis,
               bool is_ascend, DataType dtype) {
  size_t at = Axis("argsort", axis, data->shape.size());
  Array<Tensor> inputs = {data};
  if (valid_count) {
    inputs.push_back(*valid_count);
    CheckRank("argsort", "counts", *valid_count, data->shape.size() - 1);
  }
  const PrimExpr& extent = data->shape[at];
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    auto valid = [&](const Index& row) {
      PrimExpr count = tvm::cast(extent.dtype(), Load(in[1], row));
      return max(min(count, extent), MakeZero(extent.dtype()));
    };
    return SortRows(in[0], at, is_ascend,
                    valid_count ? valid : std::function<PrimExpr(const Index&)>(),
                    [&](const Index& row, const Buffer& order) {
                      return Loop("k", extent, [&](const Var& k) {
                        PrimExpr index = Load(order, {k});
                        if (valid_count) index = if_then_else(k < valid(row), index, k);
                        return Store(out[0], Inserted(row, at, k), index);
                      });
                    });
  };
  return Extern("argsort_cpu", inputs, {{data->shape, dtype}}, body)[0];
}
Any TopK(const Tensor& data, const Any& k, int64_t axis, String ret_type, bool is_ascend,
         DataType dtype) {
  size_t at = Axis("topk", axis, data->shape.size());
  bool values = ret_type == "both" || ret_type == "values";
  bool indices = ret_type == "both" || ret_type == "indices";
  if (!values && !indices)
    Complain("topk", "ret_type \"both\", \"values\" or \"indices\"",
             '"' + std::string(ret_type) + '"');
  const PrimExpr& extent = data->shape[at];
  PrimExpr wanted = tvm::cast(extent.dtype(), Exprs("topk", "k", k, 1)[0]);
  auto count = AsConstInt(wanted);
  if (count && *count < 1) wanted = extent;  // all of them
  if (auto n = AsConstInt(extent); n && count && *count > *n)
    Complain("topk", "k of at most " + std::to_string(*n), std::to_string(*count));
  Shape shape = data->shape;
  shape.Set(at, wanted);
  std::vector<std::pair<Shape, DataType>> outputs;
  if (values) outputs.emplace_back(shape, data->dtype);
  if (indices) outputs.emplace_back(shape, dtype);
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return SortRows(in[0], at, is_ascend, nullptr, [&](const Index& row, const Buffer& order) {
      return Loop("k", wanted, [&](const Var& i) {
        Index place = Inserted(row, at, i);
        std::vector<Stmt> stores;
        PrimExpr from = Load(order, {i});
        if (values) stores.push_back(Store(out[0], place, Load(in[0], Inserted(row, at, from))));
        if (indices) stores.push_back(Store(out[out.size() - 1], place, from));
        return Steps(stores);
      });
    });
  };
  Array<Tensor> result = Extern("topk_cpu", {data}, outputs, body);
  if (result.size() == 1) return result[0];
  return result;
}
/// The middle element along an axis (the lower of two), and its index.
Array<Tensor> Median(const Tensor& data, int64_t axis, bool keepdims) {
  size_t at = Axis("median", axis, data->shape.size());
  const PrimExpr& extent = data->shape[at];
  Shape shape = Without(data->shape, at);
  Index kept(shape.begin(), shape.end());
  if (keepdims) kept = Inserted(kept, at, MakeConst(extent.dtype(), 1));
  Shape result(kept.begin(), kept.end());
  PrimExpr one = MakeConst(extent.dtype(), 1), zero = MakeZero(extent.dtype());
  PrimExpr middle = floordiv(extent - one, MakeConst(extent.dtype(), 2));
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return SortRows(in[0], at, true, nullptr, [&](const Index& row, const Buffer& order) {
      // NaN, where there is one, is last, and the median.
      PrimExpr last = Load(order, {extent - one});
      PrimExpr from = Load(order, {middle});
      if (data->dtype.is_float())
        from = if_then_else(isnan(Load(in[0], Inserted(row, at, last))), last, from);
      Index place = keepdims ? Inserted(row, at, zero) : row;
      return Steps(
          {Store(out[0], place, Load(in[0], Inserted(row, at, from))), Store(out[1], place, from)});
    });
  };
  return Extern("median", {data}, {{result, data->dtype}, {result, DataType::Int(64)}}, body);
}

TVM_REGISTER() {
  Def("topi.sort", &Sort, "The elements along an axis in order, NaN last; stable.", Arg("data"),
      Arg("axis", -1), Arg("is_ascend", true));
  Def("topi.argsort", &Argsort, "The indices that sort along an axis, NaN last; stable.",
      Arg("data"), Arg("valid_count", nullptr), Arg("axis", -1), Arg("is_ascend", true),
      Arg("dtype", "float32"));
  Def("topi.topk", &TopK, "The first k elements in order along an axis, and their indices.",
      Arg("data"), Arg("k", 1), Arg("axis", -1), Arg("ret_type", "both"), Arg("is_ascend", false),
      Arg("dtype", "int64"));
  Def("topi.median", &Median, "The middle element along an axis, and its index.", Arg("data"),
      Arg("axis"), Arg("keepdims", false));
}
}  // namespace
}  // namespace tvm::topi
