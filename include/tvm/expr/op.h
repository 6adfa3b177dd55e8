// SPDX-License-Identifier: Apache-2.0
// Operators on expressions: they match the types of their operands and fold constants.
#pragma once
#include <cstdint>
#include <optional>

#include "tvm/expr/builtin.h"

namespace tvm {

// ---- constants --------------------------------------------------------------------------------
/// A constant of any numeric type; broadcast for vector types.
PrimExpr MakeConst(DataType dtype, double value, Optional<Span> span = {});
PrimExpr MakeConst(DataType dtype, int64_t value, Optional<Span> span = {});
inline PrimExpr MakeConst(DataType t, int value) {
  return MakeConst(t, static_cast<int64_t>(value));
}
inline PrimExpr MakeZero(DataType t) { return MakeConst(t, 0); }
/// The value of an IntImm (or a broadcast one).
std::optional<int64_t> AsConstInt(const PrimExpr& e);
inline bool IsConstInt(const PrimExpr& e, int64_t value) { return AsConstInt(e) == value; }
inline bool IsZero(const PrimExpr& e) { return IsConstInt(e, 0); }
inline bool IsOne(const PrimExpr& e) { return IsConstInt(e, 1); }
/// True and false as constants; false for anything that is not constant.
inline bool IsTrue(const PrimExpr& e) { return e.dtype().is_bool() && IsConstInt(e, 1); }
inline bool IsFalse(const PrimExpr& e) { return e.dtype().is_bool() && IsConstInt(e, 0); }
PrimExpr min_value(DataType dtype, Optional<Span> span = {});
PrimExpr max_value(DataType dtype, Optional<Span> span = {});
PrimExpr infinity(DataType dtype, Optional<Span> span = {});
PrimExpr const_true(int lanes = 1);
PrimExpr const_false(int lanes = 1);

// ---- types ------------------------------------------------------------------------------------
/// Brings two operands to one type: floats win over integers, wider over narrower, signed over
/// unsigned of the same width; a scalar is broadcast to a vector. TypeError when there is none.
void MatchTypes(PrimExpr* a, PrimExpr* b, const char* op);
/// `value` in type `t`: a constant is folded, the same type is no cast.
PrimExpr cast(DataType t, PrimExpr value, Optional<Span> span = {});
/// The bits as another type.
PrimExpr reinterpret(DataType t, PrimExpr value, Optional<Span> span = {});

// ---- arithmetic -------------------------------------------------------------------------------
/// The node of class N folded when its operands are constants, else undefined. The result is bit
/// for bit what running it gives.
template <class N>
std::optional<PrimExpr> TryFold(const PrimExpr& a, const PrimExpr& b);

// clang-format off
//  function   node      accepts   documentation
#define TVM_BINARY_OPS(ROW)                                                                      \
  ROW(add,      Add,      kNumber,  "a + b")                                                     \
  ROW(sub,      Sub,      kNumber,  "a - b")                                                     \
  ROW(mul,      Mul,      kNumber,  "a * b")                                                     \
  ROW(div,      Div,      kNumber,  "a / b; integers round towards zero")                        \
  ROW(truncdiv, Div,      kInteger, "The quotient rounded towards zero; 0 when b is 0.")         \
  ROW(truncmod, Mod,      kInteger, "The remainder with the sign of a; 0 when b is 0.")          \
  ROW(floordiv, FloorDiv, kNumber,  "The quotient rounded down; 0 when b is integer 0.")         \
  ROW(floormod, FloorMod, kNumber,  "The remainder with the sign of b; 0 when b is integer 0.")  \
  ROW(indexdiv, FloorDiv, kInteger, "The quotient of indices, which are not negative.")          \
  ROW(indexmod, FloorMod, kInteger, "The remainder of indices, which are not negative.")         \
  ROW(min,      Min,      kNumber,  "The smaller one; NaN if either is.")                        \
  ROW(max,      Max,      kNumber,  "The larger one; NaN if either is.")                         \
  ROW(equal,    EQ,       kAny,     "a == b")                                                    \
  ROW(not_equal, NE,      kAny,     "a != b")                                                    \
  ROW(less,     LT,       kNumber,  "a < b")                                                     \
  ROW(less_equal, LE,     kNumber,  "a <= b")                                                    \
  ROW(greater,  GT,       kNumber,  "a > b")                                                     \
  ROW(greater_equal, GE,  kNumber,  "a >= b")                                                    \
  ROW(logical_and, And,   kBool,    "a and b")                                                   \
  ROW(logical_or, Or,     kBool,    "a or b")
// clang-format on
#define ROW(fn, ...) PrimExpr fn(PrimExpr a, PrimExpr b, Optional<Span> span = {});
TVM_BINARY_OPS(ROW)
#undef ROW
PrimExpr logical_not(PrimExpr a, Optional<Span> span = {});
PrimExpr neg(PrimExpr a, Optional<Span> span = {});
PrimExpr ceildiv(PrimExpr a, PrimExpr b, Optional<Span> span = {});
PrimExpr bitwise_and(PrimExpr a, PrimExpr b, Optional<Span> span = {});
PrimExpr bitwise_or(PrimExpr a, PrimExpr b, Optional<Span> span = {});
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b, Optional<Span> span = {});
PrimExpr bitwise_not(PrimExpr a, Optional<Span> span = {});
PrimExpr shift_left(PrimExpr a, PrimExpr b, Optional<Span> span = {});
PrimExpr shift_right(PrimExpr a, PrimExpr b, Optional<Span> span = {});
/// Only the chosen value is evaluated.
PrimExpr if_then_else(PrimExpr cond, PrimExpr t, PrimExpr f, Optional<Span> span = {});
PrimExpr likely(PrimExpr cond, Optional<Span> span = {});
PrimExpr pow(PrimExpr x, PrimExpr y, Optional<Span> span = {});
PrimExpr abs(PrimExpr x, Optional<Span> span = {});
PrimExpr isnan(PrimExpr x, Optional<Span> span = {});
PrimExpr isinf(PrimExpr x, Optional<Span> span = {});
PrimExpr isfinite(PrimExpr x, Optional<Span> span = {});
PrimExpr fma(PrimExpr x, PrimExpr y, PrimExpr z, Optional<Span> span = {});
#define ROW(fn, ...) PrimExpr fn(PrimExpr x, Optional<Span> span = {});
TVM_UNARY_MATH(ROW)
TVM_ROUNDING_MATH(ROW)
#undef ROW
#define ROW(fn, ...) PrimExpr fn(PrimExpr x1, PrimExpr x2, Optional<Span> span = {});
TVM_BINARY_MATH(ROW)
#undef ROW
PrimExpr popcount(PrimExpr x, Optional<Span> span = {});
PrimExpr clz(PrimExpr x, Optional<Span> span = {});

