// SPDX-License-Identifier: Apache-2.0
// Linear inequalities by Fourier-Motzkin elimination.
#include <numeric>

#include "arith/impl.h"
#include "tvm/arith/int_solver.h"
#include "tvm/arith/pattern.h"

namespace tvm::arith {
namespace {
constexpr size_t kMostInequalities = 512;  // elimination may square their number at every step

/// sum(coeffs * variables) + base <= 0
struct Inequality {
  std::vector<int64_t> coeffs;
  PrimExpr base;
};

class Elimination {
 public:
  explicit Elimination(const IntConstraints& system) : system_(system), vars_(system->variables) {
    for (const auto& [v, range] : system->ranges) {
      if (Number(v) < 0) analyzer_.Bind(v, range, true);
    }
    for (const PrimExpr& relation : system->relations) Add(analyzer_.Simplify(relation));
    for (const Var& v : vars_) {
      if (!system->ranges.count(v)) continue;
      Range r = system->ranges.at(v);
      Add(r->min <= v);
      Add(v < r->min + r->extent);
    }
  }
  IntConstraints Solve() {
    size_t n = vars_.size();
    std::vector<IntGroupBounds> bounds;
    std::vector<Inequality> current = inequalities_;
    // From the last variable to the first: each is bounded by those before it.
    for (size_t i = n; i > 0; --i) bounds.insert(bounds.begin(), Eliminate(i - 1, &current));
    bool impossible = false;
    Array<PrimExpr> kept;
    for (const Inequality& rest : current) {
      PrimExpr c = analyzer_.Simplify(rest.base <= MakeZero(rest.base.dtype()));
      if (IsFalse(c))
        impossible = true;
      else if (!IsTrue(c))
        kept.push_back(c);
    }
    if (impossible) return IntConstraints({}, {}, {const_false()});
    Map<Var, Range> ranges;
    for (const auto& [v, range] : system_->ranges) {
      if (Number(v) < 0) ranges.Set(v, range);
    }
    for (size_t i = 0; i < n; ++i) {
      if (auto range = bounds[i]->FindBestRange(ranges)) ranges.Set(vars_[i], range.value());
    }
    // What the ranges do not imply.
    Analyzer local;
    local.Bind(ranges, true);
    auto keep = [&](PrimExpr c) {
      c = local.Simplify(c);
      if (!IsTrue(c) && !local.CanProve(c)) kept.push_back(c);
    };
    for (const PrimExpr& c : system_->relations) keep(c);
    for (const Var& v : vars_) {
      if (!system_->ranges.count(v)) continue;
      Range r = system_->ranges.at(v);
      keep(r->min <= v);
      keep(v < r->min + r->extent);
    }
    return IntConstraints(vars_, ranges, kept);
  }

