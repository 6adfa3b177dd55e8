// SPDX-License-Identifier: Apache-2.0
// Operators that read and write elements by index: take, gather, slices.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

Shape Rest(const TensorStructInfoObj* x, int64_t begin) {
  if (!DimsOf(x)) return Shape::Rank(x->ndim < 0 ? -1 : x->ndim - begin);
  return Dims(DimsOf(x)->begin() + begin, DimsOf(x)->end());
}

StructInfo InferTake(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *indices = in.AsTensor(1);
  auto* attrs = in.attrs<TakeAttrsObj>();
  in.ExpectOneOf(attrs->mode, {"fast", "wrap", "clip", "nan"}, "mode");
  if (indices) {
    in.ExpectInteger(indices, "indices");
  } else if (DataType t = in.Of(1).as<PrimStructInfoObj>()->dtype; !t.is_integer()) {
    TVM_RAISE_TYPE(in) << "expected indices of an integer type, got " << t;
  }
  if (!attrs->axis.has_value() && x->ndim >= 0 && x->ndim != 1) {
    TVM_RAISE(in) << "expected a tensor of 1 dimension for axis None, got " << ShowShape(x);
  }
  int64_t indices_ndim = indices ? indices->ndim : 0;
  if (x->ndim < 0 || indices_ndim < 0) return in.Result(Shape(), x->dtype);
  int64_t axis = attrs->axis.has_value() ? in.Axis(*attrs->axis, x->ndim) : 0;
  if (!DimsOf(x) || (indices && !DimsOf(indices)))
    return in.Result(Shape::Rank(x->ndim - 1 + indices_ndim), x->dtype);
  Dims dims;
  for (int64_t i = 0; i < x->ndim; ++i) {
    if (i != axis) {
      dims.push_back((*DimsOf(x))[i]);
    } else if (indices) {
      for (const PrimExpr& dim : *DimsOf(indices)) dims.push_back(dim);
    }
  }
  return in.Result(dims, x->dtype);
}

