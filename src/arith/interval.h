// SPDX-License-Identifier: Apache-2.0
// Intervals of integers with infinite ends, and residue classes: the arithmetic behind bounds.
#pragma once
#include <algorithm>
#include <cstdint>

#include "tvm/arith/analyzer.h"

namespace tvm::arith {

__extension__ typedef __int128 Wide;  // exact products of 64-bit numbers

/// Python's quotient and remainder, with x // 0 = x % 0 = 0.
template <class T>
T FloorDivInt(T a, T b) {
  if (b == 0) return 0;
  T q = a / b;
  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}
template <class T>
T FloorModInt(T a, T b) {
  return b == 0 ? 0 : a - FloorDivInt(a, b) * b;
}

/// [lo, hi] with kNegInf and kPosInf as "no bound". lo is never kPosInf and hi never kNegInf: what
/// is beyond the numbers of 64 bits is cut off on its safe side.
struct Interval {
  static constexpr int64_t kPosInf = ConstIntBoundObj::kPosInf, kNegInf = ConstIntBoundObj::kNegInf;
  int64_t lo = kNegInf, hi = kPosInf;

  static Interval Point(int64_t v) { return Make(v, v); }
  static Interval Make(Wide lo, Wide hi) {
    return {static_cast<int64_t>(std::clamp<Wide>(lo, kNegInf, kPosInf - 1)),
            static_cast<int64_t>(std::clamp<Wide>(hi, kNegInf + 1, kPosInf))};
  }
  /// The numbers of an integer or bool type; everything for other types.
  static Interval OfType(DataType t);

  bool IsPoint() const { return lo == hi; }
  bool Contains(int64_t v) const { return lo <= v && v <= hi; }
  bool Within(const Interval& o) const { return lo >= o.lo && hi <= o.hi; }
  bool Bounded() const { return lo != kNegInf && hi != kPosInf; }
  Interval Union(const Interval& o) const { return {std::min(lo, o.lo), std::max(hi, o.hi)}; }
  /// What both hold; facts that contradict each other (code that never runs) leave the first.
  Interval Intersect(const Interval& o) const {
    Interval r{std::max(lo, o.lo), std::min(hi, o.hi)};
    return r.lo <= r.hi ? r : *this;
  }
  bool operator==(const Interval&) const = default;
};
Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, const Interval& b);
Interval FloorDivOf(const Interval& a, const Interval& b);
Interval FloorModOf(const Interval& a, const Interval& b);
Interval TruncDivOf(const Interval& a, const Interval& b);
Interval TruncModOf(const Interval& a, const Interval& b);

/// coeff * k + base; coeff 0 is the constant base, coeff 1 every integer.
struct Residue {
  int64_t coeff = 1, base = 0;
  static Residue Make(Wide coeff, Wide base);
  bool IsPoint() const { return coeff == 0; }
  bool operator==(const Residue&) const = default;
};

}  // namespace tvm::arith
