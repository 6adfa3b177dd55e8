// SPDX-License-Identifier: Apache-2.0
// Parts of a tensor: ranges with steps along axes, known when compiled or read from tensors.
#include "topi/shape.h"
#include "tvm/topi/transform.h"

namespace tvm::topi {
using namespace tir;
namespace {
constexpr int64_t kToTheEnd = INT32_MAX;  // ends from here on mean the end of the axis

/// A range with a step along one axis.
struct AxisRange {
  PrimExpr begin, extent, stride;
};
Index ExprList(const char* op, const char* what, const Any& value) {
  if (auto list = value.as<Array<Any>>()) return Exprs(op, what, value, list->size());
  return Exprs(op, what, value, 1);
}
PrimExpr FromTheEnd(const PrimExpr& at, const PrimExpr& extent) {
  if (auto a = AsConstInt(at)) return *a < 0 ? Simplified(extent + at) : at;
  return at;
}
/// `at` in [low, high].
PrimExpr Between(const PrimExpr& at, const PrimExpr& low, const PrimExpr& high) {
  return Simplified(max(min(at, high), low));
}
/// begin:end:stride of an axis as NumPy means it; without clipping where sizes are not known and
/// the caller says that the range is inside.
AxisRange RangeOf(const PrimExpr& extent, PrimExpr begin, PrimExpr end, int64_t stride,
                  bool assume_inbound) {
  DataType t = extent.dtype();
  begin = tvm::cast(t, begin);
  PrimExpr zero = MakeZero(t), one = MakeConst(t, 1), step = MakeConst(t, stride);
  auto wanted = AsConstInt(end);
  bool to_the_end = wanted && (stride > 0 ? *wanted >= kToTheEnd : *wanted <= -kToTheEnd);
  if (to_the_end) {
    end = stride > 0 ? extent : MakeConst(t, -1);
  } else {
    end = FromTheEnd(tvm::cast(t, end), extent);
  }
  begin = FromTheEnd(begin, extent);
  bool known = AsConstInt(extent) && AsConstInt(begin) && AsConstInt(end);
  if (known || !assume_inbound) {
    auto settled = [&](const PrimExpr& at) {
      return AsConstInt(at) ? at : Select(at < zero, at + extent, at);
    };
    PrimExpr low = stride > 0 ? zero : MakeConst(t, -1);
    PrimExpr high = stride > 0 ? extent : extent - one;
    begin = Between(settled(begin), low, high);
    end = Between(to_the_end ? end : settled(end), low, high);
  }
  PrimExpr length = stride > 0 ? ceildiv(end - begin, step) : ceildiv(begin - end, neg(step));
  return {begin, Simplified(known || !assume_inbound ? max(length, zero) : length), step};
}
}  // namespace

Tensor strided_slice(const Tensor& a, const Any& begin, const Any& end, const Any& strides,
                     const Any& axes, String slice_mode, bool assume_inbound) {
  constexpr const char* kOp = "strided_slice";
  if (slice_mode != "end" && slice_mode != "size")
    Complain(kOp, "slice_mode \"end\" or \"size\"", '"' + std::string(slice_mode) + '"');
  Index begins = ExprList(kOp, "begin", begin), ends = ExprList(kOp, "end", end);
  std::vector<int64_t> steps;
  if (strides != nullptr) steps = IntList(kOp, strides);
  if (steps.empty() || slice_mode == "size") steps.assign(begins.size(), 1);
  if (steps.size() == 1) steps.resize(begins.size(), steps[0]);
  std::vector<size_t> along =
      axes == nullptr ? std::vector<size_t>() : Axes(kOp, axes, a->shape.size());
  if (axes == nullptr) {
    for (size_t i = 0; i < begins.size(); ++i)
      along.push_back(Axis(kOp, static_cast<int64_t>(i), a->shape.size()));
  }
  if (begins.size() != along.size() || ends.size() != along.size() ||
      steps.size() != along.size()) {
    Complain(kOp, "a begin, an end and a stride per axis (" + std::to_string(along.size()) + ")",
             std::to_string(begins.size()) + ", " + std::to_string(ends.size()) + " and " +
                 std::to_string(steps.size()));
  }
  Shape shape = a->shape;
  std::vector<AxisRange> ranges;
  for (size_t k = 0; k < along.size(); ++k) {
    const PrimExpr& extent = a->shape[along[k]];
    if (steps[k] == 0) Complain(kOp, "strides that are not 0", "0");
    PrimExpr stop = ends[k];
    if (slice_mode == "size") {  // -1: all that is left
      stop = IsConstInt(stop, -1) ? extent : tvm::cast(extent.dtype(), begins[k] + stop);
    }
    ranges.push_back(RangeOf(extent, begins[k], stop, steps[k], assume_inbound));
    shape.Set(along[k], ranges.back().extent);
  }
  bool is_empty = IsZero(Product(shape));
  auto element = [&](const Index& i) -> PrimExpr {
    if (is_empty) return MakeZero(a->dtype);
    Index source = i;
    for (size_t k = 0; k < along.size(); ++k) {
      const AxisRange& range = ranges[k];
      source[along[k]] = range.begin + i[along[k]] * range.stride;
    }
    return At(a, source);
  };
  return Compute(shape, element, axes == nullptr ? "T_strided_slice" : "T_strided_slice_with_axes");
}

namespace {
PrimExpr ItemOf(const Tensor& list, size_t k, DataType t) {
  return tvm::cast(t, list(MakeConst(IndexType(list->shape), static_cast<int64_t>(k))));
}
/// Where a range read from data begins: negative places count from the end, and places outside are
/// moved to the nearest inside.
PrimExpr BeginOf(const PrimExpr& begin, const PrimExpr& extent) {
  PrimExpr zero = MakeZero(begin.dtype());
  PrimExpr settled = Select(begin < zero, begin + extent, begin);
  return max(min(settled, extent - MakeConst(begin.dtype(), 1)), zero);
}
void CheckPerAxis(const char* op, const Tensor& a, const std::vector<Tensor>& lists) {
  for (const Tensor& list : lists) {
    CheckRank(op, "begin, end and strides", list, 1);
    auto count = AsConstInt(list->shape[0]);
    if (count && *count != static_cast<int64_t>(a->shape.size())) {
      Complain(op, "an entry per axis of " + Text(a->shape), std::to_string(*count));
    }
  }
}
Tensor DynamicStridedSlice(const Tensor& a, const Tensor& begin, const Tensor& end,
                           const Tensor& strides, Array<PrimExpr> output_shape) {
  CheckPerAxis("dynamic_strided_slice", a, {begin, end, strides});
  if (output_shape.size() != a->shape.size()) {
    Complain("dynamic_strided_slice", "as many dimensions as " + Text(a->shape),
             Text(output_shape));
  }
  auto element = [&](const Index& i) {
    Index source;
    for (size_t d = 0; d < i.size(); ++d) {
      DataType t = i[d].dtype();
      PrimExpr first = BeginOf(ItemOf(begin, d, t), a->shape[d]);
      source.push_back(first + i[d] * ItemOf(strides, d, t));
    }
    return At(a, source);
  };
  return Compute(output_shape, element, "T_strided_slice_dynamic");
}
/// The lengths of the ranges that dynamic_strided_slice takes, for a tensor of this shape.
Tensor DynamicStridedSliceShape(const Tensor& a, const Tensor& begin, const Tensor& end,
                                const Tensor& strides) {
  CheckPerAxis("dynamic_strided_slice", a, {begin, end, strides});
  DataType t = DataType::Int(64);
  auto length = [&](size_t d) {
    PrimExpr extent = tvm::cast(t, a->shape[d]), zero = MakeZero(t), one = MakeConst(t, 1);
    PrimExpr from = ItemOf(begin, d, t), to = ItemOf(end, d, t), step = ItemOf(strides, d, t);
    from = Select(from < zero, from + extent, from);
    to = Select(to < zero, to + extent, to);
    PrimExpr ahead = ceildiv(max(min(to, extent), zero) - max(min(from, extent), zero), step);
    PrimExpr last = extent - one, before = neg(one);
    PrimExpr back = ceildiv(max(min(from, last), before) - max(min(to, last), before), neg(step));
    return max(Select(step > zero, ahead, back), zero);
  };
  size_t ndim = a->shape.size();
  auto element = [&](const Index& i) {
    PrimExpr value = MakeZero(t);
    for (size_t d = ndim; d-- > 0;) {
      PrimExpr here = MakeConst(i[0].dtype(), static_cast<int64_t>(d));
      value = Select(equal(i[0], here), length(d), value);
    }
    return value;
  };
  return Compute({MakeConst(t, static_cast<int64_t>(ndim))}, element,
                 "T_shape_func_strided_slice_dynamic");
}

/// `a` with `v` in place of a range, whose numbers are lists or tensors.
Tensor StridedSet(const Tensor& a, const Tensor& v, const Any& begin, const Any& end,
                  const Any& strides) {
  size_t ndim = a->shape.size();
  CheckRank("strided_set", "values", v, ndim);
  auto item = [&](const Any& list, size_t d, DataType t) -> PrimExpr {
    if (list == nullptr) return PrimExpr();
    if (auto tensor = list.as<Tensor>()) return ItemOf(*tensor, d, t);
    auto items = list.as<Array<Any>>();
    if (!items || items->size() <= d || (*items)[d] == nullptr) return PrimExpr();
    return tvm::cast(t, (*items)[d].cast<PrimExpr>());
  };
  auto element = [&](const Index& i) {
    PrimExpr inside = const_true();
    Index source;
    for (size_t d = 0; d < ndim; ++d) {
      DataType t = i[d].dtype();
      PrimExpr extent = a->shape[d], zero = MakeZero(t), one = MakeConst(t, 1);
      PrimExpr from = item(begin, d, t), to = item(end, d, t), step = item(strides, d, t);
      if (!step.defined()) step = one;
      PrimExpr forward = step > zero;
      auto settled = [&](const PrimExpr& at) { return Select(at < zero, at + extent, at); };
      from = from.defined() ? settled(from) : Select(forward, zero, extent - one);
      to = to.defined() ? settled(to) : Select(forward, extent, neg(one));
      PrimExpr moved = i[d] - from;
      inside = inside && Select(forward, from <= i[d] && i[d] < to, i[d] <= from && to < i[d]) &&
               equal(floormod(moved, step), zero);
      source.push_back(max(min(floordiv(moved, step), v->shape[d] - one), zero));
    }
    return if_then_else(Simplified(inside), At(v, source), At(a, i));
  };
  return Compute(a->shape, element, "strided_set");
}

/// `input_tensor` with `src` along start:end:step of one axis.
Tensor SliceScatter(const Tensor& input_tensor, const Tensor& src, const PrimExpr& start,
                    const PrimExpr& end, const PrimExpr& step, int64_t axis) {
  size_t at = Axis("slice_scatter", axis, input_tensor->shape.size());
  const PrimExpr& extent = input_tensor->shape[at];
  auto stride = AsConstInt(step);
  if (!stride || *stride < 1)
    Complain("slice_scatter", "a step from 1", stride ? std::to_string(*stride) : "an expression");
  AxisRange range = RangeOf(extent, start, end, *stride, false);
  if (DifferentDim(src->shape[at], range.extent)) {
    Complain("slice_scatter", Text({range.extent}) + " elements along the axis", Text(src->shape));
  }
  if (IsZero(range.extent)) {
    return Compute(
        input_tensor->shape, [&](const Index& i) { return At(input_tensor, i); }, "slice_scatter");
  }
  auto element = [&](const Index& i) {
    PrimExpr moved = i[at] - range.begin;
    PrimExpr place = floordiv(moved, range.stride);
    Index source = i;
    source[at] = place;
    PrimExpr inside = range.begin <= i[at] && place < range.extent &&
                      equal(floormod(moved, range.stride), MakeZero(moved.dtype()));
    return if_then_else(Simplified(inside), At(src, source), At(input_tensor, i));
  };
  return Compute(input_tensor->shape, element, "slice_scatter");
}

TVM_REGISTER() {
  Def("topi.strided_slice", &strided_slice,
      "A range with steps along axes, as NumPy slices; slice_mode \"size\": end holds sizes.",
      Arg("a"), Arg("begin"), Arg("end"), Arg("strides", nullptr), Arg("axes", nullptr),
      Arg("slice_mode", "end"), Arg("assume_inbound", true));
  Def("topi.dynamic_strided_slice", &DynamicStridedSlice,
      "A range whose begin, end and strides are tensors.", Arg("a"), Arg("begin"), Arg("end"),
      Arg("strides"), Arg("output_shape"));
  Def("topi.shape_func_dynamic_strided_slice", &DynamicStridedSliceShape,
      "The shape of a range whose begin, end and strides are tensors.", Arg("a"), Arg("begin"),
      Arg("end"), Arg("strides"));
  Def("topi.strided_set", &StridedSet, "The tensor with other values in a range.", Arg("a"),
      Arg("v"), Arg("begin"), Arg("end"), Arg("strides", nullptr));
  Def("topi.slice_scatter", &SliceScatter, "The tensor with other values in a range of one axis.",
      Arg("input_tensor"), Arg("src"), Arg("start"), Arg("end"), Arg("step"), Arg("axis"));
}
}  // namespace
}  // namespace tvm::topi
