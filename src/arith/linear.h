// SPDX-License-Identifier: Apache-2.0
// Linear forms: a constant plus integer multiples of expressions that are not sums themselves.
#pragma once
#include <utility>
#include <vector>

#include "arith/interval.h"

namespace tvm::arith {

/// Whether a sum is a coefficient: within 64 bits and not one of the infinities.
inline bool Fits(Wide v) { return v > Interval::kNegInf && v < Interval::kPosInf; }

struct LinearTerm {
  PrimExpr atom;
  int64_t coeff;
};
/// Sums of index arithmetic. Coefficients that would leave 64 bits make the form invalid.
struct LinearForm {
  std::vector<LinearTerm> terms;  // no coefficient is 0, no atom twice
  int64_t base = 0;
  bool valid = true;

  bool IsConst() const { return valid && terms.empty(); }
  void Add(const PrimExpr& atom, Wide coeff);
  void Add(Wide constant);
  void Add(const LinearForm& other, int64_t factor);
  /// The greatest common divisor of all coefficients, 0 for a constant.
  int64_t Gcd() const;
  int64_t CoeffOf(const PrimExpr& atom) const;
  /// The sum as an expression, positive terms first.
  PrimExpr ToExpr(DataType t) const;
};

}  // namespace tvm::arith
