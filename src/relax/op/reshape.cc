// SPDX-License-Identifier: Apache-2.0
// Operators that give a tensor another shape: reshape, broadcast, squeeze, transpose.
#include <algorithm>

#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

// ---- to a given shape -------------------------------------------------------------------------
StructInfo InferReshape(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  Shape shape = in.ShapeOf(1);
  if (shape.known() && DimsOf(x)) {
    PrimExpr from = in.Product(*DimsOf(x)), to = in.Product(*shape.dims);
    if (in.Different(from, to)) {
      TVM_RAISE(in) << "expected as many elements as before, got " << Show(*DimsOf(x)) << " with "
                    << TextOf(from) << " and " << Show(*shape.dims) << " with " << TextOf(to);
    }
  }
  return in.OfShape(1, in.Tensor(0)->dtype, in.Device());
}
/// Replaces 0 by the dimension of the operand and one -1 by what is left for it.
Expr FinishReshape(Call call) {
  auto* shape = call->args[1].as<ShapeExprObj>();
  if (!shape) return call;
  auto is = [](const PrimExpr& e, int64_t value) { return AsConstInt(e) == value; };
  int64_t inferred = 0, kept = 0;
  for (const PrimExpr& dim : shape->values) {
    auto value = AsConstInt(dim);
    if (value && *value < -1) {
      TVM_FFI_THROW(OpValueError) << "reshape: expected dimensions of at least -1, got " << *value;
    }
    inferred += is(dim, -1);
    kept += is(dim, 0);
  }
  if (inferred > 1) {
    TVM_FFI_THROW(OpValueError) << "reshape: expected at most one -1, got " << Show(shape->values);
  }
  auto* x = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  const Dims* from = x ? DimsOf(x) : nullptr;
  // A zero-size tensor has dimensions of 0 that are meant as such.
  if (inferred == 0 && (kept == 0 || (from && std::any_of(from->begin(), from->end(), &IsZero)))) {
    return call;
  }
  if (!from) {
    TVM_FFI_THROW(OpValueError) << "reshape: expected an operand of known shape for "
                                << Show(shape->values) << ", got "
                                << (x ? ShowShape(x) : "an expression without struct info");
  }
  // What is left for -1: dimensions that stay are left out on both sides.
  std::vector<PrimExpr> left(from->begin(), from->end());
  PrimExpr others = Dim(1);
  Dims dims;
  for (size_t i = 0; i < shape->values.size(); ++i) {
    PrimExpr dim = shape->values[i];
    if (is(dim, 0)) {
      if (i >= from->size()) {
        TVM_FFI_THROW(OpValueError) << "reshape: expected a dimension " << i << " to keep for "
                                    << Show(shape->values) << ", got the shape " << Show(*from);
      }
      dim = (*from)[i];
    }
    dims.push_back(dim);
    if (is(dim, -1)) continue;
    auto same = std::find_if(left.begin(), left.end(), [&](const PrimExpr& d) {
      return d.same_as(dim) || (IsConst(d) && IsConst(dim) && AsConstInt(d) == AsConstInt(dim));
    });
    if (same != left.end() && !IsZero(dim)) {
      left.erase(same);
    } else {
      others = others * dim;
    }
  }
  arith::Analyzer analyzer;
  PrimExpr total = Dim(1);
  for (const PrimExpr& dim : left) total = total * dim;
  total = analyzer.Simplify(total);
  others = analyzer.Simplify(others);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!is(dims[i], -1)) continue;
    auto all = AsConstInt(total), part = AsConstInt(others);
    if (all && part && (*part == 0 || *all % *part != 0)) {
      TVM_FFI_THROW(OpValueError) << "reshape: expected the elements of " << Show(*from)
                                  << " to be a multiple of those of " << Show(shape->values)
                                  << " without -1, got " << *all << " for " << *part;
    }
    dims.Set(i, analyzer.Simplify(floordiv(total, others)));
  }
  return Call(call->op, {call->args[0], ShapeExpr(dims)});
}
/// Raises when a tensor of shape `from` does not broadcast to `to`.
void CheckBroadcastsTo(Infer& in, const Shape& from, const Shape& to) {
  if (from.ndim >= 0 && to.ndim >= 0 && from.ndim > to.ndim) {
    TVM_RAISE(in) << "expected at least " << from.ndim << " dimensions to broadcast to, got "
                  << to.ndim;
  }
  if (!from.known() || !to.known()) return;
  for (int64_t i = 1; i <= from.ndim; ++i) {
    PrimExpr a = from[from.ndim - i], b = to[to.ndim - i];
    if (!IsOne(a) && IsConst(a) && in.Different(a, b)) {
      TVM_RAISE(in) << "expected shapes that broadcast, got " << Show(*from.dims) << " and "
                    << Show(*to.dims) << ": dimension " << to.ndim - i << " is " << TextOf(a)
                    << " and " << TextOf(b);
    }
  }
}
StructInfo InferBroadcastTo(Infer& in) {
  Shape shape = in.ShapeOf(1);
  CheckBroadcastsTo(in, Shape(in.Tensor(0)), shape);
  return in.OfShape(1, in.Tensor(0)->dtype, in.Device());
}
StructInfo InferCollapseSumTo(Infer& in) {
  Shape shape = in.ShapeOf(1);
  CheckBroadcastsTo(in, shape, Shape(in.Tensor(0)));
  return in.OfShape(1, in.Tensor(0)->dtype, in.Device());
}
StructInfo InferCollapseSumLike(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *like = in.Tensor(1);
  CheckBroadcastsTo(in, Shape(like), Shape(x));
  if (like->shape.has_value()) return TensorStructInfo(*like->shape, x->dtype, in.Device());
  return in.Result(Shape::Rank(like->ndim), x->dtype);
}
StructInfo InferFlatten(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  if (x->ndim == 1) return in.Of(0);
  if (x->ndim == 0) return in.Result(Dims{Dim(1)}, x->dtype);
  return in.Result(DimsOf(x) ? Shape(Dims{in.Product(*DimsOf(x))}) : Shape::Rank(1), x->dtype);
}

