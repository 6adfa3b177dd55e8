// SPDX-License-Identifier: Apache-2.0
// Fourier transforms as sums: of whole rows, and of windows that move along a signal.
#include <numbers>

#include "topi/shape.h"

namespace tvm::topi {
using namespace tir;
namespace {
/// cos and sin of 2 pi k n / N. The product is reduced first: large angles lose their digits.
std::pair<PrimExpr, PrimExpr> Circle(const PrimExpr& k, const PrimExpr& n, const PrimExpr& count,
                                     DataType t) {
  PrimExpr part = floormod(k * n, count);
  PrimExpr angle = div(MakeConst(t, 2 * std::numbers::pi) * tvm::cast(t, part), tvm::cast(t, count));
  return {tvm::cos(angle), tvm::sin(angle)};
}
Array<Tensor> Dft(const Tensor& re_data, const Tensor& im_data, const PrimExpr& inverse) {
  constexpr const char* kOp = "dft";
  if (re_data->shape.empty()) Complain(kOp, "at least 1 dimension", "a scalar");
  CheckRank(kOp, "imaginary parts", im_data, re_data->shape.size());
  auto back = AsConstInt(inverse);
  if (!back) Complain(kOp, "inverse 0 or 1", "an expression");
  DataType t = re_data->dtype;
  const PrimExpr& count = re_data->shape[re_data->shape.size() - 1];
  auto result = [&](bool imaginary) {
    IterVar n = Along(count, "n");
    auto element = [&](const Index& i) {
      Index at = i;
      at.back() = n->var;
      auto [c, s] = Circle(i.back(), n->var, count, t);
      if (*back == 0) s = neg(s);
      PrimExpr re = At(re_data, at), im = At(im_data, at);
      return te::sum(imaginary ? re * s + im * c : re * c - im * s, {n});
    };
    const char* name = imaginary ? "dft_imaginary" : "dft_real";
    Tensor sum = Compute(re_data->shape, element, name, kCommReduce);
    if (*back == 0) return sum;
    return Compute(
        re_data->shape, [&](const Index& i) { return div(At(sum, i), tvm::cast(t, count)); }, name,
        kElementWise);
  };
  return {result(false), result(true)};
}
/// (batch, frequencies, frames, real and imaginary) of a signal (batch, samples).
Tensor Stft(const Tensor& data, const PrimExpr& n_fft, const PrimExpr& hop_length,
            const PrimExpr& win_length, const Optional<Tensor>& window, const PrimExpr& normalized,
            const PrimExpr& onesided, const Array<PrimExpr>& output_shape) {
  constexpr const char* kOp = "stft";
  CheckRank(kOp, "signals", data, 2);
  if (output_shape.size() != 4) Complain(kOp, "an output shape of 4 dimensions", Text(output_shape));
  auto scaled = AsConstInt(normalized);
  (void)onesided;  // the output shape says how many frequencies there are
  DataType t = data->dtype;
  PrimExpr begin = floordiv(n_fft - win_length, MakeConst(n_fft.dtype(), 2));
  auto part = [&](bool imaginary) {
    IterVar n = Along(win_length, "n");
    auto element = [&](const Index& i) {
      PrimExpr at = begin + n->var;
      auto [c, s] = Circle(i[1], at, n_fft, t);
      PrimExpr value = data(i[0], i[2] * hop_length + at);
      if (window) value = value * tvm::cast(t, window.value()(n->var));
      return te::sum(value * (imaginary ? neg(s) : c), {n});
    };
    return Compute({output_shape[0], output_shape[1], output_shape[2]}, element,
                   imaginary ? "stft_imaginary" : "stft_real", kCommReduce);
  };
  Tensor re = part(false), im = part(true);
  auto element = [&](const Index& i) {
    Index at(i.begin(), i.end() - 1);
    PrimExpr value = if_then_else(equal(i[3], MakeZero(i[3].dtype())), At(re, at), At(im, at));
    return scaled && *scaled ? div(value, tvm::sqrt(tvm::cast(t, n_fft))) : value;
  };
  return Compute(output_shape, element, "stft");
}

TVM_REGISTER() {
  Def("topi.dft", &Dft, "The discrete Fourier transform of rows, or back: real and imaginary part.",
      Arg("re_data"), Arg("im_data"), Arg("inverse"));
  Def("topi.stft", &Stft, "Fourier transforms of windows that move along a signal.", Arg("data"),
      Arg("n_fft"), Arg("hop_length"), Arg("win_length"), Arg("window"), Arg("normalized"),
      Arg("onesided"), Arg("output_shape"));
}
}  // namespace
}  // namespace tvm::topi
