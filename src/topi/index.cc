// SPDX-License-Identifier: Apache-2.0
// Operators that read elements at indices which are data.
#include "tvm/topi/index.h"

#include <cmath>

#include "topi/shape.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
/// Negative indices count from the end.
PrimExpr FromEitherEnd(const PrimExpr& index, const PrimExpr& extent) {
  if (index.dtype().is_uint()) return index;
  return Select(index < MakeZero(index.dtype()), index + tvm::cast(index.dtype(), extent), index);
}
/// An index of data, brought into the size as the mode says.
PrimExpr InMode(const PrimExpr& index, const PrimExpr& extent, const String& mode) {
  if (mode == "fast" || mode == "nan") return index;
  DataType t = index.dtype().bits() < 32 ? DataType::Int(32) : index.dtype();
  PrimExpr at = tvm::cast(t, index), size = tvm::cast(t, extent);
  if (mode == "clip") return min(max(at, MakeZero(t)), size - MakeConst(t, 1));
  if (mode == "wrap") return floormod(at, size);
  Complain("take", "mode \"fast\", \"clip\", \"wrap\" or \"nan\"", '"' + std::string(mode) + '"');
}
}  // namespace

Tensor take(const Tensor& a, const Variant<Tensor, PrimExpr>& indices, const Any& axis,
            int64_t batch_dims, String mode) {
  if (axis == nullptr) return take(reshape(a, {PrimExpr(-1)}), indices, 0, 0, mode);
  size_t at = Axis("take", IntList("take", axis)[0], a->shape.size());
  auto list = indices.as<Tensor>();
  size_t rank = list ? (*list)->shape.size() : 0;
  CheckIsIndex("take", list ? (*list)->dtype : indices.get<PrimExpr>().dtype());
  size_t batch = batch_dims == 0 ? 0 : Axis("take", batch_dims, std::min(rank, at) + 1);
  Shape shape;
  for (size_t d = 0; d < at; ++d) shape.push_back(a->shape[d]);
  for (size_t d = batch; d < rank; ++d) shape.push_back((*list)->shape[d]);
  for (size_t d = at + 1; d < a->shape.size(); ++d) shape.push_back(a->shape[d]);
  auto element = [&](const Index& i) -> PrimExpr {
    auto part = [&](size_t from, size_t to) {
      return Index(i.begin() + static_cast<std::ptrdiff_t>(from),
                   i.begin() + static_cast<std::ptrdiff_t>(to));
    };
    PrimExpr index;
    if (list) {
      Index place = part(0, batch);
      for (const PrimExpr& e : part(at, at + rank - batch)) place.push_back(e);
      index = At(*list, place);
    } else {
      index = indices.get<PrimExpr>();
    }
    Index source = part(0, at);
    source.push_back(InMode(index, a->shape[at], mode));
    for (const PrimExpr& e : part(at + rank - batch, i.size())) source.push_back(e);
    if (mode != "nan") return At(a, source);
    PrimExpr inside = MakeZero(index.dtype()) <= index && index < a->shape[at];
    return if_then_else(inside, At(a, source), MakeConst(a->dtype, std::nan("")));
  };
  return Compute(shape, element, "T_take");
}
Tensor gather(const Tensor& data, int64_t axis, const Tensor& indices) {
  size_t at = Axis("gather", axis, data->shape.size());
  CheckRank("gather", "indices", indices, data->shape.size());
  CheckIsIndex("gather", indices->dtype);
  auto element = [&](const Index& i) {
    Index source = i;
    source[at] = At(indices, i);
    return At(data, source);
  };
  return Compute(indices->shape, element, "T_gather");
}
Tensor gather_nd(const Tensor& a, const Tensor& indices, int64_t batch_dims) {
  constexpr const char* kOp = "gather_nd";
  if (indices->shape.empty()) Complain(kOp, "indices with at least one dimension", "a scalar");
  CheckIsIndex(kOp, indices->dtype);
  auto count = AsConstInt(indices->shape[0]);
  if (!count) Complain(kOp, "a known number of indexed axes", Text(indices->shape));
  if (batch_dims < 0 || batch_dims + *count > static_cast<int64_t>(a->shape.size())) {
    Complain(kOp, "at most " + std::to_string(a->shape.size()) + " batch and indexed axes",
             std::to_string(batch_dims + *count));
  }
  auto batch = static_cast<size_t>(batch_dims), indexed = static_cast<size_t>(*count);
  size_t places = indices->shape.size() - 1;
  Shape shape;
  for (size_t d = 1; d <= places; ++d) shape.push_back(indices->shape[d]);
  for (size_t d = batch + indexed; d < a->shape.size(); ++d) shape.push_back(a->shape[d]);
  auto element = [&](const Index& i) {
    Index source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
    for (size_t m = 0; m < indexed; ++m) {
      Index place = {MakeConst(indices->shape[0].dtype(), static_cast<int64_t>(m))};
      place.insert(place.end(), i.begin(), i.begin() + static_cast<std::ptrdiff_t>(places));
      source.push_back(At(indices, place));
    }
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(places), i.end());
    return At(a, source);
  };
  return Compute(shape, element, "T_gather_nd");
}
namespace {
Tensor AtIndices(const char* op, const Tensor& data, const Array<Tensor>& indices) {
  if (indices.empty() || indices.size() > data->shape.size()) {
    Complain(op, "1 to " + std::to_string(data->shape.size()) + " tensors of indices",
             std::to_string(indices.size()));
  }
  std::vector<Shape> shapes;
  for (const Tensor& index : indices) {
    CheckIsIndex(op, index->dtype);
    shapes.push_back(index->shape);
  }
  Shape common = BroadcastShape(op, shapes), shape = common;
  for (size_t d = indices.size(); d < data->shape.size(); ++d) shape.push_back(data->shape[d]);
  auto element = [&](const Index& i) {
    Index place(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(common.size()));
    Index source;
    for (size_t d = 0; d < indices.size(); ++d) {
      PrimExpr index = At(indices[d], BroadcastIndex(indices[d]->shape, common, place));
      source.push_back(FromEitherEnd(index, data->shape[d]));
    }
    source.insert(source.end(), i.begin() + static_cast<std::ptrdiff_t>(common.size()), i.end());
    return At(data, source);
  };
  return Compute(shape, element, op);
}
Tensor AdvIndex(const Tensor& data, const Array<Tensor>& indices) {
  return AtIndices("advanced_index", data, indices);
}
}  // namespace
Tensor index_tensor(const Tensor& data, const Array<Tensor>& indices) {
  return AtIndices("index_tensor", data, indices);
}
Tensor one_hot(const Tensor& indices, const PrimExpr& on_value, const PrimExpr& off_value,
               int64_t depth, int64_t axis, DataType dtype) {
  size_t at = Axis("one_hot", axis, indices->shape.size() + 1);
  CheckIsIndex("one_hot", indices->dtype);
  Index shape(indices->shape.begin(), indices->shape.end());
  DataType t = IndexType(indices->shape);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), MakeConst(t, depth));
  PrimExpr on = tvm::cast(dtype, on_value), off = tvm::cast(dtype, off_value);
  auto element = [&](const Index& i) {
    Index place = i;
    place.erase(place.begin() + static_cast<std::ptrdiff_t>(at));
    PrimExpr index = At(indices, place);
    return Select(equal(index, tvm::cast(index.dtype(), i[at])), on, off);
  };
  return Compute(Shape(shape.begin(), shape.end()), element, "T_one_hot");
}

