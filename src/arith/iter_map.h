// SPDX-License-Identifier: Apache-2.0
// Rewriting of index expressions into iterator maps.
#pragma once
#include "arith/impl.h"
#include "tvm/arith/iter_affine_map.h"

namespace tvm::arith {

/// Raised inside detection; becomes an entry of IterMapResult::errors.
struct NotAnIterMap {
  std::string message;
};

class IterMapRewriter {
 public:
  IterMapRewriter(Analyzer* analyzer, const Map<Var, Range>& input_iters, bool simplify_trivial,
                  bool allow_padding);
  ~IterMapRewriter() {
    while (!sizes_.empty()) sizes_.pop_back();
  }
  /// `predicate` limits sums of iterators.
  void AddPredicate(const PrimExpr& predicate);
  /// `e` as a sum of pieces.
  IterSumExpr ToSum(const PrimExpr& e);
  /// A sum of at most one piece, where the pieces fit together.
  IterSumExpr Fused(const IterSumExpr& sum);
  /// Raises unless the pieces used in `indices` are apart from each other (and complete).
  void Check(const Array<IterSumExpr>& indices, IterMapLevel level);
  /// Where an index stands for no iteration.
  PrimExpr padding_predicate() const { return padding_; }

 private:
  struct Limit {
    IterSumExpr sum;  // base 0
    IterMark mark;
  };
  IterSumExpr Sum(Array<IterSplitExpr> args, PrimExpr base);
  IterSumExpr Plus(const IterSumExpr& a, const IterSumExpr& b, int sign);
  IterSumExpr Times(const IterSumExpr& a, const PrimExpr& factor);
  IterSumExpr Divide(const IterSumExpr& a, const PrimExpr& divisor, bool is_div);
  std::optional<std::pair<IterSumExpr, IterSumExpr>> DivideApart(const IterSumExpr& a,
                                                                 const PrimExpr& divisor);
  IterSplitExpr Aligned(const IterSplitExpr& split, PrimExpr* base, const PrimExpr& divisor);
  std::vector<IterSplitExpr> Chain(std::vector<IterSplitExpr> args, PrimExpr* next);
  void UseLimits(std::vector<IterSplitExpr>* args);
  void AddCondition(const PrimExpr& condition);
  void AddLimit(const IterSumExpr& sum, const PrimExpr& low, const PrimExpr& high);
  PrimExpr Simple(const PrimExpr& e) { return analyzer_->Simplify(e); }
  bool Equal(const PrimExpr& a, const PrimExpr& b) { return analyzer_->CanProveEqual(a, b); }
  bool Divides(const PrimExpr& divisor, const PrimExpr& e);
  bool UsesIter(const PrimExpr& e);
  void LearnSizes(const PrimExpr& extent);
  [[noreturn]] void Fail(const std::string& message) { throw NotAnIterMap{message}; }

  Analyzer* analyzer_;
  bool allow_padding_;
  std::unordered_map<const VarObj*, IterSumExpr> vars_;
  std::vector<IterMark> inputs_;
  std::vector<Limit> limits_;
  std::vector<IterMark> padded_;
  PrimExpr padding_;
  std::vector<std::unique_ptr<ConstraintScope>> sizes_;  // left in the opposite order
};

bool SameMark(const IterMark& a, const IterMark& b);

}  // namespace tvm::arith
