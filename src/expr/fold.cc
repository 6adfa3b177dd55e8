// SPDX-License-Identifier: Apache-2.0
// Constant folding: bit for bit what running the operation gives (integers wrap, x / 0 = 0, NaN
// propagates through min and max, small floats compute in float32 and round).
#include <bit>
#include <cmath>
#include <limits>

#include "tvm/expr/op.h"

namespace tvm {
using namespace tir;
namespace {

/// The low bits of `value` as a number of integer type `t` (uint64 as its bit pattern).
int64_t WrapTo(DataType t, uint64_t value) {
  if (t.is_bool()) return value != 0;
  int shift = 64 - t.bits();
  if (shift <= 0) return static_cast<int64_t>(value);
  return t.is_uint() ? static_cast<int64_t>(value << shift >> shift)
                     : static_cast<int64_t>(value << shift) >> shift;
}

template <class N, class T>
T Arithmetic(T a, T b) {
  if constexpr (std::is_same_v<N, Add>) return a + b;
  if constexpr (std::is_same_v<N, Sub>) return a - b;
  if constexpr (std::is_same_v<N, Mul>) return a * b;
  return T{};
}
/// Quotients and remainders of integers; `T` is int64_t or uint64_t.
template <class N, class T>
uint64_t Divide(T a, T b) {
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    // The one quotient that does not fit wraps.
    bool overflow = a == std::numeric_limits<T>::min() && b == -1;
    if (overflow)
      return std::is_same_v<N, Div> || std::is_same_v<N, FloorDiv> ? static_cast<uint64_t>(a) : 0;
  }
  T quotient = a / b, remainder = a % b;
  if constexpr (std::is_signed_v<T>) {
    if ((std::is_same_v<N, FloorDiv> || std::is_same_v<N, FloorMod>) && remainder != 0 &&
        (remainder < 0) != (b < 0)) {
      quotient -= 1;
      remainder += b;
    }
  }
  bool is_quotient = std::is_same_v<N, Div> || std::is_same_v<N, FloorDiv>;
  return static_cast<uint64_t>(is_quotient ? quotient : remainder);
}
template <class N, class T>
std::optional<bool> Compare(T a, T b) {
  if constexpr (std::is_same_v<N, EQ>) return a == b;
  if constexpr (std::is_same_v<N, NE>) return a != b;
  if constexpr (std::is_same_v<N, LT>) return a < b;
  if constexpr (std::is_same_v<N, LE>) return a <= b;
  if constexpr (std::is_same_v<N, GT>) return a > b;
  if constexpr (std::is_same_v<N, GE>) return a >= b;
  if constexpr (std::is_same_v<N, And>) return a != 0 && b != 0;
  if constexpr (std::is_same_v<N, Or>) return a != 0 || b != 0;
  return std::nullopt;
}
template <class N, class T>
std::optional<PrimExpr> FoldInts(DataType t, T a, T b) {
  if (auto result = Compare<N>(a, b)) return IntImm::Bool(*result);
  if constexpr (std::is_same_v<N, Min>) return IntImm(t, static_cast<int64_t>(std::min(a, b)));
  if constexpr (std::is_same_v<N, Max>) return IntImm(t, static_cast<int64_t>(std::max(a, b)));
  if constexpr (std::is_same_v<N, Add> || std::is_same_v<N, Sub> || std::is_same_v<N, Mul>) {
    return IntImm(t, WrapTo(t, Arithmetic<N, uint64_t>(a, b)));
  } else {
    return IntImm(t, WrapTo(t, Divide<N>(a, b)));
  }
}
/// Python's remainder: the sign of the divisor.
template <class F>
F FloorModFloat(F a, F b) {
  F r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? std::copysign(F(0), b) : r;
}
template <class N, class F>
std::optional<PrimExpr> FoldFloats(DataType t, F a, F b) {
  if constexpr (std::is_same_v<N, And> || std::is_same_v<N, Or>) return std::nullopt;
  if (auto result = Compare<N>(a, b)) return IntImm::Bool(*result);
  F result = Arithmetic<N>(a, b);
  if constexpr (std::is_same_v<N, Div>) result = a / b;
  if constexpr (std::is_same_v<N, FloorDiv>) result = std::floor(a / b);
  if constexpr (std::is_same_v<N, Mod>) result = std::fmod(a, b);
  if constexpr (std::is_same_v<N, FloorMod>) result = FloorModFloat(a, b);
  if constexpr (std::is_same_v<N, Min> || std::is_same_v<N, Max>) {
    if (std::isnan(a) || std::isnan(b)) {
      result = std::isnan(a) ? a : b;
    } else {
      result = (std::is_same_v<N, Min> ? b < a : a < b) ? b : a;
    }
  }
  return FloatImm(t, static_cast<double>(result));
}
}  // namespace

