// SPDX-License-Identifier: Apache-2.0
// The analyzer: what is known about integer expressions, and their simplification.
//
// Index arithmetic (int32 and int64 scalars over loop and shape variables) is arithmetic of
// unbounded integers by contract. Everything else, and int32 or int64 that comes from memory,
// wraps. Division by zero gives 0. Floating point is left as written.
#pragma once
#include <functional>
#include <memory>

#include "tvm/arith/int_set.h"
#include "tvm/expr/op.h"

namespace tvm::arith {

/// How much effort a proof may take. The values are part of the interface.
enum class ProofStrength : int {
  kDefault = 0,
  kSymbolicBound = 1,  ///< Also eliminates variables with symbolic ranges from inequalities.
};

/// What the simplifier may do beyond the default, as flags. The values are part of the interface.
enum Extension : int64_t {
  kNone = 0,
  kTransitivelyProveInequalities = 1 << 0,
  kConvertBooleanToAndOfOrs = 1 << 1,
  kApplyConstraintsToBooleanBranches = 1 << 2,
  kComparisonOfProductAndSum = 1 << 3,
};

/// Constant bounds [min_value, max_value]; kNegInf and kPosInf stand for no bound.
struct ConstIntBoundObj : NodeObj {
  int64_t min_value = kNegInf, max_value = kPosInf;
  static constexpr int64_t kPosInf = INT64_MAX, kNegInf = -kPosInf;
  static void Fields(auto&& def) {
    def("min_value", &ConstIntBoundObj::min_value);
    def("max_value", &ConstIntBoundObj::max_value);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.ConstIntBound", ConstIntBoundObj, NodeObj);
};
struct ConstIntBound : ObjectRef {
  ConstIntBound(int64_t min_value, int64_t max_value);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ConstIntBound, ObjectRef, ConstIntBoundObj);
};

/// The numbers coeff * k + base, 0 <= base < coeff; a constant has coeff 0.
struct ModularSetObj : NodeObj {
  int64_t coeff = 1, base = 0;
  static void Fields(auto&& def) {
    def("coeff", &ModularSetObj::coeff);
    def("base", &ModularSetObj::base);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.ModularSet", ModularSetObj, NodeObj);
};
struct ModularSet : ObjectRef {
  ModularSet(int64_t coeff, int64_t base);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ModularSet, ObjectRef, ModularSetObj);
};

/// Facts about variables and the questions they answer. Not for use from two threads at once.
class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  // ---- facts ----------------------------------------------------------------------------------
  /// `var` is `value` (and is replaced by it in results), or ranges over [min, min + extent).
  void Bind(const Var& var, const PrimExpr& value, bool allow_override = false);
  void Bind(const Var& var, const Range& range, bool allow_override = false);
  void Bind(const Map<Var, Range>& ranges, bool allow_override = false);
  /// The bounds of `var` are `bound`.
  void Update(const Var& var, const ConstIntBound& bound, bool allow_override = false);
  void Update(const Var& var, const ModularSet& set, bool allow_override = false);
  bool IsBound(const Var& var) const;
  /// `var` comes from memory: its arithmetic wraps, whatever its type. (Bind finds that out
  /// itself.)
  void MarkData(const Var& var);
  /// `value >= 0` holds from now on, everywhere.
  void MarkGlobalNonNeg(const PrimExpr& value);
  /// `cond` holds until the result is called. Prefer ConstraintScope.
  std::function<void()> EnterConstraint(const PrimExpr& cond);

  // ---- simplification -------------------------------------------------------------------------
  /// Rewrite and canonical simplification in turn, at most `steps` of them in all.
  PrimExpr Simplify(const PrimExpr& e, int steps = 2);
  /// By the tables of rules.
  PrimExpr rewrite_simplify(const PrimExpr& e);
  /// As a sum of products with quotients and remainders merged.
  PrimExpr canonical_simplify(const PrimExpr& e);

  // ---- proofs ---------------------------------------------------------------------------------
  bool CanProve(const PrimExpr& cond, ProofStrength strength = ProofStrength::kDefault);
  bool CanProveEqual(const PrimExpr& a, const PrimExpr& b);
  bool CanProveGreaterEqual(const PrimExpr& e, int64_t lower_bound);
  bool CanProveLess(const PrimExpr& e, int64_t upper_bound);
  bool CanProveLessEqualThanSymbolicShapeValue(const PrimExpr& lhs, const PrimExpr& shape);

  // ---- sets -----------------------------------------------------------------------------------
  ConstIntBound const_int_bound(const PrimExpr& e);
  ModularSet modular_set(const PrimExpr& e);
  /// The values of `e` while the variables of `dom_map` range over their sets.
  IntSet int_set(const PrimExpr& e, const DomMap& dom_map);
  /// The same with the ranges the variables were bound to.
  IntSet int_set(const PrimExpr& e);

  // ---- settings -------------------------------------------------------------------------------
  int64_t enabled_extensions() const;
  void set_enabled_extensions(int64_t flags);
  /// How often nodes were visited and rules tried and used.
  Map<String, int64_t> rewrite_stats() const;
  void reset_rewrite_stats();

  struct Impl;
  Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

/// `ConstraintScope scope(&analyzer, i < n);`: the condition holds while the object lives.
class ConstraintScope {
 public:
  ConstraintScope(Analyzer* analyzer, const PrimExpr& cond)
      : exit_(analyzer->EnterConstraint(cond)) {}
  ~ConstraintScope() { exit_(); }
  ConstraintScope(const ConstraintScope&) = delete;
  ConstraintScope& operator=(const ConstraintScope&) = delete;

 private:
  std::function<void()> exit_;
};

}  // namespace tvm::arith
