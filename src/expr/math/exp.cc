// SPDX-License-Identifier: Apache-2.0
// Powers of a constant base, and the logistic function.
#include "value.h"

namespace tvm::math {
namespace {
// exp(r) = 1 + r + r^2 q(r) for |r| <= log(2) / 2: scripts/minimax.py exp32 exp64
constexpr double kExp32[] = {0x1.fffffcp-2, 0x1.55548cp-3, 0x1.55585ap-5, 0x1.123d5cp-7,
                             0x1.6ab6cp-10};
constexpr double kExp64[] = {0x1p-1,
                             0x1.555555555555dp-3,
                             0x1.555555555556cp-5,
                             0x1.111111110e548p-7,
                             0x1.6c16c16c0a3dap-10,
                             0x1.a01a01b5f60bfp-13,
                             0x1.a01a01e8e11ebp-16,
                             0x1.71ddeaa5fd258p-19,
                             0x1.27e4499d3ab67p-22,
                             0x1.af745bd3f1839p-26,
                             0x1.2052d04092c1ap-29};

Table QuotientTable(DataType t) { return t.bits() == 64 ? Table(kExp64) : Table(kExp32); }
Value Quotient(const Value& r) { return Expansion::Polynomial(QuotientTable(r.dtype()), r); }
/// q(-r)
Value QuotientOfMinus(const Value& r) {
  Table table = QuotientTable(r.dtype());
  std::vector<double> c(table.begin(), table.end());
  for (size_t i = 1; i < c.size(); i += 2) c[i] = -c[i];
  return Expansion::Polynomial(c, r);
}

/// x = n log_base(2) + r log_base(e) with n the nearest integer, held in the low bits of `shifted`.
struct Reduced {
  Value shifted, n, r;
};
Reduced Reduce(Expansion& let, const Value& x, Base base) {
  const Format& f = FormatOf(x);
  Split ln2 = kLn2.In(f), log10_2 = kLog10Of2.In(f), ln10 = kLn10.In(f);
  // A product with hi leaves an exact remainder as n has few bits; lo makes up for what hi lacks.
  auto less = [](const Value& x, const Value& n, Split step) {
    return Fma(n, -step.lo, Fma(n, -step.hi, x));
  };
  auto scale = [](const Value& x, Split by) { return Fma(x, by.hi, x * by.lo); };
  double per_unit = base == Base::kE ? kLog2E.In(f).hi : base == Base::k2 ? 1 : kLog2Of10.In(f).hi;
  Value shifted = let("t", base == Base::k2 ? x + f.rounder : Fma(x, per_unit, f.rounder));
  Value n = let("n", shifted - f.rounder);
  if (base == Base::kE) return {shifted, n, let("r", less(x, n, ln2))};
  Value rest = let("rest", base == Base::k2 ? x - n : less(x, n, log10_2));
  return {shifted, n, let("r", scale(rest, base == Base::k2 ? ln2 : ln10))};
}
/// 2^(n + exponent) e^r
Value Power(Expansion& let, const Reduced& from, int exponent) {
  const auto& [shifted, n, r] = from;
  Value power = Fma(Fma(Quotient(r), r, 1.0), r, 1.0);
  if (let.CanScale(r.dtype())) return let.Scaled(power, exponent == 0 ? n : n + exponent);
  Value bits = let("bits", Bits(shifted));
  if (let.Scale(r.dtype())) {
    Value zero = Bits(Value(MakeConst(r.dtype(), FormatOf(r).rounder)));
    Value sum = CastTo(DataType::Int(32), bits - zero + exponent);
    return Value(tir::Call(r.dtype(), tir::builtin::call_llvm_pure_intrin(),
                           {tir::StringImm("llvm.ldexp"), power.expr, sum.expr}));
  }
  // Two factors of about half the exponent each are normal numbers even where the result is
  // subnormal or n is 1 above the largest exponent; only the last product rounds.
  Value half = let("half", bits >> 1);
  return Rounded(power * PowerOfTwo(half), PowerOfTwo(bits - half + exponent));
}
/// Beyond these arguments the results are 0 and infinity.
Value Clamp(const Value& x, Base base) {
  struct {
    double low, high;
  } limits[2][3] = {{{-104, 89}, {-151, 129}, {-46, 39}},
                    {{-746, 710}, {-1076, 1025}, {-324, 309}}};
  auto [low, high] = limits[x.dtype().bits() == 64][static_cast<int>(base)];
  return AtLeast(AtMost(x, high), low);
}
}  // namespace

bool Expansion::CanScale(DataType t) const {
  const MachineInstruction* scale = Scale(t);
  return scale && !t.is_scalable() && t.lanes() % scale->lanes == 0;
}
Value Expansion::Scaled(const Value& x, const Value& n) const {
  DataType t = n.dtype();
  const MachineInstruction* scale = Scale(t);
  PrimExpr all = MakeConst(DataType::Int(scale->lanes), -1);
  PrimExpr rounding = MakeConst(DataType::Int(32), 4);  // as everywhere
  return Value(
      tir::Call(t, tir::builtin::call_llvm_pure_intrin(),
                {tir::StringImm(scale->intrinsic), x.expr, n.expr, n.expr, all, rounding}));
}

Value Exp(Expansion& let, const Value& x, Base base) {
  return Power(let, Reduce(let, let("a", Clamp(x, base)), base), 0);
}
Value ExpScaled(Expansion& let, const Value& x, int exponent) {
  return Power(let, Reduce(let, x, Base::kE), exponent);
}

Value Exp2OfSum(Expansion& let, const Value& hi, const Value& lo) {
  const Format& f = FormatOf(hi);
  Value shifted = let("t", hi + f.rounder);
  Value n = let("n", shifted - f.rounder);
  Value rest = let("rest", (hi - n) + lo);
  Split ln2 = kLn2.In(f);
  return Power(let, {shifted, n, let("r", Fma(rest, ln2.hi, rest * ln2.lo))}, 0);
}
Value Exp2For32(Expansion& let, const Value& x) {
  const Format& f = FormatOf(x);
  Value shifted = let("t", x + f.rounder);
  Value r = let("r", (x - (shifted - f.rounder)) * kLn2.In(f).hi);
  Value power = Fma(Fma(Expansion::Polynomial(kExp32, r), r, 1.0), r, 1.0);
  return power * PowerOfTwo(Bits(shifted));
}

Value HalfExpM1(Expansion& let, const Value& x) {
  const Format& f = FormatOf(x);
  Value shifted = let("t", Fma(x, kLog2E.In(f).hi, f.rounder));
  Value n = let("n", shifted - f.rounder);
  Value rest = Fma(n, -kLn2.In(f).hi, x);
  // In float32 the rest of log 2 is too small to count.
  Value r = let("r", f.bits == 64 ? Fma(n, -kLn2.In(f).lo, rest) : rest);
  Value power_minus_one = Fma(Quotient(r) * r, r, r);
  Value half(MakeConst(n.dtype(), 0.5));
  bool scales = let.CanScale(x.dtype());
  Value half_scale = let("scale", scales ? let.Scaled(half, n) : PowerOfTwo(Bits(shifted) - 1));
  return Fma(power_minus_one, half_scale, half_scale - 0.5);
}

/// With x = n log 2 + r this is 2^n / (2^n + 1 + (e^-r - 1)), where nothing overflows. The larger
/// one of 2^n and 1 is added last: then one rounding counts (at most 1.999 ULP for all of float32).
Value Sigmoid(Expansion& let, const Value& x) {
  double limit = FormatOf(x).bits == 64 ? 746 : 104;
  Value a = let("a", AtLeast(AtMost(x, limit / 2), -limit));
  auto [shifted, n, r] = Reduce(let, a, Base::kE);
  Value slope = Fma(QuotientOfMinus(r), r, -1.0);
  auto power_of_two = [&, shifted = shifted, n = n] {
    if (let.CanScale(n.dtype())) return let.Scaled(Value(MakeConst(n.dtype(), 1.0)), n);
    Value bits = let("bits", Bits(shifted));
    Value half = let("half", bits >> 1);
    return PowerOfTwo(half) * PowerOfTwo(bits - half);  // two factors: see Power
  };
  Value power = let("power", power_of_two());
  return power / (Fma(slope, r, AtMost(power, 1.0)) + AtLeast(power, 1.0));
}

}  // namespace tvm::math
