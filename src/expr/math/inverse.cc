// SPDX-License-Identifier: Apache-2.0
// Inverse trigonometric functions.
#include "value.h"

namespace tvm::math {
namespace {
// asin(x) = x + x^3 p(x^2) for |x| <= 9/16: scripts/minimax.py asin32 asin64
constexpr double kAsin32[] = {0x1.555526p-3, 0x1.334932p-4, 0x1.6a59a6p-5,
                              0x1.169d94p-5, 0x1.b9e72ep-8, 0x1.84fbf6p-5};
constexpr double kAsin64[] = {0x1.5555555555562p-3, 0x1.333333333137ep-4,  0x1.6db6db6f7222p-5,
                              0x1.f1c71bad7ebd2p-6, 0x1.6e8bbcc4bceabp-6,  0x1.1c4c8e0ea896p-6,
                              0x1.c9dc2876d43f1p-7, 0x1.77c2d5aeb780ep-7,  0x1.5524be76a0237p-7,
                              0x1.3839ff6c89098p-8, 0x1.67c69ac1a72d3p-6,  -0x1.22f5d7f7416d5p-5,
                              0x1.668278920c414p-4, -0x1.81c814244654bp-4, 0x1.0a0b21f166e65p-4};
// atan(x) = x + x^3 p(x^2) for |x| <= 1: scripts/minimax.py atan32 atan64
constexpr double kAtan32[] = {-0x1.55553ep-2, 0x1.9991e4p-3, -0x1.2420aap-3,
                              0x1.c08f82p-4,  -0x1.58177p-4, 0x1.da6b22p-5,
                              -0x1.fe1d9p-6,  0x1.64edeep-7, -0x1.d4f3cap-10};
constexpr double kAtan64[] = {
    -0x1.5555555555526p-2, 0x1.99999999955b1p-3,  -0x1.249249237f4aap-3,  0x1.c71c717fcc619p-4,
    -0x1.745d11ae3ff0cp-4, 0x1.3b136697dd6efp-4,  -0x1.110e51151ecb2p-4,  0x1.e1bba5a180b0dp-5,
    -0x1.ae5e6f61f07a8p-5, 0x1.82dacc9cf0c3dp-5,  -0x1.59a3e3526dbf2p-5,  0x1.2c2e25c98c4e9p-5,
    -0x1.e9f963b0efb1p-6,  0x1.683bfd4b5f605p-6,  -0x1.c78e53aeaccfap-7,  0x1.d7b719065da03p-8,
    -0x1.7a37832609c25p-9, 0x1.b3f7de4a34f76p-11, -0x1.3f33c8914582fp-13, 0x1.bbe99ba6cc36p-17};
constexpr Constant kPi_2{{0x1.921fb6p+0, -0x1.777a5cp-25},
                         {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}};

/// s + s z p(z), where z = s^2
Value OddSeries(Table c32, Table c64, const Value& s, const Value& z) {
  return Fma(Expansion::Polynomial(s.dtype().bits() == 64 ? c64 : c32, z) * z, s, s);
}
/// c - y
Value From(Split c, const Value& y) { return c.hi - (y - c.lo); }
Split Twice(Split c) { return {2 * c.hi, 2 * c.lo}; }

/// asin(|x|) up to 9/16, beyond asin(sqrt((1 - |x|) / 2)), which is half the distance to pi/2. It
/// is below 1/2 there, where its errors count half.
struct ArcSine {
  Value is_near, y;
};
ArcSine Arc(Expansion& let, const Value& x) {
  Value a = let("a", Abs(x));
  Value is_near = let("is_near", a <= 0.5625);
  Value z = let("z", Choose(is_near, a * a, (1.0 - a) * 0.5));
  Value s = let("s", Choose(is_near, a, Sqrt(z)));
  return {is_near, let("y", OddSeries(kAsin32, kAsin64, s, z))};
}
/// atan(a) for 0 <= a <= 1
Value AtanOf(Expansion& let, const Value& a) {
  return let("y", OddSeries(kAtan32, kAtan64, a, let("z", a * a)));
}
}  // namespace

Value Asin(Expansion& let, const Value& x) {
  auto [is_near, y] = Arc(let, x);
  return CopySign(Choose(is_near, y, From(kPi_2.In(FormatOf(x)), y + y)), x);
}
Value Acos(Expansion& let, const Value& x) {
  Split pi_2 = kPi_2.In(FormatOf(x));
  auto [is_near, y] = Arc(let, x);
  Value is_negative = let("is_negative", x < 0);
  Value twice = let("twice", y + y);
  Value far = Choose(is_negative, From(Twice(pi_2), twice), twice);
  return Choose(is_near, From(pi_2, Choose(is_negative, -y, y)), far);
}
/// Beyond 1: pi/2 - atan(1 / x)
Value Atan(Expansion& let, const Value& x) {
  Value a = let("a", Abs(x));
  Value is_far = let("is_far", a > 1.0);
  Value y = AtanOf(let, let("b", Choose(is_far, 1.0 / a, a)));
  return CopySign(Choose(is_far, From(kPi_2.In(FormatOf(x)), y), y), x);
}
/// The angle of the point (x, y), from that of (larger, smaller) of |x| and |y|.
Value Atan2(Expansion& let, const Value& y, const Value& x) {
  Split pi_2 = kPi_2.In(FormatOf(x));
  Value a = let("a", Abs(y)), b = let("b", Abs(x));
  Value is_steep = let("is_steep", a > b);
  Value small = let("small", Choose(is_steep, b, a)), large = let("large", Choose(is_steep, a, b));
  // 0 / 0 is 0 and inf / inf is 1 here.
  Value quotient = Choose(large == 0, 0.0, Choose(small == kInf, 1.0, small / large));
  Value angle = AtanOf(let, let("quotient", quotient));
  angle = let("angle", Choose(is_steep, From(pi_2, angle), angle));
  angle = Choose(Bits(x) < 0, From(Twice(pi_2), angle), angle);
  return Choose(IsNaN(x) || IsNaN(y), kNaN, CopySign(angle, y));
}

}  // namespace tvm::math
