// SPDX-License-Identifier: Apache-2.0
// Values: expressions of one floating-point type and its bits, written like arithmetic. Operations
// on constants fold; numbers take the type of the value they meet.
#pragma once
#include <concepts>
#include <limits>
#include <span>
#include <vector>

#include "tvm/expr/math.h"
#include "tvm/ir/machine.h"

namespace tvm::math {

using Table = std::span<const double>;

struct Value {
  PrimExpr expr;
  explicit Value(PrimExpr e) : expr(std::move(e)) {}
  DataType dtype() const { return expr.dtype(); }
};

template <class T>
concept Operand = std::same_as<std::decay_t<T>, Value> || std::is_arithmetic_v<std::decay_t<T>>;

inline PrimExpr Like(const Value&, const Value& v) { return v.expr; }
inline PrimExpr Like(const Value& like, double v) { return MakeConst(like.dtype(), v); }
inline PrimExpr Like(const Value& like, int64_t v) { return MakeConst(like.dtype(), v); }
inline PrimExpr Like(const Value& like, int v) { return MakeConst(like.dtype(), int64_t{v}); }

/// The operand that is a value: it gives the other ones their type.
template <class T, class... Rest>
const Value& TheValue(const T& first, const Rest&... rest) {
  if constexpr (std::same_as<T, Value>) {
    return first;
  } else {
    return TheValue(rest...);
  }
}

#define TVM_VALUE_OPERATOR(symbol, function)                                               \
  template <Operand A, Operand B>                                                          \
    requires(std::same_as<std::decay_t<A>, Value> || std::same_as<std::decay_t<B>, Value>) \
  Value operator symbol(const A& a, const B& b) {                                          \
    const Value& like = TheValue(a, b);                                                    \
    return Value(function(Like(like, a), Like(like, b)));                                  \
  }
TVM_VALUE_OPERATOR(+, add)
TVM_VALUE_OPERATOR(-, sub)
TVM_VALUE_OPERATOR(*, mul)
TVM_VALUE_OPERATOR(/, div)
TVM_VALUE_OPERATOR(<, less)
TVM_VALUE_OPERATOR(<=, less_equal)
TVM_VALUE_OPERATOR(>, greater)
TVM_VALUE_OPERATOR(>=, greater_equal)
TVM_VALUE_OPERATOR(==, equal)
TVM_VALUE_OPERATOR(!=, not_equal)
TVM_VALUE_OPERATOR(&, bitwise_and)
TVM_VALUE_OPERATOR(|, bitwise_or)
TVM_VALUE_OPERATOR(^, bitwise_xor)
TVM_VALUE_OPERATOR(<<, shift_left)
TVM_VALUE_OPERATOR(>>, shift_right)
#undef TVM_VALUE_OPERATOR
inline Value operator&&(const Value& a, const Value& b) { return Value(a.expr && b.expr); }
inline Value operator||(const Value& a, const Value& b) { return Value(a.expr || b.expr); }
inline Value operator!(const Value& a) { return Value(!a.expr); }
inline Value operator-(const Value& a) { return Value(neg(a.expr)); }

template <Operand A, Operand B, Operand C>
Value Fma(const A& a, const B& b, const C& c) {
  const Value& like = TheValue(a, b, c);
  return Value(FoldMath(fma(Like(like, a), Like(like, b), Like(like, c))));
}
/// a * b where a sum follows that must not be contracted with it to one operation: that would give
/// other bits than folding, and break sums that recover what a rounding lost.
template <Operand A, Operand B>
Value Rounded(const A& a, const B& b) {
  return Fma(a, b, 0.0);
}
/// `a` where `condition` holds, else `b`. min and max are written with it where they shall cost one
/// instruction: Choose(limit < x, limit, x) keeps a NaN.
template <Operand A, Operand B>
Value Choose(const Value& condition, const A& a, const B& b) {
  const Value& like = TheValue(a, b);
  if (IsTrue(condition.expr)) return Value(Like(like, a));
  if (IsFalse(condition.expr)) return Value(Like(like, b));
  return Value(tir::Select(condition.expr, Like(like, a), Like(like, b)));
}
template <Operand A>
Value AtMost(const Value& x, const A& limit) {
  return Choose(x > limit, limit, x);
}
template <Operand A>
Value AtLeast(const Value& x, const A& limit) {
  return Choose(x < limit, limit, x);
}
inline Value Abs(const Value& x) { return Value(abs(x.expr)); }
inline Value Sqrt(const Value& x) { return Value(FoldMath(sqrt(x.expr))); }
inline Value Trunc(const Value& x) { return Value(trunc(x.expr)); }
inline Value CopySign(const Value& x, const Value& sign) {
  return Value(FoldMath(copysign(x.expr, sign.expr)));
}
inline Value IsNaN(const Value& x) { return Value(isnan(x.expr)); }
inline Value CastTo(DataType t, const Value& x) {
  return Value(cast(t.with_lanes(x.dtype().raw_lanes()), x.expr));
}
inline Value Reinterpret(DataType t, const Value& x) {
  return Value(FoldMath(reinterpret(t.with_lanes(x.dtype().raw_lanes()), x.expr)));
}

/// An IEEE format: what the expansions must know of float32 and float64.
struct Format {
  int bits, mantissa, bias;
  double min_normal, max;
  /// Adding it rounds a number below 2^(mantissa - 1) to an integer, held in the low bits.
  double rounder;
  DataType Int() const { return DataType::Int(bits); }
  DataType Float() const { return DataType::Float(bits); }
  int64_t one() const { return static_cast<int64_t>(bias) << mantissa; }
};
inline constexpr Format kFloat32{32, 23, 127, 0x1p-126, 0x1.fffffep127, 0x1.8p23};
inline constexpr Format kFloat64{64, 52, 1023, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1.8p52};
inline const Format& FormatOf(const Value& x) {
  return x.dtype().bits() == 64 ? kFloat64 : kFloat32;
}

inline Value Bits(const Value& x) { return Reinterpret(DataType::Int(x.dtype().bits()), x); }
inline Value FromBits(const Value& x) { return Reinterpret(DataType::Float(x.dtype().bits()), x); }
/// 2^n, where the low bits of the integer `n` are the exponent (the ones above are shifted out).
inline Value PowerOfTwo(const Value& n) {
  const Format& f = FormatOf(n);
  return FromBits((n << f.mantissa) + f.one());
}

/// A constant as the sum of two numbers of a format.
struct Split {
  double hi, lo;
};
struct Constant {
  Split in32, in64;
  Split In(const Format& f) const { return f.bits == 64 ? in64 : in32; }
};
inline constexpr Constant kLn2{{0x1.62e43p-1, -0x1.05c61p-29},
                               {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}};
inline constexpr Constant kLog2E{{0x1.715476p+0, 0x1.4ae0cp-26},
                                 {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}};
inline constexpr Constant kLog10Of2{{0x1.344136p-2, -0x1.ec10cp-27},
                                    {0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59}};
inline constexpr Constant kLog2Of10{{0x1.a934fp+1, 0x1.2f346ep-24},
                                    {0x1.a934f0979a371p+1, 0x1.7f2495fb7fa6dp-53}};
inline constexpr Constant kLn10{{0x1.26bb1cp+1, -0x1.12aabap-25},
                                {0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53}};
inline constexpr Constant kLog10E{{0x1.bcb7b2p-2, -0x1.5b235ep-27},
                                  {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}};
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One expansion under way: values used more than once get a name, and Finish binds the names.
class Expansion {
 public:
  /// What it is for; undefined: any machine.
  Machine machine = Machine();
  /// The instruction that multiplies numbers of a type by powers of two, or nullptr.
  const MachineInstruction* Scale(DataType t) const {
    return machine.defined() ? machine->Find(MachineInstruction::Kind::kScale, t.bits()) : nullptr;
  }
  /// Whether choosing between two constants lane by lane is cheaper than a multiply-add.
  bool ChoosesCheaply() const { return machine.defined() && machine->has_masks; }
  /// x 2^n for a whole number n, rounded once, by one instruction: where vectors of a type have it.
  bool CanScale(DataType t) const;
  Value Scaled(const Value& x, const Value& n) const;
  Value operator()(const char* name, const Value& value);
  PrimExpr Finish(const Value& result) const;
  /// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule: the fewest operations, and independent
  /// iterations hide its latency.
  static Value Polynomial(Table c, const Value& x);
  /// Two polynomials, of which the first one counts where `condition` holds and the second one
  /// elsewhere. Where that is cheaper both are one, whose coefficients are chosen.
  std::pair<Value, Value> Either(const Value& condition, Table a, const Value& x, Table b,
                                 const Value& y);

