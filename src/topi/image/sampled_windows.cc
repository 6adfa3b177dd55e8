// SPDX-License-Identifier: Apache-2.0
// Operators of networks that read images between their pixels: larger images, windows whose places
// are data.
#include "topi/image/sampling.h"

namespace tvm::topi::image {
using namespace tir;
namespace {
/// Resized by factors, as topi.image.resize2d and resize3d do.
Tensor Upsampled(const char* op, const char* resize, const Tensor& data, const Index& scales,
                 const String& layout, const String& method, const String& mode,
                 const Any& output_shape) {
  std::vector<size_t> axes = SpatialOf(op, layout, scales.size(), data);
  Array<Any> sizes;
  for (size_t k = 0; k < axes.size(); ++k) {
    const PrimExpr& extent = data->shape[axes[k]];
    DataType wide = DataType::Float(64);
    PrimExpr size = tvm::round(tvm::cast(wide, extent) * tvm::cast(wide, scales[k]));
    sizes.push_back(Simplified(tvm::cast(extent.dtype(), size)));
  }
  std::string how = method;
  if (how == "bilinear" || how == "trilinear") how = "linear";
  if (how == "bicubic") how = "cubic";
  return Function::GetGlobalRequired(resize)(data, nullptr, sizes, layout, String(how), mode, "",
                                             -0.75, 0, 0.0, nullptr, output_shape)
      .cast<Tensor>();
}
Tensor Upsampling(const Tensor& data, const PrimExpr& scale_h, const PrimExpr& scale_w,
                  String layout, String method, bool align_corners, const Any& output_shape) {
  return Upsampled("upsampling", "topi.image.resize2d", data, {scale_h, scale_w}, layout, method,
                   align_corners ? "align_corners" : "asymmetric", output_shape);
}
Tensor Upsampling3d(const Tensor& data, const PrimExpr& scale_d, const PrimExpr& scale_h,
                    const PrimExpr& scale_w, String layout, String method, String mode,
                    const Any& output_shape) {
  return Upsampled("upsampling3d", "topi.image.resize3d", data, {scale_d, scale_h, scale_w}, layout,
                   method, mode, output_shape);
}

/// A convolution whose taps are moved by data: offset is (N, groups · H · W · 2, …), y first.
Tensor DeformableConv(const Tensor& data, const Tensor& offset, const Tensor& kernel,
                      const Any& strides, const Any& padding, const Any& dilation,
                      int64_t deformable_groups, int64_t groups, Optional<DataType> out_dtype,
                      bool channels_last) {
  constexpr const char* kOp = "deformable_conv2d";
  for (const Tensor& t : {data, offset, kernel}) CheckRank(kOp, "data, offsets and kernels", t, 4);
  size_t c = channels_last ? 3 : 1, y = channels_last ? 1 : 2, x = y + 1;
  size_t ko = channels_last ? 3 : 0, ki = channels_last ? 2 : 1, ky = channels_last ? 0 : 2;
  Index step = Exprs(kOp, "strides", strides, 2), spread = Exprs(kOp, "dilation", dilation, 2);
  bool both = padding.as<Array<Any>>() && padding.as<Array<Any>>()->size() == 4;
  Index pads = Exprs(kOp, "padding", padding, both ? 4 : 2);
  const PrimExpr &inputs = kernel->shape[ki], &outputs = kernel->shape[ko];
  Shape shape = data->shape;
  shape.Set(c, outputs);
  shape.Set(y, offset->shape[y]);
  shape.Set(x, offset->shape[x]);
  IterVar rc = Along(inputs, "rc"), ry = Along(kernel->shape[ky], "ry"),
          rx = Along(kernel->shape[ky + 1], "rx");
  DataType index = data->shape[c].dtype(), f = DataType::Float(32);
  PrimExpr per_group = Simplified(floordiv(data->shape[c], MakeConst(index, deformable_groups)));
  auto element = [&](const Index& i) {
    PrimExpr group = floordiv(i[c], Simplified(floordiv(outputs, MakeConst(index, groups))));
    PrimExpr channel = group * inputs + rc->var;
    PrimExpr tap =
        (floordiv(channel, per_group) * kernel->shape[ky] + ry->var) * kernel->shape[ky + 1] +
        rx->var;
    Sampler sampler;
    sampler.zeros = true;
    for (size_t k = 0; k < 2; ++k) {
      Index place = i;
      place[c] = tap * MakeConst(index, 2) + MakeConst(index, static_cast<int64_t>(k));
      size_t axis = k == 0 ? y : x;
      const Var& r = k == 0 ? ry->var : rx->var;
      PrimExpr base = i[axis] * step[k] + r * spread[k] - pads[k];
      PrimExpr at = tvm::cast(f, base) + tvm::cast(f, At(offset, place));
      sampler.axes.push_back({data->shape[axis], at, at, PrimExpr(), nullptr});
    }
    PrimExpr value = sampler.Sample([&](const Index& place) {
      Index source = i;
      source[c] = channel;
      source[y] = place[0];
      source[x] = place[1];
      return At(data, source);
    });
    Index weight(4);
    weight[ko] = i[c];
    weight[ki] = rc->var;
    weight[ky] = ry->var;
    weight[ky + 1] = rx->var;
    DataType t = out_dtype ? out_dtype.value() : data->dtype;
    return te::sum(tvm::cast(t, value) * tvm::cast(t, At(kernel, weight)), {rc, ry, rx});
  };
  return Compute(shape, element,
                 channels_last ? "deformable_conv2d_nhwc" : "deformable_conv2d_nchw", kCommReduce);
}
template <bool kChannelsLast>
Tensor DeformableConvOf(const Tensor& data, const Tensor& offset, const Tensor& kernel,
                        const Any& strides, const Any& padding, const Any& dilation,
                        int64_t deformable_groups, int64_t groups, Optional<DataType> out_dtype) {
  return DeformableConv(data, offset, kernel, strides, padding, dilation, deformable_groups, groups,
                        out_dtype, kChannelsLast);
}

TVM_REGISTER() {
  Def("topi.nn.upsampling", &Upsampling, "An image made larger by factors.", Arg("data"),
      Arg("scale_h"), Arg("scale_w"), Arg("layout", "NCHW"), Arg("method", "nearest_neighbor"),
      Arg("align_corners", false), Arg("output_shape", nullptr));
  Def("topi.nn.upsampling3d", &Upsampling3d, "A volume made larger by factors.", Arg("data"),
      Arg("scale_d"), Arg("scale_h"), Arg("scale_w"), Arg("layout", "NCDHW"),
      Arg("method", "nearest_neighbor"), Arg("coordinate_transformation_mode", "half_pixel"),
      Arg("output_shape", nullptr));
  constexpr const char* kDoc = "A convolution whose taps are moved by offsets.";
  Def("topi.nn.deformable_conv2d_nchw", &DeformableConvOf<false>, kDoc, Arg("data"), Arg("offset"),
      Arg("kernel"), Arg("strides"), Arg("padding"), Arg("dilation"), Arg("deformable_groups"),
      Arg("groups"), Arg("out_dtype"));
  Def("topi.nn.deformable_conv2d_nhwc", &DeformableConvOf<true>, kDoc, Arg("data"), Arg("offset"),
      Arg("kernel"), Arg("strides"), Arg("padding"), Arg("dilation"), Arg("deformable_groups"),
      Arg("groups"), Arg("out_dtype"));
}
}  // namespace
}  // namespace tvm::topi::image
