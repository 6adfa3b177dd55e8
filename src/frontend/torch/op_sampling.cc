// SPDX-License-Identifier: Apache-2.0
// Images in other sizes as products with matrices of weights (smoothed resizing, and the gradients
// of all of it), maxima of windows at random places, boxes.
#include <cmath>
#include <limits>

#include "converter.h"
#include "elementwise.h"
#include "largest_of_window.h"
#include "network.h"
#include "topi/vision/roi_align.h"

namespace tvm::frontend::torch {
namespace {

PrimExpr Whole(int64_t value) { return IntImm::Int64(value); }

// ---- matrices of weights ------------------------------------------------------------------------
struct Axis1D {
  int64_t from, to;
  double scale;  // pixels of the input per pixel of the result
  bool align_corners;
  /// Where the centre of a pixel of the result lies.
  double Place(int64_t i) const {
    if (align_corners) return static_cast<double>(i) * scale;
    return (static_cast<double>(i) + 0.5) * scale - 0.5;
  }
};
Axis1D AxisOf(int64_t from, int64_t to, bool align_corners, const Any& factor) {
  double given = factor == nullptr ? 0 : factor.cast<double>();
  double scale = given > 0 ? 1 / given : static_cast<double>(from) / static_cast<double>(to);
  if (align_corners)
    scale = to > 1 ? static_cast<double>(from - 1) / static_cast<double>(to - 1) : 0;
  return {from, to, scale, align_corners};
}
double Triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }
/// Keys' cubic.
double Cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}
using Weights = std::vector<double>;  // row-major (to, from)

Weights NearestWeights(const Axis1D& axis, bool exact) {
  Weights w(axis.to * axis.from, 0);
  for (int64_t i = 0; i < axis.to; ++i) {
    double at = exact
                    ? (static_cast<double>(i) + 0.5) * axis.scale
                    : static_cast<double>(i) * static_cast<double>(static_cast<float>(axis.scale));
    w[i * axis.from + std::min(static_cast<int64_t>(at), axis.from - 1)] = 1;
  }
  return w;
}
Weights LinearWeights(const Axis1D& axis) {
  Weights w(axis.to * axis.from, 0);
  for (int64_t i = 0; i < axis.to; ++i) {
    double at = std::max(axis.Place(i), 0.0);
    int64_t low = std::min(static_cast<int64_t>(at), axis.from - 1);
    int64_t high = std::min(low + 1, axis.from - 1);
    double part = std::min(std::max(at - static_cast<double>(low), 0.0), 1.0);
    w[i * axis.from + low] += 1 - part;
    w[i * axis.from + high] += part;
  }
  return w;
}
Weights CubicWeights(const Axis1D& axis) {
  Weights w(axis.to * axis.from, 0);
  for (int64_t i = 0; i < axis.to; ++i) {
    double at = axis.Place(i), low = std::floor(at);
    for (int64_t k = -1; k <= 2; ++k) {
      int64_t pixel = std::clamp<int64_t>(static_cast<int64_t>(low) + k, 0, axis.from - 1);
      w[i * axis.from + pixel] += Cubic(at - low - static_cast<double>(k), -0.75);
    }
  }
  return w;
}
/// A filter as wide as the pixels of the result, so that none of the input is left out.
Weights Smoothed(const Axis1D& axis, bool is_cubic) {
  Weights w(axis.to * axis.from, 0);
  double wide = std::max(axis.scale, 1.0), support = (is_cubic ? 2 : 1) * wide;
  for (int64_t i = 0; i < axis.to; ++i) {
    double centre = axis.scale * (static_cast<double>(i) + 0.5), sum = 0;
    int64_t begin = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    int64_t end = std::min<int64_t>(static_cast<int64_t>(centre + support + 0.5), axis.from);
    for (int64_t k = begin; k < end; ++k) {
      double x = (static_cast<double>(k) - centre + 0.5) / wide;
      sum += w[i * axis.from + k] = is_cubic ? Cubic(x, -0.5) : Triangle(x);
    }
    for (int64_t k = begin; k < end && sum != 0; ++k) w[i * axis.from + k] /= sum;
  }
  return w;
}
Weights WeightsOf(const std::string& method, const Axis1D& axis) {
  if (method == "nearest") return NearestWeights(axis, false);
  if (method == "nearest_exact") return NearestWeights(axis, true);
  if (method == "linear") return LinearWeights(axis);
  if (method == "cubic") return CubicWeights(axis);
  return Smoothed(axis, method == "smooth_cubic");
}
Expr MatrixOf(const Weights& w, int64_t rows, int64_t columns, DataType t) {
  int64_t shape[] = {rows, columns};
  ffi::Tensor matrix =
      runtime::Empty(ffi::ShapeView(shape, 2), DataType::Float(64), DLDevice{kDLCPU, 0});
  std::copy(w.begin(), w.end(), static_cast<double*>(matrix.data_ptr()));
  Expr constant = Constant(matrix);
  return t == DataType::Float(64) ? constant : relax::CallOperator("relax.astype", {constant, t});
}
int64_t Static(Conversion& c, const PrimExpr& size) {
  auto known = AsConstInt(size);
  if (!known) TVM_REFUSE(c, NotImplementedError) << "expected constant sizes of images";
  return *known;
}
/// Each spatial axis of x times its matrix (to, from), or the transposed one.
Expr TimesWeights(Conversion& c, Expr x, const std::vector<Axis1D>& axes, const std::string& method,
                  bool transposed) {
  int64_t first = RankOf(x) - static_cast<int64_t>(axes.size());
  DataType t = TypeOf(x);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = first + static_cast<int64_t>(i);
    std::vector<int64_t> order = Axes(RankOf(x));
    std::swap(order[axis], order.back());
    // rows (…, from) · (to, from)ᵀ, or rows (…, to) · (to, from)
    Expr matrix = c.Bind(MatrixOf(WeightsOf(method, axes[i]), axes[i].to, axes[i].from, t));
    if (!transposed) matrix = c.Permute(matrix, {1, 0});
    x = c.Permute(MatMul(c, c.Permute(x, order), matrix), order);
  }
  return x;
}
}  // namespace

