// SPDX-License-Identifier: Apache-2.0
// Gradients of images sampled at the points of a grid.
#include <cmath>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {
namespace {

enum GridMethod { kBilinear, kNearest, kBicubic };
enum GridPadding { kZeros, kBorder, kReflection };

/// How one axis of a grid is read.
struct GridAxis {
  int64_t size;
  GridMethod method;
  GridPadding padding;
  bool align_corners;
};
/// A value and its derivative.
struct Slope {
  PrimExpr value, slope;
};
PrimExpr Real(const PrimExpr& like, double value) { return MakeConst(like.dtype(), value); }

/// The place in pixels of a coordinate in [-1, 1].
Slope PlaceOf(const GridAxis& axis, const PrimExpr& g) {
  auto n = static_cast<double>(axis.size);
  double factor = (axis.align_corners ? n - 1 : n) / 2, shift = axis.align_corners ? 0 : -0.5;
  return {(g + Real(g, 1)) * Real(g, factor) + Real(g, shift), Real(g, factor)};
}
/// The place inside of the image that stands for x: the nearest one, or its mirror image.
Slope Inside(const GridAxis& axis, const Slope& x) {
  if (axis.padding == kZeros) return x;
  Slope in = x;
  PrimExpr zero = Real(x.value, 0);
  auto last = static_cast<double>(axis.size - 1);
  if (axis.padding == kReflection) {
    double low = axis.align_corners ? 0 : -0.5, span = axis.align_corners ? last : last + 1;
    if (span == 0) return {zero, zero};
    PrimExpr from = x.value - Real(zero, low), away = abs(from), width = Real(zero, span);
    PrimExpr turns = floor(div(away, width)), rest = away - turns * width;
    PrimExpr is_even = equal(turns - Real(zero, 2) * floor(turns * Real(zero, 0.5)), zero);
    PrimExpr sign = tir::Select(from < zero, Real(zero, -1), Real(zero, 1)) * x.slope;
    in = {tir::Select(is_even, rest, width - rest) + Real(zero, low),
          tir::Select(is_even, sign, zero - sign)};
  }
  PrimExpr is_free = in.value > zero && in.value < Real(zero, last);
  return {max(min(in.value, Real(zero, last)), zero), tir::Select(is_free, in.slope, zero)};
}
/// Keys' cubic and its derivative, at a distance between 0 and 2.
Slope CubicAt(const PrimExpr& x, bool is_near) {
  auto k = [&](double value) { return Real(x, value); };
  constexpr double a = -0.75;
  if (is_near) {
    return {(k(a + 2) * x - k(a + 3)) * x * x + k(1), (k(3 * (a + 2)) * x - k(2 * (a + 3))) * x};
  }
  return {((k(a) * x - k(5 * a)) * x + k(8 * a)) * x - k(4 * a),
          (k(3 * a) * x - k(10 * a)) * x + k(8 * a)};
}
/// The pixel number `tap` that has a part in a sample: its place and its weight.
struct TapAt {
  PrimExpr place;
  Slope weight;
};
TapAt TapOf(const GridAxis& axis, const PrimExpr& g, int tap) {
  Slope x = PlaceOf(axis, g);
  PrimExpr one = Real(g, 1), zero = Real(g, 0);
  if (axis.method == kBicubic) {
    PrimExpr low = floor(x.value), part = x.value - low;
    Slope place = Inside(axis, {low + Real(g, tap - 1), one});
    bool is_left = tap < 2;
    PrimExpr distance = is_left ? part + Real(g, 1 - tap) : Real(g, tap - 1) - part;
    Slope cubic = CubicAt(distance, tap == 1 || tap == 2);
    return {place.value, {cubic.value, cubic.slope * x.slope * (is_left ? one : zero - one)}};
  }
  x = Inside(axis, x);
  if (axis.method == kNearest) return {nearbyint(x.value), {one, zero}};
  PrimExpr low = floor(x.value), part = x.value - low;
  if (tap == 0) return {low, {one - part, zero - x.slope}};
  return {low + one, {part, x.slope}};
}

/// A tap for all points of the grid.
struct Tap {
  Expr place, weight, slope;
};
std::vector<Tap> TapsOf(Conversion& c, const Expr& grid, const GridAxis& axis) {
  int count = axis.method == kBicubic ? 4 : axis.method == kBilinear ? 2 : 1;
  std::vector<Tap> taps;
  for (int tap = 0; tap < count; ++tap) {
    using Value = std::function<PrimExpr(const TapAt&, const PrimExpr& is_inside)>;
    auto kernel = [&](const char* name, const Value& value) {
      return Elementwise(c, name, {grid}, [&](const std::vector<PrimExpr>& in) {
        TapAt at = TapOf(axis, in[0], tap);
        PrimExpr last = Real(in[0], static_cast<double>(axis.size - 1));
        return value(at, at.place >= Real(in[0], 0) && at.place <= last);
      });
    };
    auto inside = [](const PrimExpr& is_inside, const PrimExpr& value) {
      return tir::Select(is_inside, value, MakeZero(value.dtype()));
    };
    taps.push_back({kernel("tap_place",
                           [&](const TapAt& at, const PrimExpr& is_inside) {
                             return cast(DataType::Int(64), inside(is_inside, at.place));
                           }),
                    kernel("tap_weight",
                           [&](const TapAt& at, const PrimExpr& is_inside) {
                             return inside(is_inside, at.weight.value);
                           }),
                    kernel("tap_slope", [&](const TapAt& at, const PrimExpr& is_inside) {
                      return inside(is_inside, at.weight.slope);
                    })});
  }
  return taps;
}

/// Each sample is a sum over products of taps, one of each axis: the image gets the weights times
/// the gradient, the grid the pixels times the slopes.
Any GridSamplerBackward(Conversion& c) {
  Expr grad = c.Tensor(0), image = c.Tensor(1), grid = c.Tensor(2);
  Dims shape = ShapeOf(image), sampled = ShapeOf(grad);
  size_t dims = shape.size() - 2;
  int64_t method = c.Int(3), padding = c.Int(4);
  if (method < 0 || method > (dims == 2 ? 2 : 1) || padding < 0 || padding > 2) {
    TVM_REFUSE(c, ValueError) << "expected modes 0 to " << (dims == 2 ? 2 : 1)
                              << " and 0 to 2, got " << method << " and " << padding;
  }
  PrimExpr n = shape[0], channels = shape[1];
  PrimExpr points = c.Simplify(Count(Dims(sampled.begin() + 2, sampled.end())));
  std::vector<int64_t> sizes;
  std::vector<std::vector<Tap>> axes;
  for (size_t d = 0; d < dims; ++d) {
    auto size = AsConstInt(shape[2 + d]);
    if (!size) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes of images";
    sizes.push_back(*size);
    // The last coordinate of a point is that of the first axis.
    Expr number = c.Const(static_cast<int64_t>(dims - 1 - d));
    Expr along =
        c.Reshape(c.Emit("take", grid, number, static_cast<int64_t>(dims) + 1), {n, points});
    axes.push_back(TapsOf(
        c, along,
        {*size, static_cast<GridMethod>(method), static_cast<GridPadding>(padding), c.Flag(5)}));
  }
  PrimExpr pixels = c.Simplify(Count(Dims(shape.begin() + 2, shape.end())));
  DataType t = TypeOf(image);
  std::vector<int64_t> wanted = c.Ints(6);
  Expr flat = c.Reshape(image, {n, channels, pixels});
  Expr gradient = c.Reshape(grad, {n, channels, points});
  Expr to_image = c.Emit("zeros", ShapeOf(flat), t);
  std::vector<Expr> to_grid(dims);
  auto times = [&](const Expr& a, const Expr& b) { return c.Emit("multiply", a, b); };
  size_t count = axes[0].size(), combinations = static_cast<size_t>(std::pow(count, dims));
  for (size_t number = 0; number < combinations; ++number) {
    std::vector<const Tap*> taps(dims);
    for (size_t d = 0, rest = number; d < dims; ++d, rest /= count)
      taps[d] = &axes[d][rest % count];
    Expr place = taps[0]->place, weight = taps[0]->weight;
    for (size_t d = 1; d < dims; ++d) {
      place = c.Emit("add", times(place, c.Const(sizes[d])), taps[d]->place);
      weight = times(weight, taps[d]->weight);
    }
    place = c.BroadcastTo(c.Emit("expand_dims", place, 1), {n, channels, points});
    if (wanted[0]) {
      Expr part = times(gradient, c.Emit("expand_dims", weight, 1));
      to_image = c.Emit("scatter_elements", to_image, place, part, 2, String("add"));
    }
    if (!wanted[1]) continue;
    Expr values = c.Emit("gather_elements", flat, place, 2);
    Expr along = c.Emit("sum", times(gradient, values), Array<Any>{1});
    for (size_t d = 0; d < dims; ++d) {
      Expr slope = times(along, taps[d]->slope);
      for (size_t e = 0; e < dims; ++e) {
        if (e != d) slope = times(slope, taps[e]->weight);
      }
      to_grid[d] = number ? c.Emit("add", to_grid[d], slope) : slope;
    }
  }
  Array<Any> results = {nullptr, nullptr};
  if (wanted[0]) results.Set(0, c.Reshape(to_image, shape));
  if (wanted[1]) {
    Array<Expr> coordinates(to_grid.rbegin(), to_grid.rend());
    results.Set(1, c.Reshape(c.Emit("stack", Tuple(coordinates), -1), ShapeOf(grid)));
  }
  return results;
}

TVM_REGISTER() {
  Converter("grid_sampler_2d_backward.default grid_sampler_3d_backward.default",
            "grad_output, input, grid, interpolation_mode, padding_mode, align_corners, "
            "output_mask",
            &GridSamplerBackward);
}

}  // namespace
}  // namespace tvm::frontend::torch
