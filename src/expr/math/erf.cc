// SPDX-License-Identifier: Apache-2.0
// The error function.
#include "value.h"

namespace tvm::math {
namespace {
// erf(x) = x + x p(x^2) near 0: scripts/minimax.py erf32 erf64
constexpr double kErf32[] = {0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2ce6p-4, -0x1.b7f714p-6,
                             0x1.53f1bep-8, -0x1.a34dp-11,  0x1.476278p-14};
constexpr double kErf64[] = {0x1.06eba8214db69p-3,   -0x1.812746b037a3dp-2,  0x1.ce2f21a0481f4p-4,
                             -0x1.b82ce314a70dcp-6,  0x1.565bcd7e0f21dp-8,   -0x1.c02dcf92cafa9p-11,
                             0x1.f9a7919b9c507p-14,  -0x1.f54d662e677a6p-17, 0x1.c33d39b34d8ccp-20,
                             -0x1.df538f781e74ep-23, 0x1.72f19bcf16f7fp-24,  -0x1.030bee719a1cdp-24,
                             0x1.12f7dfdeafbe3p-25,  -0x1.5d2fb810f5e5ep-27, 0x1.8cd84b239daaap-30};
// erf(x) = 1 - 2^q(x - low) up to where it is 1: scripts/minimax.py erfc32 erfc64
constexpr double kErfc32[] = {-0x1.558eaep+1, -0x1.e75308p+1, -0x1.37661p+0, -0x1.e915f6p-5,
                              0x1.c946e8p-7,  -0x1.38897ep-9, 0x1.9ebeaep-13};
constexpr double kErfc64[] = {
    -0x1.558eada6637f3p+1,  -0x1.e75328fe78c2dp+1, -0x1.37627e9b5d949p+0,  -0x1.eb31368595ddap-5,
    0x1.da5763f5f882cp-7,   -0x1.7603d5ad77c81p-9, 0x1.6700e7192c52ep-12,  0x1.3e571a83e043fp-15,
    -0x1.4970bcdbd6d74p-15, 0x1.d65ee26615f38p-17, -0x1.a9a5e0dbb9d64p-19, 0x1.ac900f267f11dp-22,
    -0x1.a9b72a0b9eec8p-33, 0x1.5ba201eebfd33p-29, -0x1.6691dc6ea78c5p-27, 0x1.7bb0d32c40c11p-28,
    -0x1.a88859994cb1fp-30, 0x1.1bd33ea1d852ep-32, -0x1.af4b68479a94p-36,  0x1.204eb38101b9bp-40};
// 2^r for |r| <= 1/2: scripts/minimax.py exp2_32 exp2_64
constexpr double kExp2In32[] = {0x1.000002p+0, 0x1.62e42ep-1, 0x1.ebf7fap-3,
                                0x1.c6ae26p-5, 0x1.3d619ep-7, 0x1.60b1bp-10};
constexpr double kExp2In64[] = {0x1p+0,
                                0x1.62e42fefa39efp-1,
                                0x1.ebfbdff82c58ep-3,
                                0x1.c6b08d704a1c3p-5,
                                0x1.3b2ab6fba5267p-7,
                                0x1.5d87fe7879e4bp-10,
                                0x1.430912f6daeb8p-13,
                                0x1.ffcbfd25d379cp-17,
                                0x1.62c02a15338a4p-20,
                                0x1.b5238876c1204p-24,
                                0x1.e4adc78a7e388p-28,
                                0x1.ebe0edc25a4bcp-32,
                                0x1.f71ada2a14d36p-36};
struct Pieces {
  double high;  // from here on the result is 1
  Table near, exponent, power;
};
}  // namespace

/// x + x p(x^2) up to 1, else 1 - 2^q(x - 1) with the sign of x: that power is small, so that the
/// errors of q and of the power hardly count.
Value Erf(Expansion& let, const Value& x) {
  const Format& f = FormatOf(x);
  static const Pieces pieces[] = {{4, kErf32, kErfc32, kExp2In32}, {6, kErf64, kErfc64, kExp2In64}};
  const Pieces& use = pieces[f.bits == 64];
  Value a = let("a", AtMost(Abs(x), use.high));
  Value is_near = let("is_near", a < 1.0);
  auto [p, q] =
      let.Either(is_near, use.near, let("square", a * a), use.exponent, let("b", a - 1.0));
  Value t = let("t", q + f.rounder);
  Value n = let("n", t - f.rounder);
  Value r = let("r", q - n);
  Value power = Expansion::Polynomial(use.power, r);
  Value far =
      let.CanScale(x.dtype()) ? 1.0 - let.Scaled(power, n) : Fma(-power, PowerOfTwo(Bits(t)), 1.0);
  return CopySign(Choose(is_near, Fma(p, a, a), far), x);
}

}  // namespace tvm::math
