// SPDX-License-Identifier: Apache-2.0
// Facts: conditions that hold become bounds, residues and bounds of sums; comparisons are decided
// by them.
#include <array>
#include <numeric>

#include "arith/forget.h"
#include "arith/impl.h"
#include "ir/once.h"

namespace tvm::arith {
namespace {
constexpr int64_t kPosInf = Interval::kPosInf, kNegInf = Interval::kNegInf;

/// Whether `b` is the negation of `a`, by their form.
bool Negates(const PrimExpr& a, const PrimExpr& b) {
  auto swapped = [&](auto* x, auto* y) {
    return x && y && x->a.dtype().is_integer() && ExprDeepEqual(x->a, y->b) &&
           ExprDeepEqual(x->b, y->a);
  };
  auto same = [&](auto* x, auto* y) {
    return x && y && ExprDeepEqual(x->a, y->a) && ExprDeepEqual(x->b, y->b);
  };
  if (auto* n = a.as<NotObj>()) return ExprDeepEqual(n->a, b);
  if (auto* n = b.as<NotObj>()) return ExprDeepEqual(n->a, a);
  return swapped(a.as<LTObj>(), b.as<LEObj>()) || swapped(a.as<LEObj>(), b.as<LTObj>()) ||
         same(a.as<EQObj>(), b.as<NEObj>()) || same(a.as<NEObj>(), b.as<EQObj>());
}
/// a > b as b < a.
PrimExpr Turned(const PrimExpr& cond) {
  if (auto* n = cond.as<GTObj>()) return LT(n->b, n->a);
  if (auto* n = cond.as<GEObj>()) return LE(n->b, n->a);
  return cond;
}
/// The two values of which `e` is one.
std::optional<std::pair<PrimExpr, PrimExpr>> ChoiceOf(const PrimExpr& e) {
  if (auto* n = e.as<MinObj>()) return std::pair(n->a, n->b);
  if (auto* n = e.as<MaxObj>()) return std::pair(n->a, n->b);
  if (auto* n = e.as<SelectObj>()) return std::pair(n->true_value, n->false_value);
  return std::nullopt;
}
bool IsInt(const PrimExpr& e) { return e.dtype().is_integer(); }
}  // namespace

Analyzer::Impl::Known Analyzer::Impl::KnownOf(const VarObj* var) const {
  Known known;
  if (auto it = var_bounds.find(var); it != var_bounds.end()) known.bound = it->second;
  if (auto it = var_residues.find(var); it != var_residues.end()) known.residue = it->second;
  known.data = data_vars.count(var) != 0;
  return known;
}
Analyzer::Impl::Known Analyzer::Impl::KnownAs(const PrimExpr& value) {
  Known known;
  if (value.dtype().is_integer()) {
    known.bound = BoundOf(value);
    known.residue = ResidueOf(value);
  }
  known.data = !TraitsOf(value).index;
  return known;
}
void Analyzer::Impl::SetKnown(const VarObj* var, const Known& known) {
  auto set = [&](auto* facts, const auto& value) {
    if (value)
      facts->insert_or_assign(var, *value);
    else
      facts->erase(var);
  };
  set(&var_bounds, known.bound);
  set(&var_residues, known.residue);
  if (known.data != (data_vars.count(var) != 0)) {
    if (known.data)
      data_vars.insert_or_assign(var, true);
    else
      data_vars.erase(var);
    DataVarsChanged();
  }
  FactsChanged();
}

bool Analyzer::Impl::IsSimpleSum(const PrimExpr& e) const {
  // A fact about a sum may say what this one is.
  if (!e.dtype().is_index() || !linear_facts.empty() || !expr_bounds.empty() ||
      !expr_residues.empty()) {
    return false;
  }
  constexpr size_t kMostTerms = 6;
  std::array<std::pair<const VarObj*, int64_t>, kMostTerms> terms;
  size_t count = 0;
  const PrimExpr* rest = &e;
  auto without_constant = [&](auto* n) {
    auto* c = n ? n->b.template as<IntImmObj>() : nullptr;
    if (c) rest = &n->a;
    return !c || c->value > 0;
  };
  if (!without_constant(e.as<AddObj>()) || !without_constant(e.as<SubObj>())) return false;
  auto is_known = [&](const VarObj* var) {
    auto bound = var_bounds.find(var);
    auto residue = var_residues.find(var);
    return values.count(var) || data_vars.count(var) ||
           (bound != var_bounds.end() && bound->second.IsPoint()) ||
           (residue != var_residues.end() && residue->second.IsPoint());
  };
  for (;; rest = &rest->as<AddObj>()->a) {
    auto* sum = rest->as<AddObj>();
    const PrimExpr& term = sum ? sum->b : *rest;
    auto* product = term.as<MulObj>();
    auto* factor = product ? product->b.as<IntImmObj>() : nullptr;
    auto* var = (product ? product->a : term).as<VarObj>();
    if (!var || (product && (!factor || factor->value < 2)) || is_known(var)) return false;
    int64_t coeff = factor ? factor->value : 1;
    for (size_t i = 0; i < count; ++i) {
      // Variables with one factor share it: (x + y) * 4.
      if (terms[i].first == var || (coeff > 1 && terms[i].second == coeff)) return false;
    }
    if (!sum) return true;
    if (count == kMostTerms) return false;
    terms[count++] = {var, coeff};
  }
}

bool Analyzer::Impl::IsSimple(const PrimExpr& e, int depth) const {
  constexpr int kMostDepth = 16;  // an attempt must cost little where it fails
  if (depth > kMostDepth) return false;
  auto is_simple = [&](const PrimExpr& part) { return IsSimple(part, depth + 1); };
  DataType t = e.dtype();
  if (auto* ramp = e.as<RampObj>()) {
    auto *stride = ramp->stride.as<IntImmObj>(), *lanes = ramp->lanes.as<IntImmObj>();
    return stride && stride->value != 0 && lanes && lanes->value > 1 && t.is_integer() &&
           (IsSimpleSum(ramp->base) ||
            (ramp->base.as<IntImmObj>() && expr_bounds.empty() && expr_residues.empty()));
  }
  if (!t.is_float()) return e.as<IntImmObj>() || IsSimpleSum(e);
  if (e.as<FloatImmObj>()) return true;
  if (auto* var = e.as<VarObj>()) return !values.count(var);
  if (auto* load = e.as<BufferLoadObj>()) {
    return !load->predicate.has_value() &&
           std::all_of(load->indices.begin(), load->indices.end(), is_simple);
  }
  if (auto* broadcast = e.as<BroadcastObj>())
    return broadcast->lanes.as<IntImmObj>() && is_simple(broadcast->value);
  if (auto* call = e.as<CallObj>()) {
    return !call->Is(builtin::if_then_else()) && !call->Is(builtin::likely()) &&
           std::all_of(call->args.begin(), call->args.end(), is_simple);
  }
  bool is_arithmetic = e.as<AddObj>() || e.as<SubObj>() || e.as<MulObj>() || e.as<DivObj>() ||
                       e.as<MinObj>() || e.as<MaxObj>();
  if (!is_arithmetic) return false;
  auto* n = static_cast<const BinaryOpFields*>(e.get());
  auto is_one = [](const PrimExpr& x) {
    auto* f = x.as<FloatImmObj>();
    return f && f->value == 1;
  };
  auto is_constant = [](const PrimExpr& x) { return x.as<FloatImmObj>() || x.as<BroadcastObj>(); };
  return !is_one(n->a) && !is_one(n->b) && !(is_constant(n->a) && is_constant(n->b)) &&
         is_simple(n->a) && is_simple(n->b);
}

void Forget(Analyzer* analyzer, const std::function<bool(const PrimExpr&)>& changes) {
  Analyzer::Impl* impl = analyzer->impl();
  // Facts become void in their places: the scopes that will be left count them.
  for (PrimExpr& truth : impl->truths) {
    if (changes(truth)) truth = const_true();
  }
  for (LinearFact& fact : impl->linear_facts) {
    auto term_changes = [&](const LinearTerm& term) { return changes(term.atom); };
    if (std::any_of(fact.sum.terms.begin(), fact.sum.terms.end(), term_changes)) fact = {};
  }
  for (auto& [e, bound] : impl->expr_bounds) {
    if (changes(e)) bound = {};
  }
  for (auto& [e, residue] : impl->expr_residues) {
    if (changes(e)) residue = {};
  }
  impl->FactsChanged();
}

Analyzer::Impl::Mark Analyzer::Impl::Enter(const PrimExpr& cond) {
  // Counted from the end of the facts that hold everywhere, for more of those may come.
  Mark mark{truths.size() - global.truths,
            linear_facts.size() - global.linear,
            expr_bounds.size() - global.bounds,
            expr_residues.size() - global.residues,
            memos.facts(),
            lasting_changes};
  ++stats.constraints_entered;
  if (TraitsOf(cond).pure) AddFact(cond);
  memos.NewFacts();
  return mark;
}
void Analyzer::Impl::Leave(const Mark& mark) {
  auto cut = [](auto* list, size_t size) {
    list->erase(list->begin() + static_cast<int64_t>(size), list->end());
  };
  cut(&truths, global.truths + mark.truths);
  cut(&linear_facts, global.linear + mark.linear);
  cut(&expr_bounds, global.bounds + mark.bounds);
  cut(&expr_residues, global.residues + mark.residues);
  if (mark.lasting_changes == lasting_changes)
    memos.OldFacts(mark.facts);
  else
    memos.NewFacts();
}

void Analyzer::Impl::AddGlobalFact(const PrimExpr& cond) {
  // Inside a scope the new facts must survive its end: they go to the front.
  Mark start{truths.size(), linear_facts.size(), expr_bounds.size(), expr_residues.size()};
  AddFact(cond);
  auto to_front = [](auto* list, size_t from, size_t* marks) {
    std::rotate(list->begin() + static_cast<int64_t>(*marks),
                list->begin() + static_cast<int64_t>(from), list->end());
    *marks += list->size() - from;
  };
  to_front(&truths, start.truths, &global.truths);
  to_front(&linear_facts, start.linear, &global.linear);
  to_front(&expr_bounds, start.bounds, &global.bounds);
  to_front(&expr_residues, start.residues, &global.residues);
  FactsChanged();
}

void Analyzer::Impl::AddFact(const PrimExpr& given) {
  PrimExpr cond = Turned(given);
  if (!cond.dtype().is_scalar()) return;  // holds in some lanes only
  if (auto* n = cond.as<AndObj>()) {
    AddFact(n->a);
    return AddFact(n->b);
  }
  if (auto* n = cond.as<CallObj>(); n && n->Is(builtin::likely())) return AddFact(n->args[0]);
  if (auto* n = cond.as<NotObj>()) {
    if (auto* either = n->a.as<OrObj>()) {
      AddFact(!either->a);
      return AddFact(!either->b);
    }
    PrimExpr inner = Turned(n->a);
    if (auto* o = inner.as<NotObj>()) return AddFact(o->a);
    if (auto* o = inner.as<EQObj>()) return AddFact(NE(o->a, o->b));
    if (auto* o = inner.as<NEObj>()) return AddFact(EQ(o->a, o->b));
    if (auto* o = inner.as<LTObj>(); o && IsInt(o->a)) return AddFact(LE(o->b, o->a));
    if (auto* o = inner.as<LEObj>(); o && IsInt(o->a)) return AddFact(LT(o->b, o->a));
  }
  truths.push_back(cond);
  if (auto* n = cond.as<LTObj>(); n && IsInt(n->a)) return AddLess(n->a, n->b, 1);
  if (auto* n = cond.as<LEObj>(); n && IsInt(n->a)) return AddLess(n->a, n->b, 0);
  if (auto* n = cond.as<EQObj>(); n && IsInt(n->a)) return AddEqual(n->a, n->b);
  if (auto* n = cond.as<NEObj>(); n && IsInt(n->a)) {
    // Only the end of a range can be cut off.
    memos.NewFacts();
    auto cut = [&](const PrimExpr& e, const PrimExpr& point) {
      Interval bound = BoundOf(e), p = BoundOf(point);
      if (!p.IsPoint() || bound.IsPoint()) return;
      if (bound.lo == p.lo) expr_bounds.push_back({e, {p.lo + 1, kPosInf}});
      if (bound.hi == p.lo) expr_bounds.push_back({e, {kNegInf, p.lo - 1}});
    };
    cut(n->a, n->b);
    cut(n->b, n->a);
  }
}

/// a + slack <= b
void Analyzer::Impl::AddLess(const PrimExpr& a, const PrimExpr& b, int64_t slack) {
  memos.NewFacts();
  Interval below = BoundOf(a), above = BoundOf(b);
  if (above.hi != kPosInf)
    expr_bounds.push_back({a, Interval::Make(kNegInf, Wide{above.hi} - slack)});
  if (below.lo != kNegInf)
    expr_bounds.push_back({b, Interval::Make(Wide{below.lo} + slack, kPosInf)});
  if (!IsIndex(a) || !IsIndex(b)) return;
  LinearForm sum = ToLinear(a);
  sum.Add(ToLinear(b), -1);
  int64_t divisor = sum.Gcd();
  if (!sum.valid || divisor == 0) return;
  int64_t limit = FloorDivInt<int64_t>(-slack - sum.base, divisor);
  sum.base = 0;
  for (LinearTerm& t : sum.terms) t.coeff /= divisor;
  if (sum.terms.size() == 1) {
    bool positive = sum.terms[0].coeff > 0;
    Interval bound = positive ? Interval{kNegInf, limit} : Interval{-limit, kPosInf};
    expr_bounds.push_back({sum.terms[0].atom, bound});
  } else {
    linear_facts.push_back({std::move(sum), {kNegInf, limit}});
  }
}
void Analyzer::Impl::AddEqual(const PrimExpr& a, const PrimExpr& b) {
  AddLess(a, b, 0);
  AddLess(b, a, 0);
  auto residue = [&](const PrimExpr& e, const PrimExpr& value) {
    auto r = AsConstInt(value);
    auto* floor = e.as<FloorModObj>();
    auto* trunc = e.as<ModObj>();
    if (!r || (!floor && !trunc)) return;
    auto c = AsConstInt(floor ? floor->b : trunc->b);
    const PrimExpr& dividend = floor ? floor->a : trunc->a;
    // A truncated remainder of 0 is a floored one of 0; others agree for dividends >= 0 only.
    if (!c || *c <= 0 || (trunc && *r != 0 && BoundOf(dividend).lo < 0)) return;
    expr_residues.push_back({dividend, Residue::Make(*c, *r)});
    LinearForm sum = IsIndex(dividend) ? ToLinear(dividend) : LinearForm();
    if (sum.valid && sum.terms.size() == 1 && sum.terms[0].coeff == 1) {
      expr_residues.push_back({sum.terms[0].atom, Residue::Make(*c, Wide{*r} - sum.base)});
    }
  };
  residue(a, b);
  residue(b, a);
}

// ---- questions --------------------------------------------------------------------------------
namespace {
LinearForm LinearOf(const PrimExpr& e, SharedMemo<LinearForm>* known) {
  if (LinearForm* form = known->Find(e.get())) return *form;
  return Recurse([&] {
    LinearForm result;
    if (auto c = AsConstInt(e)) {
      result.Add(*c);
    } else if (auto* n = e.as<AddObj>()) {
      result = LinearOf(n->a, known);
      result.Add(LinearOf(n->b, known), 1);
    } else if (auto* n = e.as<SubObj>()) {
      result = LinearOf(n->a, known);
      result.Add(LinearOf(n->b, known), -1);
    } else if (auto* n = e.as<MulObj>()) {
      LinearForm a = LinearOf(n->a, known), b = LinearOf(n->b, known);
      if (!a.IsConst() && !b.IsConst())
        result.Add(e, 1);
      else
        result.Add(b.IsConst() ? a : b, b.IsConst() ? b.base : a.base);
    } else if (auto* n = e.as<CastObj>();
               n && n->value.dtype().is_index() && e.dtype().bits() >= n->value.dtype().bits()) {
      LinearForm inner = LinearOf(n->value, known);
      result.valid = inner.valid;
      for (const LinearTerm& t : inner.terms) result.Add(cast(e.dtype(), t.atom), t.coeff);
      result.Add(inner.base);
    } else {
      result.Add(e, 1);
    }
    known->Keep(e.get(), result);
    return result;
  });
}
}  // namespace

namespace {
/// Adds factor * e to the sum, for the small expressions that most are: nothing is remembered of
/// their parts. False, and the sum void, where that takes more than `*steps`.
bool AddSmall(const PrimExpr& e, int64_t factor, LinearForm* sum, int* steps) {
  if (--*steps < 0) return false;
  auto* add = e.as<AddObj>();
  auto* sub = add ? nullptr : e.as<SubObj>();
  if (add || sub) {
    const PrimExpr &a = add ? add->a : sub->a, &b = add ? add->b : sub->b;
    return AddSmall(a, factor, sum, steps) && AddSmall(b, add ? factor : -factor, sum, steps);
  }
  if (auto* n = e.as<MulObj>()) {
    auto c = AsConstInt(n->b);
    Wide product = c ? Wide{*c} * factor : 0;
    return c && Fits(product) && AddSmall(n->a, static_cast<int64_t>(product), sum, steps);
  }
  if (e.as<CastObj>()) return false;
  if (auto c = AsConstInt(e))
    sum->Add(Wide{*c} * factor);
  else
    sum->Add(e, factor);
  return true;
}
}  // namespace

LinearForm Analyzer::Impl::ToLinear(const PrimExpr& e) {
  constexpr int kFewSteps = 24;
  LinearForm small;
  if (int steps = kFewSteps; AddSmall(e, 1, &small, &steps)) return small;
  SharedMemo<LinearForm> known;
  return LinearOf(e, &known);
}

Interval Analyzer::Impl::BoundByFacts(const LinearForm& sum, int depth) {
  Interval bound = Interval::Point(sum.base);
  for (const LinearTerm& t : sum.terms) bound = bound + BoundOf(t.atom) * Interval::Point(t.coeff);
  if (depth == 0 || sum.terms.empty()) return bound;
  // A choice among the terms: the sum is one of two sums.
  for (const LinearTerm& t : sum.terms) {
    auto choice = ChoiceOf(t.atom);
    if (!choice || sum.terms.size() == 1) continue;
    auto with = [&](const PrimExpr& value) {
      LinearForm other = sum;
      other.Add(t.atom, -Wide{t.coeff});
      other.Add(ToLinear(value), t.coeff);
      return other.valid ? BoundByFacts(other, depth - 1) : Interval();
    };
    bound = bound.Intersect(with(choice->first).Union(with(choice->second)));
    break;
  }
  if (linear_facts.empty()) return bound;
  for (const LinearFact& fact : linear_facts) {
    const LinearTerm& lead = fact.sum.terms[0];
    int64_t coeff = sum.CoeffOf(lead.atom);
    if (coeff == 0 || coeff % lead.coeff != 0) continue;
    LinearForm rest = sum;
    int64_t factor = coeff / lead.coeff;
    rest.Add(fact.sum, -factor);
    if (!rest.valid) continue;
    bound = bound.Intersect(fact.bound * Interval::Point(factor) + BoundByFacts(rest, depth - 1));
  }
  return bound;
}
Interval Analyzer::Impl::BoundOf(const LinearForm& sum) {
  if (!sum.valid) return {};
  return BoundByFacts(sum, extensions & kTransitivelyProveInequalities ? 4 : 2);
}

Interval Analyzer::Impl::BoundOfDifference(const PrimExpr& a, const PrimExpr& b) {
  if (ExprDeepEqual(a, b) && TraitsOf(a).pure) return Interval::Point(0);
  Interval bound = BoundOf(a) - BoundOf(b);
  if (IsIndex(a) && IsIndex(b)) {
    LinearForm difference = ToLinear(a);
    difference.Add(ToLinear(b), -1);
    bound = bound.Intersect(BoundOf(difference));
  }
  return bound;
}

bool Analyzer::Impl::DifferByMultiple(const PrimExpr& a, const PrimExpr& b, Wide modulus) {
  if (!IsIndex(a) || !IsIndex(b)) return false;
  LinearForm difference = ToLinear(a);
  difference.Add(ToLinear(b), -1);
  return difference.valid && modulus > 0 && difference.base % modulus == 0 &&
         difference.Gcd() % modulus == 0;
}

std::optional<bool> Analyzer::Impl::Decide(const PrimExpr& given) {
  if (auto c = AsConstInt(given)) return *c != 0;
  if (given.as<GTObj>() || given.as<GEObj>()) return Decide(Turned(given));
  const PrimExpr& cond = given;
  if (cond.dtype().is_scalar()) {
    for (const PrimExpr& truth : truths) {
      if (ExprDeepEqual(truth, cond)) return true;
      if (Negates(truth, cond)) return false;
    }
  }
  auto operands = [&](const auto* n) { return n && IsInt(n->a); };
  if (auto* n = cond.as<LTObj>(); operands(n)) {
    Interval d = BoundOfDifference(n->a, n->b);
    if (d.hi < 0) return true;
    if (d.lo >= 0) return false;
  } else if (auto* n = cond.as<LEObj>(); operands(n)) {
    Interval d = BoundOfDifference(n->a, n->b);
    if (d.hi <= 0) return true;
    if (d.lo > 0) return false;
  } else if (auto* eq = cond.as<EQObj>(); eq || cond.as<NEObj>()) {
    auto* ne = cond.as<NEObj>();
    const PrimExpr &a = eq ? eq->a : ne->a, &b = eq ? eq->b : ne->b;
    if (!IsInt(a)) return std::nullopt;
    Interval d = BoundOfDifference(a, b);
    Residue x = ResidueOf(a), y = ResidueOf(b);
    int64_t modulus = std::gcd(x.coeff, y.coeff);
    bool apart = modulus > 1 && FloorModInt(x.base, modulus) != FloorModInt(y.base, modulus);
    if (d == Interval::Point(0)) return eq != nullptr;
    if (!d.Contains(0) || apart) return eq == nullptr;
  }
  return std::nullopt;
}

}  // namespace tvm::arith
