// SPDX-License-Identifier: Apache-2.0
// Hyperbolic functions.
#include "value.h"

namespace tvm::math {
namespace {
// sinh(x) = x + x^3 p(x^2) for |x| <= 1: scripts/minimax.py sinh32 sinh64
constexpr double kSinh32[] = {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bcp-13, 0x1.756c1ep-19};
constexpr double kSinh64[] = {0x1.5555555555555p-3,  0x1.111111111119bp-7,  0x1.a01a01a00735cp-13,
                              0x1.71de3a68d0114p-19, 0x1.ae644122c9e45p-26, 0x1.61314d2e1f98ep-33,
                              0x1.a6656e2768c17p-41, 0x1.d29920735469dp-48};
}  // namespace

/// h / (h + 1) with h = (e^(2|x|) - 1) / 2. Near 0 the errors of h + 1 and of the quotient y would
/// add up to more than 2 units: there the same value is h - h y, where y is a small correction.
Value Tanh(Expansion& let, const Value& x) {
  Value a = let("a", AtMost(Abs(x), FormatOf(x).bits == 64 ? 20.0 : 10.0));
  Value h = let("h", HalfExpM1(let, let("b", a + a)));
  Value y = let("y", h / (h + 1.0));
  return CopySign(Choose(a < 0.375, Fma(-h, y, h), y), x);
}

namespace {
/// e^|x| / 2, infinite only where the functions below are.
Value HalfExp(Expansion& let, const Value& a) {
  double limit = FormatOf(a).bits == 64 ? 711 : 90;
  return let("e", ExpScaled(let, let("b", AtMost(a, limit)), -1));
}
}  // namespace

/// A polynomial up to 1, then e - 1 / (4 e) with e = e^|x| / 2.
Value Sinh(Expansion& let, const Value& x) {
  Table series = FormatOf(x).bits == 64 ? Table(kSinh64) : Table(kSinh32);
  Value a = let("a", Abs(x));
  Value square = let("square", a * a);
  Value near = Fma(Expansion::Polynomial(series, square) * square, a, a);
  Value e = HalfExp(let, a);
  return CopySign(Choose(a < 1.0, near, e - 0.25 / e), x);
}
/// e + 1 / (4 e)
Value Cosh(Expansion& let, const Value& x) {
  Value e = HalfExp(let, Abs(x));
  return e + 0.25 / e;
}

Value Asinh(Expansion& let, const Value& x) {
  if (x.dtype().bits() == 32) return Widened(let, Asinh, x);
  Value a = let("a", Abs(x));
  Value is_large = let("is_large", a > 0x1p28);
  Value square = let("square", a * a);
  Value t = a + square / (Sqrt(Fma(a, a, 1.0)) + 1.0);
  Value y = Log1p(let, let("t", Choose(is_large, a - 1.0, t)));
  return CopySign(let("y", y) + Choose(is_large, Value(MakeConst(x.dtype(), kLn2.in64.hi)), 0.0),
                  x);
}
Value Acosh(Expansion& let, const Value& x) {
  if (x.dtype().bits() == 32) return Widened(let, Acosh, x);
  Value is_large = let("is_large", x > 0x1p28);
  Value t = let("u", x - 1.0);
  Value y = Log1p(let, let("t", Choose(is_large, t, t + Sqrt(t * (t + 2.0)))));
  y = let("y", y) + Choose(is_large, Value(MakeConst(x.dtype(), kLn2.in64.hi)), 0.0);
  return Choose(x < 1.0, kNaN, y);
}
Value Atanh(Expansion& let, const Value& x) {
  if (x.dtype().bits() == 32) return Widened(let, Atanh, x);
  Value a = let("a", Abs(x));
  return CopySign(Log1p(let, let("t", (a + a) / (1.0 - a))) * 0.5, x);
}

}  // namespace tvm::math