Expr Resampled(Conversion& c, const Expr& x, const Dims& size, const std::string& method,
               const Any& factors) {
  std::vector<Axis1D> axes;
  Array<Any> given = factors.cast<Array<Any>>();
  for (size_t i = 0; i < size.size(); ++i) {
    int64_t from = Static(c, ShapeOf(x)[2 + i]), to = Static(c, size[i]);
    axes.push_back(AxisOf(from, to, false, given[i]));
  }
  return TimesWeights(c, x, axes, method, false);
}

namespace {
/// Schema: self, output_size, (align_corners,) factors of each axis.
Any Upsample(Conversion& c, const Dims& input, bool transposed, size_t sizes, size_t flags,
             bool has_corners) {
  std::vector<Axis1D> axes;
  std::vector<int64_t> to = c.Ints(sizes);
  bool corners = has_corners && c.Flag(flags);
  for (size_t i = 0; i < to.size(); ++i) {
    axes.push_back(AxisOf(Static(c, input[2 + i]), to[i], corners, c[flags + has_corners + i]));
  }
  return TimesWeights(c, c.Tensor(0), axes, c.op, transposed);
}
bool HasCorners(const Conversion& c) { return std::string_view(c.op).find("nearest") != 0; }
Any UpsampleForward(Conversion& c) {
  return Upsample(c, ShapeOf(c.Tensor(0)), false, 1, 2, HasCorners(c));
}
Any UpsampleBackward(Conversion& c) { return Upsample(c, c.Sizes(2), true, 1, 3, HasCorners(c)); }

Any GridSample3D(Conversion& c) {
  static constexpr const char* kMethods[] = {"bilinear", "nearest"};
  static constexpr const char* kPadding[] = {"zeros", "border", "reflection"};
  int64_t method = c.Int(2), padding = c.Int(3);
  if (method < 0 || method > 1 || padding < 0 || padding > 2) {
    TVM_REFUSE(c, ValueError) << "expected modes 0 or 1 and 0 to 2, got " << method << " and "
                              << padding;
  }
  return c.Emit("image.grid_sample", c.Tensor(0), c.Tensor(1), String(kMethods[method]),
                String("NCDHW"), String(kPadding[padding]), c.Flag(4));
}

// ---- windows at random places -------------------------------------------------------------------
/// The largest element of each window and its place; `random` says by how much the windows of an
/// image are shifted.
Any FractionalMaxPool(Conversion& c) {
  Expr x = c.Tensor(0), random = c.Cast(c.Tensor(3), DataType::Float(32));
  int64_t rank = RankOf(x);
  std::vector<int64_t> window = c.Ints(1), output = c.Ints(2);
  int64_t n = static_cast<int64_t>(window.size());
  bool is_batch = rank == n + 2;
  if (!is_batch) x = c.Emit("expand_dims", x, 0);
  Dims shape = ShapeOf(x);
  DataType t = TypeOf(x), index = DataType::Int(64), real = DataType::Float(32);
  Expr both = c.Compute("fractional_max_pool", {x, random}, [&](const Array<te::Tensor>& in) {
    te::Tensor data = in[0], shift = in[1];
    Array<PrimExpr> result = {shape[0], shape[1]};
    for (int64_t o : output) result.push_back(Whole(o));
    auto element = [&](const Array<tir::Var>& at) {
      WindowElement e;
      e.place = Whole(0);
      Array<PrimExpr> position = {at[0], at[1]};
      for (int64_t i = 0; i < n; ++i) {
        int64_t size = Static(c, shape[2 + i]), last = size - window[i];
        double alpha =
            output[i] > 1 ? static_cast<double>(last) / static_cast<double>(output[i] - 1) : 0;
        // The samples of the last axis come first.
        PrimExpr sample = shift(at[0], at[1], Whole(n - 1 - i)), a = MakeConst(real, alpha);
        auto whole = [&](const PrimExpr& e) { return cast(index, e); };  // towards 0
        PrimExpr begin = whole((cast(real, at[2 + i]) + sample) * a) - whole(sample * a);
        begin = tir::Select(equal(at[2 + i], Whole(output[i] - 1)), Whole(last), begin);
        tir::IterVar k = te::reduce_axis(Range::FromMinExtent(Whole(0), Whole(window[i])));
        PrimExpr p = begin + k->var;
        position.push_back(p);
        e.place = e.place * Whole(size) + p;
        e.over.push_back(k);
      }
      e.value = data(position);
      return e;
    };
    return LargestOfWindow(result, t, element);
  });
  if (is_batch) return both;
  Array<Any> results;
  for (int64_t i : {0, 1}) {
    results.push_back(c.Emit("squeeze", c.Bind(TupleGetItem(both, i)), Array<Any>{0}));
  }
  return results;
}

// ---- boxes --------------------------------------------------------------------------------------
/// The boxes that no better one overlaps by more than the threshold, best first.
Any NonMaxSuppression(Conversion& c) {
  Expr boxes = c.Tensor(0), scores = c.Tensor(1);
  PrimExpr n = ShapeOf(boxes)[0];
  DataType t = TypeOf(boxes), index = DataType::Int(64);
  Expr most = SizeTensor(c, n);
  Expr all =
      c.Emit("vision.all_class_non_max_suppression", c.Reshape(boxes, {Whole(1), n, Whole(4)}),
             c.Reshape(scores, {Whole(1), Whole(1), n}), most, c.Const(c.Number(2), t),
             c.Const(-std::numeric_limits<double>::infinity(), t), String("onnx"));
  Expr rows = c.Bind(TupleGetItem(all, 0)), count = c.Bind(TupleGetItem(all, 1));
  tir::SizeVar kept(c.bb->GetUniqueName("num_kept"), index);
  Expr vector = c.Emit("reshape", count, Array<Any>{1});
  c.bb->EmitMatchCast(c.Emit("tensor_to_shape", vector), relax::ShapeStructInfo(Dims{kept}));
  return c.Slice(c.Emit("take", rows, c.Const(2), 1), 0, Whole(0), kept);
}
/// Rows of rois are the number of an image and a box.
Any RoiAlign(Conversion& c) {
  topi::vision::RoiAlignOptions options;
  options.scale = c.Number(2);
  options.height = c.Int(3);
  options.width = c.Int(4);
  options.ratio = c.Int(5);
  options.is_aligned = c.Flag(6);
  return c.Compute("roi_align", {c.Tensor(0), c.Tensor(1)},
                   [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
                     te::Tensor rois = in[1];
                     auto image = [&](const PrimExpr& roi) { return rois(roi, Whole(0)); };
                     auto corner = [&](const PrimExpr& roi, int64_t i) {
                       return rois(roi, Whole(1 + i));
                     };
                     return {topi::vision::RoiAlign(in[0], rois->shape[0], image, corner, options)};
                   });
}

TVM_REGISTER() {
  struct Row {
    const char *name, *method;
    int dims;
  };
  static constexpr Row kRows[] = {
      {"upsample_nearest1d", "nearest", 1},
      {"upsample_nearest2d", "nearest", 2},
      {"upsample_nearest3d", "nearest", 3},
      {"_upsample_nearest_exact1d", "nearest_exact", 1},
      {"_upsample_nearest_exact2d", "nearest_exact", 2},
      {"_upsample_nearest_exact3d", "nearest_exact", 3},
      {"upsample_linear1d", "linear", 1},
      {"upsample_bilinear2d", "linear", 2},
      {"upsample_trilinear3d", "linear", 3},
      {"upsample_bicubic2d", "cubic", 2},
      {"_upsample_bilinear2d_aa", "smooth_linear", 2},
      {"_upsample_bicubic2d_aa", "smooth_cubic", 2},
  };
  for (const Row& row : kRows) {
    std::string corners =
        std::string_view(row.method).find("nearest") == 0 ? "" : "align_corners, ";
    std::string factors = row.dims == 1   ? "scales=None"
                          : row.dims == 2 ? "scales_h=None, scales_w=None"
                                          : "scales_d=None, scales_h=None, scales_w=None";
    std::string name = row.name;
    Converter((name + ".default").c_str(), ("self, output_size, " + corners + factors).c_str(),
              &UpsampleForward, row.method);
    Converter((name + "_backward.default").c_str(),
              ("grad_output, output_size, input_size, " + corners + factors).c_str(),
              &UpsampleBackward, row.method);
  }
  Converter("grid_sampler_3d.default",
            "input, grid, interpolation_mode, padding_mode, align_corners", &GridSample3D);
  Converter("fractional_max_pool2d.default fractional_max_pool3d.default",
            "self, kernel_size, output_size, random_samples", &FractionalMaxPool);
  Converter("torchvision.nms.default", "dets, scores, iou_threshold", &NonMaxSuppression);
  Converter("torchvision.roi_align.default",
            "input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned",
            &RoiAlign);
}

}  // namespace
}  // namespace tvm::frontend::torch
