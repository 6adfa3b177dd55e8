// SPDX-License-Identifier: Apache-2.0
// The interval an expression takes its values in while variables run over theirs.
#include "arith/impl.h"
#include "ir/once.h"

namespace tvm::arith {
namespace {
struct Ends {
  PrimExpr lo, hi;
  bool IsPoint() const { return lo.same_as(hi); }
};
const Ends& All() {
  static const Ends all{neg_inf(), pos_inf()};
  return all;
}
bool IsInf(const PrimExpr& e) { return is_pos_inf(e) || is_neg_inf(e); }

class SetEvaluator {
 public:
  SetEvaluator(const DomMap& domains, Analyzer* analyzer)
      : domains_(domains), analyzer_(analyzer), facts_(analyzer->impl()) {}

  Ends Eval(const PrimExpr& e) {
    if (!Depends(e)) return {e, e};
    // The ends of an open variable's domain are no part of what is remembered.
    if (Ends* known = open_.empty() ? done_.Find(e.get()) : nullptr) return *known;
    Ends ends = Recurse([&] { return Simplified(EvalNode(e)); });
    if (open_.empty()) done_.Keep(e.get(), ends);
    return ends;
  }

 private:
  bool Depends(const PrimExpr& e) {
    if (e.dtype().is_vector()) return true;  // the lanes are members
    return UsesVar(e, [&](const VarObj* v) { return domains_.count(ffi::GetRef<Var>(v)) != 0; });
  }
  Ends Simplified(Ends ends) {
    bool point = ends.IsPoint();
    if (!IsInf(ends.lo)) ends.lo = analyzer_->Simplify(ends.lo);
    if (point) return {ends.lo, ends.lo};
    if (!IsInf(ends.hi)) ends.hi = analyzer_->Simplify(ends.hi);
    return ends;
  }
  Ends Of(const Var& var) {
    auto it = domains_.find(var);
    if (it == domains_.end()) return {var, var};
    IntSet set = (*it).second;
    if (set.IsNothing() || set.IsEverything()) return All();
    // The ends may name other variables with domains; one that names itself stays as it is.
    for (const VarObj* open : open_) {
      if (open == var.get()) return {var, var};
    }
    open_.push_back(var.get());
    Ends ends{set.min(), set.max()};
    if (!IsInf(ends.lo)) ends.lo = Eval(ends.lo).lo;
    if (!IsInf(ends.hi))
      ends.hi = set.IsSinglePoint() && !Depends(set.min()) ? ends.lo : Eval(ends.hi).hi;
    open_.pop_back();
    return ends;
  }
  /// Whether a >= 0 (sign 1) or a <= 0 (sign -1) is known.
  bool Sign(const PrimExpr& a, int sign) {
    if (IsInf(a)) return sign > 0 ? is_pos_inf(a) : is_neg_inf(a);
    return sign > 0 ? analyzer_->CanProveGreaterEqual(a, 0) : analyzer_->CanProveLess(a, 1);
  }
  static PrimExpr Apply(PrimExpr (*op)(PrimExpr, PrimExpr, Optional<Span>), const PrimExpr& a,
                        const PrimExpr& b, const PrimExpr& inf) {
    return IsInf(a) || IsInf(b) ? inf : op(a, b, {});
  }
  Ends Times(const Ends& a, const PrimExpr& factor) {
    if (Sign(factor, 1))
      return {Apply(&mul, a.lo, factor, neg_inf()), Apply(&mul, a.hi, factor, pos_inf())};
    if (Sign(factor, -1))
      return {Apply(&mul, a.hi, factor, neg_inf()), Apply(&mul, a.lo, factor, pos_inf())};
    return All();
  }
  Ends Join(const Ends& a, const Ends& b) {
    return {is_neg_inf(a.lo) ? a.lo : Apply(&min, a.lo, b.lo, neg_inf()),
            is_pos_inf(a.hi) ? a.hi : Apply(&max, a.hi, b.hi, pos_inf())};
  }
  template <class N>
  Ends Divide(const N* n, const Ends& a, const Ends& b,
              PrimExpr (*op)(PrimExpr, PrimExpr, Optional<Span>)) {
    if (!b.IsPoint() || IsInf(b.lo)) return All();
    // x // 0 is 0: the sign must be strict.
    if (analyzer_->CanProveGreaterEqual(b.lo, 1))
      return {Apply(op, a.lo, b.lo, neg_inf()), Apply(op, a.hi, b.lo, pos_inf())};
    if (analyzer_->CanProveLess(b.lo, 0))
      return {Apply(op, a.hi, b.lo, neg_inf()), Apply(op, a.lo, b.lo, pos_inf())};
    return All();
  }
  Ends Remainder(const Ends& a, const Ends& b, bool floor) {
    if (!b.IsPoint() || IsInf(b.lo) || !analyzer_->CanProveGreaterEqual(b.lo, 1)) return All();
    const PrimExpr &d = b.lo, zero = MakeZero(d.dtype()), last = d - MakeConst(d.dtype(), 1);
    bool finite = !IsInf(a.lo) && !IsInf(a.hi);
    if (finite && (floor || Sign(a.lo, 1)) &&
        analyzer_->CanProveEqual(floordiv(a.lo, d), floordiv(a.hi, d))) {
      PrimExpr base = floordiv(a.lo, d) * d;
      return {a.lo - base, a.hi - base};
    }
    if (floor || Sign(a.lo, 1)) return {zero, last};
    return {-last, Sign(a.hi, -1) ? zero : last};
  }
  Ends EvalNode(const PrimExpr& e) {
    if (auto* n = e.as<VarObj>()) return e.dtype().is_scalar() ? Of(ffi::GetRef<Var>(n)) : All();
    if (auto* n = e.as<BroadcastObj>()) return Eval(n->value);
    if (auto* n = e.as<RampObj>()) {
      auto lanes = AsConstInt(n->lanes);
      if (!lanes || !facts_->IsIndex(n->base) || !facts_->IsIndex(n->stride)) return All();
      DataType t = n->base.dtype();
      Ends base = Eval(n->base), stride = Eval(n->stride),
           last = Times(stride, MakeConst(t, *lanes - 1));
      Ends reach = Join({MakeZero(t), MakeZero(t)}, last);
      return {Apply(&add, base.lo, reach.lo, neg_inf()), Apply(&add, base.hi, reach.hi, pos_inf())};
    }
    if (e.dtype().is_bool()) {
      if (auto known = facts_->Decide(e)) return {IntImm::Bool(*known), IntImm::Bool(*known)};
      return {IntImm::Bool(false), IntImm::Bool(true)};
    }
    bool exact = e.dtype().element().is_index() && facts_->TraitsOf(e).index;
    if (auto* n = e.as<SelectObj>()) return Join(Eval(n->true_value), Eval(n->false_value));
    if (auto* n = e.as<MinObj>()) return Lattice(Eval(n->a), Eval(n->b), true);
    if (auto* n = e.as<MaxObj>()) return Lattice(Eval(n->a), Eval(n->b), false);
    if (auto* n = e.as<CallObj>()) {
      if (n->Is(builtin::likely())) return Eval(n->args[0]);
      if (n->Is(builtin::if_then_else())) return Join(Eval(n->args[1]), Eval(n->args[2]));
      return Constants(e);
    }
    if (!exact) return Constants(e);  // arithmetic that may wrap
    if (auto* n = e.as<AddObj>()) {
      Ends a = Eval(n->a), b = Eval(n->b);
      return Points(a, b, {Apply(&add, a.lo, b.lo, neg_inf()), Apply(&add, a.hi, b.hi, pos_inf())});
    }
    if (auto* n = e.as<SubObj>()) {
      Ends a = Eval(n->a), b = Eval(n->b);
      return Points(a, b, {Apply(&sub, a.lo, b.hi, neg_inf()), Apply(&sub, a.hi, b.lo, pos_inf())});
    }
    if (auto* n = e.as<MulObj>()) {
      Ends a = Eval(n->a), b = Eval(n->b);
      if (b.IsPoint()) return Points(a, b, Times(a, b.lo));
      if (a.IsPoint()) return Points(a, b, Times(b, a.lo));
      if (Sign(a.lo, 1) && Sign(b.lo, 1)) return {a.lo * b.lo, Apply(&mul, a.hi, b.hi, pos_inf())};
      return Constants(e);
    }
    if (auto* n = e.as<FloorDivObj>()) return Divide(n, Eval(n->a), Eval(n->b), &floordiv);
    if (auto* n = e.as<DivObj>()) return Divide(n, Eval(n->a), Eval(n->b), &truncdiv);
    if (auto* n = e.as<FloorModObj>()) return Remainder(Eval(n->a), Eval(n->b), true);
    if (auto* n = e.as<ModObj>()) return Remainder(Eval(n->a), Eval(n->b), false);
    if (auto* n = e.as<CastObj>();
        n && n->value.dtype().element().is_index() && e.dtype().bits() >= n->value.dtype().bits()) {
      Ends a = Eval(n->value);
      auto to = [&](const PrimExpr& end) {
        return IsInf(end) ? end : cast(e.dtype().element(), end);
      };
      return Points(a, a, {to(a.lo), to(a.hi)});
    }
    if (auto* n = e.as<LetObj>()) {
      return Eval(Substitute(n->body, [&](const Var& v) -> PrimExpr {
        return v.same_as(n->var) ? n->value : PrimExpr();
      }));
    }
    return Constants(e);
  }
  /// The bounds that constants give; the domains' own constants are not used.
  Ends Constants(const PrimExpr& e) {
    if (e.dtype().is_integer() && !e.dtype().is_index()) {
      Interval domain = Interval::OfType(e.dtype());
      if (domain.Bounded()) {
        DataType t = e.dtype().element();
        return {MakeConst(t, domain.lo), MakeConst(t, domain.hi)};
      }
    }
    return All();
  }
  /// Operations on points give points.
  static Ends Points(const Ends& a, const Ends& b, Ends result) {
    if (a.IsPoint() && b.IsPoint() && !IsInf(result.lo)) result.hi = result.lo;
    return result;
  }
  Ends Lattice(const Ends& a, const Ends& b, bool is_min) {
    auto op = is_min ? static_cast<PrimExpr (*)(PrimExpr, PrimExpr, Optional<Span>)>(&min) : &max;
    auto end = [&](const PrimExpr& x, const PrimExpr& y) {
      // min(inf, y) = y, min(-inf, y) = -inf
      if (IsInf(x)) return is_neg_inf(x) == is_min ? x : y;
      if (IsInf(y)) return is_neg_inf(y) == is_min ? y : x;
      return op(x, y, {});
    };
    return {end(a.lo, b.lo), end(a.hi, b.hi)};
  }

