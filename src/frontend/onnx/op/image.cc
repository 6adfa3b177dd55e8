// SPDX-License-Identifier: Apache-2.0
// Images: resizing, sampling, boxes.
#include <cmath>

#include "frontend/onnx/op/op.h"
#include "topi/vision/roi_align.h"

namespace tvm::frontend::onnx {
namespace {
PrimExpr Real(const PrimExpr& e) { return tvm::cast(kSingle, e); }
PrimExpr Real(double value) { return MakeConst(kSingle, value); }
PrimExpr Whole(const PrimExpr& e) { return tvm::cast(DataType::Int(64), e); }

// ---- Resize: one axis after the other -----------------------------------------------------------
struct ResizedAxis {
  int64_t axis = 0;
  PrimExpr size;                // of the result
  PrimExpr scale;               // float32; undefined when it is an element of a tensor
  bool is_rounded = true;       // the size is what the scale says, and not what was asked for
  std::optional<double> ratio;  // the scale when it is a constant
  std::pair<Expr, int64_t> element;
};
struct ResizeOptions {
  std::string mode, coordinates, rounding;
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, outside = 0;
};
/// The place in the data that an element of the result comes from. `exact` is the size of the
/// result before it was rounded.
PrimExpr SourcePlace(const ResizeOptions& o, const PrimExpr& i, const PrimExpr& from,
                     const PrimExpr& to, const PrimExpr& exact, const PrimExpr& scale,
                     const PrimExpr& start, const PrimExpr& end) {
  PrimExpr x = Real(i), in = Real(from), out = Real(to),
           centred = div(x + Real(0.5), scale) - Real(0.5);
  if (o.coordinates == "half_pixel") return centred;
  if (o.coordinates == "asymmetric") return div(x, scale);
  if (o.coordinates == "pytorch_half_pixel") return tir::Select(to > Num(1), centred, Real(0));
  if (o.coordinates == "align_corners") {
    PrimExpr last = exact - Real(1);
    return tir::Select(equal(last, Real(0)), Real(0), div(x * (in - Real(1)), last));
  }
  if (o.coordinates == "half_pixel_symmetric") {
    PrimExpr adjusted = div(out, scale * in);
    return div(in, Real(2)) * (Real(1) - adjusted) + centred;
  }
  PrimExpr spread =
      start * (in - Real(1)) + div(x * (end - start) * (in - Real(1)), max(out - Real(1), Real(1)));
  return tir::Select(to > Num(1), spread, Real(0.5) * (start + end) * (in - Real(1)));
}
PrimExpr NearestOf(const std::string& mode, const PrimExpr& x) {
  if (mode == "floor") return Whole(floor(x));
  if (mode == "ceil") return Whole(ceil(x));
  return mode == "round_prefer_ceil" ? Whole(floor(x + Real(0.5))) : Whole(ceil(x - Real(0.5)));
}
/// The weight of an element at distance `d`.
PrimExpr FilterWeight(const ResizeOptions& o, const PrimExpr& d) {
  PrimExpr x = tvm::abs(d);
  if (o.mode == "linear") return max(Real(0), Real(1) - x);
  PrimExpr a = Real(o.cubic), x2 = x * x, x3 = x2 * x;
  PrimExpr near = (a + Real(2)) * x3 - (a + Real(3)) * x2 + Real(1);
  PrimExpr far = a * x3 - Real(5) * a * x2 + Real(8) * a * x - Real(4) * a;
  return tir::Select(x <= Real(1), near, tir::Select(x < Real(2), far, Real(0)));
}
Expr ResizeAxis(Node& n, const Expr& x, const ResizedAxis& r, const ResizeOptions& o,
                const std::optional<std::pair<Expr, int64_t>>& roi) {
  Te te(n);
  te::Tensor t = te(x);
  PrimExpr from = t->shape[r.axis], to = te(r.size);
  PrimExpr scale =
      r.scale.defined() ? te(r.scale) : Real(te(r.element.first)(Num(r.element.second)));
  // (float32's product of a quotient is not its dividend)
  PrimExpr exact = r.is_rounded ? scale * Real(from) : Real(to);
  PrimExpr start = Real(0), end = Real(1);
  if (roi) {
    te::Tensor box = te(roi->first);
    start = Real(box(Num(roi->second)));
    end = Real(box(topi::Simplified(floordiv(box->shape[0], Num(2))) + Num(roi->second)));
  }
  Dims shape = t->shape;
  shape.Set(r.axis, to);
  double narrow = o.antialias ? std::min(1.0, r.ratio.value_or(1)) : 1;
  int64_t reach = o.mode == "cubic" ? 2 : 1;
  auto first = static_cast<int64_t>(std::floor(-static_cast<double>(reach) / narrow)) + 1;
  int64_t count = 2 - 2 * first;
  auto weight_at = [&](const PrimExpr& p, const PrimExpr& place, const PrimExpr& narrowed) {
    PrimExpr weight = FilterWeight(o, (Real(p) - place) * narrowed);
    return o.exclude_outside ? tir::Select(p >= Num(0) && p < from, weight, Real(0)) : weight;
  };
  // How far the filter reaches when only running tells the scale: no result is smaller than one
  // element, so that it spans at most `reach` times the axis on either side.
  bool is_open = o.antialias && !r.ratio;
  te::Tensor sums[2];
  for (int64_t weighted = 0; is_open && weighted < 2; ++weighted) {
    sums[weighted] = topi::Compute(
        shape,
        [&](const Index& i) {
          te::IterVar k = topi::Along(from * Num(2 * reach) + Num(3), "k");
          PrimExpr place = SourcePlace(o, i[r.axis], from, to, exact, scale, start, end);
          PrimExpr p = Whole(floor(place)) + k->var - from * Num(reach) - Num(1);
          Index index = i;
          index[r.axis] = max(min(p, from - Num(1)), Num(0));
          PrimExpr weight = weight_at(p, place, min(scale, Real(1)));
          return te::sum(weighted ? weight * Real(topi::At(t, index)) : weight, {k});
        },
        "filtered", topi::kCommReduce);
  }
  return ComputeElements(n, "resize", te, shape, [&](const Index& i) -> PrimExpr {
    PrimExpr place = SourcePlace(o, i[r.axis], from, to, exact, scale, start, end);
    auto at = [&](const PrimExpr& p) {
      Index index = i;
      index[r.axis] = max(min(p, from - Num(1)), Num(0));
      return topi::At(t, index);
    };
    PrimExpr value;
    if (o.mode == "nearest") {
      value = at(NearestOf(o.rounding, place));
    } else {
      PrimExpr base = Whole(floor(place)), sum = Real(0), total = Real(0);
      for (int64_t k = first; !is_open && k < first + count; ++k) {
        PrimExpr p = base + Num(k), weight = weight_at(p, place, Real(narrow));
        sum = sum + weight * Real(at(p));
        total = total + weight;
      }
      if (is_open) {
        sum = topi::At(sums[1], i);
        total = topi::At(sums[0], i);
      }
      bool normalise = o.exclude_outside || o.antialias;
      value = normalise ? div(sum, total) : sum;
      value =
          t->dtype.is_float() ? tvm::cast(t->dtype, value) : tvm::cast(t->dtype, tvm::round(value));
    }
    if (o.coordinates == "tf_crop_and_resize") {
      PrimExpr inside = place >= Real(0) && place <= Real(from - Num(1));
      value = tir::Select(inside, value, tvm::cast(t->dtype, Real(o.outside)));
    }
    return value;
  });
}
/// The sizes that scales give which only running tells.
std::vector<PrimExpr> SizesFromScales(Node& n, const Expr& x, const Expr& scales,
                                      const std::vector<int64_t>& axes) {
  Te te(n);
  te::Tensor t = te(n.Fitted(scales, {Num(static_cast<int64_t>(axes.size()))}));
  Dims dims;
  for (int64_t a : axes) dims.push_back(te(Node::Shape(x)[n.Axis(a, Node::Rank(x), "axes")]));
  Expr sizes = ComputeElements(n, "sizes", te, t->shape, [&](const Index& i) {
    PrimExpr dim = Num(0);
    for (size_t k = dims.size(); k-- > 0;)
      dim = tir::Select(equal(i[0], Num(static_cast<int64_t>(k))), dims[k], dim);
    return Whole(floor(Real(dim) * Real(topi::At(t, i))));
  });
  return n.RuntimeIntegers(sizes);
}
/// The sizes of images whose pixels are repeated, or left out, whole numbers of times.
std::optional<Dims> RepeatedSizes(Node& n, const Expr& x, const ResizeOptions& o,
                                  const std::vector<int64_t>& axes,
                                  const std::vector<PrimExpr>& scales,
                                  const std::vector<PrimExpr>& sizes) {
  int64_t rank = Node::Rank(x);
  if (rank != 4 || o.mode != "nearest" || o.coordinates != "asymmetric" || o.rounding != "floor")
    return std::nullopt;
  Dims dims = Node::Shape(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = n.Axis(axes[i], rank, "axes");
    auto from = AsConstInt(dims[axis]);
    if (!from || *from == 0) return std::nullopt;
    int64_t to = 0;
    if (!scales.empty()) {
      auto* scale = scales[i].as<FloatImmObj>();
      if (!scale || scale->value != std::floor(scale->value)) return std::nullopt;
      to = *from * static_cast<int64_t>(scale->value);
    } else {
      to = AsConstInt(sizes[i]).value_or(0);
    }
    if (to <= 0 || (to % *from != 0 && *from % to != 0) || (axis < 2 && to != *from))
      return std::nullopt;
    dims.Set(axis, Num(to));
  }
  return Dims{dims[2], dims[3]};
}
Outputs ConvertResize(Node& n) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x);
  ResizeOptions o;
  o.mode = n.Str("mode", "nearest");
  o.coordinates = n.Str("coordinate_transformation_mode", "half_pixel");
  o.rounding = n.Str("nearest_mode", "round_prefer_floor");
  o.antialias = n.Int("antialias", 0) != 0;
  o.exclude_outside = n.Int("exclude_outside", 0) != 0;
  o.cubic = n.Float("cubic_coeff_a", -0.75);
  o.outside = n.Float("extrapolation_value", 0);
  std::string policy = n.Str("keep_aspect_ratio_policy", "stretch");
  static const std::set<std::string> kCoordinates = {"half_pixel",         "half_pixel_symmetric",
                                                     "pytorch_half_pixel", "align_corners",
                                                     "asymmetric",         "tf_crop_and_resize"};
  if (!kCoordinates.count(o.coordinates))
    n.Unsupported("coordinate_transformation_mode " + o.coordinates);
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic")
    n.Fail("mode to be nearest, linear or cubic", o.mode);
  std::vector<int64_t> axes(rank);
  for (int64_t i = 0; i < rank; ++i) axes[i] = i;
  axes = n.Ints("axes", axes);
  auto is_given = [&](size_t i) { return n.Has(i) && !IsZero(Node::Shape(n.In(i))[0]); };
  bool by_scale = is_given(2), by_size = is_given(3);
  if (by_scale == by_size) n.Fail("either scales or sizes", by_scale ? "both" : "neither");
  bool crop = o.coordinates == "tf_crop_and_resize";
  if (crop && !n.Has(1)) n.Fail("roi for tf_crop_and_resize", "none");
  if (n.Has(1)) n.Input(1);
  std::vector<PrimExpr> scales, sizes;
  const Known* known = by_scale ? n.KnownOf(2) : nullptr;
  if (by_size) sizes = n.Integers(3, axes.size());
  if (known) scales = known->elements;
  if (by_scale && !known) sizes = SizesFromScales(n, x, n.In(2), axes);
  if ((known ? scales.size() : sizes.size()) != axes.size())
    n.Fail("a scale or size for each of " + std::to_string(axes.size()) + " axes", "others");
  if (policy != "stretch" && by_size) {
    // One scale for all axes: the smallest or the largest of those asked for.
    PrimExpr common;
    for (size_t i = 0; i < axes.size(); ++i) {
      PrimExpr scale = div(Real(sizes[i]), Real(Node::Shape(x)[n.Axis(axes[i], rank, "axes")]));
      bool smaller = policy == "not_larger";
      common = i == 0 ? scale : smaller ? min(common, scale) : max(common, scale);
    }
    common = n.Simplify(common);
    scales.assign(axes.size(), common);
    for (size_t i = 0; i < axes.size(); ++i) {
      PrimExpr dim = Real(Node::Shape(x)[n.Axis(axes[i], rank, "axes")]);
      sizes[i] = n.Simplify(Whole(floor(common * dim + Real(0.5))));
    }
  }
  if (auto repeated = RepeatedSizes(n, x, o, axes, scales, sizes)) {
    return n("image.resize2d", x, relax::ShapeExpr(*repeated), nullptr, "NCHW", "nearest_neighbor",
             "asymmetric", "floor");
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    ResizedAxis r;
    r.axis = n.Axis(axes[i], rank, "axes");
    PrimExpr dim = Node::Shape(x)[r.axis];
    if (!scales.empty()) {
      r.scale = scales[i];
    } else if (by_size) {
      r.scale = n.Simplify(div(Real(sizes[i]), Real(dim)));
      r.is_rounded = false;
    } else {
      r.element = {n.In(2), static_cast<int64_t>(i)};
    }
    if (auto* f = r.scale.defined() ? r.scale.as<FloatImmObj>() : nullptr) r.ratio = f->value;
    bool whole = r.ratio && *r.ratio == std::floor(*r.ratio);
    r.size = !sizes.empty() ? n.Simplify(sizes[i])
             : whole        ? n.Simplify(dim * Num(static_cast<int64_t>(*r.ratio)))
                            : n.Simplify(Whole(floor(Real(dim) * r.scale)));
    bool same = n.importer.builder()->analyzer()->CanProveEqual(dim, r.size);
    if (same && r.scale.defined() && r.ratio.value_or(1) == 1 && !crop) continue;
    std::optional<std::pair<Expr, int64_t>> roi;
    if (crop) roi = std::pair(n.In(1), static_cast<int64_t>(i));
    x = ResizeAxis(n, x, r, o, roi);
  }
  return x;
}

