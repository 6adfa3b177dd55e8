// SPDX-License-Identifier: Apache-2.0
// Signals: windows, Fourier transforms, mel scales, columns of images.
#include <cmath>

#include "frontend/onnx/op/axes.h"
#include "frontend/onnx/op/window.h"

namespace tvm::frontend::onnx {
namespace {
constexpr double kTau = 6.283185307179586;
const DataType kDouble = DataType::Float(64);

// ---- windows: a0 - a1 cos(2πi/n) + a2 cos(4πi/n) ------------------------------------------------
Expr CosineWindow(Node& n, double a0, double a1, double a2) {
  bool periodic = n.Int("periodic", 1) != 0;
  DataType to = n.Type("output_datatype", DataType::Float(32));
  PrimExpr size = n.Integer(0);
  Te te(n);
  PrimExpr length = te(size);
  PrimExpr period = max(periodic ? length : length - Num(1), Num(1));
  return ComputeElements(n, "window", te, {length}, [&](const Index& i) {
    PrimExpr angle = div(tvm::cast(kDouble, i[0]) * Num(kDouble, kTau), tvm::cast(kDouble, period));
    PrimExpr value = Num(kDouble, a0) - Num(kDouble, a1) * cos(angle) +
                     Num(kDouble, a2) * cos(angle * Num(kDouble, 2));
    return tvm::cast(to, value);
  });
}
Outputs ConvertHannWindow(Node& n) { return CosineWindow(n, 0.5, 0.5, 0); }
Outputs ConvertHammingWindow(Node& n) { return CosineWindow(n, 25.0 / 46, 21.0 / 46, 0); }
Outputs ConvertBlackmanWindow(Node& n) { return CosineWindow(n, 0.42, 0.5, 0.08); }

// ---- Fourier transforms, by their definition ----------------------------------------------------
struct Sample {
  PrimExpr re, im;
};
/// The imaginary part where the last axis has two elements, which only running may tell; else 0.
template <class F>
PrimExpr SecondPart(const te::Tensor& t, F part) {
  PrimExpr parts = t->shape.back(), none = MakeZero(t->dtype);
  if (AsConstInt(parts)) return *AsConstInt(parts) == 2 ? part() : none;
  return if_then_else(equal(parts, Num(2)), part(), none);
}
/// Sum over `length` samples of (re, im) · exp(∓2πi·k·t / length) as (re, im).
te::Tensor Transform(const Dims& shape, size_t frequency_axis, const PrimExpr& length, bool inverse,
                     const std::function<Sample(const Index& at, const PrimExpr& t)>& sample,
                     DataType dtype) {
  te::Tensor sums = topi::Compute(
      shape,
      [&](const Index& i) {
        te::IterVar t = topi::Along(length, "t");
        auto [re, im] = sample(i, t->var);
        PrimExpr k = i[frequency_axis];
        // The angle is reduced as an integer: it stays exact for long signals.
        PrimExpr turn = tvm::cast(kDouble, floormod(k * t->var, length));
        PrimExpr angle =
            div(turn * Num(kDouble, inverse ? kTau : -kTau), tvm::cast(kDouble, length));
        PrimExpr c = cos(angle), s = sin(angle);
        re = tvm::cast(kDouble, re);
        im = tvm::cast(kDouble, im);
        return te::sum(tir::Select(equal(i.back(), Num(0)), re * c - im * s, re * s + im * c), {t});
      },
      "dft", topi::kCommReduce);
  return topi::Compute(
      shape,
      [&](const Index& i) {
        PrimExpr sum = topi::At(sums, i);
        return tvm::cast(dtype, inverse ? div(sum, tvm::cast(kDouble, length)) : sum);
      },
      "scaled");
}
/// The shape of a transform whose named axis was moved behind the others for it.
Dims ShapeMovedBack(Node& n, Dims shape, const RuntimeAxes& axes, const Dims& moved) {
  size_t last = shape.size() - 1;
  for (size_t i = 0; i < last; ++i)
    shape.Set(i, n.Simplify(tir::Select(axes.named[i], moved[last - 1], shape[i])));
  shape.Set(last, moved[last]);
  return shape;
}
Outputs ConvertDFT(Node& n) {
  Expr x = n.In(0);
  int64_t rank = Node::Rank(x);
  bool inverse = n.Int("inverse", 0) != 0, onesided = n.Int("onesided", 0) != 0;
  // The axis was an attribute with another default once.
  int64_t axis = n.opset < 20 ? 1 : -2;
  std::optional<RuntimeAxes> named;
  Dims whole = Node::Shape(x);
  if (n.Has(2)) {
    auto given = n.TryConstInts(2);
    if (!given) {
      // The parts stay behind it.
      named = ReadAxes(n, 2, rank - 1, 1);
      named->named.push_back(const_false());
      named->place.push_back(Num(rank - 1));
      x = NamedAxesLast(n, x, *named);
    }
    axis = given ? given->at(0) : -2;
  }
  axis = n.Axis(axis, rank);
  PrimExpr length = n.Has(1) ? n.Integer(1) : Node::Shape(x)[axis];
  Te te(n);
  te::Tensor t = te(x);
  PrimExpr size = te(length), have = t->shape[axis];
  Dims shape = t->shape;
  // A real signal comes out of the half of its spectrum.
  bool to_real = inverse && onesided;
  PrimExpr given = have;
  if (to_real && !n.Has(1)) size = n.Simplify((have - Num(1)) * Num(2));
  shape.Set(axis, onesided && !inverse ? n.Simplify(floordiv(size, Num(2)) + Num(1)) : size);
  shape.Set(rank - 1, Num(to_real ? 1 : 2));
  auto sample = [&](const Index& i, const PrimExpr& at) {
    auto part = [&](int64_t p) {
      Index from = i;
      PrimExpr place = at, sign = Num(t->dtype, 1);
      if (to_real) {
        PrimExpr mirrored = at >= given;
        place = tir::Select(mirrored, size - at, at);
        if (p == 1) sign = tir::Select(mirrored, Num(t->dtype, -1), Num(t->dtype, 1));
      }
      from[axis] = place;
      from[rank - 1] = Num(p);
      return if_then_else(place < given, sign * topi::At(t, from), MakeZero(t->dtype));
    };
    return Sample{part(0), SecondPart(t, [&] { return part(1); })};
  };
  Expr y = te.Done("dft", Transform(shape, axis, size, inverse, sample, t->dtype));
  return named ? NamedAxesBack(n, y, *named, ShapeMovedBack(n, whole, *named, Node::Shape(y))) : y;
}
Outputs ConvertSTFT(Node& n) {
  Expr signal = n.In(0);
  bool onesided = n.Int("onesided", 1) != 0;
  PrimExpr step = n.Integer(1);
  if (!n.Has(2) && !n.Has(3)) n.Fail("a window or a frame_length", "neither");
  PrimExpr length = n.Has(3) ? n.Integer(3) : Node::Shape(n.In(2))[0];
  Te te(n);
  te::Tensor t = te(signal);
  std::optional<te::Tensor> window;
  if (n.Has(2)) window = te(n.In(2));
  PrimExpr frame = te(length), hop = te(step);
  PrimExpr frames = n.Simplify(floordiv(t->shape[1] - frame, hop) + Num(1));
  PrimExpr bins = onesided ? n.Simplify(floordiv(frame, Num(2)) + Num(1)) : frame;
  Dims shape{t->shape[0], frames, bins, Num(2)};
  auto sample = [&](const Index& i, const PrimExpr& at) {
    auto part = [&](int64_t p) {
      Index from{i[0], i[1] * hop + at};
      if (t->shape.size() == 3) from.push_back(Num(p));
      PrimExpr e = topi::At(t, from);
      return window ? e * (*window)(at) : e;
    };
    PrimExpr none = MakeZero(t->dtype);
    return Sample{part(0), t->shape.size() == 3 ? SecondPart(t, [&] { return part(1); }) : none};
  };
  return te.Done("stft", Transform(shape, 2, frame, false, sample, t->dtype));
}
/// Triangles over the bins of a spectrum, evenly apart on the scale of pitches.
Outputs ConvertMelWeightMatrix(Node& n) {
  DataType to = n.Type("output_datatype", DataType::Float(32)), real = DataType::Float(64);
  PrimExpr bands = n.Integer(0), length = n.Integer(1);
  PrimExpr bins = n.Simplify(floordiv(length, Num(2)) + Num(1));
  Te te(n);
  auto scalar = [&](size_t i) {
    auto known = n.ScalarOf(i);
    return tvm::cast(real, known ? te(*known) : te(n.Reshape(n.In(i), {}))(Array<PrimExpr>()));
  };
  auto number = [&](double v) { return MakeConst(real, v); };
  auto mel = [&](const PrimExpr& hertz) {
    return number(2595) * tvm::log10(number(1) + div(hertz, number(700)));
  };
  PrimExpr rate = scalar(2), first = mel(scalar(3));
  PrimExpr step = div(mel(scalar(4)) - first, tvm::cast(real, te(bands) + Num(2)));
  auto edge = [&](const PrimExpr& i) {
    PrimExpr pitch = tvm::cast(real, i) * step + first;
    PrimExpr hertz = number(700) * (tvm::pow(number(10), div(pitch, number(2595))) - number(1));
    return tvm::floor(div(tvm::cast(real, te(length) + Num(1)) * hertz, rate));
  };
  return ComputeElements(n, "mel", te, {te(bins), te(bands)}, [&](const Index& i) {
    PrimExpr bin = tvm::cast(real, i[0]), left = edge(i[1]), top = edge(i[1] + Num(1)),
             right = edge(i[1] + Num(2));
    PrimExpr falling = div(right - bin, right - top), rising = div(bin - left, top - left);
    PrimExpr value = tir::Select(bin >= top && bin < right, falling,
                                 tir::Select(bin >= left && bin < top, rising,
                                             tir::Select(equal(bin, top), number(1), number(0))));
    return tvm::cast(to, value);
  });
}

// ---- columns ------------------------------------------------------------------------------------
/// Adds the blocks in the columns up to an image.
Outputs ConvertCol2Im(Node& n) {
  Expr x = n.In(0);
  std::optional<int64_t> axes = n.DeclaredRank(0);
  if (axes) *axes -= 2;
  std::vector<PrimExpr> image = n.Integers(1, axes), block = n.Integers(2, axes);
  size_t rank = block.size();
  auto strides = n.Ints("strides", std::vector<int64_t>(rank, 1));
  auto dilations = n.Ints("dilations", std::vector<int64_t>(rank, 1));
  auto pads = n.Ints("pads", std::vector<int64_t>(2 * rank, 0));
  if (image.size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank)
    n.Fail("sizes for " + std::to_string(rank) + " axes", "others");
  Te te(n);
  te::Tensor t = te(x);
  std::vector<PrimExpr> dims = te(image), counts, taps = te(block);
  Dims shape{t->shape[0], n.Simplify(floordiv(t->shape[1], ProductOf(DimsOf(taps))))};
  for (size_t a = 0; a < rank; ++a) {
    shape.push_back(dims[a]);
    counts.push_back(n.Simplify(floordiv(dims[a] + Num(pads[a] + pads[a + rank] - 1) -
                                             Num(dilations[a]) * (taps[a] - Num(1)),
                                         Num(strides[a])) +
                                Num(1)));
  }
  return te.Done("col2im",
                 topi::Compute(
                     shape,
                     [&](const Index& i) {
                       Array<te::IterVar> axes;
                       PrimExpr row = i[1], column = Num(0), inside = const_true();
                       for (size_t a = 0; a < rank; ++a) {
                         te::IterVar k = topi::Along(taps[a], "k" + std::to_string(a));
                         axes.push_back(k);
                         PrimExpr at = i[a + 2] + Num(pads[a]) - k->var * Num(dilations[a]);
                         PrimExpr w = floordiv(at, Num(strides[a]));
                         inside = inside && equal(floormod(at, Num(strides[a])), Num(0)) &&
                                  w >= Num(0) && w < counts[a];
                         row = row * taps[a] + k->var;
                         column = column * counts[a] + w;
                       }
                       return te::sum(
                           if_then_else(inside, t(i[0], row, column), MakeZero(t->dtype)), axes);
                     },
                     "col2im", topi::kCommReduce));
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"BlackmanWindow", &ConvertBlackmanWindow},
      {"Col2Im", &ConvertCol2Im},
      {"DFT", &ConvertDFT},
      {"HammingWindow", &ConvertHammingWindow},
      {"HannWindow", &ConvertHannWindow},
      {"MelWeightMatrix", &ConvertMelWeightMatrix},
      {"STFT", &ConvertSTFT},
  });
}

}  // namespace tvm::frontend::onnx