template <class N>
std::optional<PrimExpr> TryFold(const PrimExpr& a, const PrimExpr& b) {
  DataType t = a.dtype();
  if (auto *x = a.as<IntImmObj>(), *y = b.as<IntImmObj>(); x && y) {
    if (t.is_uint() && t.bits() == 64) {
      return FoldInts<N, uint64_t>(t, static_cast<uint64_t>(x->value),
                                   static_cast<uint64_t>(y->value));
    }
    return FoldInts<N, int64_t>(t, x->value, y->value);
  }
  if (auto *x = a.as<FloatImmObj>(), *y = b.as<FloatImmObj>(); x && y) {
    if (t.is_ieee_float() && t.bits() == 64) return FoldFloats<N, double>(t, x->value, y->value);
    return FoldFloats<N, float>(t, static_cast<float>(x->value), static_cast<float>(y->value));
  }
  return std::nullopt;
}
#define ROW(Name, ...) \
  template std::optional<PrimExpr> TryFold<Name>(const PrimExpr&, const PrimExpr&)
TVM_BINARY_NODES(ROW);
#undef ROW

namespace {
/// `value` as an integer of type `t`: saturates, NaN is 0.
int64_t FloatToInt(double value, DataType t) {
  if (std::isnan(value)) return 0;
  if (t.is_bool()) return value != 0;
  if (t.is_uint() && t.bits() == 64) {
    if (value <= 0) return 0;
    return value >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  int magnitude_bits = t.is_uint() ? t.bits() : t.bits() - 1;
  double limit = std::ldexp(1.0, magnitude_bits);
  if (value >= limit) return static_cast<int64_t>((uint64_t{1} << magnitude_bits) - 1);
  if (t.is_uint()) return value <= 0 ? 0 : static_cast<int64_t>(value);
  return value <= -limit ? static_cast<int64_t>(-(uint64_t{1} << magnitude_bits))
                         : static_cast<int64_t>(value);
}
PrimExpr FoldCast(DataType t, const PrimExpr& value, const Optional<Span>& span) {
  if (auto* n = value.as<IntImmObj>()) {
    if (!t.is_float()) {
      if (!t.is_integer() && !t.is_bool()) return PrimExpr();
      return IntImm(t, WrapTo(t, static_cast<uint64_t>(n->value)), span);
    }
    bool is_uint64 = n->dtype.is_uint() && n->dtype.bits() == 64;
    // One rounding: to double first would round large integers twice.
    if (t.is_ieee_float() && t.bits() == 32) {
      float f = is_uint64 ? static_cast<float>(static_cast<uint64_t>(n->value))
                          : static_cast<float>(n->value);
      return FloatImm(t, f, span);
    }
    double d = is_uint64 ? static_cast<double>(static_cast<uint64_t>(n->value))
                         : static_cast<double>(n->value);
    return FloatImm(t, d, span);
  }
  if (auto* n = value.as<FloatImmObj>()) {
    if (t.is_float()) return FloatImm(t, n->value, span);
    if (t.is_integer() || t.is_bool()) return IntImm(t, FloatToInt(n->value, t), span);
  }
  return PrimExpr();
}
}  // namespace

PrimExpr cast(DataType t, PrimExpr value, Optional<Span> span) {
  DataType from = value.dtype();
  if (from == t) return value;
  if (t.is_scalar() != from.is_scalar() && from.is_scalar()) {
    PrimExpr lanes = t.is_scalable()
                         ? Mul(Call(DataType::Int(32), builtin::vscale(), {}), t.lanes())
                         : PrimExpr(t.lanes());
    return Broadcast(cast(t.element(), value, span), lanes, span);
  }
  if (auto* n = value.as<BroadcastObj>(); n && t.raw_lanes() == from.raw_lanes()) {
    return Broadcast(cast(t.element(), n->value, span), n->lanes, span);
  }
  if (PrimExpr folded = FoldCast(t, value, span); folded.defined()) return folded;
  return Cast(t, value, span);
}

PrimExpr MakeConst(DataType t, int64_t value, Optional<Span> span) {
  if (t.is_vector()) return cast(t, MakeConst(t.element(), value, span));
  if (t.is_float()) return FloatImm(t, static_cast<double>(value), span);
  if (t.is_handle()) return reinterpret(t, IntImm(DataType::UInt(64), value), span);
  return IntImm(t, value, span);
}
PrimExpr MakeConst(DataType t, double value, Optional<Span> span) {
  if (t.is_vector()) return cast(t, MakeConst(t.element(), value, span));
  if (t.is_float()) return FloatImm(t, value, span);
  return MakeConst(t, FloatToInt(value, t), span);
}
std::optional<int64_t> AsConstInt(const PrimExpr& e) {
  if (auto* n = e.as<IntImmObj>()) return n->value;
  if (auto* n = e.as<BroadcastObj>()) return AsConstInt(n->value);
  return std::nullopt;
}

PrimExpr min_value(DataType t, Optional<Span> span) {
  if (t.is_bool()) return MakeConst(t, 0);
  if (t.is_uint()) return MakeConst(t, int64_t{0}, span);
  if (t.is_int()) return MakeConst(t, static_cast<int64_t>(-(uint64_t{1} << (t.bits() - 1))), span);
  if (t.is_float()) {
    bool is_scale = t.code() == kDLFloat8_e8m0fnu;  // has no sign
    return MakeConst(t, is_scale ? std::ldexp(1.0, -127) : -LargestFinite(t.element()), span);
  }
  TVM_FFI_THROW(TypeError) << "min_value: expected a number type, got " << t;
  TVM_FFI_UNREACHABLE();
}
PrimExpr max_value(DataType t, Optional<Span> span) {
  if (t.is_bool()) return MakeConst(t, 1);
  if (t.is_uint()) {
    return MakeConst(t, t.bits() == 64 ? int64_t{-1} : (int64_t{1} << t.bits()) - 1, span);
  }
  if (t.is_int())
    return MakeConst(t, static_cast<int64_t>((uint64_t{1} << (t.bits() - 1)) - 1), span);
  if (t.is_float()) return MakeConst(t, LargestFinite(t.element()), span);
  TVM_FFI_THROW(TypeError) << "max_value: expected a number type, got " << t;
  TVM_FFI_UNREACHABLE();
}
PrimExpr infinity(DataType t, Optional<Span> span) {
  double inf = std::numeric_limits<double>::infinity();
  if (!t.is_float() || !std::isinf(RoundToFloatType(inf, t.element()))) {
    TVM_FFI_THROW(TypeError) << "infinity: expected a floating-point type with an infinity, got "
                             << t;
  }
  return MakeConst(t, inf, span);
}
PrimExpr const_true(int lanes) { return MakeConst(DataType::Bool(lanes), 1); }
PrimExpr const_false(int lanes) { return MakeConst(DataType::Bool(lanes), 0); }

}  // namespace tvm
