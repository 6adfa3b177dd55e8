// SPDX-License-Identifier: Apache-2.0
// Canonical form: sums of multiples of splits, where a split is (index % upper) // lower. Quotients
// and remainders of one index that belong together merge again: (i // 4) * 4 + i % 4 is i.
#include <numeric>
#include <tuple>

#include "arith/expr_walk.h"
#include "ir/once.h"
#include "tvm/ir/structural.h"

namespace tvm::arith {
namespace {

/// scale * ((index % upper) // lower); upper 0: no remainder is taken. lower divides upper.
struct Split {
  PrimExpr index;
  int64_t lower = 1, upper = 0, scale = 1;
  bool SameSplit(const Split& o) const {
    return lower == o.lower && upper == o.upper && ExprDeepEqual(index, o.index);
  }
};

class Canonical : public ExprWalk<Canonical> {
 public:
  explicit Canonical(Analyzer::Impl* facts) : facts_(facts) {}
  using ExprWalk::Rewrite;
  ObjectRef Rewrite(const PrimExprObj* node) {
    PrimExpr e = ffi::GetRef<PrimExpr>(node);
    if (e.as<IntImmObj>() || e.as<FloatImmObj>() || e.as<StringImmObj>()) return e;
    if (facts_->IsSimpleSum(e)) return e;
    if (auto* memo = facts_->memos.Find(e); memo && memo->canonical.defined())
      return memo->canonical;
    PrimExpr result = Visit(e);
    return facts_->memos.At(e)->canonical = result;
  }

 private:
  struct Sum {
    std::vector<Split> splits;
    int64_t base = 0;
    bool valid = true;

    void Add(Wide c) {
      if (!Fits(Wide{base} + c))
        valid = false;
      else
        base = static_cast<int64_t>(base + c);
    }
    void Add(const Split& s) {
      if (s.scale == 0) return;
      for (size_t i = 0; i < splits.size(); ++i) {
        if (!splits[i].SameSplit(s)) continue;
        Wide scale = Wide{splits[i].scale} + s.scale;
        if (!Fits(scale))
          valid = false;
        else if (scale == 0)
          splits.erase(splits.begin() + static_cast<int64_t>(i));
        else
          splits[i].scale = static_cast<int64_t>(scale);
        return;
      }
      splits.push_back(s);
    }
    void Add(const Sum& o, int64_t factor) {
      valid = valid && o.valid;
      for (Split s : o.splits) {
        Wide scale = Wide{s.scale} * factor;
        if (!Fits(scale))
          valid = false;
        else {
          s.scale = static_cast<int64_t>(scale);
          Add(s);
        }
      }
      Add(Wide{o.base} * factor);
    }
  };

  PrimExpr Visit(const PrimExpr& e) {
    bool arithmetic = e.as<AddObj>() || e.as<SubObj>() || e.as<MulObj>() || e.as<FloorDivObj>() ||
                      e.as<FloorModObj>();
    if (arithmetic && facts_->IsIndex(e) && facts_->TraitsOf(e).pure) {
      Sum sum = ToSum(e);
      if (sum.valid) {
        PrimExpr result = ToExpr(sum, e.dtype());
        if (result.defined()) return ExprDeepEqual(result, e) ? e : result;
      }
    }
    // Below any other node the parts are simplified one by one, then the node by the rules.
    PrimExpr below = Any(MapChildren(e.get(), *this)).cast<PrimExpr>();
    bool compares = e.as<LTObj>() || e.as<LEObj>() || e.as<GTObj>() || e.as<GEObj>();
    return below.same_as(e) && !compares ? e : facts_->RewriteSimplify(below);
  }