namespace {
/// The coordinates of flat places in a tensor whose shape is data.
Tensor UnravelIndex(const Tensor& indices, const Tensor& shape) {
  CheckRank("unravel_index", "a shape", shape, 1);
  auto ndim = AsConstInt(shape->shape[0]);
  if (!ndim) Complain("unravel_index", "a shape of known length", Text(shape->shape));
  Index extents = {shape->shape[0]};
  extents.insert(extents.end(), indices->shape.begin(), indices->shape.end());
  auto element = [&](const Index& i) {
    PrimExpr rest = At(indices, Index(i.begin() + 1, i.end())), value = rest;
    for (int64_t d = *ndim; d-- > 0;) {
      PrimExpr here = MakeConst(shape->shape[0].dtype(), d);
      PrimExpr extent = tvm::cast(rest.dtype(), shape(here));
      value = d + 1 == *ndim
                  ? floormod(rest, extent)
                  : Select(equal(i[0], here), d == 0 ? rest : floormod(rest, extent), value);
      rest = floordiv(rest, extent);
    }
    return value;
  };
  return Compute(Shape(extents.begin(), extents.end()), element, "T_unravel");
}
Tensor SparseToDense(const Tensor& sparse_indices, const Array<PrimExpr>& output_shape,
                     const Tensor& sparse_values, const PrimExpr& default_value) {
  constexpr const char* kOp = "sparse_to_dense";
  size_t rank = sparse_indices->shape.size();
  if (rank > 2) Complain(kOp, "indices with at most 2 dimensions", Text(sparse_indices->shape));
  if (sparse_values->shape.size() > 1)
    Complain(kOp, "values with at most 1 dimension", Text(sparse_values->shape));
  auto count = rank == 0 ? 1 : AsConstInt(sparse_indices->shape[0]);
  if (!count) Complain(kOp, "a known number of values", Text(sparse_indices->shape));
  auto element = [&](const Index& i) {
    PrimExpr result = tvm::cast(sparse_values->dtype, default_value);
    for (int64_t k = 0; k < *count; ++k) {
      PrimExpr here = const_true();
      for (size_t d = 0; d < i.size(); ++d) {
        Index place;
        if (rank > 0) place.push_back(PrimExpr(k));
        if (rank > 1) place.push_back(PrimExpr(static_cast<int64_t>(d)));
        PrimExpr index = At(sparse_indices, place);
        here = here && equal(tvm::cast(index.dtype(), i[d]), index);
      }
      PrimExpr value = sparse_values->shape.empty() ? sparse_values() : sparse_values(PrimExpr(k));
      result = if_then_else(here, value, result);
    }
    return result;
  };
  return Compute(output_shape, element, "T_sparse_to_dense");
}
/// Elements along `axis` from a length on are replaced; the lengths are for the other leading axis.
Tensor SequenceMask(const Tensor& data, const Tensor& valid_length, const PrimExpr& mask_value,
                    int64_t axis) {
  size_t along = Axis("sequence_mask", axis, data->shape.size());
  CheckRank("sequence_mask", "lengths", valid_length, 1);
  if (data->shape.size() < 2 || along > 1)
    Complain("sequence_mask", "at least 2 dimensions and axis 0 or 1", std::to_string(axis));
  PrimExpr masked = tvm::cast(data->dtype, mask_value);
  auto element = [&](const Index& i) {
    PrimExpr length = valid_length(i[1 - along]);
    return Select(length <= tvm::cast(length.dtype(), i[along]), masked, At(data, i));
  };
  return Compute(data->shape, element, "T_sequence_mask");
}

TVM_REGISTER() {
  Def("topi.take", &take, "The elements, or slices along an axis, at indices.", Arg("a"),
      Arg("indices"), Arg("axis", nullptr), Arg("batch_dims", 0), Arg("mode", "fast"));
  Def("topi.gather", &gather, "Along an axis the elements at indices, elsewhere where they are.",
      Arg("data"), Arg("axis"), Arg("indices"));
  Def("topi.gather_nd", &gather_nd, "The elements or slices at indices of several axes.", Arg("a"),
      Arg("indices"), Arg("batch_dims", 0));
  Def("topi.index_tensor", &index_tensor, "The elements at indices, one tensor per axis.",
      Arg("data"), Arg("indices"));
  Def("topi.adv_index", &AdvIndex, "The elements at indices, one tensor per axis.", Arg("data"),
      Arg("indices"));
  Def("topi.one_hot", &one_hot, "A new axis with on_value at each index, off_value elsewhere.",
      Arg("indices"), Arg("on_value"), Arg("off_value"), Arg("depth"), Arg("axis"), Arg("dtype"));
  Def("topi.unravel_index", &UnravelIndex, "The coordinates of places in row-major order.",
      Arg("indices"), Arg("shape"));
  Def("topi.sparse_to_dense", &SparseToDense, "A tensor with values at some indices.",
      Arg("sparse_indices"), Arg("output_shape"), Arg("sparse_values"), Arg("default_value", 0));
  Def("topi.sequence_mask", &SequenceMask, "Replaces elements from given lengths on.", Arg("data"),
      Arg("valid_length"), Arg("mask_value", 0), Arg("axis", 0));
}
}  // namespace
}  // namespace tvm::topi
