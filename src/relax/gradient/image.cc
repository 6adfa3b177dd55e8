// SPDX-License-Identifier: Apache-2.0
// Gradients of images in other sizes and at the points of a grid, and of quantised tensors.
#include <algorithm>

#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
/// Resizing is a product with a matrix along each dimension of the image, which resizing the
/// columns of the identity gives.
Values OfResize2D(Grad& r) {
  auto* a = r.attrs<Resize2DAttrsObj>();
  if (a->coordinate_transformation_mode == "tf_crop_and_resize")
    r.Refuse("the mode tf_crop_and_resize");
  std::string layout(a->layout);
  Value x = r.x(0), g = r.g();
  if (static_cast<int64_t>(layout.size()) != x.ndim()) r.Refuse("a layout in blocks");
  if (g.dtype() != x.dtype()) g = r.F("astype", g, x.dtype());
  for (char letter : {'H', 'W'}) {
    auto axis = static_cast<int64_t>(layout.find(letter));
    int64_t in = r.ConstDim(x, axis), out = r.ConstDim(r.g(), axis);
    Value columns =
        r.Reshaped(r.F("eye", in, in, 0, x.dtype()), {Dim(1), Dim(in), Dim(in), Dim(1)});
    Value resized = r.F("image.resize2d", columns, ShapeExpr({Dim(out), Dim(1)}), a->roi, "NCHW",
                        a->method, a->coordinate_transformation_mode, a->rounding_method,
                        a->cubic_alpha, a->cubic_exclude, a->extrapolation_value);
    g = r.Multiplied(g, axis, r.Reshaped(resized, {Dim(in), Dim(out)}));
  }
  return {g, {}};
}

// ---- grids --------------------------------------------------------------------------------------
/// A pixel along one axis that counts at a point of the grid: its index, its weight, and how the
/// weight changes with the point; all of the grid's shape.
struct Tap {
  Value index, weight, slope;
};
Value Filled(const Value& like, double value) {
  return Apply(*like.builder, "full_like", like, value);
}
Value Both(Grad& r, const Value& a, const Value& b) { return r.F("logical_and", a, b); }
/// A place in pixels brought between the borders, and how it changes with the place before.
std::pair<Value, Value> Brought(Grad& r, const Value& at, double size, const String& mode,
                                bool align_corners) {
  Value one = Filled(at, 1), zero = Filled(at, 0);
  if (mode == "zeros") return {at, one};
  Value place = at, sign = one;
  if (mode == "reflection") {
    double low = align_corners ? 0 : -0.5, span = std::max(align_corners ? size - 1 : size, 1.0);
    Value distance = r.F("abs", at - low), turns = r.F("floor", distance / span);
    Value rest = distance - turns * span;
    Value even = turns - 2.0 * r.F("floor", turns / 2.0) == 0.0;
    place = r.F("where", even, rest + low, (span + low) - rest);
    sign = r.F("sign", at - low) * r.F("where", even, one, Filled(at, -1));
  }
  Value inside = Both(r, place >= 0.0, r.F("less_equal", place, size - 1));
  return {r.F("clip", place, 0.0, size - 1), r.F("where", inside, sign, zero)};
}
std::vector<Tap> Taps(Grad& r, const Value& coordinate, int64_t size) {
  auto* a = r.attrs<GridSampleAttrsObj>();
  auto n = static_cast<double>(size);
  Value place =
      a->align_corners ? (coordinate + 1.0) * ((n - 1) / 2) : ((coordinate + 1.0) * n - 1.0) * 0.5;
  double per_coordinate = a->align_corners ? (n - 1) / 2 : n / 2;
  auto [at, moved] = Brought(r, place, n, a->padding_mode, a->align_corners);
  Value slope = moved * per_coordinate;
  auto tap = [&](const Value& index, const Value& weight, const Value& change) {
    Value inside = Both(r, index >= 0.0, r.F("less_equal", index, n - 1)), zero = Filled(index, 0);
    return Tap{r.F("astype", r.F("clip", index, 0.0, n - 1), DataType::Int(64)),
               r.F("where", inside, weight, zero), r.F("where", inside, change, zero)};
  };
  if (a->method == "nearest") return {tap(r.F("round", at), Filled(at, 1), Filled(at, 0))};
  Value low = r.F("floor", at), part = at - low;
  return {tap(low, 1.0 - part, -slope), tap(low + 1.0, part, slope)};
}
Values OfGridSample(Grad& r) {
  if (r.attrs<GridSampleAttrsObj>()->method == "bicubic") r.Refuse("the method bicubic");
  Value x = r.x(0), grid = r.x(1);
  Dims d = r.DimsOf(x), p = r.DimsOf(grid);
  Dims points = {p[0], Dim(1), p[1] * p[2]}, pixels = {d[0], d[1], d[2] * d[3]};
  auto coordinate = [&](int64_t k) {
    return r.Reshaped(r.Slice(grid, 3, Dim(k), Dim(k + 1)), points);
  };
  int64_t height = r.ConstDim(x, 2), width = r.ConstDim(x, 3);
  Value g = r.Reshaped(r.g(), {d[0], d[1], p[1] * p[2]}), flat = r.Reshaped(x, pixels);
  Value of_data = r.ZerosLike(flat), of_x, of_y;
  auto add = [](Value& sum, const Value& term) { sum = sum ? sum + term : term; };
  for (const Tap& y : Taps(r, coordinate(1), height)) {
    for (const Tap& across : Taps(r, coordinate(0), width)) {
      Value index = r.BroadcastLike(y.index * r.F("full_like", y.index, width) + across.index, g);
      of_data =
          r.F("scatter_elements", of_data, index, g * (y.weight * across.weight), 2, String("add"));
      Value seen = r.F("sum", g * r.F("gather_elements", flat, index, 2), 1, true);
      add(of_y, seen * y.slope * across.weight);
      add(of_x, seen * y.weight * across.slope);
    }
  }
  auto as_grid = [&](const Value& v) { return r.Reshaped(v, {p[0], p[1], p[2], Dim(1)}); };
  return {r.ReshapeLike(of_data, x), r.F("concat", r.MakeTuple({as_grid(of_x), as_grid(of_y)}), 3)};
}

// ---- quantisation -------------------------------------------------------------------------------
/// Of the scale, by which whole numbers are multiplied, and of data that are none.
Values OfDequantize(Grad& r) {
  Value x = r.x(0), scale = r.x(1), g = r.g();
  int64_t ndim = x.ndim(), axis = r.attrs<QuantizeAttrsObj>()->axis;
  if (axis < 0) axis += ndim;
  auto along = [&](const Value& v) {
    Dims dims(ndim, Dim(1));
    if (v.ndim() == 1) dims.Set(axis, r.DimsOf(v)[0]);
    return r.Reshaped(r.F("astype", v, g.dtype()), dims);
  };
  Value centred = r.F("astype", x, g.dtype()) - along(r.x(2)), wide = along(scale);
  Value of_scale = r.ReshapeLike(r.CollapseTo(g * centred, r.Of(wide.leaf())), scale);
  Value of_data = r.IsFloat(0) ? r.F("astype", g * wide, x.dtype()) : Value();
  return {of_data, r.F("astype", of_scale, scale.dtype()), {}};
}

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.image.resize2d", &OfResize2D},
                                 {"relax.image.grid_sample", &OfGridSample},
                                 {"relax.dequantize", &OfDequantize}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
