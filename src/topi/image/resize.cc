// SPDX-License-Identifier: Apache-2.0
// Resizing along spatial axes, and cutting boxes out of images.
#include <cmath>

#include "topi/image/sampling.h"

namespace tvm::topi::image {
using namespace tir;
namespace {
DataType F32() { return DataType::Float(32); }
PrimExpr Float(double value) { return MakeConst(F32(), value); }

/// How output places map to the input.
struct Coordinates {
  std::string mode, rounding;
  /// The place in the input for place `x` of an axis; `start` and `end` of the region are
  /// fractions.
  PrimExpr Source(const PrimExpr& x, const PrimExpr& in, const PrimExpr& out, const PrimExpr& start,
                  const PrimExpr& end) const {
    PrimExpr at = tvm::cast(F32(), x), one = Float(1), half = Float(0.5);
    PrimExpr size = tvm::cast(F32(), in), target = tvm::cast(F32(), out);
    PrimExpr scale = div(size, target), last = size - one;
    bool single = IsOne(out);
    auto ends = [&](const PrimExpr& range) { return div(range, tvm::max(target - one, one)); };
    if (mode == "half_pixel") return scale * (at + half) - half;
    if (mode == "align_corners") return single ? Float(0) : ends(last) * at;
    if (mode == "asymmetric") return scale * at;
    if (mode == "pytorch_half_pixel") {
      PrimExpr middle = scale * (at + half) - half;
      return Select(out > MakeConst(out.dtype(), 1), middle, Float(0));
    }
    if (mode == "tf_half_pixel_for_nn") return scale * (at + half);
    if (mode == "tf_crop_and_resize") {
      if (single) return half * (start + end) * last;
      return start * last + at * ends((end - start) * last);
    }
    Complain("resize",
             "coordinate_transformation_mode \"half_pixel\", \"align_corners\", \"asymmetric\", "
             "\"pytorch_half_pixel\", \"tf_half_pixel_for_nn\" or \"tf_crop_and_resize\"",
             '"' + mode + '"');
  }
  PrimExpr Nearest(const PrimExpr& at) const {
    // Products of whole numbers may fall a little short of one.
    constexpr double kSlack = 1e-5;
    std::string how = rounding;
    if (how.empty()) how = mode == "align_corners" ? "round" : "floor";
    if (how == "round") return tvm::round(at);
    if (how == "round_prefer_floor") return tvm::ceil(at - Float(0.5));
    if (how == "round_prefer_ceil") return tvm::floor(at + Float(0.5));
    if (how == "floor") return tvm::floor(at + Float(kSlack));
    if (how == "ceil") return tvm::ceil(at - Float(kSlack));
    Complain("resize",
             "rounding_method \"round\", \"round_prefer_floor\", \"round_prefer_ceil\", "
             "\"floor\" or \"ceil\"",
             '"' + how + '"');
  }
  /// The nearest place by whole numbers alone, where sizes divide; undefined elsewhere.
  PrimExpr WholeNearest(const PrimExpr& x, const PrimExpr& in, const PrimExpr& out) const {
    bool down = rounding == "floor" || rounding.empty();
    auto from = AsConstInt(in), to = AsConstInt(out);
    if (mode != "asymmetric" || !down || !from || !to || *from == 0 || *to == 0) return PrimExpr();
    if (*to % *from == 0) return floordiv(x, MakeConst(x.dtype(), *to / *from));
    if (*from % *to == 0) return x * MakeConst(x.dtype(), *from / *to);
    return PrimExpr();
  }
};

struct ResizeOptions {
  String layout, method, mode, rounding;
  double cubic_alpha;
  bool cubic_exclude;
  double extrapolation_value;
  Optional<DataType> out_dtype;
};
Method MethodOf(const char* op, const String& name) {
  if (name == "nearest_neighbor" || name == "nearest") return Method::kNearest;
  if (name == "linear" || name == "bilinear") return Method::kLinear;
  if (name == "cubic" || name == "bicubic") return Method::kCubic;
  Complain(op, "method \"nearest_neighbor\", \"linear\" or \"cubic\"",
           '"' + std::string(name) + '"');
}

Tensor Resize(const char* op, size_t dims, const Tensor& data, const Any& roi, const Any& size,
              const ResizeOptions& options, const Any& output_shape) {
  std::vector<size_t> axes = SpatialOf(op, options.layout, dims, data);
  Index sizes = Exprs(op, "size", size, dims);
  Shape shape = data->shape;
  for (size_t k = 0; k < dims; ++k)
    shape.Set(axes[k], tvm::cast(data->shape[axes[k]].dtype(), sizes[k]));
  if (output_shape != nullptr) shape = ShapeOf(op, output_shape);
  Method method = MethodOf(op, options.method);
  Coordinates coordinates{options.mode, options.rounding};
  bool crops = options.mode == "tf_crop_and_resize";
  Index regions;
  if (roi != nullptr) {
    auto list = roi.as<Array<Any>>();
    if (auto tensor = roi.as<Tensor>()) {
      for (size_t k = 0; k < 2 * dims; ++k)
        regions.push_back(tvm::cast(F32(), (*tensor)(PrimExpr(static_cast<int64_t>(k)))));
    } else if (list && !list->empty()) {
      for (const PrimExpr& e : Exprs(op, "roi", roi, 2 * dims))
        regions.push_back(tvm::cast(F32(), e));
    }
  }
  if (crops && regions.empty()) Complain(op, "roi for \"tf_crop_and_resize\"", "none");
  auto element = [&](const Index& i) {
    Sampler sampler;
    sampler.method = method;
    sampler.alpha = options.cubic_alpha;
    sampler.exclude = options.cubic_exclude;
    PrimExpr inside = const_true();
    for (size_t k = 0; k < dims; ++k) {
      const PrimExpr &in = data->shape[axes[k]], &out = shape[axes[k]], &x = i[axes[k]];
      PrimExpr start = crops ? regions[k] : Float(0), end = crops ? regions[dims + k] : Float(1);
      PrimExpr at = coordinates.Source(x, in, out, start, end);
      if (crops) {
        inside = inside && Float(0) <= at && at <= tvm::cast(F32(), in - MakeConst(in.dtype(), 1));
      }
      PrimExpr nearest = method == Method::kNearest ? coordinates.Nearest(at) : at;
      sampler.axes.push_back({in, at, nearest, coordinates.WholeNearest(x, in, out), nullptr});
    }
    PrimExpr value = sampler.Sample([&](const Index& place) {
      Index source = i;
      for (size_t k = 0; k < dims; ++k) source[axes[k]] = place[k];
      return At(data, source);
    });
    if (crops) {
      value =
          tvm::if_then_else(inside, value, MakeConst(value.dtype(), options.extrapolation_value));
    }
    return tvm::cast(options.out_dtype ? options.out_dtype.value() : data->dtype, value);
  };
  return Compute(shape, element, "resize");
}
template <size_t kDims>
Tensor ResizeOf(const Tensor& data, const Any& roi, const Any& size, String layout, String method,
                String mode, String rounding, double cubic_alpha, int64_t cubic_exclude,
                double extrapolation_value, Optional<DataType> out_dtype, const Any& output_shape) {
  if (out_dtype && out_dtype.value().is_void()) out_dtype = std::nullopt;
  constexpr const char* kNames[] = {"", "resize1d", "resize2d", "resize3d"};
  return Resize(kNames[kDims], kDims, data, roi, size,
                {layout, method, mode, rounding, cubic_alpha, cubic_exclude != 0,
                 extrapolation_value, out_dtype},
                output_shape);
}

/// Boxes (y1, x1, y2, x2) as fractions of images, each resized to one size.
Tensor CropAndResize(const Tensor& data, const Tensor& boxes, const Tensor& box_indices,
                     const Any& crop_size, String layout, String method,
                     Optional<double> extrapolation_value, Optional<DataType> out_dtype) {
  constexpr const char* kOp = "crop_and_resize";
  std::vector<size_t> axes = SpatialOf(kOp, layout, 2, data);
  CheckRank(kOp, "boxes", boxes, 2);
  CheckRank(kOp, "indices of images", box_indices, 1);
  Index sizes = Exprs(kOp, "crop_size", crop_size, 2);
  size_t batch = std::string(layout).find('N');
  Shape shape = data->shape;
  shape.Set(batch, boxes->shape[0]);
  for (size_t k = 0; k < 2; ++k)
    shape.Set(axes[k], tvm::cast(data->shape[axes[k]].dtype(), sizes[k]));
  Coordinates coordinates{"tf_crop_and_resize", "round"};
  Method how = MethodOf(kOp, method);
  auto element = [&](const Index& i) {
    const PrimExpr& box = i[batch];
    auto corner = [&](int64_t k) { return tvm::cast(F32(), boxes(box, PrimExpr(k))); };
    Sampler sampler;
    sampler.method = how;
    PrimExpr inside = const_true();
    for (size_t k = 0; k < 2; ++k) {
      const PrimExpr& in = data->shape[axes[k]];
      auto first = static_cast<int64_t>(k);
      PrimExpr at =
          coordinates.Source(i[axes[k]], in, shape[axes[k]], corner(first), corner(first + 2));
      inside = inside && Float(0) <= at && at <= tvm::cast(F32(), in - MakeConst(in.dtype(), 1));
      PrimExpr nearest = how == Method::kNearest ? coordinates.Nearest(at) : at;
      sampler.axes.push_back({in, at, nearest, PrimExpr(), nullptr});
    }
    PrimExpr value = sampler.Sample([&](const Index& place) {
      Index source = i;
      source[batch] = box_indices(box);
      for (size_t k = 0; k < 2; ++k) source[axes[k]] = place[k];
      return At(data, source);
    });
    double outside = extrapolation_value ? extrapolation_value.value() : 0.0;
    value = tvm::if_then_else(inside, value, MakeConst(value.dtype(), outside));
    return AsType(out_dtype, value);
  };
  return Compute(shape, element, "crop_and_resize");
}
/// The most that an image reaches over a kernel that is added to it: grey dilation.
Tensor Dilation2d(const char* op, const Tensor& input, const Tensor& filter, const Any& stride,
                  const Any& padding, const Any& dilations, Optional<DataType> out_dtype,
                  const char* layout) {
  std::vector<size_t> axes = SpatialOf(op, layout, 2, input);
  CheckRank(op, "a kernel", filter, 3);
  bool first = layout[1] == 'C';
  size_t channel = first ? 1 : 3, rows = first ? 1 : 0, columns = rows + 1;
  Index strides = Exprs(op, "stride", stride, 2), spread = Exprs(op, "dilations", dilations, 2);
  Index pads = Exprs(op, "padding", padding,
                     padding.as<Array<Any>>() && padding.as<Array<Any>>()->size() == 4 ? 4 : 2);
  if (pads.size() == 2) pads.insert(pads.end(), {pads[0], pads[1]});
  Shape shape = input->shape;
  Array<IterVar> iters;
  for (size_t k = 0; k < 2; ++k) {
    const PrimExpr &in = input->shape[axes[k]], &window = filter->shape[k == 0 ? rows : columns];
    PrimExpr one = MakeConst(in.dtype(), 1), span = (window - one) * spread[k] + one;
    shape.Set(axes[k], Simplified(floordiv(in + pads[k] + pads[2 + k] - span, strides[k]) + one));
    iters.push_back(Along(window, k == 0 ? "ry" : "rx"));
  }
  DataType t = out_dtype ? out_dtype.value() : input->dtype;
  auto element = [&](const Index& i) {
    Index source = i;
    PrimExpr inside = const_true();
    for (size_t k = 0; k < 2; ++k) {
      PrimExpr at = i[axes[k]] * strides[k] + iters[k]->var * spread[k] - pads[k];
      inside = inside && MakeZero(at.dtype()) <= at && at < input->shape[axes[k]];
      source[axes[k]] = at;
    }
    PrimExpr weight = first ? filter(i[channel], iters[0]->var, iters[1]->var)
                            : filter(iters[0]->var, iters[1]->var, i[channel]);
    PrimExpr sum = tvm::cast(t, At(input, source)) + tvm::cast(t, weight);
    return te::max(if_then_else(inside, sum, min_value(t)), iters);
  };
  return Compute(shape, element, op, kCommReduce);
}

TVM_REGISTER() {
  constexpr const char* kDoc = "The tensor with other sizes of its spatial axes.";
#define RESIZE(name, fn, layout)                                                          \
  Def(name, fn, kDoc, Arg("data"), Arg("roi"), Arg("size"), Arg("layout", layout),        \
      Arg("method", "linear"), Arg("coordinate_transformation_mode", "half_pixel"),       \
      Arg("rounding_method", ""), Arg("bicubic_alpha", -0.75), Arg("bicubic_exclude", 0), \
      Arg("extrapolation_value", 0.0), Arg("out_dtype", nullptr), Arg("output_shape", nullptr));
  RESIZE("topi.image.resize1d", &ResizeOf<1>, "NCW")
  RESIZE("topi.image.resize2d", &ResizeOf<2>, "NCHW")
  RESIZE("topi.image.resize3d", &ResizeOf<3>, "NCDHW")
#undef RESIZE
  Def("topi.image.crop_and_resize", &CropAndResize, "Boxes of images, resized to one size.",
      Arg("data"), Arg("boxes"), Arg("box_indices"), Arg("crop_size"), Arg("layout", "NCHW"),
      Arg("method", "bilinear"), Arg("extrapolation_value", nullptr), Arg("out_dtype", nullptr));
  Def(
      "topi.image.dilation2d_nchw",
      [](Tensor input, Tensor filter, Any stride, Any padding, Any dilations,
         Optional<DataType> out_dtype) {
        return Dilation2d("dilation2d_nchw", input, filter, stride, padding, dilations, out_dtype,
                          "NCHW");
      },
      "The maxima of an image with a kernel added.", Arg("input"), Arg("filter"), Arg("stride"),
      Arg("padding"), Arg("dilations"), Arg("out_dtype", nullptr));
  Def(
      "topi.image.dilation2d_nhwc",
      [](Tensor input, Tensor filter, Any stride, Any padding, Any dilations,
         Optional<DataType> out_dtype) {
        return Dilation2d("dilation2d_nhwc", input, filter, stride, padding, dilations, out_dtype,
                          "NHWC");
      },
      "The maxima of an image with a kernel added.", Arg("input"), Arg("filter"), Arg("stride"),
      Arg("padding"), Arg("dilations"), Arg("out_dtype", nullptr));
}
}  // namespace
}  // namespace tvm::topi::image
