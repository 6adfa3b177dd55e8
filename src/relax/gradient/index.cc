// SPDX-License-Identifier: Apache-2.0
// Gradients of operators that pick elements: what was picked gets its share, the rest zero.
#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
/// Zeros of a shape with `value` at [begin, end) by steps along an axis.
Value Scattered(Grad& r, const Value& value, const Dims& dims, int64_t axis, const Expr& begin,
                const Expr& end, const Expr& step) {
  Value zeros = r.F("zeros", ShapeExpr(dims), value.dtype());
  return r.F("slice_scatter", zeros, value, begin, end, step, axis);
}
Array<Expr> FieldsOf(Grad& r, size_t i) {
  auto* tuple = r.call->args[i].as<TupleObj>();
  if (!tuple) r.Refuse("indices that are no tuple");
  return tuple->fields;
}
/// The axes are undone from the last on: each gets its dimension back.
Values OfStridedSlice(Grad& r) {
  Array<Expr> axes = FieldsOf(r, 1), begins = FieldsOf(r, 2), ends = FieldsOf(r, 3), steps;
  if (r.Has(4)) steps = FieldsOf(r, 4);
  Value g = r.g();
  Dims dims = r.DimsOf(g), full = r.DimsOf(r.x(0));
  for (size_t i = axes.size(); i-- > 0;) {
    int64_t axis = AsConstInt(axes[i].as<PrimValueObj>()->value).value();
    if (axis < 0) axis += static_cast<int64_t>(dims.size());
    dims.Set(axis, full[axis]);
    Expr step = steps.empty() ? Expr(PrimValue::Int64(1)) : steps[i];
    auto stride = AsConstInt(step.as<PrimValueObj>()->value);
    if (!stride || *stride <= 0) r.Refuse("a stride that is not a positive constant");
    g = Scattered(r, g, dims, axis, begins[i], ends[i], step);
  }
  return {g};
}
Values OfTake(Grad& r) {
  auto* attrs = r.attrs<TakeAttrsObj>();
  Value x = r.x(0);
  int64_t axis = attrs->axis.value_or(0);
  if (axis < 0) axis += x.ndim();
  if (GetStructInfoAs<TensorStructInfoObj>(r.call->args[1]))
    return {r.F("grad.take_backward", r.g(), x, r.x(1), axis), {}};
  auto* index = r.call->args[1].as<PrimValueObj>();
  if (!index) r.Refuse("an index whose value is not known");
  Value row = r.F("expand_dims", r.g(), axis);
  return {Scattered(r, row, r.DimsOf(x), axis, PrimValue(index->value),
                    PrimValue(index->value + IntImm::Int64(1)), PrimValue::Int64(1)),
          {}};
}
Values OfGatherElements(Grad& r) {
  int64_t axis = r.attrs<GatherElementsAttrsObj>()->axis;
  return {r.F("scatter_elements", r.ZerosLike(r.x(0)), r.x(1), r.g(), axis, String("add")), {}};
}
Values OfGatherND(Grad& r) {
  if (r.attrs<GatherNDAttrsObj>()->batch_dims != 0) r.Refuse("batch_dims that are not 0");
  return {r.F("scatter_nd", r.ZerosLike(r.x(0)), r.x(1), r.g(), String("add")), {}};
}
/// Of the data and of what is put into it, where that replaces or is added.
Values OfScatterElements(Grad& r) {
  auto* attrs = r.attrs<ScatterElementsAttrsObj>();
  if (attrs->reduction != "update" && attrs->reduction != "add")
    r.Refuse("the reduction " + std::string(attrs->reduction));
  Value of_data = r.g();
  if (attrs->reduction == "update")
    of_data = r.F("scatter_elements", r.g(), r.x(1), r.ZerosLike(r.x(2)), attrs->axis);
  return {of_data, {}, r.F("gather_elements", r.g(), r.x(1), attrs->axis)};
}
Values OfScatterND(Grad& r) {
  auto* attrs = r.attrs<ScatterNDAttrsObj>();
  if (attrs->reduction != "update" && attrs->reduction != "add")
    r.Refuse("the reduction " + std::string(attrs->reduction));
  Value of_data = r.g();
  if (attrs->reduction == "update") of_data = r.F("scatter_nd", r.g(), r.x(1), r.ZerosLike(r.x(2)));
  return {of_data, {}, r.F("gather_nd", r.g(), r.x(1))};
}
Values OfIndexTensor(Grad& r) {
  auto* indices = GetStructInfoAs<TupleStructInfoObj>(r.call->args[1]);
  if (static_cast<int64_t>(indices->fields.size()) != r.x(0).ndim()) {
    // Rows are picked: the indices, broadcast, side by side.
    Value index = r.Of(r.Item(r.x(1), 0).expr), sum = index;
    Values all;
    for (size_t i = 0; i < indices->fields.size(); ++i) {
      all.push_back(r.F("astype", r.Item(r.x(1), static_cast<int64_t>(i)), DataType::Int(64)));
      sum = i == 0 ? all[0] : sum + all[i];
    }
    for (Value& one : all) one = r.BroadcastLike(one, sum);
    Value places = r.F("stack", r.MakeTuple(all), -1);
    return {r.F("scatter_nd", r.ZerosLike(r.x(0)), places, r.g(), String("add")), {}};
  }
  return {r.F("index_put", r.ZerosLike(r.x(0)), r.x(1), r.g(), true), {}};
}
Values OfIndexPut(Grad& r) {
  Value of_data = r.g();
  if (!r.attrs<IndexPutAttrsObj>()->accumulate)
    of_data = r.F("index_put", r.g(), r.x(1), r.ZerosLike(r.x(2)), false);
  return {of_data, {}, r.CollapseTo(r.F("index_tensor", r.g(), r.x(1)), r.x(2))};
}
Values OfSliceScatter(Grad& r) {
  int64_t axis = r.attrs<SliceScatterAttrsObj>()->axis;
  Value of_input = r.F("slice_scatter", r.g(), r.ZerosLike(r.x(1)), r.x(2), r.x(3), r.x(4), axis);
  Value of_source = r.F("strided_slice", r.g(), Array<int64_t>{axis}, Tuple({r.call->args[2]}),
                        Tuple({r.call->args[3]}), Tuple({r.call->args[4]}));
  return {of_input, of_source};
}

