// SPDX-License-Identifier: Apache-2.0
// Small floating-point formats as integers: conversions by operations on bits.
#include "small_float.h"

#include <cmath>

namespace tvm::tir {
namespace {
/// Where the fields of a format are.
struct Layout {
  FloatFormat format;
  int width, mantissa, bias;
  bool is_exponent_only;  // e8m0: powers of two, no zero and no sign
  explicit Layout(DataType t)
      : format(FormatOf(t.element())),
        width(t.bits()),
        mantissa(format.precision - 1),
        bias(1 - format.min_exponent),
        is_exponent_only(!format.is_signed) {
    if (is_exponent_only) bias = 127;
  }
  int64_t sign() const { return int64_t{1} << (width - 1); }
  /// The code of infinity, or of what follows the largest finite number.
  int64_t largest() const {
    int exponent = std::ilogb(format.max);
    auto fraction = static_cast<int64_t>(std::ldexp(format.max, mantissa - exponent)) -
                    (int64_t{1} << mantissa);
    return (int64_t{exponent + bias} << mantissa) + fraction;
  }
  int64_t nan() const {
    if (is_exponent_only) return 0xff;
    if (format.overflow == FloatFormat::kSaturate) return largest();
    if (!format.negative_zero) return sign();  // the code that would be -0
    if (format.overflow == FloatFormat::kNaN) return sign() - 1;
    return (largest() + 1) | (int64_t{1} << (mantissa - 1));
  }
  /// What overflow gives, without sign.
  int64_t beyond() const {
    if (format.overflow == FloatFormat::kInfinity) return largest() + 1;
    return format.overflow == FloatFormat::kNaN ? nan() : largest();
  }
};
struct Words {
  int lanes;
  DataType u32() const { return DataType::UInt(32, lanes); }
  DataType f32() const { return DataType::Float(32, lanes); }
  PrimExpr U(int64_t value) const { return MakeConst(u32(), value & 0xffffffff); }  // wraps
  PrimExpr F(double value) const { return MakeConst(f32(), value); }
};
int64_t FloatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
/// `value` in float32, rounded to odd: rounding that once more to fewer bits gives what rounding
/// `value` itself would.
PrimExpr RoundToOdd(const PrimExpr& value) {
  Words w{value.dtype().raw_lanes()};
  PrimExpr near = cast(w.f32(), value);
  PrimExpr back = cast(value.dtype(), near);
  PrimExpr bits = reinterpret(w.u32(), near);
  PrimExpr is_exact = logical_or(equal(back, value), isnan(value));
  PrimExpr toward_zero = bits - cast(w.u32(), greater(abs(back), abs(value)));
  return reinterpret(w.f32(), Select(is_exact, bits, bitwise_or(toward_zero, w.U(1))));
}
/// body(value), where a value that is more than a name or a number is computed once: conversions of
/// conversions would otherwise grow with every level.
template <class F>
PrimExpr Once(const PrimExpr& value, F&& body) {
  if (value.as<VarObj>() || value.as<IntImmObj>() || value.as<FloatImmObj>()) return body(value);
  Var x("x", value.dtype());
  return Let(x, value, body(x));
}
PrimExpr DecodeBits(const PrimExpr& bits, DataType from);
PrimExpr EncodeBits(const PrimExpr& value, DataType to);
}  // namespace

int64_t ConstantBits(double value, DataType t) {
  Layout f(t);
  double rounded = RoundToFloatType(value, t.element());
  if (std::isnan(rounded)) return f.nan();
  bool negative = std::signbit(rounded) && f.format.is_signed;
  double magnitude = std::fabs(rounded);
  int64_t code = 0;
  if (std::isinf(magnitude)) {
    code = f.largest() + 1;
  } else if (f.is_exponent_only) {
    code = std::ilogb(magnitude) + f.bias;
  } else if (magnitude != 0) {
    int exponent = std::max(std::ilogb(magnitude), f.format.min_exponent);
    auto significand = static_cast<int64_t>(std::ldexp(magnitude, f.mantissa - exponent));
    bool is_normal = significand >> f.mantissa;
    code = is_normal ? (int64_t{exponent + f.bias - 1} << f.mantissa) + significand : significand;
  }
  return negative ? code | f.sign() : code;
}

PrimExpr BitsToFloat(const PrimExpr& bits, DataType from) {
  if (from.is_bfloat16()) return DecodeBits(bits, from);  // uses them once
  return Once(bits, [&](const PrimExpr& x) { return DecodeBits(x, from); });
}
PrimExpr FloatToBits(const PrimExpr& value, DataType to) {
  return Once(value, [&](const PrimExpr& x) { return EncodeBits(x, to); });
}

namespace {
PrimExpr DecodeBits(const PrimExpr& bits, DataType from) {
  Layout f(from);
  Words w{bits.dtype().raw_lanes()};
  PrimExpr x = cast(w.u32(), bits);
  if (from.is_bfloat16()) return reinterpret(w.f32(), shift_left(x, w.U(16)));
  if (f.is_exponent_only) {
    // Code 0 is 2^-127, a subnormal float32.
    PrimExpr power = Select(equal(x, w.U(0)), w.U(1 << 22), shift_left(x, w.U(23)));
    return Select(equal(x, w.U(0xff)), w.F(NAN), reinterpret(w.f32(), power));
  }
  PrimExpr magnitude = bitwise_and(x, w.U(f.sign() - 1));
  PrimExpr sign = shift_left(bitwise_and(x, w.U(f.sign())), w.U(32 - f.width));
  PrimExpr normal = shift_left(magnitude, w.U(23 - f.mantissa)) + w.U(int64_t{127 - f.bias} << 23);
  PrimExpr subnormal = reinterpret(
      w.u32(),
      mul(cast(w.f32(), magnitude), w.F(std::ldexp(1.0, f.format.min_exponent - f.mantissa))));
  PrimExpr value = Select(less(magnitude, w.U(int64_t{1} << f.mantissa)), subnormal, normal);
  PrimExpr result = reinterpret(w.f32(), bitwise_or(value, sign));
  if (!f.format.negative_zero) return Select(equal(x, w.U(f.sign())), w.F(NAN), result);
  if (f.format.overflow == FloatFormat::kNaN)
    return Select(equal(magnitude, w.U(f.nan())), w.F(NAN), result);
  if (f.format.overflow == FloatFormat::kSaturate) return result;
  // Above the largest: infinity, then NaN.
  PrimExpr special = Select(equal(magnitude, w.U(f.largest() + 1)),
                            reinterpret(w.f32(), bitwise_or(sign, w.U(0x7f800000))), w.F(NAN));
  return Select(greater(magnitude, w.U(f.largest())), special, result);
}

PrimExpr EncodeBits(const PrimExpr& value, DataType to) {
  DataType from = value.dtype();
  if (from.is_ieee_float() && from.bits() == 64) return FloatToBits(RoundToOdd(value), to);
  Layout f(to);
  Words w{from.raw_lanes()};
  DataType result_type = BitsType(to.with_lanes(from.raw_lanes()));
  PrimExpr x = reinterpret(w.u32(), cast(w.f32(), value));
  PrimExpr magnitude = bitwise_and(x, w.U(0x7fffffff));
  PrimExpr is_nan = greater(magnitude, w.U(0x7f800000));
  if (f.is_exponent_only) {
    // The nearest power of two; halfway goes up. Below 1.5 * 2^-127 there is only 2^-127.
    PrimExpr code = shift_right(magnitude + w.U(1 << 22), w.U(23));
    code = Select(less(magnitude, w.U(3 << 21)), w.U(0), code);
    PrimExpr has_no_code =
        logical_or(is_nan, logical_or(greater_equal(x, w.U(0x80000000)), equal(x, w.U(0))));
    return cast(result_type, Select(has_no_code, w.U(0xff), min(code, w.U(0xff))));
  }
  int drop = 23 - f.mantissa;
  // Adding half of the last place kept, less one unless that place is odd, rounds to nearest even.
  PrimExpr odd = bitwise_and(shift_right(magnitude, w.U(drop)), w.U(1));
  PrimExpr rebias = w.U((int64_t{f.bias - 127} << 23) + (int64_t{1} << (drop - 1)) - 1);
  PrimExpr code = shift_right(magnitude + rebias + odd, w.U(drop));
  if (!to.is_bfloat16()) {
    // A float32 addition aligns subnormal results, and rounds them to nearest even.
    auto magic = static_cast<float>(std::ldexp(1.0, f.format.min_exponent - f.mantissa + 23));
    PrimExpr aligned = reinterpret(w.u32(), add(reinterpret(w.f32(), magnitude), w.F(magic))) -
                       w.U(FloatBits(magic));
    PrimExpr least_normal =
        w.U(FloatBits(static_cast<float>(std::ldexp(1.0, f.format.min_exponent))));
    code = Select(less(magnitude, least_normal), aligned, code);
    PrimExpr too_large = greater(magnitude, w.U(FloatBits(static_cast<float>(f.format.max))));
    code = Select(logical_and(too_large, greater(code, w.U(f.largest()))), w.U(f.beyond()), code);
    // Beyond the exponents of the format the code has wrapped into other bits.
    float top = static_cast<float>(std::ldexp(1.0, std::ilogb(f.format.max) + 1));
    code = Select(greater_equal(magnitude, w.U(FloatBits(top))), w.U(f.beyond()), code);
  }
  PrimExpr sign = bitwise_and(shift_right(x, w.U(32 - f.width)), w.U(f.sign()));
  PrimExpr signed_code = bitwise_or(code, sign);
  if (!f.format.negative_zero) {
    // There is one zero, and one NaN, both without sign.
    PrimExpr unsigned_code = logical_or(equal(code, w.U(0)), equal(code, w.U(f.nan())));
    signed_code = Select(unsigned_code, code, signed_code);
  }
  return cast(result_type, Select(is_nan, w.U(f.nan()), signed_code));
}
}  // namespace

}  // namespace tvm::tir
