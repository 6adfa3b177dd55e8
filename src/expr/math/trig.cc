// SPDX-License-Identifier: Apache-2.0
// Sine, cosine and tangent.
#include <optional>

#include "value.h"

namespace tvm::math {
namespace {
// sin(r) = r + r^3 p(r^2) for |r| <= pi/4: scripts/minimax.py sin32 sin64
constexpr double kSin32[] = {-0x1.555546p-3, 0x1.110778p-7, -0x1.9954p-13};
constexpr double kSin64[] = {-0x1.5555555555555p-3, 0x1.1111111111069p-7,   -0x1.a01a019ffe522p-13,
                             0x1.71de3a33a5537p-19, -0x1.ae642c515c3c3p-26, 0x1.6109bd34378d9p-33,
                             -0x1.9ffd544ec14a8p-41};
// cos(r) = 1 - r^2 / 2 + r^4 p(r^2) for |r| <= pi/4: scripts/minimax.py cos32 cos64
constexpr double kCos32[] = {1, -0.5, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e80cp-16};
constexpr double kCos64[] = {1,
                             -0.5,
                             0x1.555555555554bp-5,
                             -0x1.6c16c16c15013p-10,
                             0x1.a01a019c8ed07p-16,
                             -0x1.27e4f7f1410b2p-22,
                             0x1.1ee9db8e29925p-29,
                             -0x1.8fa65e8b8d7ccp-37};
// tan(r) = r + r^3 p(r^2) for |r| <= pi/4: scripts/minimax.py tan32 tan64
constexpr double kTan32[] = {0x1.5554dep-2, 0x1.112deap-3, 0x1.b5851ep-5,
                             0x1.9072ap-6,  0x1.96847cp-9, 0x1.33e7c6p-7};
constexpr double kTan64[] = {0x1.5555555555555p-2,   0x1.111111111118cp-3,  0x1.ba1ba1ba13defp-5,
                             0x1.664f4884bd584p-6,   0x1.226e351109c07p-7,  0x1.d6d3e03674ee5p-9,
                             0x1.7da25927f052bp-10,  0x1.356510bab5cbap-11, 0x1.f4959d07f8167p-13,
                             0x1.9c6bb3e494d44p-14,  0x1.2d565f6016714p-15, 0x1.69ce0ed502c98p-16,
                             0x1.d265b7817b05ep-24,  0x1.bc930d2c0587ap-18, 0x1.9a8907392e97ap-21,
                             -0x1.22b51336c9906p-20, 0x1.214f13187e847p-20};

/// The bits of 2^-kPadding / 2 pi in words of 32.
constexpr int kPadding = 16;
constexpr uint32_t kInversePi[] = {
    0x000028be, 0x60db9391, 0x054a7f09, 0xd5f47d4d, 0x377036d8, 0xa5664f10, 0xe4107f94, 0x58eaf7ae,
    0xf1586dc9, 0x1b8e9093, 0x74b80192, 0x4bba8274, 0x64873f87, 0x7ac72c4a, 0x69cfba20, 0x8d7d4bae,
    0xd1213a67, 0x1c09ad17, 0xdf904e64, 0x758e60d4, 0xce7d2721, 0x17e2ef7e, 0x4a0ec7fe, 0x25fff781,
    0x6603fbcb, 0xc462d682, 0x9b47db4d, 0x9fb3c9f2, 0xc26dd3d1, 0x8fd9a797, 0xfa8b5d49, 0xeeb1faf9,
    0x7c5ecf41, 0xce7de294, 0xa4ba9afe, 0xd7ec47e3, 0x57421580, 0xcc11bf1e, 0xdaeafc33};

/// x = n pi/2 + r + lo with |r| <= pi/4; only the low two bits of `n` count. float32 does without
/// lo: its functions have fewer roundings to add to that of r.
struct Angle {
  Value n, r;
  std::optional<Value> lo;
};

/// The remainder of x - n pi/2 with pi/2 as the sum of three numbers. The first step is exact up to
/// Near(): the difference is below 1 and a multiple of the last digit of pi/2. All parts are
/// positive, which keeps the sign of a zero.
Angle ReduceNear(Expansion& let, const Value& x, bool with_lo) {
  const Format& f = FormatOf(x);
  struct {
    double hi, mid, lo;
  } pi_2[] = {{0x1.921fb4p+0, 0x1.4442dp-24, 0x1.846988p-48},
              {0x1.921fb54442d18p+0, 0x1.1a62633145c06p-54, 0x1.c1cd129024e08p-107}};
  auto [hi, mid, lo] = pi_2[f.bits == 64];
  Value t = let("t", Fma(x, f.bits == 64 ? 0x1.45f306dc9c883p-1 : 0x1.45f306p-1, f.rounder));
  Value n = let("n", t - f.rounder);
  Value first = let("first", Fma(n, -hi, x));
  Value bits = let("bits", Bits(t));
  if (!with_lo) return {bits, let("r", Fma(n, -lo, Fma(n, -mid, first))), std::nullopt};
  // The difference with what its rounding loses, which may be more than a unit of a small r.
  Value product = let("product", Rounded(n, mid));
  Value r = let("r", first - product);
  Value back = let("back", r - first);
  Value lost = (first - (r - back)) - (product + back);
  return {bits, r, let("lo", lost - Fma(n, lo, Fma(n, mid, -product)))};
}
/// Beyond, the rounding of 2/pi would make |r| exceed pi/4 by too much.
double Near(const Format& f) { return f.bits == 64 ? 0x1p40 : 0x1p17; }

/// `count` words of 32 bits of 2^(shift - kPadding) / 2 pi modulo 1, each in an integer of 64.
std::vector<Value> Window(Expansion& let, const Value& shift, size_t count, int levels) {
  DataType t = shift.dtype();
  // Pairs of neighbours, of which a shift takes the word that straddles them. The upper bits of the
  // shift choose the first pair by halving.
  std::vector<Value> pairs;
  for (size_t i = 0; i + 1 < std::size(kInversePi); ++i) {
    uint64_t pair = uint64_t{kInversePi[i]} << 32 | kInversePi[i + 1];
    pairs.emplace_back(MakeConst(t, static_cast<int64_t>(pair)));
  }
  for (int level = levels - 1; level >= 0; --level) {
    size_t step = size_t{1} << level, kept = count + step - 1;
    Value is_set = let("is_set", (shift & static_cast<int64_t>(step << 5)) != 0);
    for (size_t i = 0; i < kept; ++i)
      pairs[i] = let("p", Choose(is_set, pairs[i + step], pairs[i]));
    pairs.erase(pairs.begin() + kept, pairs.end());
  }
  Value rest = let("rest", shift & int64_t{31});
  for (Value& pair : pairs) pair = let("w", (pair << rest) >> int64_t{32});
  return pairs;
}

/// For any finite |x| from Near() on: the product of its digits with as many bits of 1 / 2 pi as
/// can matter, in integers (Payne and Hanek). A turn is 2^64, so that whole turns drop out.
Angle ReduceFar(Expansion& let, const Value& x, bool with_lo) {
  const Format& f = FormatOf(x);
  DataType u64 = DataType::UInt(64), i64 = DataType::Int(64), f64 = DataType::Float(64);
  constexpr int64_t kWord = 0xffffffff;
  Value i = let("i", CastTo(u64, Reinterpret(DataType::UInt(f.bits), Abs(x))));
  int64_t implicit = int64_t{1} << f.mantissa;
  Value digits = let("digits", (i & (implicit - 1)) | implicit);
  Value shift = let("shift", (i >> int64_t{f.mantissa}) - int64_t{f.bias + f.mantissa - kPadding});
  Value turn(PrimExpr{}), below(PrimExpr{});
  if (f.bits == 32) {
    auto w = Window(let, shift, 3, 2);
    turn = ((digits * w[0]) << int64_t{32}) + digits * w[1] + ((digits * w[2]) >> int64_t{32});
    turn = let("turn", turn);
  } else {
    // Schoolbook multiplication of two words with six, the columns below the first one.
    auto w = Window(let, shift, 6, 5);
    Value low = let("low", digits & kWord), high = let("high", digits >> int64_t{32});
    std::vector<Value> by_low, by_high;
    for (const Value& word : w) {
      by_low.push_back(let("a", low * word));
      by_high.push_back(let("b", high * word));
    }
    Value carry(MakeConst(u64.with_lanes(x.dtype().raw_lanes()), 0));
    std::vector<Value> column(4, carry);
    for (int c = 3; c >= 0; --c) {
      Value sum =
          let("sum", (by_low[c] & kWord) + (by_high[c + 1] & kWord) +
                         (by_low[c + 1] >> int64_t{32}) + (by_high[c + 2] >> int64_t{32}) + carry);
      column[c] = sum & kWord;
      carry = sum >> int64_t{32};
    }
    turn = let("turn", (column[0] << int64_t{32}) | column[1]);
    below = let("below", (column[2] << int64_t{32}) | column[3]);
  }
  Value quadrant = (turn + (int64_t{1} << 61)) >> int64_t{62};
  Value is_negative = let("is_negative", x < 0);
  Value n = let("n", CastTo(f.Int(), quadrant));
  n = let("n", Choose(is_negative, 0 - n, n));
  auto with_sign = [&](const char* name, const Value& r) {
    return let(name, Choose(is_negative, -r, r) + (x - x));  // x - x makes a NaN of an infinity
  };
  // The distance to the nearest multiple of a quarter turn, as a fraction of it: 2^64 is all.
  constexpr Split kUnit{0x1.921fb54442d18p-64, 0x1.1a62633145c07p-118};  // pi/2 2^-64
  if (f.bits == 32) {
    Value wide = let("wide", CastTo(f64, CastTo(i64, turn << int64_t{2})) * kUnit.hi);
    Value r = with_sign("r", CastTo(f.Float(), wide));
    if (!with_lo) return {n, r, std::nullopt};
    return {n, r, let("lo", CastTo(f.Float(), Choose(is_negative, -wide, wide) - CastTo(f64, r)))};
  }
  // As a sum of numbers that are exact, then of two.
  Value distance = let("distance", CastTo(i64, (turn << int64_t{2}) | (below >> int64_t{62})));
  Value a = let("a", CastTo(f64, (distance >> 32) << 32));
  Value b = let("b", CastTo(f64, distance & kWord));
  Value c = CastTo(f64, CastTo(i64, (below << int64_t{2}) >> int64_t{1}));
  Value hi = let("hi", a + b);
  Value lo = let("rest", Fma(c, 0x1p-63, b - (hi - a)));
  Value product = let("product", Rounded(hi, kUnit.hi));
  Value tail = let("tail", Fma(hi, kUnit.lo, Fma(lo, kUnit.hi, Fma(hi, kUnit.hi, -product))));
  Value r = let("sum", product + tail);
  return {n, with_sign("r", r), with_sign("lo", (product - r) + tail)};
}

Value SinOf(Expansion& let, const Angle& angle, int quarters) {
  const Value& r = angle.r;
  const Format& f = FormatOf(r);
  bool is_double = f.bits == 64;
  Value n = let("n", quarters ? angle.n + quarters : angle.n);
  Value square = let("square", r * r);
  Value tail = Expansion::Polynomial(is_double ? Table(kSin64) : Table(kSin32), square) * square;
  Value sine = Fma(tail, r, r);
  Value cosine = Expansion::Polynomial(is_double ? Table(kCos64) : Table(kCos32), square);
  if (angle.lo) {
    sine = Fma(tail, r, *angle.lo * Fma(square, -0.5, 1.0)) + r;
    cosine = Fma(-r, *angle.lo, cosine);
  }
  Value either = Choose((n & 1) != 0, cosine, CopySign(sine, r));
  return FromBits(Bits(either) ^ ((n & 2) << (f.bits - 2)));
}
/// One quarter on it is -1 / tan(r), with what the rounding of tan(r) lost made good.
Value TanOf(Expansion& let, const Angle& angle, int) {
  const Value& r = angle.r;
  Value square = let("square", r * r);
  Table series = FormatOf(r).bits == 64 ? Table(kTan64) : Table(kTan32);
  Value cubic = let("cubic", Rounded(Expansion::Polynomial(series, square) * square, r));
  Value t = let("t", r + cubic);
  // The slope at r is 1 + t^2.
  Value rest = let("rest", Fma(*angle.lo, Fma(t, t, 1.0), cubic));
  Value tangent = let("tangent", r + rest);
  Value lost = rest - (tangent - r);
  Value inverse = let("inverse", -1.0 / tangent);
  return Choose((angle.n & 1) != 0, Fma(inverse * inverse, lost, inverse), CopySign(tangent, r));
}

Value OfAngle(const Value& x, Value (*function)(Expansion&, const Angle&, int), int quarters,
              bool with_lo) {
  Expansion near, far;
  Value in_near = function(near, ReduceNear(near, x, with_lo), quarters);
  Value in_far = function(far, ReduceFar(far, x, with_lo), quarters);
  Value is_near = Abs(x) < Near(FormatOf(x));
  return Value(if_then_else(likely(is_near.expr), near.Finish(in_near), far.Finish(in_far)));
}
}  // namespace

Value Sin(Expansion&, const Value& x) { return OfAngle(x, SinOf, 0, x.dtype().bits() == 64); }
Value Cos(Expansion&, const Value& x) { return OfAngle(x, SinOf, 1, x.dtype().bits() == 64); }
Value Tan(Expansion&, const Value& x) { return OfAngle(x, TanOf, 0, true); }

}  // namespace tvm::math
