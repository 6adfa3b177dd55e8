// SPDX-License-Identifier: Apache-2.0
// Residue classes of expressions.
#include <numeric>

#include "arith/impl.h"

namespace tvm::arith {
namespace {
/// The class that holds both.
Residue Join(const Residue& a, const Residue& b) {
  Wide difference = Wide{a.base} - b.base;
  if (difference < 0) difference = -difference;
  if (difference > Interval::kPosInf) return {};
  int64_t coeff = std::gcd(std::gcd(a.coeff, b.coeff), static_cast<int64_t>(difference));
  return Residue::Make(coeff, a.base);
}
Residue Sum(const Residue& a, const Residue& b, int sign) {
  return Residue::Make(std::gcd(a.coeff, b.coeff), Wide{a.base} + sign * Wide{b.base});
}
Residue Product(const Residue& a, const Residue& b) {
  // (m k + r)(n l + s) = mn kl + ms k + nr l + rs
  Wide mn = Wide{a.coeff} * b.coeff, ms = Wide{a.coeff} * b.base, nr = Wide{b.coeff} * a.base;
  auto gcd = [](Wide x, Wide y) {
    x = x < 0 ? -x : x;
    y = y < 0 ? -y : y;
    while (y != 0) std::swap(x %= y, y);
    return x;
  };
  return Residue::Make(gcd(gcd(mn, ms), nr), Wide{a.base} * b.base);
}
/// (c m k + r) // c = m k + r // c
Residue Quotient(const Residue& a, int64_t c) {
  return a.coeff != 0 && a.coeff % c == 0 ? Residue::Make(a.coeff / c, FloorDivInt(a.base, c))
                                          : Residue{};
}
/// Subtracting multiples of c keeps the number modulo gcd(coeff, c).
Residue Remainder(const Residue& a, int64_t c) {
  return a.coeff % c == 0 ? Residue::Make(0, FloorModInt(a.base, c))
                          : Residue::Make(std::gcd(a.coeff, c), a.base);
}
/// What is left of a class when only the low `bits` are kept: they determine the number modulo
/// 2^bits.
Residue Wrapped(const Residue& r, int bits) {
  int64_t modulus = int64_t{1} << std::min(bits, 62);
  return Residue::Make(std::gcd(r.coeff, modulus), r.base);
}
}  // namespace

Residue Analyzer::Impl::ResidueOf(const PrimExpr& e) {
  if (!e.dtype().is_integer()) return {};
  if (auto* imm = e.as<IntImmObj>()) {
    return e.dtype().is_uint() && imm->value < 0 ? Residue{} : Residue::Make(0, imm->value);
  }
  if (auto* memo = memos.Find(e); memo && memo->residue) return *memo->residue;
  return Recurse([&] {
    Residue r = ComputeResidue(e);
    for (const auto& [expr, known] : expr_residues) {
      if (known.coeff > r.coeff && r.coeff != 0 && ExprDeepEqual(expr, e)) r = known;
    }
    return *(memos.At(e)->residue = r);
  });
}

Residue Analyzer::Impl::ComputeResidue(const PrimExpr& e) {
  DataType type = e.dtype();
  auto fit = [&](const Residue& exact) { return IsIndex(e) ? exact : Wrapped(exact, type.bits()); };
  if (auto* n = e.as<VarObj>()) {
    if (auto it = var_residues.find(n); it != var_residues.end()) return it->second;
    if (auto it = var_bounds.find(n); it != var_bounds.end() && it->second.IsPoint()) {
      return Residue::Make(0, it->second.lo);
    }
    return {};
  }
  if (auto* n = e.as<AddObj>()) return fit(Sum(ResidueOf(n->a), ResidueOf(n->b), 1));
  if (auto* n = e.as<SubObj>()) return fit(Sum(ResidueOf(n->a), ResidueOf(n->b), -1));
  if (auto* n = e.as<MulObj>()) return fit(Product(ResidueOf(n->a), ResidueOf(n->b)));
  if (auto* n = e.as<MinObj>()) return Join(ResidueOf(n->a), ResidueOf(n->b));
  if (auto* n = e.as<MaxObj>()) return Join(ResidueOf(n->a), ResidueOf(n->b));
  if (auto* n = e.as<SelectObj>()) return Join(ResidueOf(n->true_value), ResidueOf(n->false_value));
  if (auto* n = e.as<BroadcastObj>()) return ResidueOf(n->value);
  if (auto* n = e.as<FloorDivObj>()) {
    auto c = AsConstInt(n->b);
    return c && *c > 0 ? Quotient(ResidueOf(n->a), *c) : Residue{};
  }
  if (auto* n = e.as<FloorModObj>()) {
    auto c = AsConstInt(n->b);
    return c && *c > 0 ? Remainder(ResidueOf(n->a), *c) : Residue{};
  }
  if (auto* n = e.as<ModObj>()) {
    auto c = AsConstInt(n->b);
    return c && *c > 0 ? Residue::Make(std::gcd(ResidueOf(n->a).coeff, *c), ResidueOf(n->a).base)
                       : Residue{};
  }
  if (auto* n = e.as<LetObj>()) {
    auto known = KnownOf(n->var.get());
    SetKnown(n->var.get(), KnownAs(n->value));
    Residue r = ResidueOf(n->body);
    SetKnown(n->var.get(), known);
    return r;
  }
  if (auto* n = e.as<CastObj>(); n && n->value.dtype().is_integer()) {
    Interval value = BoundOf(n->value), domain = Interval::OfType(type);
    Residue r = ResidueOf(n->value);
    bool exact =
        value.Within(domain) && (value.Bounded() || n->value.dtype() == type.with_bits(64));
    return exact ? r : Wrapped(r, type.bits());
  }
  if (auto* n = e.as<CallObj>()) {
    if (n->Is(builtin::likely())) return ResidueOf(n->args[0]);
    if (n->Is(builtin::if_then_else())) return Join(ResidueOf(n->args[1]), ResidueOf(n->args[2]));
    if (n->Is(builtin::shift_left())) {
      if (auto s = AsConstInt(n->args[1]); s && *s >= 0 && *s < std::min(type.bits(), 62)) {
        return Wrapped(Product(ResidueOf(n->args[0]), Residue::Make(0, int64_t{1} << *s)),
                       type.bits());
      }
    }
    if (n->Is(builtin::shift_right()) && type.is_int()) {
      if (auto s = AsConstInt(n->args[1]); s && *s >= 0 && *s < std::min(type.bits(), 62)) {
        return Quotient(ResidueOf(n->args[0]), int64_t{1} << *s);
      }
    }
    if (n->Is(builtin::bitwise_and())) {
      auto mask = AsConstInt(n->args[1]);
      if (mask && *mask > 0 && *mask < (int64_t{1} << 61) && (*mask & (*mask + 1)) == 0)
        return Remainder(ResidueOf(n->args[0]), *mask + 1);
    }
  }
  return {};
}

}  // namespace tvm::arith
