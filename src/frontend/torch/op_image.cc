// SPDX-License-Identifier: Apache-2.0
// Images in other sizes and at other points.
#include <cmath>

#include "network.h"

namespace tvm::frontend::torch {
namespace {

/// The sizes of the result: given, or from factors.
Dims TargetSize(Conversion& c, const Dims& from, const Any& size, const Any& factors) {
  Dims result;
  if (size != nullptr) {
    auto list = ListOf(size);
    if (!list) return {AsSize(size), AsSize(size)};
    for (const Any& item : *list) result.push_back(AsSize(item));
    return result;
  }
  auto list = ListOf(factors);
  for (size_t i = 0; i < from.size(); ++i) {
    Any factor = list ? (*list)[i] : factors;
    auto known = AsConstInt(from[i]);
    double f = factor.cast<double>();
    if (known) {
      result.push_back(IntImm::Int64(static_cast<int64_t>(static_cast<double>(*known) * f)));
    } else if (f == std::floor(f)) {
      result.push_back(c.Simplify(from[i] * IntImm::Int64(static_cast<int64_t>(f))));
    } else {
      PrimExpr scaled = cast(DataType::Float(64), from[i]) * FloatImm(DataType::Float(64), f);
      result.push_back(cast(DataType::Int(64), floor(scaled)));
    }
  }
  return result;
}
/// Whether factors do not give whole sizes: then they map points by themselves, not by the sizes.
bool HasOddFactors(const Dims& from, const Dims& to, const Any& factors) {
  auto list = ListOf(factors);
  if (!list) return false;
  for (size_t i = 0; i < (*list).size() && i < from.size(); ++i) {
    if ((*list)[i] == nullptr) continue;
    auto a = AsConstInt(from[i]), b = AsConstInt(to[i]);
    double f = (*list)[i].cast<double>();
    if (a && b && static_cast<double>(*a) * f != static_cast<double>(*b)) return true;
  }
  return false;
}
Expr Resize(Conversion& c, const Expr& x, const Dims& size, const char* method,
            const char* coordinates, const char* rounding, const char* layout = "NCHW") {
  return c.Emit("image.resize2d", x, ShapeExpr(size), nullptr, String(layout), String(method),
                String(coordinates), String(rounding));
}
/// c.op is the method; schema: input, output_size, align_corners, scale_factors.
Any UpsampleSmooth(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), from(dims.begin() + 2, dims.end());
  Dims size = TargetSize(c, from, c[1], c[3]);
  if (!c.Flag(2) && HasOddFactors(from, size, c[3])) return Resampled(c, x, size, c.op, c[3]);
  return Resize(c, x, size, c.op, c.Flag(2) ? "align_corners" : "half_pixel", "round");
}
Any UpsampleNearest(Conversion& c) {
  Expr x = c.Tensor(0);
  Dims dims = ShapeOf(x), from(dims.begin() + 2, dims.end());
  Dims size = TargetSize(c, from, c[1], c[2]);
  if (HasOddFactors(from, size, c[2])) return Resampled(c, x, size, "nearest", c[2]);
  // The pixel whose area holds the corner of the new one.
  return Resize(c, x, size, "nearest_neighbor", "asymmetric", "floor");
}
Any FxInterpolate(Conversion& c) {
  Expr x = c.Tensor(0);
  if (c.Flag(5)) TVM_REFUSE(c, AssertionError) << "recompute_scale_factor: expected None";
  if (c.Flag(6)) TVM_REFUSE(c, AssertionError) << "antialias: expected False";
  std::string layout = c.Text(7), mode = c.Text(3);
  Dims dims = ShapeOf(x);
  size_t first = layout == "NCHW" ? 2 : 1;
  Dims size = TargetSize(c, {dims[first], dims[first + 1]}, c[1], c[2]);
  if (mode.rfind("nearest", 0) == 0) {
    return Resize(c, x, size, "nearest_neighbor", "asymmetric", "floor", layout.c_str());
  }
  const char* method = mode == "bilinear" ? "linear" : mode == "bicubic" ? "cubic" : mode.c_str();
  const char* coordinates = c.Flag(4) ? "align_corners" : "half_pixel";
  return Resize(c, x, size, method, coordinates, "round", layout.c_str());
}
Any GridSample(Conversion& c) {
  static constexpr const char* kMethods[] = {"bilinear", "nearest", "bicubic"};
  static constexpr const char* kPadding[] = {"zeros", "border", "reflection"};
  int64_t method = c.Int(2), padding = c.Int(3);
  if (method < 0 || method > 2 || padding < 0 || padding > 2) {
    TVM_REFUSE(c, ValueError) << "expected modes 0 to 2, got " << method << " and " << padding;
  }
  return c.Emit("image.grid_sample", c.Tensor(0), c.Tensor(1), String(kMethods[method]),
                String("NCHW"), String(kPadding[padding]), c.Flag(4));
}

TVM_REGISTER() {
  const char* smooth = "input, output_size, align_corners, scale_factors";
  Converter("upsample_bilinear2d.vec", smooth, &UpsampleSmooth, "linear");
  Converter("upsample_bicubic2d.vec", smooth, &UpsampleSmooth, "cubic");
  Converter("upsample_nearest2d.vec", "input, output_size, scale_factors", &UpsampleNearest);
  Converter("grid_sampler_2d.default grid_sampler.default",
            "input, grid, interpolation_mode, padding_mode, align_corners", &GridSample);
  Converter("fx.interpolate",
            "input, size=None, scale_factor=None, mode='nearest', align_corners=None, "
            "recompute_scale_factor=None, antialias=False, layout='NCHW'",
            &FxInterpolate);
}

}  // namespace
}  // namespace tvm::frontend::torch
