// SPDX-License-Identifier: Apache-2.0
// Logarithms.
#include <cmath>

#include "value.h"

namespace tvm::math {
namespace {
// log(1 + f) = f - f^2 / 2 + f^3 q(f) for |f| <= 1/3: scripts/minimax.py log32
constexpr double kLog32[] = {0x1.555506p-2, -0x1.fffedep-3, 0x1.99d088p-3, -0x1.55a192p-3,
                             0x1.1ecf8ep-3, -0x1.f29996p-4, 0x1.1e8f58p-3, -0x1.0922c4p-3};
// log((1 + s) / (1 - s)) = 2 s + s u p(u) with u = s^2 <= 0.04: scripts/minimax.py log64
constexpr double kLog64[] = {0x1.555555555554fp-1, 0x1.999999999c17cp-2, 0x1.24924921e40ffp-2,
                             0x1.c71c749001acep-3, 0x1.745c4ac9753e2p-3, 0x1.3b35c3743ec54p-3,
                             0x1.0dcb635f47edep-3, 0x1.1b830d565274bp-3};

/// log(1 + f) - f = scale * value for -1/3 <= f < 1/3.
struct Product {
  Value scale, value;
};
Product Rest(Expansion& let, const Value& f) {
  Value square = let("square", f * f);
  if (f.dtype().bits() == 32) return {square, Fma(Expansion::Polynomial(kLog32, f), f, -0.5)};
  Value s = let("s", f / (f + 2.0));
  Value u = let("u", s * s);
  Value half = let("half", square * 0.5);
  return {Value(MakeConst(f.dtype(), 1.0)),
          Fma(s, Fma(Expansion::Polynomial(kLog64, u), u, half), -half)};
}

/// n log(2) + log(1 + f) to a base.
Value Combine(Expansion& let, const Value& n, const Value& f, Base base) {
  const Format& format = FormatOf(f);
  auto [scale, value] = Rest(let, f);
  if (base == Base::kE) {
    Split ln2 = kLn2.In(format);
    // float32 needs no low part: the rounding of log 2 is far below that of the result.
    Value tail = format.bits == 64 ? Fma(n, ln2.lo, value) + f : Fma(scale, value, f);
    return Fma(n, ln2.hi, tail);
  }
  Split unit = (base == Base::k2 ? kLog2E : kLog10E).In(format);
  Value low = let("low", Fma(f, unit.lo, scale * value * unit.hi));
  if (base == Base::k2) return n + Fma(f, unit.hi, low);
  Split step = kLog10Of2.In(format);
  return Fma(n, step.hi, Fma(f, unit.hi, Fma(n, step.lo, low)));
}
}  // namespace

Parts SplitExponent(Expansion& let, const Value& x) {
  const Format& f = FormatOf(x);
  int64_t two_thirds = f.bits == 64 ? 0x3fe5555555555555 : 0x3f2aaaab;
  Value i = let("i", Bits(x));
  Value e = let("e", (i - two_thirds) >> f.mantissa);
  return {e, let("f", FromBits(i - (e << f.mantissa)) - 1.0)};
}

Value Log(Expansion& let, const Value& x, Base base) {
  const Format& f = FormatOf(x);
  // Subnormal numbers are scaled up first.
  double shift = f.mantissa + 2;
  Value small = let("small", x < f.min_normal);
  Value scaled = let("scaled", Choose(small, x * std::ldexp(1.0, f.mantissa + 2), x));
  auto [e, fraction] = SplitExponent(let, scaled);
  Value exponent = let("exponent", CastTo(f.Float(), e));
  Value n = let("n", Choose(small, exponent - shift, exponent));
  Value result = Combine(let, n, fraction, base);
  // NaN for negative numbers and NaN.
  Value positive = Choose(x < kInf, result, x);
  return Choose(x > 0, positive, Choose(x == 0, Value(MakeConst(x.dtype(), -kInf)), kNaN));
}

/// With u = 1 + x rounded and c the part lost: log(u) + c / u, where c joins the fraction of u.
Value Log1p(Expansion& let, const Value& x) {
  const Format& format = FormatOf(x);
  Value u = let("u", x + 1.0);
  Value back = let("back", u - 1.0);
  Value lost = let("lost", (1.0 - (u - back)) + (x - back));
  auto [e, fraction] = SplitExponent(let, u);
  Value f = let("f", Fma(lost, PowerOfTwo(0 - AtMost(e, 100)), fraction));
  Value result = Combine(let, let("n", CastTo(format.Float(), e)), f, Base::kE);
  // Beyond 2^100 nothing is lost. A small x is its own logarithm; this also keeps the sign of 0.
  Value normal = Choose(Abs(x) < format.min_normal, x, result);
  Value inside = Choose(x < kInf, normal, x);
  return Choose(x > -1.0, inside, Choose(x == -1.0, Value(MakeConst(x.dtype(), -kInf)), kNaN));
}

}  // namespace tvm::math
