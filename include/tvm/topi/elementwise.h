// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element; those with several operands broadcast.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi {
using te::Tensor;

// clang-format off
//  name        block           value of x                              documentation
#define TVM_TOPI_UNARY(ROW)                                                                              \
  ROW(identity,    "compute",       x,                                      "x itself.")                     \
  ROW(negative,    "compute",       neg(x),                                 "-x")                            \
  ROW(abs,         "compute",       tvm::abs(x),                            "The absolute value.")           \
  ROW(exp,         "compute",       tvm::exp(x),                            "e to the power x.")             \
  ROW(erf,         "compute",       tvm::erf(x),                            "The error function.")           \
  ROW(tanh,        "compute",       tvm::tanh(x),                           "The hyperbolic tangent.")       \
  ROW(tan,         "compute",       tvm::tan(x),                            "The tangent.")                  \
  ROW(cos,         "compute",       tvm::cos(x),                            "The cosine.")                   \
  ROW(cosh,        "compute",       tvm::cosh(x),                           "The hyperbolic cosine.")        \
  ROW(sin,         "compute",       tvm::sin(x),                            "The sine.")                     \
  ROW(sinh,        "compute",       tvm::sinh(x),                           "The hyperbolic sine.")          \
  ROW(acos,        "compute",       tvm::acos(x),                           "The inverse cosine.")           \
  ROW(acosh,       "compute",       tvm::acosh(x),                          "The inverse hyperbolic cosine.")   \
  ROW(asin,        "compute",       tvm::asin(x),                           "The inverse sine.")             \
  ROW(asinh,       "compute",       tvm::asinh(x),                          "The inverse hyperbolic sine.")  \
  ROW(atan,        "compute",       tvm::atan(x),                           "The inverse tangent.")          \
  ROW(atanh,       "compute",       tvm::atanh(x),                          "The inverse hyperbolic tangent.")  \
  ROW(floor,       "compute",       tvm::floor(x),                          "The largest integer not above x.")  \
  ROW(ceil,        "compute",       tvm::ceil(x),                           "The smallest integer not below x.") \
  ROW(trunc,       "compute",       tvm::trunc(x),                          "x without its fraction.")       \
  ROW(round,       "compute",       tvm::round(x),                          "The nearest integer, halves to even.")  \
  ROW(isnan,       "compute",       tvm::isnan(x),                          "Whether x is not a number.")    \
  ROW(isfinite,    "compute",       tvm::isfinite(x),                       "Whether x is a finite number.") \
  ROW(isinf,       "compute",       tvm::isinf(x),                          "Whether x is infinite.")        \
  ROW(log,         "compute",       tvm::log(x),                            "The natural logarithm.")        \
  ROW(log2,        "compute",       tvm::log2(x),                           "The logarithm to base 2.")      \
  ROW(log10,       "compute",       tvm::log10(x),                          "The logarithm to base 10.")     \
  ROW(sqrt,        "compute",       tvm::sqrt(x),                           "The square root.")              \
  ROW(rsqrt,       "compute",       tvm::rsqrt(x),                          "1 / sqrt(x)")                   \
  ROW(sigmoid,     "compute",       tvm::sigmoid(x),                        "1 / (1 + exp(-x))")             \
  ROW(square,      "compute",       x * x,                                  "x * x")                         \
  ROW(sign,        "T_sign",        Sign(x),                                "-1, 0 or 1; NaN stays.")        \
  ROW(logical_not, "T_logical_not", tvm::logical_not(x),                    "not x")                         \
  ROW(bitwise_not, "T_bitwise_not", tvm::bitwise_not(x),                    "~x")                            \
  ROW(fast_exp,    "T_fast_exp",    tvm::exp(x),                            "e to the power x.")             \
  ROW(fast_tanh,   "T_fast_tanh",   tvm::tanh(x),                           "The hyperbolic tangent.")       \
  ROW(fast_erf,    "T_fast_erf",    tvm::erf(x),                            "The error function.")           \
  ROW(ceil_log2,   "compute",       CeilLog2(x),                            "log2(x) rounded up.")

//  name          block               value of a and b                          documentation
#define TVM_TOPI_BINARY(ROW)                                                                                         \
  ROW(add,           "T_add",           a + b,                                      "a + b")                             \
  ROW(subtract,      "T_subtract",      a - b,                                      "a - b")                             \
  ROW(multiply,      "T_multiply",      a * b,                                      "a * b")                             \
  ROW(divide,        "T_divide",        div(a, b),                                  "a / b; integers round towards zero.")   \
  ROW(floor_divide,  "T_floor_divide",  FloorDivide(a, b),                          "The quotient rounded down.")        \
  ROW(mod,           "T_mod",           Remainder(a, b),                            "The remainder with the sign of a.") \
  ROW(floor_mod,     "T_floor_mod",     floormod(a, b),                             "The remainder with the sign of b.") \
  ROW(maximum,       "T_maximum",       tvm::max(a, b),                             "The larger one; NaN if either is.") \
  ROW(minimum,       "T_minimum",       tvm::min(a, b),                             "The smaller one; NaN if either is.")    \
  ROW(power,         "T_power",         Power(a, b),                                "a to the power b.")                 \
  ROW(log_add_exp,   "T_log_add_exp",   LogAddExp(a, b),                            "log(exp(a) + exp(b)) without overflow.")    \
  ROW(left_shift,    "T_left_shift",    shift_left(a, b),                           "a << b")                            \
  ROW(right_shift,   "T_right_shift",   shift_right(a, b),                          "a >> b")                            \
  ROW(greater,       "T_greater",       less(b, a),                                 "a > b")                             \
  ROW(less,          "T_less",          tvm::less(a, b),                            "a < b")                             \
  ROW(equal,         "T_equal",         tvm::equal(a, b),                           "a == b")                            \
  ROW(not_equal,     "T_not_equal",     tvm::not_equal(a, b),                       "a != b")                            \
  ROW(greater_equal, "T_greater_equal", less_equal(b, a),                           "a >= b")                            \
  ROW(less_equal,    "T_less_equal",    tvm::less_equal(a, b),                      "a <= b")                            \
  ROW(logical_and,   "T_logical_and",   tvm::logical_and(a, b),                     "a and b")                           \
  ROW(logical_or,    "T_logical_or",    tvm::logical_or(a, b),                      "a or b")                            \
  ROW(logical_xor,   "T_logical_xor",   (a || b) && !(a && b),                      "Either a or b.")                    \
  ROW(bitwise_and,   "T_bitwise_and",   tvm::bitwise_and(a, b),                     "a & b")                             \
  ROW(bitwise_or,    "T_bitwise_or",    tvm::bitwise_or(a, b),                      "a | b")                             \
  ROW(bitwise_xor,   "T_bitwise_xor",   tvm::bitwise_xor(a, b),                     "a ^ b")
// clang-format on

/// A tensor, or a number that all elements share.
using Operand = Variant<Tensor, PrimExpr>;

#define ROW(name, ...) Tensor name(const Tensor& x);
TVM_TOPI_UNARY(ROW)
#undef ROW
/// The result is a tensor when an operand is one.
#define ROW(name, ...) Operand name(const Operand& lhs, const Operand& rhs);
TVM_TOPI_BINARY(ROW)
#undef ROW

Tensor cast(const Tensor& x, DataType dtype, String name = "T_cast");
Tensor clip(const Tensor& x, const PrimExpr& a_min, const PrimExpr& a_max);
Tensor where(const Tensor& condition, const Operand& x, const Operand& y);
Tensor broadcast_to(const Tensor& data, Array<PrimExpr> shape);

}  // namespace tvm::topi
