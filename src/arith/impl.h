// SPDX-License-Identifier: Apache-2.0
// The state behind Analyzer: facts in scopes, and the analyses that read them.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "arith/interval.h"
#include "arith/linear.h"
#include "arith/memo.h"
#include "tvm/expr/substitute.h"

namespace tvm::arith {
using namespace tir;  // NOLINT(*)

/// `sum` lies in `bound`, by a constraint or by the range of a variable.
struct LinearFact {
  LinearForm sum;
  Interval bound;
};

struct RewriteStats {
  int64_t nodes_visited = 0, constraints_entered = 0, rewrites_attempted = 0,
          rewrites_performed = 0, max_recursive_depth = 0;
};

/// A fact per variable, sorted by address. Analyzers are many and know of few variables each:
/// nodes of a hash table would cost more than all else they do.
template <class V>
class VarFacts {
 public:
  using Item = std::pair<const VarObj*, V>;
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  auto find(const VarObj* var) const {
    auto it = Place(items_, var);
    return it != items_.end() && it->first == var ? it : items_.end();
  }
  size_t count(const VarObj* var) const { return find(var) != end(); }
  const V& at(const VarObj* var) const { return find(var)->second; }
  void insert_or_assign(const VarObj* var, V value) {
    auto it = Place(items_, var);
    if (it != items_.end() && it->first == var)
      it->second = std::move(value);
    else
      items_.insert(it, Item(var, std::move(value)));
  }
  void erase(const VarObj* var) {
    auto it = Place(items_, var);
    if (it != items_.end() && it->first == var) items_.erase(it);
  }

 private:
  static auto Place(auto& items, const VarObj* var) {
    return std::lower_bound(items.begin(), items.end(), var,
                            [](const Item& item, const VarObj* v) { return item.first < v; });
  }
  std::vector<Item> items_;
};

struct Analyzer::Impl {
  explicit Impl(Analyzer* self) : self(self) {}
  Analyzer* self;

  // ---- facts ----------------------------------------------------------------------------------
  VarFacts<PrimExpr> values;
  VarFacts<Interval> var_bounds;
  VarFacts<Residue> var_residues;
  VarFacts<Range> var_ranges;
  VarFacts<bool> data_vars;  // bound to what comes from memory
  std::vector<Var> keep_alive;
  std::vector<PrimExpr> truths;  // conditions that hold, as written
  std::vector<LinearFact> linear_facts;
  std::vector<std::pair<PrimExpr, Interval>> expr_bounds;
  std::vector<std::pair<PrimExpr, Residue>> expr_residues;
  int64_t extensions = 0;
  RewriteStats stats;

  Memos memos;
  uint64_t lasting_changes = 0;  // of the facts: not undone by Leave
  void FactsChanged() { ++lasting_changes, memos.NewFacts(); }
  void DataVarsChanged() { memos.NewData(); }

  /// Sizes of the stacks of facts; `Leave` goes back to them.
  struct Mark {
    size_t truths = 0, linear = 0, bounds = 0, residues = 0;
    uint64_t facts = 0, lasting_changes = 0;
  };
  Mark global;  // how many of the facts hold everywhere
  Mark Enter(const PrimExpr& cond);
  /// Holds in all scopes from now on.
  void AddGlobalFact(const PrimExpr& cond);
  void Leave(const Mark& mark);

  /// What is known of one variable, to be put back after the scope of a Let.
  struct Known {
    std::optional<Interval> bound;
    std::optional<Residue> residue;
    bool data = false;
  };
  Known KnownOf(const VarObj* var) const;
  Known KnownAs(const PrimExpr& value);
  void SetKnown(const VarObj* var, const Known& known);

  // ---- analyses -------------------------------------------------------------------------------
  Traits TraitsOf(const PrimExpr& e);
  bool IsIndex(const PrimExpr& e) { return e.dtype().is_index() && TraitsOf(e).index; }
  Interval BoundOf(const PrimExpr& e);
  Residue ResidueOf(const PrimExpr& e);
  /// A sum of atoms with constant factors. `e` must be index arithmetic.
  LinearForm ToLinear(const PrimExpr& e);
  /// The bounds of a linear form: of its terms one by one, and by the facts about sums.
  Interval BoundOf(const LinearForm& sum);
  /// What is known of a - b; everything when the difference may wrap.
  Interval BoundOfDifference(const PrimExpr& a, const PrimExpr& b);
  /// Whether a - b is known to be a multiple of a positive number.
  bool DifferByMultiple(const PrimExpr& a, const PrimExpr& b, Wide modulus);
  /// true, false or not known: from bounds, residues and facts, without rewriting.
  std::optional<bool> Decide(const PrimExpr& cond);

  /// Whether `e` is as simple as it can be, by its form: a sum of a few different variables of
  /// which nothing is known but ranges, with different positive factors, and a constant. Most
  /// indices are.
  bool IsSimpleSum(const PrimExpr& e) const;
  PrimExpr RewriteSimplify(const PrimExpr& e);
  /// A condition as a conjunction of disjunctions, each simplified.
  PrimExpr AsAndOfOrs(const PrimExpr& e);
  PrimExpr CanonicalSimplify(const PrimExpr& e);
  bool ProveBySymbolicBound(const PrimExpr& cond);

 private:
  void AddFact(const PrimExpr& cond);
  void AddLess(const PrimExpr& a, const PrimExpr& b, int64_t slack);
  void AddEqual(const PrimExpr& a, const PrimExpr& b);
  Interval ComputeBound(const PrimExpr& e);
  Residue ComputeResidue(const PrimExpr& e);
  Interval BoundByFacts(const LinearForm& sum, int depth);
};

/// A scope inside the analyzer, cheaper than ConstraintScope.
class FactScope {
 public:
  FactScope(Analyzer::Impl* impl, const PrimExpr& cond) : impl_(impl), mark_(impl->Enter(cond)) {}
  ~FactScope() { impl_->Leave(mark_); }
  FactScope(const FactScope&) = delete;

 private:
  Analyzer::Impl* impl_;
  Analyzer::Impl::Mark mark_;
};

}  // namespace tvm::arith
