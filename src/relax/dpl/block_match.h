// SPDX-License-Identifier: Apache-2.0
// The search for the bindings of a dataflow block that the patterns of a context stand for.
#pragma once
#include <unordered_set>

#include "tvm/relax/dpl.h"

namespace tvm::relax {

class BlockMatch {
 public:
  BlockMatch(const PatternContext& context, const BindingBlock& block);
  /// The next match, or null: one per binding (or variable) of the first pattern, in the order of
  /// the block, of which no call is in `taken`.
  const PatternMatch* Next(const std::unordered_set<const Object*>& taken);

 private:
  void OrderPatterns();
  bool Step(size_t k);
  std::vector<Expr> Candidates(const DFPattern& pattern) const;
  bool Holds(const UseConstraintObj* use) const;
  bool IsFree(size_t k) const;
  bool SameShapesHold() const;
  Expr ValueOfPattern(const DFPattern& pattern) const {
    return match_->LookThrough((*match_)[pattern]);
  }

  PatternContext context_;
  std::vector<const UseConstraintObj*> uses_;
  std::vector<DFPattern> order_;  // the most telling first, then neighbours of those before
  std::vector<Expr> vars_;        // of the block: defined and used
  std::unordered_map<const Object*, Expr> values_;
  std::unordered_map<const Object*, std::vector<Var>> users_;
  std::unordered_set<const Object*> outputs_;
  const std::unordered_set<const Object*>* taken_ = nullptr;
  std::optional<PatternMatch> match_;
  size_t next_ = 0;
};

/// The patterns that stand for variables.
Map<DFPattern, Var> VarsOf(const PatternMatch& match);

}  // namespace tvm::relax