// ---- dimensions of 1 --------------------------------------------------------------------------
StructInfo InferExpandDims(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  const Ints& axis = in.attrs<ExpandDimsAttrsObj>()->axis;
  if (axis.empty()) return in.Of(0);
  if (x->ndim < 0) return in.Result(Shape(), x->dtype);
  int64_t ndim = x->ndim + static_cast<int64_t>(axis.size());
  std::vector<int64_t> axes = in.Axes(axis, ndim);
  if (!DimsOf(x)) return in.Result(Shape::Rank(ndim), x->dtype);
  Dims dims;
  for (int64_t i = 0, from = 0; i < ndim; ++i) {
    bool is_new = std::find(axes.begin(), axes.end(), i) != axes.end();
    dims.push_back(is_new ? Dim(1) : (*DimsOf(x))[from++]);
  }
  return in.Result(dims, x->dtype);
}
StructInfo InferSqueeze(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  const Optional<Ints>& axis = in.attrs<SqueezeAttrsObj>()->axis;
  if (x->ndim < 0) return in.Result(Shape(), x->dtype);
  std::vector<bool> removed(x->ndim, false);
  if (!axis.has_value()) {
    if (!DimsOf(x)) return in.Result(Shape(), x->dtype);
    for (int64_t i = 0; i < x->ndim; ++i) {
      const PrimExpr dim = (*DimsOf(x))[i];
      if (!IsConst(dim)) return in.Result(Shape(), x->dtype);  // may or may not be 1
      removed[i] = IsOne(dim);
    }
  } else {
    for (int64_t i : in.Axes(*axis, x->ndim)) {
      // A dimension that is known to be longer stays.
      removed[i] = !DimsOf(x) || !IsConst((*DimsOf(x))[i]) || IsOne((*DimsOf(x))[i]);
    }
  }
  Dims dims;
  for (int64_t i = 0; i < x->ndim; ++i) {
    if (!removed[i] && DimsOf(x)) dims.push_back((*DimsOf(x))[i]);
  }
  int64_t ndim = std::count(removed.begin(), removed.end(), false);
  if (ndim == x->ndim) return in.Of(0);
  return in.Result(DimsOf(x) ? Shape(dims) : Shape::Rank(ndim), x->dtype);
}

