// SPDX-License-Identifier: Apache-2.0
// Images, boxes, and quantisation.
#include "window.h"

namespace tvm::relax {
namespace {

StructInfo InferResize2D(Infer& in) {
  const TensorStructInfoObj* data = in.Tensor(0);
  auto* attrs = in.attrs<Resize2DAttrsObj>();
  Shape size = in.ShapeOf(1);
  if (size.ndim >= 0 && size.ndim != 2)
    TVM_RAISE(in) << "expected a size of 2 numbers, got " << size.ndim;
  in.ExpectOneOf(attrs->method, {"nearest_neighbor", "linear", "cubic"}, "method");
  DataType dtype = attrs->out_dtype.is_void() ? data->dtype : attrs->out_dtype;
  auto x = Canonical(in, data, attrs->layout, "NCHW", "data");
  if (!size.known()) x = std::nullopt;
  for (size_t i = 0; x && i < 2; ++i) x->Set(2 + i, size[i]);
  return InLayout(in, x, "NCHW", attrs->layout, dtype);
}
/// One number for the size or the roi stands for all.
Expr FinishResize2D(Call call) {
  auto* attrs = static_cast<const Resize2DAttrsObj*>((*call->attrs).get());
  Floats roi = attrs->roi;
  if (roi.empty()) roi = Floats(4, FloatImm(DataType::Float(64), 0));
  if (roi.size() == 1) roi = Floats(4, roi[0]);
  Attrs complete =
      Resize2DAttrs(roi, attrs->layout, attrs->method, attrs->coordinate_transformation_mode,
                    attrs->rounding_method, attrs->cubic_alpha, attrs->cubic_exclude,
                    attrs->extrapolation_value, attrs->out_dtype);
  Expr size = call->args[1];
  if (auto* shape = size.as<ShapeExprObj>(); shape && shape->values.size() == 1)
    size = ShapeExpr({shape->values[0], shape->values[0]});
  return Call(call->op, {call->args[0], size}, complete);
}
StructInfo InferGridSample(Infer& in) {
  const TensorStructInfoObj *data = in.Tensor(0), *grid = in.Tensor(1);
  auto* attrs = in.attrs<GridSampleAttrsObj>();
  in.ExpectOneOf(attrs->method, {"nearest", "bilinear", "bicubic"}, "method");
  in.ExpectOneOf(attrs->padding_mode, {"zeros", "border", "reflection"}, "padding_mode");
  in.ExpectOneOf(attrs->layout, {"NCHW", "NCDHW"}, "layout");
  int64_t rank = std::string(attrs->layout).size();
  in.ExpectRank(data, rank, "data");
  in.ExpectRank(grid, rank, "grid");
  if (!DimsOf(data) || !DimsOf(grid)) return in.Result(Shape::Rank(rank), data->dtype);
  const Dims &x = *DimsOf(data), &g = *DimsOf(grid);
  in.ExpectSame(x[0], g[0], "the batches of data and grid");
  in.ExpectSame(
      g[rank - 1], Dim(rank - 2),
      rank == 4 ? "the last dimension of grid and 2" : "the last dimension of grid and 3");
  Dims dims = {x[0], x[1]};
  dims.insert(dims.end(), g.begin() + 1, g.end() - 1);
  return in.Result(dims, data->dtype);
}
StructInfo InferNMS(Infer& in) {
  const TensorStructInfoObj *boxes = in.Tensor(0), *scores = in.Tensor(1);
  const String& format = in.attrs<AllClassNonMaximumSuppressionAttrsObj>()->output_format;
  in.ExpectOneOf(format, {"onnx", "tensorflow"}, "output_format");
  in.ExpectRank(boxes, 3, "boxes");
  in.ExpectRank(scores, 3, "scores");
  const DataType index = DataType::Int(64);
  bool known = DimsOf(scores);
  const Dims s = known ? *DimsOf(scores) : Dims{};
  if (DimsOf(boxes)) {
    in.ExpectSame((*DimsOf(boxes))[2], Dim(4), "the last dimension of boxes and 4");
    if (known) {
      in.ExpectSame((*DimsOf(boxes))[0], s[0], "the batches of boxes and scores");
      in.ExpectSame((*DimsOf(boxes))[1], s[2], "the number of boxes and of scores");
    }
  }
  auto of = [&](Dims dims, int64_t ndim, DataType dtype) {
    return in.Result(known ? Shape(dims) : Shape::Rank(ndim), dtype);
  };
  if (format == "onnx") {
    return TupleStructInfo({of(known ? Dims{in.Product(s), Dim(3)} : Dims{}, 2, index),
                            in.Result(Dims{Dim(1)}, index)});
  }
  PrimExpr count = known ? in.Product(s, 1) : PrimExpr(nullptr);
  return TupleStructInfo({of(known ? Dims{s[0], count, Dim(2)} : Dims{}, 3, index),
                          of(known ? Dims{s[0], count} : Dims{}, 2, DataType::Float(32)),
                          of(known ? Dims{s[0]} : Dims{}, 1, index)});
}

// ---- quantisation -----------------------------------------------------------------------------
bool IsHalfOrSingle(DataType t) { return t == DataType::Float(16) || t == DataType::Float(32); }
bool IsQuantized(DataType t) {
  return (t.is_integer() && (t.bits() == 8 || t.bits() == 16)) ||
         t == DataType(kDLFloat8_e4m3fn, 8) || t == DataType(kDLFloat8_e5m2, 8);
}
void CheckType(Infer& in, DataType dtype, bool fits, const char* what, const char* expected) {
  if (!dtype.is_void() && !fits)
    TVM_RAISE_TYPE(in) << "expected " << what << " of type " << expected << ", got " << dtype;
}
StructInfo InferQuantize(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<QuantizeAttrsObj>();
  DataType from = x->dtype, to = attrs->out_dtype;
  if (in.info->op->name == "relax.quantize") {
    CheckType(in, from, IsHalfOrSingle(from), "data", "float16 or float32");
    CheckType(in, to, IsQuantized(to), "out_dtype", "(u)int8, (u)int16 or float8");
  } else {
    bool fits = IsQuantized(from) || from == DataType::Int(32) || IsHalfOrSingle(from);
    CheckType(in, from, fits, "data", "(u)int8, (u)int16, int32, float8, float16 or float32");
    CheckType(in, to, IsHalfOrSingle(to), "out_dtype", "float16 or float32");
  }
  DataType scale = in.Tensor(1)->dtype, zero = in.Tensor(2)->dtype;
  CheckType(in, scale, IsHalfOrSingle(scale), "scale", "float16 or float32");
  bool small = (zero.is_integer() && zero.bits() <= 32) || zero == DataType::Float(16);
  CheckType(in, zero, small, "zero_point", "an integer of at most 32 bits or float16");
  for (size_t i : {1, 2}) {
    const TensorStructInfoObj* p = in.Tensor(i);
    if (p->ndim > 1) {
      TVM_RAISE(in) << "expected " << in.info->Param(i) << " of at most 1 dimension, got "
                    << ShowShape(p);
    }
    if (p->ndim == 1 && x->ndim >= 0) {
      int64_t axis = in.Axis(attrs->axis, x->ndim);
      if (DimsOf(p) && DimsOf(x) && !IsOne((*DimsOf(p))[0]))
        in.ExpectSame((*DimsOf(p))[0], (*DimsOf(x))[axis],
                      "the length of the parameter and the axis");
    }
  }
  return in.WithType(0, to);
}

TVM_REGISTER() {
  Operator("relax.image.resize2d",
           "data: Tensor, size: Shape, roi=None, layout='NCHW', method='linear', "
           "coordinate_transformation_mode='half_pixel', rounding_method='round', "
           "cubic_alpha=-0.75, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None",
           &InferResize2D, "The image in another size.")
      .Attrs<Resize2DAttrsObj>()
      .Pattern(kInjective)
      .Precision(kFollow)
      .Finish(&FinishResize2D);
  Operator("relax.image.grid_sample",
           "data: Tensor, grid: Tensor, method='bilinear', layout='NCHW', padding_mode='zeros', "
           "align_corners=False",
           &InferGridSample, "The image at the points of the grid, which are in [-1, 1].")
      .Attrs<GridSampleAttrsObj>()
      .Pattern(kInjective)
      .Precision(kNever);
  Operator("relax.vision.all_class_non_max_suppression",
           "boxes: Tensor, scores: Tensor, max_output_boxes_per_class: Expr, iou_threshold: Expr, "
           "score_threshold: Expr, output_format='onnx'",
           &InferNMS, "The boxes of each class that no better box overlaps too much.")
      .Attrs<AllClassNonMaximumSuppressionAttrsObj>()
      .Pattern(kOpaque)
      .Precision(kNever);
  Operator("relax.quantize",
           "data: Tensor, scale: Tensor, zero_point: Tensor, axis=-1, out_dtype='int8'",
           &InferQuantize, "round(data / scale) + zero_point, saturated.")
      .Attrs<QuantizeAttrsObj>()
      .Pattern(kBroadcast)
      .Precision(kNever);
  Operator("relax.dequantize",
           "data: Tensor, scale: Tensor, zero_point: Tensor, axis=-1, out_dtype='float32'",
           &InferQuantize, "(data - zero_point) * scale")
      .Attrs<QuantizeAttrsObj>()
      .Pattern(kBroadcast)
      .Precision(kNever);
}

}  // namespace
}  // namespace tvm::relax