// ---- sorting ------------------------------------------------------------------------------------
Value Scattered(Grad& r, const Value& indices, const Value& g, int64_t axis) {
  return r.F("scatter_elements", r.ZerosLike(r.x(0)), indices, g, axis);
}
Values OfSort(Grad& r) {
  auto* attrs = r.attrs<SortAttrsObj>();
  Value order = r.F("argsort", r.x(0), attrs->axis, attrs->descending, DataType::Int(64));
  return {Scattered(r, order, r.g(), attrs->axis)};
}
Values OfTopK(Grad& r) {
  auto* attrs = r.attrs<TopKAttrsObj>();
  if (attrs->ret_type == "indices") return {};
  bool both = attrs->ret_type == "both";
  Value indices = both ? r.Item(r.y(), 1)
                       : r.F("topk", r.x(0), attrs->k, attrs->axis, "indices", attrs->largest,
                             DataType::Int(64));
  return {Scattered(r, indices, both ? r.Item(r.g(), 0) : r.g(), attrs->axis)};
}
/// Of the gradient's gradient, in which it is linear.
Values OfTakeBackward(Grad& r) {
  return {r.F("take", r.g(), r.x(2), r.attrs<TakeAttrsObj>()->axis), {}, {}};
}

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.strided_slice", &OfStridedSlice},
                                 {"relax.take", &OfTake},
                                 {"relax.gather_elements", &OfGatherElements},
                                 {"relax.gather_nd", &OfGatherND},
                                 {"relax.scatter_elements", &OfScatterElements},
                                 {"relax.scatter_nd", &OfScatterND},
                                 {"relax.index_tensor", &OfIndexTensor},
                                 {"relax.index_put", &OfIndexPut},
                                 {"relax.slice_scatter", &OfSliceScatter},
                                 {"relax.sort", &OfSort},
                                 {"relax.topk", &OfTopK},
                                 {"relax.grad.take_backward", &OfTakeBackward}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