  Sum Atom(const PrimExpr& e) {
    Sum sum;
    sum.Add(Split{e});
    return sum;
  }
  /// `e` is index arithmetic.
  Sum ToSum(const PrimExpr& e) {
    if (Known* known = sums_.Find(e.get()); known && known->facts == facts_->memos.facts())
      return known->sum;
    Sum sum = ComputeSum(e);
    sums_.Keep(e.get(), {e, facts_->memos.facts(), sum});
    return sum;
  }
  Sum ComputeSum(const PrimExpr& e) {
    return Recurse([&] {
      Sum sum;
      if (auto c = AsConstInt(e)) {
        sum.Add(Wide{*c});
      } else if (auto* n = e.as<AddObj>()) {
        sum = ToSum(n->a);
        sum.Add(ToSum(n->b), 1);
        Merge(&sum);
      } else if (auto* n = e.as<SubObj>()) {
        sum = ToSum(n->a);
        sum.Add(ToSum(n->b), -1);
        Merge(&sum);
      } else if (auto* n = e.as<MulObj>()) {
        Sum a = ToSum(n->a), b = ToSum(n->b);
        if (b.valid && b.splits.empty())
          sum.Add(a, b.base);
        else if (a.valid && a.splits.empty())
          sum.Add(b, a.base);
        else
          sum = Product(a, b, e);
      } else if (auto* n = e.as<FloorDivObj>(); n && Divisor(n->b)) {
        sum = Quotient(ToSum(n->a), *Divisor(n->b), e.dtype());
      } else if (auto* n = e.as<FloorModObj>(); n && Divisor(n->b)) {
        sum = Remainder(ToSum(n->a), *Divisor(n->b), e.dtype());
      } else {
        PrimExpr below = facts_->RewriteSimplify(Any(MapChildren(e.get(), *this)).cast<PrimExpr>());
        if (auto it = e.as<VarObj>(); it && facts_->values.count(it))
          return ToSum(facts_->values.at(it));
        bool again = !below.same_as(e) && (below.as<AddObj>() || below.as<SubObj>() ||
                                           below.as<MulObj>() || AsConstInt(below));
        return again ? ToSum(below) : Atom(below);
      }
      return sum;
    });
  }
  static std::optional<int64_t> Divisor(const PrimExpr& e) {
    auto c = AsConstInt(e);
    return c && *c > 0 ? c : std::nullopt;
  }
  /// Products of sums are multiplied out, as long as that gives few terms.
  Sum Product(const Sum& a, const Sum& b, const PrimExpr& e) {
    Sum sum;
    DataType t = e.dtype();
    sum.valid = a.valid && b.valid;
    if (!sum.valid) return sum;
    if ((a.splits.size() + 1) * (b.splits.size() + 1) > 16) {
      PrimExpr x = ToExpr(a, t), y = ToExpr(b, t);
      if (!x.defined() || !y.defined()) {
        sum.valid = false;
        return sum;
      }
      return Atom(ProductOf(x, y));
    }
    auto add = [&](Split s, Wide scale) {
      if (!Fits(scale))
        sum.valid = false;
      else {
        s.scale = static_cast<int64_t>(scale);
        sum.Add(s);
      }
    };
    auto unit = [&](const Split& s) { return ToExpr(Split{s.index, s.lower, s.upper, 1}, t); };
    for (const Split& x : a.splits) {
      for (const Split& y : b.splits)
        add(Split{ProductOf(unit(x), unit(y))}, Wide{x.scale} * y.scale);
      add(x, Wide{x.scale} * b.base);
    }
    for (const Split& y : b.splits) add(y, Wide{y.scale} * a.base);
    sum.Add(Wide{a.base} * b.base);
    return sum;
  }
  /// One order for the factors, so that a * b and b * a are one term.
  PrimExpr ProductOf(const PrimExpr& a, const PrimExpr& b) {
    // Squares of squares have more factors than anybody can compare.
    constexpr size_t kMostFactors = 64;
    std::vector<PrimExpr> factors;
    auto collect = [&](auto&& self, const PrimExpr& e) -> void {
      if (auto* n = e.as<MulObj>(); n && factors.size() < kMostFactors) {
        self(self, n->a);
        return self(self, n->b);
      }
      factors.push_back(e);
    };
    collect(collect, a);
    collect(collect, b);
    std::vector<std::pair<OrderKey, PrimExpr>> keyed;
    for (const PrimExpr& factor : factors) keyed.emplace_back(OrderOf(factor), factor);
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    PrimExpr product = keyed[0].second;
    for (size_t i = 1; i < keyed.size(); ++i) product = product * keyed[i].second;
    return product;
  }
  /// Variables by name, others behind them by their form and the names in it: the same in each run.
  /// Only of what looks the same an address decides.
  using OrderKey = std::tuple<int64_t, std::string, int64_t>;
  static OrderKey OrderOf(const PrimExpr& e) {
    if (auto* var = e.as<VarObj>())
      return {INT64_MIN, std::string(var->name_hint), reinterpret_cast<int64_t>(var)};
    std::string names;
    Once once;
    PreOrderVisit(e, [&](const ObjectRef& node) {
      if (!once(node.get())) return false;
      if (auto* var = node.as<VarObj>()) names += std::string(var->name_hint) + ' ';
      return true;
    });
    return {StructuralHash(e, true), names, StructuralHash(e)};
  }

