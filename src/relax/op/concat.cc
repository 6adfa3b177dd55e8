// SPDX-License-Identifier: Apache-2.0
// Operators that put tensors together, take them apart or repeat them.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

/// What several tensors have in common. Devices that differ are dropped.
struct Common {
  DataType dtype = DataType::Void();
  int64_t ndim = -1;
  Optional<VDevice> device;
  bool all_known = true;  // all shapes are
};
Common CommonOf(Infer& in, const std::vector<const TensorStructInfoObj*>& tensors) {
  if (tensors.empty()) TVM_RAISE(in) << "expected at least one tensor, got none";
  Common common;
  bool unknown_type = false, devices_differ = false;
  for (const TensorStructInfoObj* x : tensors) {
    if (x->dtype.is_void()) {
      unknown_type = true;
    } else if (common.dtype.is_void()) {
      common.dtype = x->dtype;
    } else if (common.dtype != x->dtype) {
      TVM_RAISE_TYPE(in) << "expected tensors of one type, got " << common.dtype << " and "
                         << x->dtype;
    }
    if (x->ndim >= 0 && common.ndim >= 0 && x->ndim != common.ndim) {
      TVM_RAISE(in) << "expected tensors of one rank, got " << common.ndim << " dimensions and "
                    << ShowShape(x);
    }
    if (x->ndim >= 0) common.ndim = x->ndim;
    if (x->vdevice.has_value()) {
      if (!common.device.has_value()) common.device = x->vdevice;
      devices_differ = devices_differ || !SameDevice(*common.device, *x->vdevice);
    }
    common.all_known = common.all_known && DimsOf(x);
  }
  if (unknown_type) common.dtype = DataType::Void();
  if (devices_differ) common.device = std::nullopt;
  return common;
}
/// The dimensions of all tensors outside `axis` (-1: none), when they are known to agree.
std::optional<std::vector<PrimExpr>> Merge(Infer& in,
                                           const std::vector<const TensorStructInfoObj*>& tensors,
                                           int64_t axis) {
  std::optional<std::vector<PrimExpr>> dims;
  bool agree = true;
  for (const TensorStructInfoObj* x : tensors) {
    if (!DimsOf(x)) continue;
    if (!dims) {
      dims.emplace(DimsOf(x)->begin(), DimsOf(x)->end());
      continue;
    }
    for (int64_t i = 0; i < x->ndim; ++i) {
      const PrimExpr dim = (*DimsOf(x))[i];
      if (i == axis || in.Equal((*dims)[i], dim)) continue;
      if (in.Different((*dims)[i], dim)) {
        TVM_RAISE(in) << "expected shapes that agree" << (axis < 0 ? "" : " outside the axis")
                      << ", got " << ShowShape(tensors[0]) << " and " << ShowShape(x)
                      << ": dimension " << i << " is " << TextOf((*dims)[i]) << " and "
                      << TextOf(dim);
      }
      agree = false;
    }
  }
  return agree ? dims : std::nullopt;
}

StructInfo InferConcat(Infer& in) {
  auto tensors = in.Tensors(0);
  Common common = CommonOf(in, tensors);
  const Optional<int64_t>& given = in.attrs<ConcatAttrsObj>()->axis;
  if (!given.has_value() && common.ndim >= 0 && common.ndim != 1) {
    TVM_RAISE(in) << "expected tensors of 1 dimension for axis None, got " << ShowShape(tensors[0]);
  }
  if (!given.has_value()) common.ndim = 1;
  if (tensors.size() == 1) return in.Of(0).as<TupleStructInfoObj>()->fields[0];
  if (common.ndim < 0) return in.Result(Shape(), common.dtype, common.device);
  int64_t axis = given.has_value() ? in.Axis(*given, common.ndim) : 0;
  auto dims = Merge(in, tensors, axis);
  if (!dims || !common.all_known)
    return in.Result(Shape::Rank(common.ndim), common.dtype, common.device);
  PrimExpr sum = Dim(0);
  for (const TensorStructInfoObj* x : tensors) sum = sum + (*DimsOf(x))[axis];
  (*dims)[axis] = in.Simplify(sum);
  return in.Result(Dims(dims->begin(), dims->end()), common.dtype, common.device);
}
StructInfo InferStack(Infer& in) {
  auto tensors = in.Tensors(0);
  Common common = CommonOf(in, tensors);
  if (common.ndim < 0) return in.Result(Shape(), common.dtype, common.device);
  int64_t axis = in.Axis(in.attrs<StackAttrsObj>()->axis.value_or(0), common.ndim + 1);
  auto dims = Merge(in, tensors, -1);
  if (!dims || !common.all_known)
    return in.Result(Shape::Rank(common.ndim + 1), common.dtype, common.device);
  dims->insert(dims->begin() + axis, Dim(static_cast<int64_t>(tensors.size())));
  return in.Result(Dims(dims->begin(), dims->end()), common.dtype, common.device);
}

