// SPDX-License-Identifier: Apache-2.0
// Constant bounds of expressions.
#include "arith/impl.h"

namespace tvm::arith {
namespace {
/// x >> s as a quotient; s within the width.
Interval ShiftRight(const Interval& x, const Interval& s, DataType t) {
  if (s.lo < 0 || s.hi >= t.bits() || s.hi > 62) return Interval::OfType(t);
  return FloorDivOf(x, {int64_t{1} << s.lo, int64_t{1} << s.hi});
}
Interval And(const Interval& a, const Interval& b, DataType t) {
  // Clearing bits of a number that is not negative makes it no larger.
  int64_t hi = Interval::kPosInf;
  if (a.lo >= 0) hi = std::min(hi, a.hi);
  if (b.lo >= 0) hi = std::min(hi, b.hi);
  return a.lo >= 0 || b.lo >= 0 ? Interval{0, hi} : Interval::OfType(t);
}
}  // namespace

Interval Analyzer::Impl::BoundOf(const PrimExpr& e) {
  if (!e.dtype().is_integer() && !e.dtype().is_bool()) return {};
  if (auto* imm = e.as<IntImmObj>()) {
    if (e.dtype().is_uint() && imm->value < 0) return Interval::OfType(e.dtype());
    return Interval::Point(imm->value);
  }
  if (auto* memo = memos.Find(e); memo && memo->bound) return *memo->bound;
  return Recurse([&] {
    Interval bound = ComputeBound(e);
    for (const auto& [expr, known] : expr_bounds) {
      if (ExprDeepEqual(expr, e)) bound = bound.Intersect(known);
    }
    return *(memos.At(e)->bound = bound);
  });
}

Interval Analyzer::Impl::ComputeBound(const PrimExpr& e) {
  const DataType type = e.dtype();
  const Interval domain = Interval::OfType(type);
  // Results of arithmetic that may leave the type: cut off by contract, or anything after wrapping.
  auto fit = [&](const Interval& exact) {
    bool wide = type.bits() >= 64 && !exact.Bounded();
    if (exact.Within(domain) && !wide) return exact;
    return IsIndex(e) ? domain.Intersect(exact) : domain;
  };
  auto binary = [&](auto* node, auto op) { return fit(op(BoundOf(node->a), BoundOf(node->b))); };

  if (auto* n = e.as<VarObj>()) {
    Interval bound = domain;
    if (n->IsInstance<SizeVarObj>()) bound.lo = std::max<int64_t>(bound.lo, 0);
    if (auto it = var_bounds.find(n); it != var_bounds.end()) bound = bound.Intersect(it->second);
    return bound;
  }
  if (auto* n = e.as<AddObj>()) return binary(n, [](auto a, auto b) { return a + b; });
  if (auto* n = e.as<SubObj>()) return binary(n, [](auto a, auto b) { return a - b; });
  if (auto* n = e.as<MulObj>()) return binary(n, [](auto a, auto b) { return a * b; });
  if (auto* n = e.as<DivObj>()) return binary(n, &TruncDivOf);
  if (auto* n = e.as<ModObj>()) return binary(n, &TruncModOf);
  if (auto* n = e.as<FloorDivObj>()) return binary(n, &FloorDivOf);
  if (auto* n = e.as<FloorModObj>()) return binary(n, &FloorModOf);
  if (auto* n = e.as<MinObj>()) {
    Interval a = BoundOf(n->a), b = BoundOf(n->b);
    return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  }
  if (auto* n = e.as<MaxObj>()) {
    Interval a = BoundOf(n->a), b = BoundOf(n->b);
    return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  }
  if (auto* n = e.as<SelectObj>()) return BoundOf(n->true_value).Union(BoundOf(n->false_value));
  if (auto* n = e.as<BroadcastObj>()) return BoundOf(n->value);
  if (auto* n = e.as<RampObj>()) {
    auto lanes = AsConstInt(n->lanes);
    if (!lanes) return domain;
    Interval base = BoundOf(n->base);
    Interval exact = base.Union(base + BoundOf(n->stride) * Interval::Point(*lanes - 1));
    bool wide = type.bits() >= 64 && !exact.Bounded();
    if (exact.Within(domain) && !wide) return exact;
    return IsIndex(n->base) && IsIndex(n->stride) ? domain.Intersect(exact) : domain;
  }
  if (auto* n = e.as<CastObj>()) {
    DataType from = n->value.dtype();
    if (!from.is_integer() && !from.is_bool()) return domain;
    Interval value = BoundOf(n->value);
    if (type.is_bool()) return !value.Contains(0) ? Interval::Point(1) : domain;
    bool wide = type.bits() >= 64 && from.bits() >= 64 && type.code() != from.code();
    if (wide && !value.Bounded()) return domain;
    return value.Within(domain) ? value : domain;
  }
  if (auto* n = e.as<LetObj>()) {
    auto known = KnownOf(n->var.get());
    SetKnown(n->var.get(), KnownAs(n->value));
    Interval body = BoundOf(n->body);
    SetKnown(n->var.get(), known);
    return body;
  }
  if (auto* n = e.as<CallObj>()) {
    auto arg = [&](int i) { return BoundOf(n->args[i]); };
    if (n->Is(builtin::likely())) return arg(0);
    if (n->Is(builtin::if_then_else())) return arg(1).Union(arg(2));
    if (n->Is(builtin::shift_right())) return ShiftRight(arg(0), arg(1), type);
    if (n->Is(builtin::bitwise_and())) return And(arg(0), arg(1), type);
    if (n->Is(builtin::popcount()) || n->Is(builtin::clz())) {
      return domain.Intersect({0, n->args[0].dtype().bits()});
    }
    if (n->Is(builtin::vscale())) return {1, domain.hi};
  }
  return domain;
}

}  // namespace tvm::arith