// ---- order ------------------------------------------------------------------------------------
StructInfo InferPermuteDims(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  const Optional<Ints>& given = in.attrs<PermuteDimsAttrsObj>()->axes;
  int64_t count = given.has_value() ? static_cast<int64_t>((*given).size()) : x->ndim;
  if (x->ndim >= 0 && count != x->ndim) {
    TVM_RAISE(in) << "expected " << x->ndim << " axes for the shape " << ShowShape(x) << ", got "
                  << count;
  }
  if (count < 0) return in.Result(Shape(), x->dtype);
  std::vector<int64_t> axes(count);
  if (given.has_value()) {
    axes = in.Axes(*given, count);
  } else {
    for (int64_t i = 0; i < count; ++i) axes[i] = count - 1 - i;
  }
  if (!DimsOf(x)) return in.Result(Shape::Rank(count), x->dtype);
  Dims dims;
  for (int64_t axis : axes) dims.push_back((*DimsOf(x))[axis]);
  return in.Result(dims, x->dtype);
}
StructInfo InferLayoutTransform(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<LayoutTransformAttrsObj>();
  if (attrs->pad_value.has_value()) {
    DataType pad = (*attrs->pad_value)->value.dtype();
    if (!x->dtype.is_void() && pad != x->dtype) {
      TVM_RAISE_TYPE(in) << "expected a pad_value of type " << x->dtype << ", got " << pad;
    }
  }
  const tir::IndexMap& map = attrs->index_map;
  auto to = static_cast<int64_t>(map->final_indices.size());
  if (x->ndim < 0) return in.Result(Shape::Rank(to), x->dtype);
  in.ExpectRank(x, static_cast<int64_t>(map->initial_indices.size()), "the tensor");
  if (!DimsOf(x)) return in.Result(Shape::Rank(to), x->dtype);
  return in.Result(map.MapShape(*DimsOf(x), &in.analyzer()), x->dtype);
}
/// A pad_value that is a number takes the type of the tensor.
Expr FinishLayoutTransform(Call call) {
  auto* attrs = static_cast<const LayoutTransformAttrsObj*>((*call->attrs).get());
  auto* x = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  if (!attrs->pad_value.has_value() || !x || x->dtype.is_void()) return call;
  PrimValue pad(cast(x->dtype, (*attrs->pad_value)->value));
  return Call(call->op, call->args,
              LayoutTransformAttrs(attrs->index_map, pad, attrs->axis_separators,
                                   attrs->input_axis_separators));
}

TVM_REGISTER() {
  auto injective = [](const char* name, const char* schema, InferFn infer, const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kInjective).Precision(kFollow);
  };
  injective("relax.reshape", "x: Tensor, shape: Shape", &InferReshape,
            "The elements in another shape. One dimension may be -1: what is left; 0 keeps the "
            "dimension.")
      .Finish(&FinishReshape);
  injective("relax.broadcast_to", "x: Tensor, shape: Shape", &InferBroadcastTo,
            "x repeated along dimensions of 1 and new ones.");
  Operator("relax.collapse_sum_to", "data: Tensor, shape: Shape", &InferCollapseSumTo,
           "The sum over the dimensions along which `shape` would be broadcast to the data's.")
      .Pattern(kCommReduce)
      .Precision(kFollow);
  Operator("relax.collapse_sum_like", "data: Tensor, collapse_target: Tensor",
           &InferCollapseSumLike, "collapse_sum_to with the shape of another tensor.")
      .Pattern(kCommReduce)
      .Precision(kFollow);
  injective("relax.flatten", "x: Tensor", &InferFlatten, "All elements in one dimension.");
  injective("relax.expand_dims", "x: Tensor, axis", &InferExpandDims,
            "New dimensions of 1; axes count in the result.")
      .Attrs<ExpandDimsAttrsObj>();
  injective("relax.squeeze", "x: Tensor, axis=None", &InferSqueeze,
            "Without the dimensions of 1, all or the given ones.")
      .Attrs<SqueezeAttrsObj>();
  injective("relax.permute_dims", "x: Tensor, axes=None", &InferPermuteDims,
            "The dimensions in another order; reversed by default.")
      .Attrs<PermuteDimsAttrsObj>();
  injective("relax.layout_transform",
            "x: Tensor, index_map, pad_value=None, axis_separators=None, "
            "input_axis_separators=None",
            &InferLayoutTransform, "The elements where the index map puts them.")
      .Attrs<LayoutTransformAttrsObj>()
      .Finish(&FinishLayoutTransform);
}

}  // namespace
}  // namespace tvm::relax
