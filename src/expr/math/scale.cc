// SPDX-License-Identifier: Apache-2.0
// Functions of the digits and the exponent: ldexp, nextafter, and roots.
#include "value.h"

namespace tvm::math {

Value Rsqrt(Expansion&, const Value& x) { return 1.0 / Sqrt(x); }

/// x 2^y. float64 holds every product of a float32 exactly; for float64 itself three factors reach
/// from the largest number to the smallest, and the steps down stop short of the subnormal range
/// unless the result is 0, so that it is not rounded twice.
Value Ldexp(Expansion& let, const Value& x, const Value& y) {
  DataType f64 = DataType::Float(64);
  auto integer = [](const Value& v, double limit) {
    Value clamped = Trunc(AtLeast(AtMost(v, limit), -limit));
    return Bits(clamped + kFloat64.rounder) - Bits(Value(MakeConst(v.dtype(), kFloat64.rounder)));
  };
  if (x.dtype().bits() == 32) {
    Value wide = let("wide", CastTo(f64, y));
    Value result = CastTo(f64, x) * PowerOfTwo(integer(wide, 400));
    return Choose(IsNaN(y), y, CastTo(DataType::Float(32), result));
  }
  Value n = let("n", integer(y, 3000));
  Value result = x;
  for (int step = 0; step < 2; ++step) {
    Value part = let("part", Choose(n > 1023, Value(MakeConst(n.dtype(), 1023)),
                                    Choose(n < -1022, Value(MakeConst(n.dtype(), -969)), 0)));
    result = let("scaled", result * PowerOfTwo(part));
    n = let("n", n - part);
  }
  return Choose(IsNaN(y), y, result * PowerOfTwo(AtLeast(AtMost(n, 1023), -1022)));
}

/// Numbers of one sign are ordered like their bits.
Value NextAfter(Expansion& let, const Value& x, const Value& y) {
  Value i = let("i", Bits(x));
  Value away = let("away", (x < y) == (x > 0));
  Value next = FromBits(Choose(away, i + 1, i - 1));
  Value smallest = CopySign(FromBits(Value(MakeConst(i.dtype(), 1))), y);
  Value moved = Choose(x == 0, smallest, next);
  return Choose(IsNaN(x) || IsNaN(y), kNaN, Choose(x == y, y, moved));
}

/// The same for a type of 16 bits. float32 has all its numbers, and compares them.
Value NextAfterSmall(Expansion& let, const Value& x, const Value& y) {
  DataType t = x.dtype();
  Value a = let("a", CastTo(DataType::Float(32), x)), b = let("b", CastTo(DataType::Float(32), y));
  Value i = let("i", Reinterpret(DataType::Int(t.bits()), x));
  int64_t sign = -(int64_t{1} << (t.bits() - 1));
  Value smallest = Choose(b < 0, Value(MakeConst(i.dtype(), sign + 1)), 1);
  Value moved = Choose(a == 0, smallest, Choose((a < b) == (a > 0), i + 1, i - 1));
  return Choose(IsNaN(a) || IsNaN(b), CastTo(t, a + b), Choose(a == b, y, Reinterpret(t, moved)));
}

/// The larger number is brought near 1 by a power of two, so that no square overflows or is lost.
Value Hypot(Expansion& let, const Value& x, const Value& y) {
  if (x.dtype().bits() == 32) {
    auto root = [](Expansion&, const Value& x, const Value& y) { return Sqrt(Fma(x, x, y * y)); };
    Value result = let("result", Widened(let, root, x, y));
    return Choose(Abs(x) == kInf || Abs(y) == kInf, kInf, result);
  }
  const Format& f = FormatOf(x);
  Value a = let("a", Abs(x)), b = let("b", Abs(y));
  Value is_larger = let("is_larger", a > b);
  Value large = let("large", Choose(is_larger, a, b)),
        small = let("small", Choose(is_larger, b, a));
  // 2^-e of the larger number's exponent e, halved to stay normal; at most 2^1000.
  Value exponent = let("e", AtLeast(Bits(large) >> f.mantissa, 23) - f.bias);
  Value down = let("down", PowerOfTwo(0 - AtMost(exponent, 1000)));
  Value up = PowerOfTwo(AtMost(exponent, 1000));
  Value l = let("l", large * down), s = let("s", small * down);
  Value root = Sqrt(Fma(l, l, s * s)) * up;
  Value finite = Choose(IsNaN(x) || IsNaN(y), kNaN, root);
  return Choose(a == kInf || b == kInf, kInf, finite);
}

}  // namespace tvm::math
