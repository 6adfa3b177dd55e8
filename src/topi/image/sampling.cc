// SPDX-License-Identifier: Apache-2.0
// Nearest, linear and cubic interpolation between pixels, along any number of axes.
#include "topi/image/sampling.h"

namespace tvm::topi::image {
using namespace tir;

std::vector<size_t> SpatialOf(const char* op, const String& layout, size_t dims,
                              const Tensor& data) {
  std::vector<size_t> axes;
  size_t axis = 0;
  for (char c : std::string(layout)) {
    if (std::isdigit(static_cast<unsigned char>(c))) continue;  // the size of a block
    if (c == 'D' || c == 'H' || c == 'W') axes.push_back(axis);
    ++axis;
  }
  if (axes.size() != dims || axis != data->shape.size()) {
    Complain(op, "a layout with " + std::to_string(dims) + " of D, H, W for " + Text(data->shape),
             '"' + std::string(layout) + '"');
  }
  return axes;
}

namespace {
/// A pixel with a weight along one axis.
struct Tap {
  PrimExpr at, weight, inside;
};
PrimExpr Number(double value) { return MakeConst(DataType::Float(32), value); }

/// The cubic convolution kernel's weights of the four pixels around a fraction.
std::vector<PrimExpr> CubicWeights(const PrimExpr& t, double alpha) {
  PrimExpr a = Number(alpha), one = Number(1), two = Number(2), three = Number(3);
  PrimExpr t2 = t * t, t3 = t2 * t;
  return {a * (t3 - two * t2 + t), (a + two) * t3 - (a + three) * t2 + one,
          neg((a + two) * t3) + (two * a + three) * t2 - a * t, a * (t2 - t3)};
}
std::vector<Tap> TapsOf(const Sampler::Along& axis, const Sampler& sampler) {
  DataType index = axis.size.dtype();
  PrimExpr zero = MakeZero(index), last = axis.size - MakeConst(index, 1);
  auto tap = [&](const PrimExpr& at, const PrimExpr& weight) {
    PrimExpr brought = axis.bring ? axis.bring(at) : at;
    return Tap{tvm::max(tvm::min(brought, last), zero), weight, zero <= at && at <= last};
  };
  if (sampler.method == Method::kNearest) {
    if (axis.whole.defined()) return {{axis.whole, Number(1), const_true()}};
    return {tap(tvm::cast(index, axis.nearest), Number(1))};
  }
  PrimExpr below = tvm::floor(axis.at), part = axis.at - below;
  PrimExpr first = tvm::cast(index, below);
  if (sampler.method == Method::kLinear)
    return {tap(first, Number(1) - part), tap(first + MakeConst(index, 1), part)};
  std::vector<Tap> taps;
  std::vector<PrimExpr> weights = CubicWeights(part, sampler.alpha);
  for (int64_t k = 0; k < 4; ++k)
    taps.push_back(tap(first + MakeConst(index, k - 1), weights[static_cast<size_t>(k)]));
  if (!sampler.exclude) return taps;
  PrimExpr total = Number(0);
  for (Tap& t : taps) {
    t.weight = Select(t.inside, t.weight, Number(0));
    total = total + t.weight;
  }
  for (Tap& t : taps) t.weight = div(t.weight, total);
  return taps;
}
}  // namespace

PrimExpr Sampler::Sample(const std::function<PrimExpr(const Index&)>& pixel) const {
  std::vector<std::vector<Tap>> taps;
  for (const Along& axis : axes) taps.push_back(TapsOf(axis, *this));
  // All combinations of one tap per axis; the last axis is innermost.
  std::function<PrimExpr(size_t, Index, PrimExpr)> sum = [&](size_t axis, Index place,
                                                             PrimExpr inside) -> PrimExpr {
    if (axis == axes.size()) {
      PrimExpr value = pixel(place);
      if (method != Method::kNearest) value = tvm::cast(DataType::Float(32), value);
      return zeros ? if_then_else(inside, value, MakeZero(value.dtype())) : value;
    }
    PrimExpr total;
    for (const Tap& tap : taps[axis]) {
      Index next = place;
      next.push_back(tap.at);
      PrimExpr value = sum(axis + 1, next, inside && tap.inside);
      if (method == Method::kNearest) return value;
      total = total.defined() ? total + value * tap.weight : value * tap.weight;
    }
    return total;
  };
  return sum(0, {}, const_true());
}

}  // namespace tvm::topi::image
