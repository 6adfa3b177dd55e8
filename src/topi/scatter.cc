// SPDX-License-Identifier: Apache-2.0
// Operators that write at indices which are data: a copy of the tensor, then updates one by one.
#include "topi/loops.h"

namespace tvm::topi {
using namespace tir;
namespace {
/// Negative indices count from the end.
PrimExpr Place(const PrimExpr& index, const PrimExpr& extent) {
  PrimExpr at = tvm::cast(extent.dtype(), index);
  if (index.dtype().is_uint()) return at;
  return Select(at < MakeZero(at.dtype()), at + extent, at);
}
/// What becomes of an element and an update; "mean" counts, see below.
PrimExpr Combine(const char* op, const String& reduction, const PrimExpr& old,
                 const PrimExpr& update) {
  if (reduction == "update") return update;
  if (reduction == "add" || reduction == "mean") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return tvm::max(old, update);
  if (reduction == "min") return tvm::min(old, update);
  Complain(op, "\"update\", \"add\", \"mul\", \"mean\", \"max\" or \"min\"",
           '"' + std::string(reduction) + '"');
}
/// A copy of the data, then `updates(write)`, which calls write(place, value) for each update.
using WriteFn = std::function<Stmt(const Index& place, const PrimExpr& update)>;
Stmt Updated(const char* op, const Buffer& data, const Buffer& out, const String& reduction,
             const std::function<Stmt(const WriteFn&)>& updates) {
  bool is_mean = reduction == "mean";
  Buffer counts = Buffer::Decl(out->shape, DataType::Int(32), "counts");
  auto write = [&](const Index& place, const PrimExpr& update) {
    Stmt store = Store(out, place, Combine(op, reduction, Load(out, place), update));
    if (!is_mean) return store;
    return Steps({store, Store(counts, place, Load(counts, place) + PrimExpr(1))});
  };
  if (!is_mean) return Steps({Copy(data, out), updates(write)});
  // The mean of an element and all its updates.
  Stmt start = Loops(out->shape, [&](const Index& i) { return Store(counts, i, PrimExpr(1)); });
  Stmt divide = Loops(out->shape, [&](const Index& i) {
    return Store(out, i, div(Load(out, i), tvm::cast(out->dtype, Load(counts, i))));
  });
  return WithBuffer(counts, Steps({start, Copy(data, out), updates(write), divide}));
}

Tensor ScatterElements(const Tensor& data, const Tensor& indices, const Tensor& updates,
                       int64_t axis, String reduction) {
  constexpr const char* kOp = "scatter_elements";
  size_t at = Axis(kOp, axis, data->shape.size());
  CheckRank(kOp, "indices", indices, data->shape.size());
  CheckRank(kOp, "updates", updates, data->shape.size());
  CheckIsIndex(kOp, indices->dtype);
  for (size_t d = 0; d < data->shape.size(); ++d) {
    if (DifferentDim(indices->shape[d], updates->shape[d]))
      Complain(kOp, "updates shaped like the indices, " + Text(indices->shape),
               Text(updates->shape));
  }
  Combine(kOp, reduction, MakeZero(data->dtype), MakeZero(data->dtype));
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return Updated(kOp, in[0], out[0], reduction, [&](const WriteFn& write) {
      return Loops(indices->shape, [&](const Index& i) {
        Index place = i;
        place[at] = Place(Load(in[1], i), data->shape[at]);
        return write(place, Load(in[2], i));
      });
    });
  };
  return Extern("scatter_elements_generic", {data, indices, updates}, {{data->shape, data->dtype}},
                body)[0];
}
/// The first axis of `indices` goes over the leading axes of data.
Tensor ScatterNd(const Tensor& data, const Tensor& indices, const Tensor& updates, String mode) {
  constexpr const char* kOp = "scatter_nd";
  CheckIsIndex(kOp, indices->dtype);
  if (indices->shape.empty()) Complain(kOp, "indices with at least one dimension", "a scalar");
  auto count = AsConstInt(indices->shape[0]);
  if (!count || *count > static_cast<int64_t>(data->shape.size()))
    Complain(kOp, "as many rows of indices as leading axes", Text(indices->shape));
  auto indexed = static_cast<size_t>(*count);
  size_t places = indices->shape.size() - 1;
  CheckRank(kOp, "updates", updates, places + data->shape.size() - indexed);
  Combine(kOp, mode, MakeZero(data->dtype), MakeZero(data->dtype));
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return Updated(kOp, in[0], out[0], mode, [&](const WriteFn& write) {
      return Loops(updates->shape, [&](const Index& i) {
        Index place;
        for (size_t m = 0; m < indexed; ++m) {
          Index at = {MakeConst(indices->shape[0].dtype(), static_cast<int64_t>(m))};
          at.insert(at.end(), i.begin(), i.begin() + static_cast<std::ptrdiff_t>(places));
          place.push_back(Place(Load(in[1], at), data->shape[m]));
        }
        place.insert(place.end(), i.begin() + static_cast<std::ptrdiff_t>(places), i.end());
        return write(place, Load(in[2], i));
      });
    });
  };
  return Extern("scatter_nd_generic", {data, indices, updates}, {{data->shape, data->dtype}},
                body)[0];
}
/// data[indices] = values (or +=); one tensor of indices per axis, which broadcast.
Tensor IndexPut(const Tensor& data, const Array<Tensor>& indices, const Tensor& values,
                bool accumulate) {
  constexpr const char* kOp = "index_put";
  if (indices.empty() || indices.size() > data->shape.size()) {
    Complain(kOp, "1 to " + std::to_string(data->shape.size()) + " tensors of indices",
             std::to_string(indices.size()));
  }
  std::vector<Shape> shapes;
  Array<Tensor> inputs = {data, values};
  for (const Tensor& index : indices) {
    CheckIsIndex(kOp, index->dtype);
    shapes.push_back(index->shape);
    inputs.push_back(index);
  }
  Shape common = BroadcastShape(kOp, shapes), all = common;
  for (size_t d = indices.size(); d < data->shape.size(); ++d) all.push_back(data->shape[d]);
  BroadcastShape(kOp, {all, values->shape});
  if (values->shape.size() > all.size())
    Complain(kOp, "values that broadcast to " + Text(all), Text(values->shape));
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    return Updated(kOp, in[0], out[0], accumulate ? "add" : "update", [&](const WriteFn& write) {
      return Loops(all, [&](const Index& i) {
        auto middle = i.begin() + static_cast<std::ptrdiff_t>(common.size());
        Index shared(i.begin(), middle), place;
        for (size_t d = 0; d < indices.size(); ++d) {
          Index at = BroadcastIndex(indices[d]->shape, common, shared);
          place.push_back(Place(Load(in[2 + d], at), data->shape[d]));
        }
        place.insert(place.end(), middle, i.end());
        return write(place, Load(in[1], BroadcastIndex(values->shape, all, i)));
      });
    });
  };
  return Extern("index_put", inputs, {{data->shape, data->dtype}}, body)[0];
}
/// The gradient of take: rows of `output_grad` added where they came from.
Tensor TakeBackward(const Tensor& output_grad, const Tensor& x, const Tensor& indices,
                    const Any& axis) {
  constexpr const char* kOp = "take_backward";
  size_t at = axis == nullptr ? 0 : Axis(kOp, IntList(kOp, axis)[0], x->shape.size());
  if (axis == nullptr) CheckRank(kOp, "a vector where no axis is given,", x, 1);
  size_t rank = indices->shape.size();
  CheckRank(kOp, "a gradient", output_grad, x->shape.size() - 1 + rank);
  auto body = [&](const Array<Buffer>& in, const Array<Buffer>& out) {
    Stmt zero =
        Loops(x->shape, [&](const Index& i) { return Store(out[0], i, MakeZero(x->dtype)); });
    Stmt add = Loops(output_grad->shape, [&](const Index& i) {
      auto first = i.begin() + static_cast<std::ptrdiff_t>(at);
      auto last = first + static_cast<std::ptrdiff_t>(rank);
      Index place(i.begin(), first);
      place.push_back(tvm::cast(x->shape[at].dtype(), Load(in[1], Index(first, last))));
      place.insert(place.end(), last, i.end());
      return Store(out[0], place, Load(out[0], place) + Load(in[0], i));
    });
    return Steps({zero, add});
  };
  return Extern("take_backward", {output_grad, indices}, {{x->shape, x->dtype}}, body)[0];
}

TVM_REGISTER() {
  Def("topi.scatter_elements", &ScatterElements,
      "The tensor with updates at indices along an axis.", Arg("data"), Arg("indices"),
      Arg("updates"), Arg("axis", 0), Arg("reduction", "update"));
  Def("topi.scatter_nd", &ScatterNd, "The tensor with updates at indices of its leading axes.",
      Arg("data"), Arg("indices"), Arg("updates"), Arg("mode"));
  Def("topi.index_put", &IndexPut, "The tensor with values at indices, one tensor per axis.",
      Arg("data"), Arg("indices"), Arg("values"), Arg("accumulate", false));
  Def("topi.take_backward", &TakeBackward, "The gradient of take.", Arg("output_grad"), Arg("x"),
      Arg("indices"), Arg("axis", nullptr));
}
}  // namespace
}  // namespace tvm::topi
