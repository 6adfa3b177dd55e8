// SPDX-License-Identifier: Apache-2.0
// Integer functions as arithmetic: products of fixed-point numbers, dot products of bytes.
#include "value.h"

namespace tvm::math {
using namespace tir;
namespace {
DataType Wide(const PrimExpr& like) { return DataType::Int(64, like.dtype().raw_lanes()); }

/// x y 2^-shift, rounded to nearest, halves up. In two steps: adding half of the last place to the
/// product could overflow.
PrimExpr ScaledProduct(const PrimExpr& x, const PrimExpr& y, const PrimExpr& shift, DataType t) {
  DataType wide = x.dtype();
  PrimExpr one = MakeConst(wide, 1), product = x * y;
  PrimExpr down = shift_right(shift_right(product, shift - one) + one, one);
  PrimExpr up = shift_left(product, MakeZero(wide) - shift);
  return cast(t, Select(greater(shift, MakeZero(wide)), down, up));
}
/// (x, y, q, s): x y 2^(s - q)
PrimExpr MultiplyShift(const CallObj* call) {
  DataType wide = Wide(call->args[0]);
  auto arg = [&](size_t i) { return cast(wide, call->args[i]); };
  return ScaledProduct(arg(0), arg(1), arg(2) - arg(3), call->dtype);
}
/// (x, y, left, right, q, is_left, is_right): (x 2^left) y 2^-(q + right)
PrimExpr MultiplyShiftPerAxis(const CallObj* call) {
  DataType wide = Wide(call->args[0]);
  auto arg = [&](size_t i) { return cast(wide, call->args[i]); };
  auto is_set = [&](size_t i) { return not_equal(arg(i), MakeZero(wide)); };
  PrimExpr x = Select(is_set(5), shift_left(arg(0), arg(2)), arg(0));
  PrimExpr shift = arg(4) + Select(is_set(6), arg(3), MakeZero(wide));
  return ScaledProduct(x, arg(1), shift, call->dtype);
}
/// (a, b, acc): acc + a[0] b[0] + ... + a[3] b[3]
PrimExpr DotProduct(const CallObj* call) {
  DataType t = call->dtype;
  PrimExpr a = call->args[0], b = call->args[1];
  if (a.dtype().lanes() != b.dtype().lanes() || a.dtype().is_scalable() || !t.is_scalar()) {
    TVM_FFI_THROW(TypeError) << "dp4a: expected two vectors of the same length and a scalar, got "
                             << a.dtype() << ", " << b.dtype() << " and " << t;
  }
  Expansion let;
  Value va = let("a", Value(a)), vb = let("b", Value(b));
  PrimExpr sum = call->args.size() > 2 ? cast(t, call->args[2]) : MakeZero(t);
  for (int i = 0; i < a.dtype().lanes(); ++i) {
    auto lane = [&](const Value& v) { return cast(t, Shuffle({v.expr}, {PrimExpr(i)})); };
    sum = sum + lane(va) * lane(vb);
  }
  return let.Finish(Value(sum));
}
}  // namespace

PrimExpr ExpandInteger(const CallObj* call) {
  if (call->Is(builtin::q_multiply_shift()) && call->args.size() == 4) return MultiplyShift(call);
  if (call->Is(builtin::q_multiply_shift_per_axis()) && call->args.size() == 7)
    return MultiplyShiftPerAxis(call);
  if (call->Is(builtin::dp4a()) && call->args.size() >= 2) return DotProduct(call);
  return PrimExpr();
}

}  // namespace tvm::math