 private:
  int Number(const Var& v) const {
    for (size_t i = 0; i < vars_.size(); ++i) {
      if (vars_[i].same_as(v)) return static_cast<int>(i);
    }
    return -1;
  }
  void Add(const PrimExpr& e) {
    if (auto* n = e.as<AndObj>()) {
      Add(n->a);
      return Add(n->b);
    }
    if (auto* n = e.as<LTObj>()) return AddLess(n->a, n->b, 1);
    if (auto* n = e.as<LEObj>()) return AddLess(n->a, n->b, 0);
    if (auto* n = e.as<GTObj>()) return AddLess(n->b, n->a, 1);
    if (auto* n = e.as<GEObj>()) return AddLess(n->b, n->a, 0);
    if (auto* n = e.as<EQObj>()) {
      AddLess(n->a, n->b, 0);
      return AddLess(n->b, n->a, 0);
    }
    if (IsFalse(e)) inequalities_.push_back({std::vector<int64_t>(vars_.size()), PrimExpr(1)});
  }
  void AddLess(const PrimExpr& a, const PrimExpr& b, int slack) {
    if (!a.dtype().is_index()) return;
    Array<PrimExpr> linear = DetectLinearEquation(a - b, vars_);
    if (linear.empty()) return;
    Inequality result{{}, analyzer_.Simplify(linear[vars_.size()] + MakeConst(a.dtype(), slack))};
    for (size_t i = 0; i < vars_.size(); ++i) {
      auto c = AsConstInt(linear[i]);
      if (!c) return;
      result.coeffs.push_back(*c);
    }
    inequalities_.push_back(result);
  }
  PrimExpr ExprOf(const Inequality& q, size_t without) {
    PrimExpr e = q.base;
    for (size_t i = 0; i < vars_.size(); ++i) {
      if (i != without && q.coeffs[i] != 0)
        e = e + vars_[i] * MakeConst(vars_[i].dtype(), q.coeffs[i]);
    }
    return e;
  }
  IntGroupBounds Eliminate(size_t var, std::vector<Inequality>* current) {
    std::vector<Inequality> lower, upper, rest;
    int64_t common = 1;
    for (Inequality& q : *current) {
      int64_t c = q.coeffs[var];
      (c == 0 ? rest : c > 0 ? upper : lower).push_back(q);
      if (c != 0) common = std::lcm(common, std::abs(c));
    }
    DataType t = vars_[var].dtype();
    Array<PrimExpr> lows, highs;
    auto scaled = [&](const Inequality& q) {
      int64_t factor = common / std::abs(q.coeffs[var]);
      PrimExpr e = ExprOf(q, var) * MakeConst(t, factor);
      return analyzer_.Simplify(q.coeffs[var] > 0 ? -e : e);
    };
    auto add_once = [&](Array<PrimExpr>* list, const PrimExpr& e) {
      for (const PrimExpr& other : *list) {
        if (ExprDeepEqual(other, e)) return;
      }
      list->push_back(e);
    };
    for (const Inequality& q : lower) add_once(&lows, scaled(q));
    for (const Inequality& q : upper) add_once(&highs, scaled(q));
    for (const Inequality& l : lower) {
      for (const Inequality& u : upper) {
        int64_t x = common / std::abs(l.coeffs[var]), y = common / u.coeffs[var];
        Inequality sum{{}, analyzer_.Simplify(l.base * MakeConst(t, x) + u.base * MakeConst(t, y))};
        for (size_t i = 0; i < vars_.size(); ++i)
          sum.coeffs.push_back(l.coeffs[i] * x + u.coeffs[i] * y);
        bool constant =
            std::all_of(sum.coeffs.begin(), sum.coeffs.end(), [](int64_t c) { return c == 0; });
        if (constant && analyzer_.CanProve(sum.base <= MakeZero(t))) continue;
        rest.push_back(sum);
      }
    }
    if (rest.size() > kMostInequalities) {
      TVM_FFI_THROW(ValueError)
          << "solve_linear_inequalities: expected a smaller system, got more than "
          << kMostInequalities << " inequalities on the way";
    }
    *current = std::move(rest);
    Array<PrimExpr> equal, only_low, only_high;
    for (const PrimExpr& l : lows) {
      bool both = std::any_of(highs.begin(), highs.end(),
                              [&](const PrimExpr& h) { return ExprDeepEqual(l, h); });
      (both ? equal : only_low).push_back(l);
    }
    for (const PrimExpr& h : highs) {
      bool both = std::any_of(equal.begin(), equal.end(),
                              [&](const PrimExpr& e) { return ExprDeepEqual(e, h); });
      if (!both) only_high.push_back(h);
    }
    return IntGroupBounds(MakeConst(t, common), only_low, equal, only_high);
  }

  IntConstraints system_;
  Array<Var> vars_;
  std::vector<Inequality> inequalities_;
  Analyzer analyzer_;
};
}  // namespace

IntConstraints SolveInequalitiesToRange(const IntConstraints& system) {
  return Elimination(system).Solve();
}

IntConstraintsTransform SolveInequalitiesDeskewRange(const IntConstraints& system) {
  IntConstraints solved = SolveInequalitiesToRange(system);
  Map<Var, PrimExpr> src_to_dst, dst_to_src;
  Array<Var> new_vars;
  Map<Var, Range> ranges;
  Analyzer analyzer;
  for (const Var& v : solved->variables) {
    if (!solved->ranges.count(v)) {
      src_to_dst.Set(v, v);
      dst_to_src.Set(v, v);
      new_vars.push_back(v);
      continue;
    }
    // v = min + shift, with the variables before it replaced already.
    Range r = Substitute(solved->ranges.at(v), src_to_dst);
    PrimExpr min = analyzer.Simplify(r->min), extent = analyzer.Simplify(r->extent);
    if (IsOne(extent)) {
      src_to_dst.Set(v, min);
      continue;
    }
    Var shifted = v.CopyWithSuffix(".shifted");
    src_to_dst.Set(v, analyzer.Simplify(min + shifted));
    dst_to_src.Set(shifted, analyzer.Simplify(v - solved->ranges.at(v)->min));
    new_vars.push_back(shifted);
    ranges.Set(shifted, Range::FromMinExtent(MakeZero(v.dtype()), extent));
  }
  for (const auto& [v, range] : solved->ranges) {
    if (!src_to_dst.count(v)) ranges.Set(v, range);
  }
  Analyzer local;
  local.Bind(ranges, true);
  Array<PrimExpr> relations;
  for (const PrimExpr& r : solved->relations) {
    PrimExpr moved = local.Simplify(Substitute(r, src_to_dst));
    if (!IsTrue(moved)) relations.push_back(moved);
  }
  return New<IntConstraintsTransform>([&](IntConstraintsTransformObj* n) {
    n->src = system;
    n->dst = IntConstraints(new_vars, ranges, relations);
    n->src_to_dst = src_to_dst;
    n->dst_to_src = dst_to_src;
  });
}

}  // namespace tvm::arith
