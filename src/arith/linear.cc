// SPDX-License-Identifier: Apache-2.0
// Arithmetic on linear forms.
#include "arith/linear.h"

#include <numeric>

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::arith {
using tir::ExprDeepEqual;
void LinearForm::Add(Wide constant) {
  Wide sum = base + constant;
  if (!Fits(sum)) {
    valid = false;
    return;
  }
  base = static_cast<int64_t>(sum);
}
void LinearForm::Add(const PrimExpr& atom, Wide coeff) {
  if (coeff == 0) return;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!ExprDeepEqual(terms[i].atom, atom)) continue;
    Wide sum = terms[i].coeff + coeff;
    if (!Fits(sum))
      valid = false;
    else if (sum == 0)
      terms.erase(terms.begin() + static_cast<int64_t>(i));
    else
      terms[i].coeff = static_cast<int64_t>(sum);
    return;
  }
  if (!Fits(coeff))
    valid = false;
  else
    terms.push_back({atom, static_cast<int64_t>(coeff)});
}
void LinearForm::Add(const LinearForm& other, int64_t factor) {
  valid = valid && other.valid;
  for (const LinearTerm& t : other.terms) Add(t.atom, Wide{t.coeff} * factor);
  Add(Wide{other.base} * factor);
}
int64_t LinearForm::Gcd() const {
  int64_t g = 0;
  for (const LinearTerm& t : terms) g = std::gcd(g, t.coeff);
  return g;
}
int64_t LinearForm::CoeffOf(const PrimExpr& atom) const {
  for (const LinearTerm& t : terms) {
    if (ExprDeepEqual(t.atom, atom)) return t.coeff;
  }
  return 0;
}
PrimExpr LinearForm::ToExpr(DataType type) const {
  PrimExpr sum;
  auto add_term = [&](const LinearTerm& t) {
    // Magnitudes: -x is 0 - x only where nothing positive comes first.
    PrimExpr product = t.atom * MakeConst(type, sum.defined() && t.coeff < 0 ? -t.coeff : t.coeff);
    sum = !sum.defined() ? product : t.coeff < 0 ? sum - product : sum + product;
  };
  for (const LinearTerm& t : terms) {
    if (t.coeff > 0) add_term(t);
  }
  bool base_first = !sum.defined() && base != 0 && !terms.empty();
  if (base_first) sum = MakeConst(type, base);
  for (const LinearTerm& t : terms) {
    if (t.coeff < 0) add_term(t);
  }
  if (!sum.defined()) return MakeConst(type, base);
  if (base_first || base == 0) return sum;
  return base < 0 && base != INT64_MIN ? sum - MakeConst(type, -base) : sum + MakeConst(type, base);
}

}  // namespace tvm::arith