inline PrimExpr operator+(PrimExpr a, PrimExpr b) { return add(std::move(a), std::move(b)); }
inline PrimExpr operator-(PrimExpr a, PrimExpr b) { return sub(std::move(a), std::move(b)); }
inline PrimExpr operator*(PrimExpr a, PrimExpr b) { return mul(std::move(a), std::move(b)); }
inline PrimExpr operator-(PrimExpr a) { return neg(std::move(a)); }
inline PrimExpr operator<(PrimExpr a, PrimExpr b) { return less(std::move(a), std::move(b)); }
inline PrimExpr operator<=(PrimExpr a, PrimExpr b) {
  return less_equal(std::move(a), std::move(b));
}
inline PrimExpr operator>(PrimExpr a, PrimExpr b) { return greater(std::move(a), std::move(b)); }
inline PrimExpr operator>=(PrimExpr a, PrimExpr b) {
  return greater_equal(std::move(a), std::move(b));
}
inline PrimExpr operator&&(PrimExpr a, PrimExpr b) {
  return logical_and(std::move(a), std::move(b));
}
inline PrimExpr operator||(PrimExpr a, PrimExpr b) {
  return logical_or(std::move(a), std::move(b));
}
inline PrimExpr operator!(PrimExpr a) { return logical_not(std::move(a)); }

}  // namespace tvm