/// The number of elements of begin:end:stride, clipped to the dimension unless they are inside.
PrimExpr SliceLength(Infer& in, PrimExpr begin, PrimExpr end, const PrimExpr& stride,
                     const PrimExpr& dim, bool inbound) {
  bool backward = IsConst(stride) && *AsConstInt(stride) < 0;
  if (!inbound) {
    auto normalise = [&](const PrimExpr& e) -> PrimExpr {
      PrimExpr low = Dim(backward ? -1 : 0), high = backward ? dim - Dim(1) : dim;
      if (IsConst(e)) {
        int64_t value = *AsConstInt(e);
        if (value >= 0) return value == 0 && !backward ? e : min(e, high);
        return max(e + dim, low);
      }
      return max(min(if_then_else(e < Dim(0), e + dim, e), high), low);
    };
    begin = in.Simplify(normalise(begin));
    end = in.Simplify(normalise(end));
  }
  PrimExpr length =
      backward ? ceildiv(begin - end, in.Simplify(-stride)) : ceildiv(end - begin, stride);
  length = in.Simplify(length);
  if (IsConst(length)) return Dim(std::max<int64_t>(0, *AsConstInt(length)));
  return inbound || in.analyzer().CanProveGreaterEqual(length, 0) ? length : max(length, Dim(0));
}
StructInfo InferStridedSlice(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim == 0) TVM_RAISE(in) << "expected at least 1 dimension, got " << ShowShape(x);
  auto axes = in.Prims(1), begin = in.Prims(2), end = in.Prims(3);
  auto strides = in.size() > 4 ? in.Prims(4) : std::nullopt;
  auto count = [&](size_t i) { return in.Of(i).as<TupleStructInfoObj>()->fields.size(); };
  for (size_t i = 2; i < in.size(); ++i) {
    if (count(i) != count(1)) {
      TVM_RAISE(in) << "expected as many " << in.info->Param(i) << " as axes, got " << count(i)
                    << " and " << count(1);
    }
  }
  if (!axes || x->ndim < 0) return in.Result(Shape::Rank(x->ndim), x->dtype);
  Ints constants;
  for (const PrimExpr& axis : *axes) {
    if (!IsConst(axis)) TVM_RAISE(in) << "expected constant axes, got " << TextOf(axis);
    constants.push_back(IntImm::Int64(*AsConstInt(axis)));
  }
  std::vector<int64_t> places = in.Axes(constants, x->ndim);
  if (!DimsOf(x) || !begin || !end || (in.size() > 4 && !strides))
    return in.Result(Shape::Rank(x->ndim), x->dtype);
  bool inbound = in.attrs<StridedSliceAttrsObj>()->assume_inbound;
  Dims dims = *DimsOf(x);
  for (size_t i = 0; i < places.size(); ++i) {
    PrimExpr stride = strides ? (*strides)[i] : Dim(1);
    if (IsZero(stride)) TVM_RAISE(in) << "expected strides other than 0, got 0";
    dims.Set(places[i], SliceLength(in, (*begin)[i], (*end)[i], stride, dims[places[i]], inbound));
  }
  return in.Result(dims, x->dtype);
}
StructInfo InferDynamicStridedSlice(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim == 0) TVM_RAISE(in) << "expected at least 1 dimension, got " << ShowShape(x);
  for (size_t i = 1; i < 4; ++i) {
    const TensorStructInfoObj* bound = in.Tensor(i);
    in.ExpectRank(bound, 1, in.info->Param(i));
    if (!bound->dtype.is_void() && bound->dtype != DataType::Int(64)) {
      TVM_RAISE_TYPE(in) << "expected " << in.info->Param(i) << " of type int64, got "
                         << bound->dtype;
    }
    if (DimsOf(bound) && x->ndim >= 0)
      in.ExpectSame((*DimsOf(bound))[0], Dim(x->ndim),
                    "the length of begin, end and strides and "
                    "the number of dimensions");
  }
  return in.Result(Shape::Rank(x->ndim), x->dtype);
}
StructInfo InferSliceScatter(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *src = in.Tensor(1);
  int64_t ndim = x->ndim;
  if (ndim >= 0 && src->ndim >= 0 && ndim != src->ndim) {
    TVM_RAISE(in) << "expected tensors of one rank, got " << ShowShape(x) << " and "
                  << ShowShape(src);
  }
  in.SameType(x->dtype, src->dtype);
  if (in.ConstPrim(4).value_or(1) < 1) {
    TVM_RAISE(in) << "expected a step of at least 1, got " << *in.ConstPrim(4);
  }
  if (ndim < 0) return in.Of(0);
  int64_t axis = in.Axis(in.attrs<SliceScatterAttrsObj>()->axis, ndim);
  auto start = in.Prim(2), end = in.Prim(3), step = in.Prim(4);
  for (int64_t i = 0; DimsOf(x) && DimsOf(src) && i < ndim; ++i) {
    const PrimExpr to = (*DimsOf(x))[i], from = (*DimsOf(src))[i];
    if (i != axis) {
      in.ExpectSame(to, from, "the dimensions outside the axis");
    } else if (start && end && step) {
      in.ExpectSame(SliceLength(in, *start, *end, *step, to, false), from,
                    "the length of the slice and of src");
    }
  }
  return in.Of(0);
}