 private:
  std::vector<std::pair<tir::Var, PrimExpr>> lets_;
};

// ---- the functions; x is float32 or float64
// -------------------------------------------------------
enum class Base { kE, k2, k10 };
Value Exp(Expansion& let, const Value& x, Base base);
/// e^x 2^exponent, which overflows and underflows only where the result does.
Value ExpScaled(Expansion& let, const Value& x, int exponent);
/// (e^x - 1) / 2 for 0 <= x <= 40. The relative error grows with x, in float32 by 2^-28 per unit:
/// for functions that depend the less on it the larger it is.
Value HalfExpM1(Expansion& let, const Value& x);
/// 2^(hi + lo) for hi up to about the largest exponent.
Value Exp2OfSum(Expansion& let, const Value& hi, const Value& lo);
/// 2^x in float64, good to float32 and for results in its range.
Value Exp2For32(Expansion& let, const Value& x);
Value Log(Expansion& let, const Value& x, Base base);
/// x = 2^n (1 + f) for positive normal x, with 1 + f in [2/3, 4/3).
struct Parts {
  Value exponent, f;
};
Parts SplitExponent(Expansion& let, const Value& x);
using Unary = Value(Expansion& let, const Value& x);
Unary Sigmoid, Tanh, Sinh, Cosh, Erf, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Asinh, Acosh, Atanh;
Unary Rsqrt;
using Binary = Value(Expansion& let, const Value& x, const Value& y);
Binary Pow, Atan2, Hypot, NextAfter, NextAfterSmall, Ldexp;

/// A call of an integer function as arithmetic, or an undefined expression.
PrimExpr ExpandInteger(const tir::CallObj* call);

/// A function of float32 by way of float64: one rounding counts.
template <class Function, class... Rest>
Value Widened(Expansion& let, Function function, const Rest&... x) {
  DataType wide = DataType::Float(64);
  return CastTo(DataType::Float(32), function(let, let("wide", CastTo(wide, x))...));
}

}  // namespace tvm::math