  const DomMap& domains_;
  Analyzer* analyzer_;
  Analyzer::Impl* facts_;
  std::vector<const VarObj*> open_;
  SharedMemo<Ends> done_;
};
}  // namespace

IntSet EvalSet(const PrimExpr& e, const DomMap& dom_map, Analyzer* analyzer) {
  if (!e.dtype().is_integer() && !e.dtype().is_bool()) {
    TVM_FFI_THROW(TypeError) << "int_set: expected an integer expression, got " << e.dtype();
  }
  Ends ends = SetEvaluator(dom_map, analyzer).Eval(e);
  return IntervalSet(ends.lo, ends.hi);
}
IntSet EvalSet(const PrimExpr& e, const DomMap& dom_map) {
  Analyzer analyzer;
  return EvalSet(e, dom_map, &analyzer);
}
IntSet EvalSet(const PrimExpr& e, const Map<Var, Range>& dom_map) {
  return EvalSet(e, AsIntSets(dom_map));
}
IntSet EvalSet(const Range& range, const DomMap& dom_map) {
  Analyzer analyzer;
  SetEvaluator evaluator(dom_map, &analyzer);
  PrimExpr last = range->min;
  if (!IsOne(range->extent)) last = last + range->extent - MakeConst(range->extent.dtype(), 1);
  last = analyzer.Simplify(last);
  Ends low = evaluator.Eval(range->min);
  return IntervalSet(low.lo, last.same_as(range->min) ? low.hi : evaluator.Eval(last).hi);
}
Array<IntSet> EvalSet(const Array<Range>& region, const DomMap& dom_map) {
  return region.Map([&](const Range& r) { return EvalSet(r, dom_map); });
}

bool Analyzer::Impl::ProveBySymbolicBound(const PrimExpr& cond) {
  PrimExpr difference;  // cond holds if this is positive
  if (auto* n = cond.as<LTObj>(); n && IsIndex(n->a) && IsIndex(n->b)) difference = n->b - n->a;
  if (auto* n = cond.as<LEObj>(); n && IsIndex(n->a) && IsIndex(n->b)) {
    difference = n->b - n->a + MakeConst(n->a.dtype(), 1);
  }
  if (!difference.defined()) return false;
  difference = self->Simplify(difference, 4);
  std::vector<Var> ranged;
  PostOrderVisit(difference, [&](const ObjectRef& n) {
    auto* var = n.as<VarObj>();
    if (var && var_ranges.count(var)) ranged.push_back(ffi::GetRef<Var>(var));
  });
  // Each variable in turn is replaced by the end of its range that makes the difference least.
  for (size_t i = 0; i < ranged.size() && i < 16; ++i) {
    PrimExpr low =
        EvalSet(difference, DomMap{{ranged[i], IntSet::FromRange(var_ranges.at(ranged[i].get()))}},
                self)
            .min();
    if (is_neg_inf(low) || is_pos_inf(low)) continue;
    difference = self->Simplify(low, 4);
    if (self->CanProveGreaterEqual(difference, 1)) return true;
    PostOrderVisit(difference, [&](const ObjectRef& n) {
      auto* var = n.as<VarObj>();
      if (var && var_ranges.count(var)) ranged.push_back(ffi::GetRef<Var>(var));
    });
  }
  return false;
}

}  // namespace tvm::arith