  // ---- quotients and remainders ---------------------------------------------------------------
  /// sum = c * multiple + rest, term by term.
  void Separate(const Sum& sum, int64_t c, Sum* multiple, Sum* rest) {
    for (Split s : sum.splits) {
      if (s.scale % c == 0) {
        s.scale /= c;
        multiple->Add(s);
      } else
        rest->Add(s);
    }
    int64_t base = FloorModInt(sum.base, c);
    rest->Add(Wide{base});
    multiple->Add(Wide{FloorDivInt(sum.base, c)});
    multiple->valid = rest->valid = sum.valid;
  }
  Interval BoundOf(const Sum& sum, DataType t) {
    LinearForm form;
    form.valid = sum.valid;
    form.Add(Wide{sum.base});
    for (const Split& s : sum.splits)
      form.Add(ToExpr(Split{s.index, s.lower, s.upper, 1}, t), s.scale);
    return facts_->BoundOf(form);
  }
  /// The greatest common divisor of the scales and c; base = that * q + r0 with r0 smaller than it.
  static int64_t CommonScale(const Sum& sum, int64_t c) {
    int64_t g = c;
    for (const Split& s : sum.splits) g = std::gcd(g, s.scale);
    return g;
  }
  Sum Scaled(const Sum& sum, int64_t divisor) {
    Sum result;
    for (Split s : sum.splits) {
      s.scale /= divisor;
      result.Add(s);
    }
    result.Add(Wide{FloorDivInt(sum.base, divisor)});
    return result;
  }
  Sum Quotient(const Sum& sum, int64_t c, DataType t) {
    Sum multiple, rest;
    Separate(sum, c, &multiple, &rest);
    if (!sum.valid) return sum;
    Interval bound = BoundOf(rest, t);
    // All values of the rest in one block: its quotient is a constant.
    if (bound.Bounded() && FloorDivInt(bound.lo, c) == FloorDivInt(bound.hi, c)) {
      multiple.Add(Wide{FloorDivInt(bound.lo, c)});
      return multiple;
    }
    int64_t g = CommonScale(rest, c);
    Sum quotient = g > 1 ? Quotient(Scaled(rest, g), c / g, t) : Divided(rest, c, t);
    multiple.Add(quotient, 1);
    Merge(&multiple);
    return multiple;
  }
  /// Terms that do not reach the next multiple of the others' common scale do not matter.
  Sum Divided(const Sum& rest, int64_t c, DataType t) {
    for (const Split& lead : rest.splits) {
      int64_t g = std::gcd(lead.scale, c);
      if (g == 1) continue;
      Sum large, small;
      Separate(rest, g, &large, &small);
      Interval bound = BoundOf(small, t);
      if (bound.Bounded() && bound.lo >= 0 && bound.hi < g) return Quotient(large, c / g, t);
    }
    if (rest.splits.size() == 1 && rest.base == 0 && rest.splits[0].scale == 1) {
      Split s = rest.splits[0];
      Wide lower = Wide{s.lower} * c;
      // ((i % u) // l) // c = (i % u) // (l c) as long as that divides u.
      if (Fits(lower) && (s.upper == 0 || s.upper % static_cast<int64_t>(lower) == 0)) {
        s.lower = static_cast<int64_t>(lower);
        Sum result;
        result.Add(s);
        return result;
      }
    }
    PrimExpr dividend = ToExpr(rest, t);
    if (!dividend.defined()) return Sum{{}, 0, false};
    Sum result;
    result.Add(Split{dividend, c, 0, 1});
    return result;
  }
  Sum Remainder(const Sum& sum, int64_t c, DataType t) {
    Sum multiple, rest;
    Separate(sum, c, &multiple, &rest);
    if (!sum.valid) return sum;
    // Scales matter only modulo c: the one nearest to 0 keeps the bounds small.
    Sum reduced;
    for (Split s : rest.splits) {
      s.scale = FloorModInt(s.scale, c);
      reduced.Add(s);
    }
    reduced.Add(Wide{rest.base});
    Interval bound = BoundOf(rest, t), other = BoundOf(reduced, t);
    for (auto [b, candidate] : {std::pair{bound, &rest}, {other, &reduced}}) {
      if (b.Bounded() && FloorDivInt(b.lo, c) == FloorDivInt(b.hi, c)) {
        Sum result = *candidate;
        result.Add(-Wide{FloorDivInt(b.lo, c)} * c);
        return result;
      }
    }
    // From here on the scales nearest to 0: (n + 2 j) % 3 is (n - j) % 3.
    for (Split& s : reduced.splits) {
      if (s.scale > c / 2 && reduced.splits.size() > 1) s.scale -= c;
    }
    int64_t g = CommonScale(reduced, c);
    if (g > 1) {
      // (g q + r0) % c = g (q % (c / g)) + r0
      Sum result;
      result.Add(Remainder(Scaled(reduced, g), c / g, t), g);
      result.Add(Wide{FloorModInt(reduced.base, g)});
      return result;
    }
    for (const Split& lead : reduced.splits) {
      int64_t h = std::gcd(lead.scale, c);
      if (h == 1) continue;
      Sum large, small;
      Separate(reduced, h, &large, &small);
      Interval b = BoundOf(small, t);
      if (b.Bounded() && b.lo >= 0 && b.hi < h) {
        Sum result = small;
        result.Add(Remainder(large, c / h, t), h);
        return result;
      }
    }
    if (reduced.splits.size() == 1 && reduced.base == 0 && reduced.splits[0].scale == 1) {
      Split s = reduced.splits[0];
      Wide upper = Wide{s.lower} * c;
      // ((i % u) // l) % c = (i % (l c)) // l where l c divides u (or u is none).
      if (Fits(upper) && (s.upper == 0 || s.upper % static_cast<int64_t>(upper) == 0)) {
        s.upper = static_cast<int64_t>(upper);
        Sum result;
        result.Add(s);
        return result;
      }
    }
    PrimExpr dividend = ToExpr(reduced, t);
    if (!dividend.defined()) return Sum{{}, 0, false};
    Sum result;
    result.Add(Split{dividend, 1, c, 1});
    return result;
  }

