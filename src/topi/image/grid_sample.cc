// SPDX-License-Identifier: Apache-2.0
// Images read at the places of a grid.
#include "topi/image/sampling.h"

namespace tvm::topi::image {
using namespace tir;
namespace {
DataType GridType() { return DataType::Float(32); }

/// A coordinate in [-1, 1] as a place in pixels.
PrimExpr Unnormalized(const PrimExpr& x, const PrimExpr& size, bool align_corners) {
  PrimExpr n = tvm::cast(GridType(), size), one = MakeConst(GridType(), 1),
           half = MakeConst(GridType(), 0.5);
  if (align_corners) return (x + one) * half * (n - one);
  return ((x + one) * n - one) * half;
}
/// A place reflected until it is between the borders.
PrimExpr Reflected(const PrimExpr& x, const PrimExpr& size, bool align_corners) {
  PrimExpr n = tvm::cast(GridType(), size), zero = MakeZero(GridType()),
           one = MakeConst(GridType(), 1), half = MakeConst(GridType(), 0.5),
           two = MakeConst(GridType(), 2);
  PrimExpr low = align_corners ? zero : neg(half), span = align_corners ? n - one : n;
  PrimExpr distance = tvm::abs(x - low);
  PrimExpr rest = fmod(distance, tvm::max(span, one)),
           turns = tvm::floor(div(distance, tvm::max(span, one)));
  PrimExpr even = equal(turns - two * tvm::floor(div(turns, two)), zero);
  PrimExpr back = Select(even, rest + low, span - rest + low);
  PrimExpr inside = tvm::max(tvm::min(back, n - one), zero);
  return align_corners ? Select(span <= zero, zero, inside) : inside;
}
Tensor GridSample(const Tensor& data, const Tensor& grid, String method, String layout,
                  String padding_mode, bool align_corners) {
  constexpr const char* kOp = "grid_sample";
  if (data->shape.size() < 4) Complain(kOp, "data with at least 4 dimensions", Text(data->shape));
  size_t dims = data->shape.size() - 2;
  std::vector<size_t> axes = SpatialOf(kOp, layout, dims, data);
  CheckRank(kOp, "a grid", grid, dims + 2);
  Method how = method == "nearest"    ? Method::kNearest
               : method == "bilinear" ? Method::kLinear
               : method == "bicubic"  ? Method::kCubic
                                      : static_cast<Method>(-1);
  if (how == static_cast<Method>(-1) || (how == Method::kCubic && dims != 2))
    Complain(kOp, "method \"nearest\", \"bilinear\" or, for images, \"bicubic\"",
             '"' + std::string(method) + '"');
  bool zeros = padding_mode == "zeros", reflects = padding_mode == "reflection";
  if (!zeros && !reflects && padding_mode != "border")
    Complain(kOp, "padding_mode \"zeros\", \"border\" or \"reflection\"",
             '"' + std::string(padding_mode) + '"');
  size_t batch = std::string(layout).find('N');
  Shape shape = data->shape;
  for (size_t k = 0; k < dims; ++k) shape.Set(axes[k], grid->shape[2 + k]);
  auto element = [&](const Index& i) {
    Sampler sampler;
    sampler.method = how;
    sampler.zeros = zeros;
    for (size_t k = 0; k < dims; ++k) {
      // The grid's coordinates are x first, the axes of the image y first.
      Index place = {i[batch], PrimExpr(static_cast<int64_t>(dims - 1 - k))};
      for (size_t axis : axes) place.push_back(i[axis]);
      const PrimExpr& size = data->shape[axes[k]];
      PrimExpr at = Unnormalized(tvm::cast(GridType(), At(grid, place)), size, align_corners);
      if (how != Method::kCubic && reflects) at = Reflected(at, size, align_corners);
      if (how != Method::kCubic && padding_mode == "border") {
        PrimExpr last = tvm::cast(GridType(), size) - MakeConst(GridType(), 1);
        at = tvm::max(tvm::min(at, last), MakeZero(GridType()));
      }
      sampler.axes.push_back({size, at, tvm::round(at), PrimExpr(), nullptr});
      if (how == Method::kCubic && reflects) {
        sampler.axes.back().bring = [=](const PrimExpr& tap) {
          PrimExpr reflected = Reflected(tvm::cast(GridType(), tap), size, align_corners);
          return tvm::cast(tap.dtype(), reflected);
        };
      }
    }
    PrimExpr value = sampler.Sample([&](const Index& place) {
      Index source = i;
      for (size_t k = 0; k < dims; ++k) source[axes[k]] = place[k];
      return At(data, source);
    });
    return tvm::cast(data->dtype, value);
  };
  return Compute(shape, element, "grid_sample");
}
/// The grid that an affine map makes of evenly spread places: (N, 2, H, W).
Tensor AffineGrid(const Tensor& data, const Any& target_shape) {
  constexpr const char* kOp = "affine_grid";
  CheckRank(kOp, "maps", data, 3);
  Index sizes = Exprs(kOp, "target_shape", target_shape, 2);
  auto spread = [&](const PrimExpr& at, const PrimExpr& size) {
    PrimExpr one = MakeConst(GridType(), 1), n = tvm::cast(GridType(), size);
    if (IsOne(size)) return neg(one);
    return neg(one) + tvm::cast(GridType(), at) * div(MakeConst(GridType(), 2), n - one);
  };
  auto element = [&](const Index& i) {
    PrimExpr y = spread(i[2], sizes[0]), x = spread(i[3], sizes[1]);
    auto entry = [&](int64_t k) { return tvm::cast(GridType(), data(i[0], i[1], PrimExpr(k))); };
    return tvm::cast(data->dtype, entry(0) * x + entry(1) * y + entry(2));
  };
  return Compute({data->shape[0], PrimExpr(2), sizes[0], sizes[1]}, element, "affine_grid");
}

TVM_REGISTER() {
  Def("topi.image.grid_sample", &GridSample,
      "The values of images at the places of a grid (N, 2, H, W), x first, from -1 to 1.",
      Arg("data"), Arg("grid"), Arg("method", "bilinear"), Arg("layout", "NCHW"),
      Arg("padding_mode", "zeros"), Arg("align_corners", true));
  Def("topi.image.affine_grid", &AffineGrid, "The grid that an affine map makes.", Arg("data"),
      Arg("target_shape"));
}
}  // namespace
}  // namespace tvm::topi::image
