// SPDX-License-Identifier: Apache-2.0
// Proofs about dimensions. Nearly all of them are about constants or one and the same object, so an
// analyzer is made only for the others.
#pragma once
#include <optional>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"

namespace tvm::relax {

/// With variables replaced and what follows from that: n * 2 with n = 4 is 8.
inline PrimExpr SubstituteDim(const PrimExpr& e, const tir::VarMap& map) {
  PrimExpr result = tir::Substitute(e, map);
  bool is_simple = result.same_as(e) || result.as<tir::VarObj>() || result.as<IntImmObj>();
  return is_simple ? result : arith::Analyzer().Simplify(result);
}

enum class DimsAre { kEqual, kUnknown, kDifferent };

class DimProver {
 public:
  explicit DimProver(arith::Analyzer* analyzer) : analyzer_(analyzer) {}
  /// Only two constants are said to be different.
  DimsAre Compare(const PrimExpr& a, const PrimExpr& b) {
    if (a.same_as(b)) return DimsAre::kEqual;
    auto *x = a.as<IntImmObj>(), *y = b.as<IntImmObj>();
    if (x && y) return x->value == y->value ? DimsAre::kEqual : DimsAre::kDifferent;
    if (a.as<tir::VarObj>() && b.as<tir::VarObj>() && !analyzer_) return DimsAre::kUnknown;
    if (!analyzer_) analyzer_ = &own_.emplace();
    return analyzer_->CanProveEqual(a, b) ? DimsAre::kEqual : DimsAre::kUnknown;
  }
  DimsAre Compare(const Array<PrimExpr>& a, const Array<PrimExpr>& b) {
    if (a.same_as(b)) return DimsAre::kEqual;
    if (a.size() != b.size()) return DimsAre::kDifferent;
    auto worst = DimsAre::kEqual;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, Compare(a[i], b[i]));
    return worst;
  }

 private:
  arith::Analyzer* analyzer_;
  std::optional<arith::Analyzer> own_;
};

}  // namespace tvm::relax