StructInfo InferGatherElements(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *indices = in.Tensor(1);
  in.ExpectInteger(indices, "indices");
  if (x->ndim >= 0 && indices->ndim >= 0 && x->ndim != indices->ndim) {
    TVM_RAISE(in) << "expected data and indices of one rank, got " << ShowShape(x) << " and "
                  << ShowShape(indices);
  }
  if (x->ndim >= 0) in.Axis(in.attrs<GatherElementsAttrsObj>()->axis, x->ndim);
  if (indices->shape.has_value()) return TensorStructInfo(*indices->shape, x->dtype, in.Device());
  return in.Result(Shape::Rank(std::max(x->ndim, indices->ndim)), x->dtype);
}
/// How many dimensions the last one of `indices` addresses, when it is known.
std::optional<int64_t> IndexDepth(Infer& in, const TensorStructInfoObj* indices) {
  if (!DimsOf(indices) || indices->ndim < 1) return std::nullopt;
  const PrimExpr last = DimsOf(indices)->back();
  if (!IsConst(last)) {
    TVM_RAISE(in) << "expected the last dimension of indices to be constant, got " << TextOf(last);
  }
  return AsConstInt(last);
}
StructInfo InferGatherND(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *indices = in.Tensor(1);
  int64_t batch = in.attrs<GatherNDAttrsObj>()->batch_dims;
  if (!indices->dtype.is_void() && indices->dtype != DataType::Int(64)) {
    TVM_RAISE_TYPE(in) << "expected indices of type int64, got " << indices->dtype;
  }
  if (batch < 0 || (x->ndim >= 0 && batch > x->ndim)) {
    TVM_RAISE(in) << "expected batch_dims of at most the rank of data, got " << batch;
  }
  if (indices->ndim >= 0 && indices->ndim <= batch) {
    TVM_RAISE(in) << "expected indices of more than batch_dims = " << batch << " dimensions, got "
                  << ShowShape(indices);
  }
  if (x->ndim < 0 || indices->ndim < 0) return in.Result(Shape(), x->dtype);
  auto depth = IndexDepth(in, indices);
  if (!depth) return in.Result(Shape(), x->dtype);
  if (*depth + batch > x->ndim) {
    TVM_RAISE(in) << "expected indices into at most " << x->ndim - batch << " dimensions, got "
                  << *depth;
  }
  Dims dims(DimsOf(indices)->begin(), DimsOf(indices)->end() - 1);
  Shape rest = Rest(x, batch + *depth);
  if (!rest.known())
    return in.Result(Shape::Rank(static_cast<int64_t>(dims.size()) + rest.ndim), x->dtype);
  for (const PrimExpr& dim : *rest.dims) dims.push_back(dim);
  return in.Result(dims, x->dtype);
}
StructInfo InferIndexTensor(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto indices = in.Tensors(1);
  if (indices.empty()) TVM_RAISE(in) << "expected at least one index, got none";
  auto count = static_cast<int64_t>(indices.size());
  if (x->ndim >= 0 && count > x->ndim) {
    TVM_RAISE(in) << "expected at most " << x->ndim << " indices for the shape " << ShowShape(x)
                  << ", got " << count;
  }
  Shape shape = Dims{};
  for (const TensorStructInfoObj* index : indices) {
    in.ExpectInteger(index, "indices");
    shape = in.Broadcast(shape, Shape(index));
  }
  if (x->ndim < 0 || shape.ndim < 0) return in.Result(Shape(), x->dtype);
  Shape rest = Rest(x, count);
  if (!rest.known() || !shape.known())
    return in.Result(Shape::Rank(shape.ndim + x->ndim - count), x->dtype);
  Dims dims = *shape.dims;
  for (const PrimExpr& dim : *rest.dims) dims.push_back(dim);
  return in.Result(dims, x->dtype);
}
StructInfo InferIndexPut(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *values = in.Tensor(2);
  auto indices = in.Tensors(1);
  if (x->ndim >= 0 && static_cast<int64_t>(indices.size()) != x->ndim) {
    TVM_RAISE(in) << "expected one index per dimension of " << ShowShape(x) << ", got "
                  << indices.size();
  }
  for (const TensorStructInfoObj* index : indices) in.ExpectInteger(index, "indices");
  in.SameType(x->dtype, values->dtype);
  return in.Of(0);
}

constexpr std::initializer_list<const char*> kReductions = {"update", "add", "mul",
                                                            "mean",   "max", "min"};
StructInfo InferScatterElements(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *indices = in.Tensor(1), *updates = in.Tensor(2);
  auto* attrs = in.attrs<ScatterElementsAttrsObj>();
  in.ExpectInteger(indices, "indices");
  in.ExpectOneOf(attrs->reduction, kReductions, "reduction");
  in.SameType(x->dtype, updates->dtype);
  if (x->ndim >= 0) {
    in.Axis(attrs->axis, x->ndim);
    in.ExpectRank(indices, x->ndim, "indices");
    in.ExpectRank(updates, x->ndim, "updates");
  }
  for (int64_t i = 0; DimsOf(indices) && DimsOf(updates) && i < indices->ndim; ++i) {
    in.ExpectSame((*DimsOf(indices))[i], (*DimsOf(updates))[i],
                  "the dimensions of indices and updates");
  }
  return in.Of(0);
}
StructInfo InferScatterND(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *indices = in.Tensor(1), *updates = in.Tensor(2);
  in.ExpectInteger(indices, "indices");
  in.ExpectOneOf(in.attrs<ScatterNDAttrsObj>()->reduction, kReductions, "reduction");
  in.SameType(x->dtype, updates->dtype);
  if (indices->ndim == 0) TVM_RAISE(in) << "expected indices of at least 1 dimension, got ()";
  auto depth = IndexDepth(in, indices);
  if (!depth || x->ndim < 0) return in.Of(0);
  if (*depth > x->ndim) {
    TVM_RAISE(in) << "expected indices into at most " << x->ndim << " dimensions, got " << *depth;
  }
  int64_t ndim = indices->ndim - 1 + x->ndim - *depth;
  in.ExpectRank(updates, ndim, "updates");
  for (int64_t i = 0; DimsOf(updates) && DimsOf(x) && i < ndim; ++i) {
    const PrimExpr dim = i < indices->ndim - 1 ? (*DimsOf(indices))[i]
                                               : (*DimsOf(x))[i - (indices->ndim - 1) + *depth];
    in.ExpectSame(dim, (*DimsOf(updates))[i],
                  "the dimensions of updates and indices.shape[:-1] + data.shape[k:]");
  }
  return in.Of(0);
}
StructInfo InferOneHot(Infer& in) {
  const TensorStructInfoObj* indices = in.Tensor(0);
  auto* attrs = in.attrs<OneHotAttrsObj>();
  in.ExpectInteger(indices, "indices");
  auto type = [&](size_t i) { return in.Of(i).as<PrimStructInfoObj>()->dtype; };
  if (type(1) != type(2)) {
    TVM_RAISE_TYPE(in) << "expected on_value and off_value of one type, got " << type(1) << " and "
                       << type(2);
  }
  if (attrs->depth <= 0) TVM_RAISE(in) << "expected a positive depth, got " << attrs->depth;
  if (indices->ndim < 0) return in.Result(Shape(), type(1));
  int64_t axis = in.Axis(attrs->axis, indices->ndim + 1);
  if (!DimsOf(indices)) return in.Result(Shape::Rank(indices->ndim + 1), type(1));
  std::vector<PrimExpr> dims(DimsOf(indices)->begin(), DimsOf(indices)->end());
  dims.insert(dims.begin() + axis, Dim(attrs->depth));
  return in.Result(Dims(dims.begin(), dims.end()), type(1));
}

