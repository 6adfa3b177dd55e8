// SPDX-License-Identifier: Apache-2.0
// Arithmetic of intervals. Every result covers the exact results of all pairs of operands.
#include "arith/interval.h"

#include <numeric>

namespace tvm::arith {
namespace {
constexpr int64_t kPosInf = Interval::kPosInf, kNegInf = Interval::kNegInf;
bool Infinite(int64_t v) { return v == kPosInf || v == kNegInf; }
Wide WideOf(int64_t v) {
  return v == kPosInf ? Wide{1} << 100 : v == kNegInf ? -(Wide{1} << 100) : Wide{v};
}

/// A product in which an infinite factor stays far beyond 64 bits.
Wide Times(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (Infinite(a) || Infinite(b)) return (a < 0) == (b < 0) ? Wide{1} << 100 : -(Wide{1} << 100);
  return Wide{a} * b;
}
/// The interval spanned by `op` on all pairs of ends.
template <class F>
Interval Corners(const Interval& a, const Interval& b, F op) {
  Wide v[] = {op(a.lo, b.lo), op(a.lo, b.hi), op(a.hi, b.lo), op(a.hi, b.hi)};
  return Interval::Make(*std::min_element(v, v + 4), *std::max_element(v, v + 4));
}
/// `op` is monotonic in both operands on each side of divisor 0; division by 0 gives 0.
template <class F>
Interval Quotients(const Interval& a, const Interval& b, F op) {
  std::optional<Interval> result;
  auto add = [&](const Interval& part) { result = result ? result->Union(part) : part; };
  if (b.Contains(0)) add(Interval::Point(0));
  if (b.hi >= 1) add(Corners(a, {std::max<int64_t>(b.lo, 1), b.hi}, op));
  if (b.lo <= -1) add(Corners(a, {b.lo, std::min<int64_t>(b.hi, -1)}, op));
  return *result;
}
int64_t Magnitude(const Interval& b) {
  return b.Bounded() ? std::max(b.hi, b.lo == kNegInf ? kPosInf : -b.lo) : kPosInf;
}
}  // namespace

Interval Interval::OfType(DataType t) {
  if (t.is_bool()) return {0, 1};
  if (t.is_uint()) return {0, t.bits() >= 63 ? kPosInf : (int64_t{1} << t.bits()) - 1};
  if (t.is_int() && t.bits() < 64) {
    int64_t half = int64_t{1} << (t.bits() - 1);
    return {-half, half - 1};
  }
  return {};
}
Interval operator+(const Interval& a, const Interval& b) {
  return Interval::Make(WideOf(a.lo) + WideOf(b.lo), WideOf(a.hi) + WideOf(b.hi));
}
Interval operator-(const Interval& a, const Interval& b) {
  return Interval::Make(WideOf(a.lo) - WideOf(b.hi), WideOf(a.hi) - WideOf(b.lo));
}
Interval operator*(const Interval& a, const Interval& b) { return Corners(a, b, &Times); }

Interval FloorDivOf(const Interval& a, const Interval& b) {
  return Quotients(a, b, [](int64_t x, int64_t y) -> Wide {
    if (Infinite(y))
      return x == 0               ? 0
             : (x < 0) == (y < 0) ? (Infinite(x) ? WideOf(kPosInf) : 0)
                                  : (Infinite(x) ? WideOf(kNegInf) : -1);
    if (Infinite(x)) return Times(x, y < 0 ? -1 : 1);
    return FloorDivInt<Wide>(x, y);
  });
}
Interval TruncDivOf(const Interval& a, const Interval& b) {
  Interval full = Quotients(a, b, [](int64_t x, int64_t y) -> Wide {
    if (Infinite(x)) return Times(x, y < 0 ? -1 : 1);
    return Infinite(y) ? Wide{0} : Wide{x} / y;
  });
  return full;
}
Interval FloorModOf(const Interval& a, const Interval& b) {
  if (b.lo > 0 && a.lo >= 0 && a.hi < b.lo) return a;
  if (b.IsPoint() && b.lo > 0 && a.Bounded() &&
      FloorDivInt(a.lo, b.lo) == FloorDivInt(a.hi, b.lo)) {
    return {FloorModInt(a.lo, b.lo), FloorModInt(a.hi, b.lo)};
  }
  Interval r{0, 0};
  if (b.hi > 0) r.hi = b.hi == kPosInf ? kPosInf : b.hi - 1;
  if (b.lo < 0) r.lo = b.lo == kNegInf ? kNegInf : b.lo + 1;
  // A remainder of a number that is not negative by a positive one is not above that number.
  if (a.lo >= 0 && b.lo >= 0) r.hi = std::min(r.hi, a.hi);
  return r;
}
Interval TruncModOf(const Interval& a, const Interval& b) {
  if (a.lo >= 0 && b.lo > 0) return FloorModOf(a, b);
  int64_t m = Magnitude(b);
  int64_t most = m == kPosInf ? kPosInf : std::max<int64_t>(m - 1, 0);
  Interval r{0, 0};
  if (a.hi > 0) r.hi = std::min(a.hi, most);
  if (a.lo < 0) r.lo = std::max(a.lo, most == kPosInf ? kNegInf : -most);
  return r;
}

Residue Residue::Make(Wide coeff, Wide base) {
  if (coeff < 0) coeff = -coeff;
  if (coeff > kPosInf || (coeff == 0 && (base > kPosInf || base < -Wide{kPosInf}))) return {};
  if (coeff == 0) return {0, static_cast<int64_t>(base)};
  return {static_cast<int64_t>(coeff), static_cast<int64_t>(FloorModInt<Wide>(base, coeff))};
}

}  // namespace tvm::arith