// ---- sampling -----------------------------------------------------------------------------------
/// Images (or volumes) at the places of a grid, whose last axis has x first.
Outputs ConvertGridSample(Node& n) {
  Expr x = n.In(0), grid = n.In(1);
  bool aligned = n.Int("align_corners", 0) != 0;
  std::string mode = n.Str("mode", "linear"), padding = n.Str("padding_mode", "zeros");
  int64_t axes = Node::Rank(x) - 2;
  if (axes < 1 || (mode != "linear" && mode != "nearest" && mode != "cubic"))
    n.Fail("mode to be linear, nearest or cubic", mode);
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    n.Fail("padding_mode to be zeros, border or reflection", padding);
  ResizeOptions filter;
  filter.mode = mode;
  int64_t first = mode == "cubic" ? -1 : 0, taps = mode == "cubic" ? 4 : mode == "linear" ? 2 : 1;
  Te te(n);
  te::Tensor t = te(x), g = te(grid);
  Dims shape{t->shape[0], t->shape[1]};
  for (int64_t a = 0; a < axes; ++a) shape.push_back(g->shape[a + 1]);
  auto reflect = [&](const PrimExpr& p, const PrimExpr& dim) {
    // Around the outer pixels' centres, or their outer edges.
    PrimExpr low = aligned ? Real(0) : Real(-0.5);
    PrimExpr span = aligned ? Real(dim) - Real(1) : Real(dim);
    span = max(span, Real(1e-30));
    PrimExpr d = tvm::abs(p - low), turns = floor(div(d, span)), rest = d - turns * span;
    PrimExpr odd = not_equal(floormod(Whole(turns), Num(2)), Num(0));
    return low + tir::Select(odd, span - rest, rest);
  };
  return ComputeElements(n, "grid_sample", te, shape, [&](const Index& i) {
    std::vector<PrimExpr> place;
    for (int64_t a = 0; a < axes; ++a) {
      Index at{i[0]};
      at.insert(at.end(), i.begin() + 2, i.end());
      at.push_back(Num(axes - 1 - a));
      PrimExpr v = Real(topi::At(g, at)), dim = Real(t->shape[a + 2]);
      PrimExpr p = aligned ? (v + Real(1)) * Real(0.5) * (dim - Real(1))
                           : ((v + Real(1)) * dim - Real(1)) * Real(0.5);
      if (mode != "cubic") {
        if (padding == "border") p = max(min(p, dim - Real(1)), Real(0));
        if (padding == "reflection")
          p = max(min(reflect(p, t->shape[a + 2]), dim - Real(1)), Real(0));
      }
      place.push_back(p);
    }
    // Far outside a place must still fit an integer.
    auto integer = [&](const PrimExpr& e) { return Whole(max(min(e, Real(1e9)), Real(-1e9))); };
    PrimExpr sum = Real(0);
    int64_t total = 1;
    for (int64_t a = 0; a < axes; ++a) total *= taps;
    for (int64_t k = 0; k < total; ++k) {
      Index at{i[0], i[1]};
      PrimExpr weight = Real(1), inside = const_true();
      for (int64_t a = 0, rest = k; a < axes; ++a, rest /= taps) {
        PrimExpr p = mode == "nearest" ? integer(tvm::round(place[a]))
                                       : integer(floor(place[a])) + Num(first + rest % taps);
        if (mode != "nearest") weight = weight * FilterWeight(filter, Real(p) - place[a]);
        const PrimExpr& dim = t->shape[a + 2];
        if (padding == "zeros") {
          inside = inside && p >= Num(0) && p < dim;
        } else if (mode == "cubic" && padding == "reflection") {
          p = integer(tvm::round(reflect(Real(p), dim)));
        }
        at.push_back(max(min(p, dim - Num(1)), Num(0)));
      }
      PrimExpr e = Real(topi::At(t, at));
      sum = sum + weight * (padding == "zeros" ? if_then_else(inside, e, Real(0)) : e);
    }
    return tvm::cast(t->dtype, sum);
  });
}
/// The grid that an affine map makes of the points of an image or volume.
Outputs ConvertAffineGrid(Node& n) {
  Expr theta = n.In(0);
  bool aligned = n.Int("align_corners", 0) != 0;
  std::vector<PrimExpr> size = n.Integers(1, n.DeclaredRank(0));
  auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != 2 && axes != 3) n.Fail("a size of 4 or 5 numbers", std::to_string(size.size()));
  Te te(n);
  te::Tensor t = te(theta);
  std::vector<PrimExpr> dims = te(size);
  Dims shape{dims[0]};
  for (int64_t a = 0; a < axes; ++a) shape.push_back(dims[a + 2]);
  shape.push_back(Num(axes));
  return ComputeElements(n, "affine_grid", te, shape, [&](const Index& i) {
    PrimExpr sum = t(i[0], i.back(), Num(axes));
    for (int64_t a = 0; a < axes; ++a) {
      PrimExpr dim = Real(dims[a + 2]), at = Real(i[a + 1]);
      PrimExpr place = aligned ? div(at * Real(2), max(dim - Real(1), Real(1))) - Real(1)
                               : div(at * Real(2) + Real(1), dim) - Real(1);
      sum = sum + t(i[0], i.back(), Num(axes - 1 - a)) * tvm::cast(t->dtype, place);
    }
    return sum;
  });
}