  /// Joins a quotient with the remainder below it: lower end of the one is the upper end of the
  /// other, and the scales continue.
  void Merge(Sum* sum) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < sum->splits.size() && !changed; ++i) {
        for (size_t j = 0; j < sum->splits.size() && !changed; ++j) {
          const Split high = sum->splits[i], low = sum->splits[j];
          if (i == j || low.upper == 0 || high.lower != low.upper) continue;
          if (Wide{low.scale} * (low.upper / low.lower) != high.scale) continue;
          if (!ExprDeepEqual(high.index, low.index) &&
              !facts_->DifferByMultiple(high.index, low.index, low.upper))
            continue;
          sum->splits.erase(sum->splits.begin() + static_cast<int64_t>(std::max(i, j)));
          sum->splits.erase(sum->splits.begin() + static_cast<int64_t>(std::min(i, j)));
          Split joined{high.index, low.lower, high.upper, low.scale};
          // A whole index that is a sum itself goes back into the sum.
          if (joined.lower == 1 && joined.upper == 0)
            sum->Add(ToSum(joined.index), joined.scale);
          else
            sum->Add(joined);
          changed = true;
        }
      }
    }
  }

  PrimExpr ToExpr(const Split& s, DataType t) {
    PrimExpr e = s.index;
    // With a quotient outside, (i // l) % (u / l) is the same and its remainder the simpler one.
    if (s.upper != 0 && s.lower != 1) {
      e = floormod(floordiv(e, MakeConst(t, s.lower)), MakeConst(t, s.upper / s.lower));
    } else if (s.lower != 1) {
      e = floordiv(e, MakeConst(t, s.lower));
    } else if (s.upper != 0) {
      e = floormod(e, MakeConst(t, s.upper));
    }
    return s.scale == 1 ? e : e * MakeConst(t, s.scale);
  }
  /// Undefined when a constant is beyond the type.
  PrimExpr ToExpr(const Sum& sum, DataType t) {
    Interval domain = Interval::OfType(t);
    LinearForm form;
    form.valid = sum.valid && domain.Contains(sum.base);
    form.Add(Wide{sum.base});
    for (const Split& s : sum.splits) {
      if (!domain.Contains(s.scale) || !domain.Contains(-s.scale) || !domain.Contains(s.lower) ||
          !domain.Contains(s.upper))
        return PrimExpr();
      form.Add(ToExpr(Split{s.index, s.lower, s.upper, 1}, t), s.scale);
    }
    return form.valid ? form.ToExpr(t) : PrimExpr();
  }

  /// The sum of a node by the facts of that number. The node stays alive: its address could be used
  /// again otherwise.
  struct Known {
    PrimExpr node;
    uint64_t facts = 0;
    Sum sum;
  };
  SharedMemo<Known> sums_;
  Analyzer::Impl* facts_;
};
}  // namespace

PrimExpr Analyzer::Impl::CanonicalSimplify(const PrimExpr& e) { return Canonical(this).Mutate(e); }

}  // namespace tvm::arith
