// SPDX-License-Identifier: Apache-2.0
// Operators that work element by element.
#include "tvm/topi/elementwise.h"

#include <cmath>

#include "topi/shape.h"

namespace tvm::topi {
namespace {
PrimExpr Sign(const PrimExpr& x) {
  PrimExpr zero = MakeZero(x.dtype()), one = MakeConst(x.dtype(), 1);
  if (x.dtype().is_uint() || x.dtype().is_bool()) return tir::Select(zero < x, one, zero);
  PrimExpr rest = x.dtype().is_float() ? x : zero;  // zero keeps its sign, NaN stays
  return tir::Select(zero < x, one, tir::Select(x < zero, neg(one), rest));
}
PrimExpr CeilLog2(const PrimExpr& x) {
  if (x.dtype().is_float()) return tvm::ceil(tvm::log2(x));
  // The number of bits of x - 1: floats would round near large powers of two.
  DataType t = x.dtype();
  PrimExpr bits = MakeConst(t, t.bits()) - tvm::cast(t, clz(x - MakeConst(t, 1)));
  return tir::Select(x <= MakeConst(t, 1), MakeZero(t), bits);
}
PrimExpr FloorDivide(const PrimExpr& a, const PrimExpr& b) {
  bool is_float = a.dtype().is_float() || b.dtype().is_float();
  return is_float ? tvm::floor(div(a, b)) : floordiv(a, b);
}
PrimExpr Remainder(const PrimExpr& a, const PrimExpr& b) {
  bool is_float = a.dtype().is_float() || b.dtype().is_float();
  return is_float ? fmod(a, b) : truncmod(a, b);
}
PrimExpr Power(PrimExpr a, PrimExpr b) {
  MatchTypes(&a, &b, "power");
  if (a.dtype().is_float()) return pow(a, b);
  DataType wide = DataType::Float(64);
  return tvm::cast(a.dtype(), tvm::round(pow(tvm::cast(wide, a), tvm::cast(wide, b))));
}
PrimExpr LogAddExp(PrimExpr a, PrimExpr b) {
  MatchTypes(&a, &b, "log_add_exp");
  PrimExpr sum = tvm::max(a, b) + log1p(tvm::exp(neg(tvm::abs(a - b))));
  // Infinities of the same sign have no difference.
  return tir::Select(tvm::equal(a, b), a + MakeConst(a.dtype(), std::log(2.0)), sum);
}

Tensor Unary(const Tensor& x, const char* name, const std::function<PrimExpr(PrimExpr)>& f) {
  return Compute(x->shape, [&](const Index& i) { return f(At(x, i)); }, name, kElementWise);
}
/// A tensor with the elements of another in a new type, or the expression.
Operand CastAny(const Operand& x, DataType dtype) {
  if (auto e = x.as<PrimExpr>()) return tvm::cast(dtype, *e);
  return cast(x.get<Tensor>(), dtype, "compute");
}
}  // namespace

#define ROW(name, block, value, doc)                          \
  Tensor name(const Tensor& x) {                              \
    return Unary(x, block, [](PrimExpr x) { return value; }); \
  }
TVM_TOPI_UNARY(ROW)
#undef ROW

#define ROW(name, block, value, doc)                       \
  Operand name(const Operand& lhs, const Operand& rhs) {   \
    auto element = [](const Index& operands) -> PrimExpr { \
      const PrimExpr &a = operands[0], &b = operands[1];   \
      return value;                                        \
    };                                                     \
    return Elementwise(#name, {lhs, rhs}, element, block); \
  }
TVM_TOPI_BINARY(ROW)
#undef ROW

Tensor cast(const Tensor& x, DataType dtype, String name) {
  return Unary(x, name.c_str(), [&](PrimExpr e) { return tvm::cast(dtype, e); });
}
Tensor clip(const Tensor& x, const PrimExpr& a_min, const PrimExpr& a_max) {
  PrimExpr low = tvm::cast(x->dtype, a_min), high = tvm::cast(x->dtype, a_max);
  return Unary(x, "compute", [&](PrimExpr e) { return tvm::max(tvm::min(e, high), low); });
}
Tensor where(const Tensor& condition, const Operand& x, const Operand& y) {
  auto element = [](const Index& v) -> PrimExpr {
    PrimExpr a = v[1], b = v[2];
    MatchTypes(&a, &b, "where");
    PrimExpr chosen = v[0].dtype().is_bool() ? v[0] : tvm::not_equal(v[0], MakeZero(v[0].dtype()));
    return tir::Select(chosen, a, b);
  };
  return Elementwise("where", {condition, x, y}, element, "T_where").get<Tensor>();
}
Tensor broadcast_to(const Tensor& data, Array<PrimExpr> shape) {
  Shape common = BroadcastShape("broadcast_to", {data->shape, shape});
  bool same = common.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = !DifferentDim(common[i], shape[i]);
  if (!same)
    Complain("broadcast_to", "a shape that " + Text(data->shape) + " broadcasts to", Text(shape));
  return Compute(
      shape, [&](const Index& i) { return At(data, BroadcastIndex(data->shape, shape, i)); },
      "T_broadcast_to", kBroadcast);
}
namespace {
Tensor Reinterpret(const Tensor& x, DataType dtype) {
  return Unary(x, "compute", [&](PrimExpr e) { return tvm::reinterpret(dtype, e); });
}
Tensor ElemwiseSum(const Array<Tensor>& xs) {
  if (xs.empty()) Complain("elemwise_sum", "at least one tensor", "none");
  std::vector<Operand> operands(xs.begin(), xs.end());
  auto element = [](const Index& values) {
    PrimExpr sum = values[0];
    for (size_t i = 1; i < values.size(); ++i) sum = sum + values[i];
    return sum;
  };
  return Elementwise("elemwise_sum", operands, element, "T_elemwise_sum", kElementWise)
      .get<Tensor>();
}
/// Fixed point: x times multiplier / 2^31 times 2^shift, rounded.
Tensor FixedPointMultiply(const Tensor& x, const PrimExpr& multiplier, const PrimExpr& shift) {
  DataType t = DataType::Int(32);
  return Unary(x, "compute", [&](PrimExpr e) -> PrimExpr {
    return tir::Call(t, tir::builtin::q_multiply_shift(),
                     {e, tvm::cast(t, multiplier), PrimExpr(31), tvm::cast(t, shift)});
  });
}
/// The same with a multiplier and shifts for each element along axes.
Tensor FixedPointMultiplyPerAxis(const Tensor& x, const Tensor& y, const Tensor& lshift,
                                 const Tensor& rshift, int64_t is_lshift_required,
                                 int64_t is_rshift_required, const Any& axes) {
  constexpr const char* kOp = "fixed_point_multiply_per_axis";
  std::vector<size_t> along = Axes(kOp, axes, x->shape.size());
  for (const Tensor& t : {y, lshift, rshift}) {
    CheckRank(kOp, "multipliers and shifts", t, along.size());
    for (size_t k = 0; k < along.size(); ++k) {
      if (DifferentDim(t->shape[k], x->shape[along[k]]))
        Complain(kOp, "one for each element along the axes of " + Text(x->shape), Text(t->shape));
    }
  }
  auto element = [&](const Index& i) -> PrimExpr {
    Index at;
    for (size_t axis : along) at.push_back(i[axis]);
    return tir::Call(DataType::Int(32), tir::builtin::q_multiply_shift_per_axis(),
                     {At(x, i), At(y, at), At(lshift, at), At(rshift, at), PrimExpr(31),
                      MakeConst(DataType::Bool(), is_lshift_required != 0),
                      MakeConst(DataType::Bool(), is_rshift_required != 0)});
  };
  return Compute(x->shape, element, "compute", kBroadcast);
}
Tensor EwiseFma(const Operand& x1, const Operand& x2, const Operand& x3) {
  auto element = [](const Index& v) { return v[0] * v[1] + v[2]; };
  return Elementwise("ewise_fma", {x1, x2, x3}, element, "T_ewise_fma").get<Tensor>();
}

TVM_REGISTER() {
#define ROW(name, block, value, doc) \
  Def("topi." #name, static_cast<Tensor (*)(const Tensor&)>(&name), doc, Arg("x"));
  TVM_TOPI_UNARY(ROW)
#undef ROW
#define ROW(name, block, value, doc)                                                       \
  Def("topi." #name, static_cast<Operand (*)(const Operand&, const Operand&)>(&name), doc, \
      Arg("lhs"), Arg("rhs"));
  TVM_TOPI_BINARY(ROW)
#undef ROW
  Def(
      "topi.cast", [](Operand x, DataType dtype, Any) { return CastAny(x, dtype); },
      "The elements in another type.", Arg("x"), Arg("dtype"), Arg("span", nullptr));
  Def("topi.reinterpret", &Reinterpret, "The bits of the elements as another type.", Arg("x"),
      Arg("dtype"));
  Def("topi.clip", &clip, "The elements, none below a_min or above a_max.", Arg("x"), Arg("a_min"),
      Arg("a_max"));
  Def("topi.where", &where, "Where the condition holds x, elsewhere y.", Arg("condition"), Arg("x"),
      Arg("y"));
  Def("topi.broadcast_to", &broadcast_to, "The tensor repeated to a shape.", Arg("data"),
      Arg("shape"));
  Def("topi.elemwise_sum", &ElemwiseSum, "The sum of tensors.", Arg("xs"));
  Def("topi.fixed_point_multiply", &FixedPointMultiply,
      "x times multiplier / 2^31 times 2^shift, rounded.", Arg("x"), Arg("multiplier"),
      Arg("shift"));
  Def("topi.fixed_point_multiply_per_axis", &FixedPointMultiplyPerAxis,
      "x times y / 2^31, shifted left before and right after, rounded; y and the shifts are given "
      "for each element along axes.",
      Arg("x"), Arg("y"), Arg("lshift"), Arg("rshift"), Arg("is_lshift_required"),
      Arg("is_rshift_required"), Arg("axes"));
  Def("topi.ewise_fma", &EwiseFma, "x1 * x2 + x3", Arg("x1"), Arg("x2"), Arg("x3"));
}
}  // namespace
}  // namespace tvm::topi