// ---- boxes --------------------------------------------------------------------------------------
/// What is sampled inside of each cell of a region: the mean of (or the largest of) values between
/// pixels.
Outputs ConvertRoiAlign(Node& n) {
  Expr x = n.In(0), rois = n.In(1), batches = n.In(2);
  std::string mode = n.Str("mode", "avg");
  if (mode != "avg" && mode != "max") n.Fail("mode to be avg or max", mode);
  topi::vision::RoiAlignOptions options;
  options.scale = n.Float("spatial_scale", 1);
  options.height = n.Int("output_height", 1);
  options.width = n.Int("output_width", 1);
  options.ratio = n.Int("sampling_ratio", 0);
  options.is_aligned = n.Str("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  options.is_max = mode == "max";
  Te te(n);
  te::Tensor t = te(x), boxes = te(rois), image = te(batches);
  auto image_of = [&](const PrimExpr& roi) { return image(roi); };
  auto corner = [&](const PrimExpr& roi, int64_t i) { return boxes(roi, Num(i)); };
  return te.Done("roi_align",
                 topi::vision::RoiAlign(t, boxes->shape[0], image_of, corner, options));
}
Outputs ConvertMaxRoiPool(Node& n) {
  Expr x = n.In(0), rois = n.In(1);
  std::vector<int64_t> pooled = n.Ints("pooled_shape");
  double scale = n.Float("spatial_scale", 1);
  if (pooled.size() != 2) n.Fail("a pooled_shape of 2 numbers", std::to_string(pooled.size()));
  Te te(n);
  te::Tensor t = te(x), boxes = te(rois);
  Dims shape{boxes->shape[0], t->shape[1], Num(pooled[0]), Num(pooled[1])};
  // A cell's first element and the one behind its last along an axis.
  auto cell = [&](const PrimExpr& roi, int64_t low, const PrimExpr& at, int64_t cells,
                  const PrimExpr& dim) {
    auto edge = [&](int64_t column) {
      return Whole(floor(Real(boxes(roi, Num(column))) * Real(scale) + Real(0.5)));
    };
    PrimExpr begin = edge(low), length = Real(max(edge(low + 2) - begin + Num(1), Num(1)));
    PrimExpr size = div(length, Real(static_cast<double>(cells)));
    auto clip = [&](const PrimExpr& p) { return max(min(p + begin, dim), Num(0)); };
    return std::pair(clip(Whole(floor(Real(at) * size))),
                     clip(Whole(ceil(Real(at + Num(1)) * size))));
  };
  PrimExpr lowest = neg(infinity(t->dtype));
  te::Tensor most = topi::Compute(
      shape,
      [&](const Index& i) {
        te::IterVar ky = topi::Along(t->shape[2], "ky"), kx = topi::Along(t->shape[3], "kx");
        auto [y0, y1] = cell(i[0], 2, i[2], pooled[0], t->shape[2]);
        auto [x0, x1] = cell(i[0], 1, i[3], pooled[1], t->shape[3]);
        PrimExpr in = ky->var >= y0 && ky->var < y1 && kx->var >= x0 && kx->var < x1;
        PrimExpr image = Whole(boxes(i[0], Num(0)));
        PrimExpr e = t(image, i[1], ky->var, kx->var);
        return te::max(if_then_else(in, e, lowest), {ky, kx}, {lowest});
      },
      "roi_pool", topi::kCommReduce);
  return ComputeElements(n, "max_roi_pool", te, shape, [&](const Index& i) -> PrimExpr {
    PrimExpr e = topi::At(most, i);
    return tir::Select(equal(e, lowest), MakeZero(t->dtype), e);
  });
}
Outputs ConvertNonMaxSuppression(Node& n) {
  Expr boxes = n.In(0), scores = n.In(1);
  if (n.Int("center_point_box", 0)) {
    Te te(n);
    te::Tensor t = te(boxes);
    boxes = ComputeElements(n, "corners", te, t->shape, [&](const Index& i) -> PrimExpr {
      // (x, y, width, height) as (y1, x1, y2, x2)
      PrimExpr is_y = equal(floormod(i[2], Num(2)), Num(0));
      PrimExpr centre = tir::Select(is_y, t(i[0], i[1], Num(1)), t(i[0], i[1], Num(0)));
      PrimExpr size = tir::Select(is_y, t(i[0], i[1], Num(3)), t(i[0], i[1], Num(2)));
      PrimExpr half = div(size, Num(t->dtype, 2));
      return tir::Select(i[2] < Num(2), centre - half, centre + half);
    });
  }
  // What is absent: no box, any overlap, any score.
  Expr most =
      n.Has(2) ? n.Reshape(n.Cast(n.In(2), DataType::Int(64)), {}) : n.Scalar(0, DataType::Int(64));
  Expr overlap = n.Has(3) ? n.Reshape(n.In(3), {}) : n.Scalar(0, kSingle);
  Expr least = n.Has(4) ? n.Reshape(n.In(4), {}) : n.Scalar(-3e38, kSingle);
  Expr all = n("vision.all_class_non_max_suppression", boxes, scores, most, overlap, least, "onnx");
  PrimExpr count = n.RuntimeIntegers(n.Item(all, 1)).at(0);
  return n("strided_slice", n.Item(all, 0), List({0}), Dims{Num(0)}, Dims{count}, Dims{Num(1)},
           true);
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"AffineGrid", &ConvertAffineGrid},
      {"GridSample", &ConvertGridSample},
      {"MaxRoiPool", &ConvertMaxRoiPool},
      {"NonMaxSuppression", &ConvertNonMaxSuppression},
      {"Resize", &ConvertResize},
      {"RoiAlign", &ConvertRoiAlign},
      {"Upsample", &ConvertResize},
  });
}

}  // namespace tvm::frontend::onnx
