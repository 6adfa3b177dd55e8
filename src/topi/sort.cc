// SPDX-License-Identifier: Apache-2.0
// Sorting along an axis: a stable merge sort of indices, or a heap of the first few; NaN behind
// everything else.
#include "topi/heap_select.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
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
/// The first `count` elements of every row alone.
Stmt SelectRows(const Buffer& data, size_t axis, const PrimExpr& count, bool ascending,
                const std::function<Stmt(const Index& row, const Buffer& order)>& emit) {
  Buffer order = Buffer::Decl({count}, count.dtype(), "order");
  Stmt rows = Loops(Without(data->shape, axis), [&](const Index& row) {
    auto value = [&](const PrimExpr& i) { return Load(data, Inserted(row, axis, i)); };
    HeapSelect select{data->shape[axis], count, value, ascending, order};
    return Steps({select.Run(), emit(row, order)});
  });
  return WithBuffer(order, rows);
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
  // (Where half of a row is wanted sorting all of it takes no longer.)
  auto n = AsConstInt(extent), known = AsConstInt(wanted);
  bool are_few = n && known && *known <= *n / 2;
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    auto emit = [&](const Index& row, const Buffer& order) {
      return Loop("k", wanted, [&](const Var& i) {
        Index place = Inserted(row, at, i);
        std::vector<Stmt> stores;
        PrimExpr from = Load(order, {i});
        if (values) stores.push_back(Store(out[0], place, Load(in[0], Inserted(row, at, from))));
        if (indices) stores.push_back(Store(out[out.size() - 1], place, from));
        return Steps(stores);
      });
    };
    return are_few ? SelectRows(in[0], at, wanted, is_ascend, emit)
                   : SortRows(in[0], at, is_ascend, nullptr, emit);
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
