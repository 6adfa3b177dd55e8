// SPDX-License-Identifier: Apache-2.0
// Powers: x^y = 2^(y log2|x|), with the logarithm in more digits than the result.
#include "value.h"

namespace tvm::math {
namespace {
// log(1 + f) = f - f^2 / 2 + f^3 q(f) for |f| <= 1/3: scripts/minimax.py pow_log32
constexpr double kPowLog32[] = {
    0x1.5555553d4667fp-2, -0x1.00000094d063p-2,  0x1.9999bae64e79ap-3, -0x1.555574ac17d45p-3,
    0x1.248a6a52700d8p-3, -0x1.ffd704010878p-4,  0x1.c8c5447f5e083p-4, -0x1.9e0ca38be4b52p-4,
    0x1.5e861a84cae03p-4, -0x1.23cdbca902449p-4, 0x1.c158420cf26e9p-4, -0x1.02ed48f6ee8d5p-3};
// log((1 + s) / (1 - s)) = 2 s + 2/3 s^3 + s^5 q(s^2) for s^2 <= 0.04: scripts/minimax.py pow_log64
constexpr double kPowLog64[] = {0x1.999999999999ap-2, 0x1.2492492492357p-2, 0x1.c71c71c74828dp-3,
                                0x1.745d172d30617p-3, 0x1.3b13b9496a5cbp-3, 0x1.110f7206e70f6p-3,
                                0x1.e24a0f4a8d03ap-4, 0x1.a73d4dfe49f0ap-4, 0x1.da81528c9e33p-4};

/// |x|^y for float32, in float64.
Value Magnitude32(Expansion& let, const Value& x, const Value& y) {
  DataType wide = DataType::Float(64);
  Value a = let("a", Abs(CastTo(wide, x)));
  auto [e, f] = SplitExponent(let, a);
  Value square = let("square", f * f);
  Value log = Fma(square, Fma(Expansion::Polynomial(kPowLog32, f), f, -0.5), f);
  Value log2 = Fma(log, kLog2E.in64.hi, CastTo(wide, e));
  log2 = Choose(a == 0, -kInf, Choose(a < kInf, log2, a));
  Value product = AtLeast(AtMost(let("product", CastTo(wide, y) * log2), 200.0), -200.0);
  return CastTo(DataType::Float(32), Exp2For32(let, let("exponent", product)));
}

/// A sum of two numbers, the second one below the last digit of the first.
struct Double {
  Value hi, lo;
};
/// a * b
Double Product(Expansion& let, const Value& a, const Double& b) {
  Value hi = let("hi", Rounded(a, b.hi));
  return {hi, let("lo", Fma(a, b.lo, Fma(a, b.hi, -hi)))};
}
/// log2 of a positive number: some 10 bits more than float64 has.
Double Log2(Expansion& let, const Value& a) {
  auto constant = [&](double c) { return Value(MakeConst(a.dtype(), c)); };
  const Format& format = FormatOf(a);
  Value is_small = let("is_small", a < format.min_normal);
  auto [e, f] = SplitExponent(let, let("scaled", Choose(is_small, a * 0x1p54, a)));
  Value exponent = let("exponent", CastTo(format.Float(), e));
  Value n = let("n", Choose(is_small, exponent - 54.0, exponent));
  // s = f / (2 + f), u = s^2
  Value d = let("d", f + 2.0);
  Value s = let("s", f / d);
  Value s_lo = let("s_lo", Fma(-s, f - (d - 2.0), Fma(-s, d, f)) / d);
  Value u = let("u", s * s);
  Value u_lo = let("u_lo", Fma(s + s, s_lo, Fma(s, s, -u)));
  Double cube = Product(let, s, {u, u_lo});
  cube.lo = let("cube_lo", Fma(s_lo, u, cube.lo));
  Double two_thirds{constant(0x1.5555555555555p-1), constant(0x1.5555555555555p-55)};
  Double term = Product(let, cube.hi, two_thirds);
  Value rest =
      Fma(Expansion::Polynomial(kPowLog64, u), cube.hi * u, Fma(cube.lo, two_thirds.hi, term.lo));
  Value twice = let("twice", s + s);
  Value log = let("log", twice + term.hi);
  Value log_lo = let("log_lo", ((twice - log) + term.hi) + (rest + (s_lo + s_lo)));
  Double scaled = Product(let, log, {constant(kLog2E.in64.hi), constant(kLog2E.in64.lo)});
  Value hi = let("log2", n + scaled.hi);
  Value lo = ((n - hi) + scaled.hi) + Fma(log_lo, kLog2E.in64.hi, scaled.lo);
  return {hi, let("log2_lo", lo)};
}
Value Magnitude64(Expansion& let, const Value& x, const Value& y) {
  Value a = let("a", Abs(x));
  Double log2 = Log2(let, a);
  Double product = Product(let, y, log2);
  // Where the logarithm is infinite or the product far out, only its sign counts.
  Value hi = let("hi", Choose(a == 0, y * -kInf, Choose(a < kInf, product.hi, y * a)));
  Value is_far = let("is_far", !(Abs(hi) < 1100.0));
  Value lo = Choose(is_far, 0.0, product.lo);
  return Exp2OfSum(let, let("exponent", AtLeast(AtMost(hi, 1100.0), -1100.0)), let("lo", lo));
}

/// x^y for the exponents that are written as products and roots, if y is one of them.
std::optional<Value> ByConstant(Expansion& let, const Value& x, const Value& y) {
  auto* broadcast = y.expr.as<tir::BroadcastObj>();
  auto* constant = (broadcast ? broadcast->value : y.expr).as<FloatImmObj>();
  if (!constant) return std::nullopt;
  if (constant->value == 1) return x;
  if (constant->value == 2) return x * x;
  if (constant->value == 3) return x * x * x;
  if (constant->value == 4) {
    Value square = let("square", x * x);
    return square * square;
  }
  if (constant->value == -1) return 1.0 / x;
  if (constant->value == 0.5) return Choose(x == -kInf, kInf, Sqrt(x + 0.0));  // -0 gives +0
  return std::nullopt;
}
}  // namespace

Value Pow(Expansion& let, const Value& x, const Value& y) {
  if (auto simple = ByConstant(let, x, y)) return *simple;
  bool is_double = x.dtype().bits() == 64;
  Value magnitude = is_double ? Magnitude64(let, x, y) : Magnitude32(let, x, y);
  // |x| = 1 would make NaN of an infinite y.
  magnitude = let("magnitude", Choose(Abs(x) == 1.0 && !IsNaN(y), 1.0, magnitude));
  Value half = let("half_y", y * 0.5);
  Value is_integer = let("is_integer", Trunc(y) == y);
  Value is_odd = is_integer && (Trunc(half) != half);
  Value result = Choose(Bits(x) < 0 && is_odd, -magnitude, magnitude);
  Value is_undefined = (x < 0) && (x > -kInf) && !is_integer;
  return Choose(x == 1.0 || y == 0.0, 1.0, Choose(is_undefined, kNaN, result));
}

}  // namespace tvm::math
