// SPDX-License-Identifier: Apache-2.0
// Dividing many numbers by the same one.
#include <cmath>

#include "value.h"

namespace tvm {
using namespace tir;
namespace math {
namespace {
/// Negative where |x| is not within [2^-100, 2^28), for float32: such a window is half of all bit
/// patterns without the sign.
Value Window(const Value& x) {
  constexpr int64_t kLow = (int64_t{kFloat32.bias} - 100) << (kFloat32.mantissa + 1);
  return (Bits(x) << 1) - kLow;
}
/// Whether no lane of the integers is negative.
PrimExpr NoneIsNegative(Value v) {
  // Down to one register by operations between registers.
  constexpr int kRegister = 16;
  for (int lanes = v.dtype().lanes(); lanes > kRegister && lanes % 2 == 0; lanes /= 2) {
    Array<PrimExpr> first, second;
    for (int i = 0; i < lanes / 2; ++i) {
      first.push_back(PrimExpr(i));
      second.push_back(PrimExpr(i + lanes / 2));
    }
    v = Value(Shuffle({v.expr}, first)) | Value(Shuffle({v.expr}, second));
  }
  return Call(DataType::Bool(), builtin::call_llvm_pure_intrin(),
              {StringImm("llvm.vector.reduce.and"), (v >= 0).expr});
}
bool IsPowerOfTwo(const PrimExpr& e) {
  auto* constant = e.as<FloatImmObj>();
  int exponent;
  return constant && std::abs(std::frexp(constant->value, &exponent)) == 0.5;
}
}  // namespace
}  // namespace math

/// With y = 1 / b and q = a y, both rounded, q - (q b - a) y has the bits of a / b as long as
/// nothing is subnormal or overflows: the remainder is exact, what is added is good to 2.5 * 2^-24
/// units in the last place, and of all quotients that are closer than that to the middle between
/// two numbers (tests/expr/test_math.py lists them) none is rounded to the wrong side.
PrimExpr ExpandDivision(const DivObj* op, const Target& target) {
  using namespace math;
  auto* divisor = op->b.as<BroadcastObj>();
  DataType t = op->dtype;
  constexpr int kWorthIt = 32;  // lanes that pay for the reciprocal
  if (!divisor || t.is_scalable() || t.element() != DataType::Float(32) || t.lanes() < kWorthIt ||
      !target.defined() || !Machine::Of(target)->has_masks || math::IsPowerOfTwo(divisor->value))
    return ffi::GetRef<PrimExpr>(op);
  Expansion let;
  Value a = let("a", Value(op->a)), b = let("b", Value(divisor->value));
  Value y = let("y", 1.0 / b);
  auto all = [&](const Value& x) { return Value(Broadcast(x.expr, divisor->lanes)); };
  Value q = let("q", a * all(y));
  Value corrected = Fma(-Fma(q, all(b), -a), all(y), q);
  // With these limits the last bit of the remainder is at least 2^-147.
  Value size = let("size", Abs(b));
  PrimExpr fits = (size >= 0x1p-20 && size <= 0x1p20).expr && NoneIsNegative(Window(a));
  return let.Finish(Value(if_then_else(fits, corrected.expr, div(a.expr, all(b).expr))));
}
}  // namespace tvm
