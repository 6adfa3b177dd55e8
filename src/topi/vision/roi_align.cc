// SPDX-License-Identifier: Apache-2.0
// Regions of images in one size: each cell has the mean (or the largest) of values between pixels.
#include "topi/vision/roi_align.h"

namespace tvm::topi::vision {
namespace {
constexpr DataType kReal = DataType::Float(32), kWhole = DataType::Int(64);

PrimExpr Real(const PrimExpr& e) { return tvm::cast(kReal, e); }
PrimExpr Real(double value) { return MakeConst(kReal, value); }
PrimExpr Whole(const PrimExpr& e) { return tvm::cast(kWhole, e); }
PrimExpr Num(int64_t value) { return MakeConst(kWhole, value); }

/// A region along one axis of the image.
struct Side {
  PrimExpr begin, cell, count;  // of samples in a cell
};
}  // namespace

Tensor RoiAlign(const Tensor& data, const PrimExpr& regions,
                const std::function<PrimExpr(const PrimExpr& roi)>& image,
                const std::function<PrimExpr(const PrimExpr& roi, int64_t i)>& corner,
                const RoiAlignOptions& options) {
  double offset = options.is_aligned ? 0.5 : 0;
  PrimExpr h = Whole(data->shape[2]), w = Whole(data->shape[3]);
  auto side = [&](const PrimExpr& roi, int64_t low, int64_t cells) {
    auto edge = [&](int64_t i) {
      return Real(corner(roi, i)) * Real(options.scale) - Real(offset);
    };
    PrimExpr begin = edge(low), length = edge(low + 2) - begin;
    if (!options.is_aligned) length = max(length, Real(1.0));
    PrimExpr cell = div(length, Real(static_cast<double>(cells)));
    PrimExpr count = options.ratio > 0 ? Num(options.ratio) : max(Whole(ceil(cell)), Num(1));
    return Side{begin, cell, count};
  };
  // Without a ratio a cell has as many samples as pixels, rounded up: at most the image's size.
  PrimExpr most_y = options.ratio > 0 ? Num(options.ratio) : h;
  PrimExpr most_x = options.ratio > 0 ? Num(options.ratio) : w;
  auto sample = [&](const Index& i, const PrimExpr& ky, const PrimExpr& kx) {
    Side ys = side(i[0], 1, options.height), xs = side(i[0], 0, options.width);
    auto place = [&](const Side& s, const PrimExpr& cell, const PrimExpr& k) {
      return s.begin + Real(cell) * s.cell + div((Real(k) + Real(0.5)) * s.cell, Real(s.count));
    };
    PrimExpr y = place(ys, i[2], ky), x = place(xs, i[3], kx);
    PrimExpr inside = y >= Real(-1.0) && y <= Real(h) && x >= Real(-1.0) && x <= Real(w);
    auto split = [](const PrimExpr& p, const PrimExpr& size) {
      PrimExpr q = min(max(p, Real(0.0)), Real(size - Num(1)));
      PrimExpr low = Whole(floor(q));
      return std::pair(low, q - Real(low));
    };
    auto [y0, fy] = split(y, h);
    auto [x0, fx] = split(x, w);
    PrimExpr y1 = min(y0 + Num(1), h - Num(1)), x1 = min(x0 + Num(1), w - Num(1));
    PrimExpr number = Whole(image(i[0])), one = Real(1.0);
    auto at = [&](const PrimExpr& r, const PrimExpr& c) {
      return Real(At(data, {number, i[1], r, c}));
    };
    PrimExpr parts[] = {(one - fy) * (one - fx) * at(y0, x0), (one - fy) * fx * at(y0, x1),
                        fy * (one - fx) * at(y1, x0), fy * fx * at(y1, x1)};
    PrimExpr value = options.is_max ? max(max(parts[0], parts[1]), max(parts[2], parts[3]))
                                    : parts[0] + parts[1] + parts[2] + parts[3];
    PrimExpr counted = ky < ys.count && kx < xs.count;
    return std::pair(if_then_else(inside && counted, value, Real(0.0)), counted);
  };
  Shape shape{regions, data->shape[1], Num(options.height), Num(options.width)};
  Tensor samples = Compute(
      shape,
      [&](const Index& i) {
        IterVar ky = Along(most_y, "ky"), kx = Along(most_x, "kx");
        auto [value, counted] = sample(i, ky->var, kx->var);
        PrimExpr lowest = neg(infinity(kReal));
        if (options.is_max) {
          return te::max(tir::Select(counted, value, lowest), {ky, kx}, {lowest});
        }
        return te::sum(value, {ky, kx});
      },
      "roi_samples", kCommReduce);
  return Compute(
      shape,
      [&](const Index& i) {
        PrimExpr value = At(samples, i);
        if (!options.is_max) {
          PrimExpr count = side(i[0], 1, options.height).count * side(i[0], 0, options.width).count;
          value = div(value, Real(count));
        }
        return tvm::cast(data->dtype, value);
      },
      "roi_align");
}

}  // namespace tvm::topi::vision