StructInfo InferSplit(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<SplitAttrsObj>();
  int64_t axis = x->ndim < 0 ? -1 : in.Axis(attrs->axis, x->ndim);
  std::vector<PrimExpr> lengths;  // of the parts; undefined: unknown
  PrimExpr dim = DimsOf(x) ? (*DimsOf(x))[axis] : PrimExpr(nullptr);
  if (auto sections = attrs->indices_or_sections.as<IntImm>()) {
    int64_t n = (*sections)->value;
    if (n <= 0) TVM_RAISE(in) << "expected a positive number of sections, got " << n;
    if (n == 1) return in.Of(0);
    if (!dim.defined()) {
      lengths.assign(n, PrimExpr(nullptr));
    } else {
      PrimExpr length = in.Simplify(ceildiv(dim, Dim(n)));
      lengths.assign(n - 1, length);
      PrimExpr rest = in.Simplify(dim - length * Dim(n - 1));
      if (auto r = AsConstInt(rest); r && *r < 0) {
        TVM_RAISE(in) << "expected a dimension that " << n << " sections of " << TextOf(length)
                      << " fit in, got " << TextOf(dim);
      }
      lengths.push_back(rest);
    }
  } else if (auto indices = attrs->indices_or_sections.as<Array<Any>>()) {
    PrimExpr begin = Dim(0);
    auto clip = [&](const PrimExpr& i) {
      if (!dim.defined()) return i;
      if (IsConst(i) && IsConst(dim))
        return Dim(std::clamp<int64_t>(*AsConstInt(i), 0, *AsConstInt(dim)));
      return min(cast(DataType::Int(64), i), dim);
    };
    auto add = [&](const PrimExpr& end) {
      PrimExpr length = in.Simplify(end - begin);
      if (IsConst(length) && *AsConstInt(length) < 0) length = Dim(0);
      lengths.push_back(dim.defined() ? length : PrimExpr(nullptr));
      begin = end;
    };
    for (const Any& index : *indices) add(clip(index.cast<PrimExpr>()));
    add(dim.defined() ? dim : begin);
  } else {
    TVM_RAISE_TYPE(in) << "expected a number of sections or a list of indices, got "
                       << attrs->indices_or_sections->GetTypeKey();
  }
  Array<StructInfo> fields;
  for (const PrimExpr& length : lengths) {
    if (!length.defined()) {
      fields.push_back(in.Result(Shape::Rank(x->ndim), x->dtype));
      continue;
    }
    Dims dims = *DimsOf(x);
    dims.Set(axis, length);
    fields.push_back(in.Result(dims, x->dtype));
  }
  return TupleStructInfo(fields);
}