TVM_REGISTER() {
  auto injective = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kInjective).Precision(kFollow);
  };
  auto scatter = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(kFollow);
  };
  Operator("relax.take", "x: Tensor, indices: Value, axis=None, mode='fast'", &InferTake,
           "The elements of x at the indices along an axis.")
      .Attrs<TakeAttrsObj>()
      .Pattern(kInjective)
      .Precision(kNever);
  injective("relax.strided_slice",
            "x: Tensor, axes: Prims, begin: Prims, end: Prims, strides: Prims = None, "
            "assume_inbound=False",
            &InferStridedSlice, "x[begin:end:stride] along each of the axes.")
      .Attrs<StridedSliceAttrsObj>();
  injective("relax.dynamic_strided_slice", "x: Tensor, begin: Tensor, end: Tensor, strides: Tensor",
            &InferDynamicStridedSlice, "x[begin:end:stride] with bounds that are tensors.")
      .Set("FDataDependent", true);
  scatter("relax.slice_scatter",
          "input_tensor: Tensor, src: Tensor, start: Prim, end: Prim, step: Prim, axis=0",
          &InferSliceScatter, "The tensor with input[start:end:step] replaced by src.")
      .Attrs<SliceScatterAttrsObj>();
  injective("relax.gather_elements", "data: Tensor, indices: Tensor, axis=0", &InferGatherElements,
            "data[…, indices[…], …]: an index for every element of the result.")
      .Attrs<GatherElementsAttrsObj>();
  injective("relax.gather_nd", "data: Tensor, indices: Tensor, batch_dims=0", &InferGatherND,
            "The slices of data that the last dimension of indices addresses.")
      .Attrs<GatherNDAttrsObj>();
  injective("relax.index_tensor", "data: Tensor, indices: Tensors", &InferIndexTensor,
            "data[i0, i1, …] with tensors that broadcast.");
  scatter("relax.index_put", "data: Tensor, indices: Tensors, values: Tensor, accumulate=False",
          &InferIndexPut, "data with data[i0, i1, …] replaced by the values, or added to.")
      .Attrs<IndexPutAttrsObj>();
  scatter("relax.scatter_elements",
          "data: Tensor, indices: Tensor, updates: Tensor, axis=0, reduction='update'",
          &InferScatterElements, "data with the elements at the indices updated.")
      .Attrs<ScatterElementsAttrsObj>();
  scatter("relax.scatter_nd", "data: Tensor, indices: Tensor, updates: Tensor, reduction='update'",
          &InferScatterND, "data with the slices that indices address updated.")
      .Attrs<ScatterNDAttrsObj>();
  injective("relax.one_hot", "indices: Tensor, on_value: Prim, off_value: Prim, depth, axis=-1",
            &InferOneHot, "on_value at the index, off_value elsewhere, along a new axis.")
      .Attrs<OneHotAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