StructInfo InferRepeat(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<RepeatAttrsObj>();
  if (attrs->repeats < 0) TVM_RAISE(in) << "expected repeats of at least 0, got " << attrs->repeats;
  PrimExpr repeats = Dim(attrs->repeats);
  if (!attrs->axis.has_value()) {
    if (!DimsOf(x)) return in.Result(Shape::Rank(1), x->dtype);
    return in.Result(Dims{in.Simplify(in.Product(*DimsOf(x)) * repeats)}, x->dtype);
  }
  if (x->ndim < 0) return in.Result(Shape(), x->dtype);
  int64_t axis = in.Axis(*attrs->axis, x->ndim);
  if (!DimsOf(x)) return in.Result(Shape::Rank(x->ndim), x->dtype);
  Dims dims = *DimsOf(x);
  dims.Set(axis, in.Simplify(dims[axis] * repeats));
  return in.Result(dims, x->dtype);
}
StructInfo InferTile(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  const Ints& repeats = in.attrs<TileAttrsObj>()->repeats;
  for (const IntImm& r : repeats) {
    if (r->value < 0) TVM_RAISE(in) << "expected repeats of at least 0, got " << r->value;
  }
  auto count = static_cast<int64_t>(repeats.size());
  if (x->ndim < 0) return in.Result(Shape(), x->dtype);
  int64_t ndim = std::max(x->ndim, count);
  if (!DimsOf(x)) return in.Result(Shape::Rank(ndim), x->dtype);
  Dims dims;
  for (int64_t i = 0; i < ndim; ++i) {
    int64_t from = i - (ndim - x->ndim), repeat = i - (ndim - count);
    PrimExpr dim = from < 0 ? Dim(1) : (*DimsOf(x))[from];
    if (repeat >= 0) dim = in.Simplify(dim * Dim(repeats[repeat]->value));
    dims.push_back(dim);
  }
  return in.Result(dims, x->dtype);
}
StructInfo InferFlip(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim >= 0) in.Axis(in.attrs<FlipAttrsObj>()->axis, x->ndim);
  return in.Of(0);
}
StructInfo InferMeshgrid(Infer& in) {
  auto tensors = in.Tensors(0);
  in.ExpectOneOf(in.attrs<MeshgridAttrsObj>()->indexing.value_or("ij"), {"ij", "xy"}, "indexing");
  for (const TensorStructInfoObj* x : tensors) {
    if (x->ndim > 1) TVM_RAISE(in) << "expected tensors of 1 dimension, got " << ShowShape(x);
  }
  Common common = CommonOf(in, tensors);
  Shape shape = Shape::Rank(static_cast<int64_t>(tensors.size()));
  if (common.all_known) {
    Dims dims;
    for (const TensorStructInfoObj* x : tensors)
      dims.push_back(x->ndim == 0 ? Dim(1) : (*DimsOf(x))[0]);
    if (in.attrs<MeshgridAttrsObj>()->indexing.value_or("ij") == "xy" && dims.size() > 1) {
      PrimExpr first = dims[0];
      dims.Set(0, dims[1]);
      dims.Set(1, first);
    }
    shape = dims;
  }
  StructInfo one = in.Result(shape, common.dtype, common.device);
  return TupleStructInfo(Array<StructInfo>(tensors.size(), one));
}

TVM_REGISTER() {
  auto injective = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kInjective).Precision(kFollow);
  };
  injective("relax.concat", "tensors: Tensors, axis=0", &InferConcat,
            "The tensors one behind the other along an axis.")
      .Attrs<ConcatAttrsObj>();
  injective("relax.stack", "tensors: Tensors, axis=0", &InferStack,
            "The tensors side by side along a new axis.")
      .Attrs<StackAttrsObj>();
  injective("relax.split", "x: Tensor, indices_or_sections, axis=0", &InferSplit,
            "The parts of x: a number of equal ones (the last is the rest), or up to each index.")
      .Attrs<SplitAttrsObj>();
  injective("relax.repeat", "data: Tensor, repeats, axis=None", &InferRepeat,
            "Each element several times in a row; flattened without an axis.")
      .Attrs<RepeatAttrsObj>();
  injective("relax.tile", "data: Tensor, repeats", &InferTile, "The whole tensor several times.")
      .Attrs<TileAttrsObj>();
  injective("relax.flip", "data: Tensor, axis", &InferFlip, "The elements in reverse order.")
      .Attrs<FlipAttrsObj>();
  injective("relax.meshgrid", "tensors: Tensors, indexing='ij'", &InferMeshgrid,
            "Each vector spread over the grid that all of them span.")
      .Attrs<MeshgridAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
