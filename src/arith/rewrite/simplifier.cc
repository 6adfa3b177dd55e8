// SPDX-License-Identifier: Apache-2.0
// The rewrite simplifier: bottom-up through an expression, with the tables of rules at every node.
#include <bit>
#include <numeric>

#include "arith/expr_walk.h"
#include "arith/rewrite/match.h"
#include "arith/rewrite/vector.h"

namespace tvm::arith {
namespace {

/// The mark of x < y + 1 that was x <= y: comparisons keep their strictness where they are spelled.
const Span& LooseMark() {
  static const auto* mark = new Span(New<Span>([](SpanObj*) {}));
  return *mark;
}
bool IsLoose(const LTObj* n) { return n->span.has_value() && n->span.value().same_as(LooseMark()); }

class Rewriter : public ExprWalk<Rewriter> {
 public:
  explicit Rewriter(Analyzer::Impl* facts) : facts_(facts) {}

  using ExprWalk::Rewrite;
  ObjectRef Rewrite(const PrimExprObj* node) {
    PrimExpr e = ffi::GetRef<PrimExpr>(node);
    if (e.as<IntImmObj>() || e.as<FloatImmObj>() || e.as<StringImmObj>()) return e;
    if (facts_->IsSimpleSum(e)) return e;
    if (auto* memo = facts_->memos.Find(e); memo && memo->rewritten.defined())
      return memo->rewritten;
    ++facts_->stats.nodes_visited;
    ++visits_;
    PrimExpr result = Visit(e);
    facts_->memos.At(e)->rewritten = result;
    return result;
  }

 private:
  PrimExpr Visit(const PrimExpr& e) {
    if (auto* n = e.as<VarObj>()) {
      auto it = facts_->values.find(n);
      if (it != facts_->values.end()) return Mutate(it->second);
      return Make(e);
    }
    if (auto* n = e.as<AndObj>()) return Branches(e, n, true);
    if (auto* n = e.as<OrObj>()) return Branches(e, n, false);
    if (auto* n = e.as<SelectObj>()) {
      PrimExpr c = Mutate(n->condition);
      if (IsTrue(c)) return Mutate(n->true_value);
      if (IsFalse(c)) return Mutate(n->false_value);
      PrimExpr t = Under(c, n->true_value), f = Under(Make(!c), n->false_value);
      if (c.same_as(n->condition) && t.same_as(n->true_value) && f.same_as(n->false_value))
        return Make(e);
      return Make(Select(c, t, f, n->span));
    }
    if (auto* n = e.as<CallObj>(); n && n->Is(builtin::if_then_else())) {
      PrimExpr c = Mutate(n->args[0]);
      if (IsTrue(c)) return Mutate(n->args[1]);
      if (IsFalse(c)) return Mutate(n->args[2]);
      PrimExpr t = Under(c, n->args[1]), f = Under(Make(!c), n->args[2]);
      if (ExprDeepEqual(t, f) && facts_->TraitsOf(c).pure) return t;
      bool same = c.same_as(n->args[0]) && t.same_as(n->args[1]) && f.same_as(n->args[2]);
      PrimExpr choice = same ? e : if_then_else(c, t, f, n->span);
      PrimExpr joined = JoinChoices(choice);
      return joined.defined() ? joined : choice;
    }
    if (auto* n = e.as<LetObj>()) return VisitLet(e, n);
    if (auto* n = e.as<ReduceObj>()) {
      // The axes are variables of the body with known ranges.
      for (const IterVar& iv : n->axis) {
        if (iv->dom.has_value() && !facts_->var_ranges.count(iv->var.get())) {
          facts_->self->Bind(iv->var, iv->dom.value());
        }
      }
      return Below<PrimExpr, PrimExprObj>(e);
    }
    return Make(Below<PrimExpr, PrimExprObj>(e));
  }
  template <class Ref, class Obj>
  Ref Below(const PrimExpr& e) {
    return Any(MapChildren(e.get(), *this)).cast<Ref>();
  }

  PrimExpr VisitLet(const PrimExpr& e, const LetObj* n) {
    PrimExpr value = Mutate(n->value);
    bool trivial = value.as<IntImmObj>() || value.as<FloatImmObj>() || value.as<VarObj>();
    if (trivial) {
      return Mutate(Substitute(n->body, [&](const Var& v) -> PrimExpr {
        return v.same_as(n->var) ? value : PrimExpr();
      }));
    }
    const VarObj* var = n->var.get();
    auto known = facts_->KnownOf(var);
    facts_->SetKnown(var, facts_->KnownAs(value));
    PrimExpr body = Mutate(n->body);
    facts_->SetKnown(var, known);
    if (!UsesVar(body, [&](const VarObj* v) { return v == var; }) && facts_->TraitsOf(value).pure)
      return body;
    if (value.same_as(n->value) && body.same_as(n->body)) return e;
    return Let(n->var, value, body, n->span);
  }

  /// `e` simplified where `cond` holds.
  PrimExpr Under(const PrimExpr& cond, const PrimExpr& e) {
    if (e.as<IntImmObj>() || e.as<FloatImmObj>() || !cond.dtype().is_scalar()) return Mutate(e);
    // With other facts a part that is shared is simplified again: choices between choices would
    // take a time that grows with their tree.
    if (visits_ > kManyVisits) return Mutate(e);
    FactScope scope(facts_, cond);
    return Mutate(e);
  }
  /// The second operand matters only where the first does not decide.
  template <class N>
  PrimExpr Branches(const PrimExpr& e, const N* n, bool is_and) {
    PrimExpr a = Mutate(n->a);
    if (AsConstInt(a) && a.dtype().is_scalar()) {
      bool value = *AsConstInt(a) != 0;
      return value == is_and ? Mutate(n->b) : a;
    }
    PrimExpr b = Under(is_and ? a : Make(!a), n->b);
    if (!AsConstInt(b) && a.dtype().is_scalar()) {
      FactScope scope(facts_, is_and ? b : Make(!b));
      if (auto known = facts_->Decide(a)) {
        // b stays: what it implies for a does not hold the other way round.
        return *known == is_and ? b : MakeConst(DataType::Bool(), *known);
      }
    }
    if (a.same_as(n->a) && b.same_as(n->b)) return Make(e);
    return Make(MakeBinaryNode(e->type_index(), a, b));
  }

  /// `e`, whose children are simplified already, by the rules.
  PrimExpr Make(const PrimExpr& e) {
    if (depth_ > kMaxDepth) return e;
    ++depth_;
    facts_->stats.max_recursive_depth =
        std::max<int64_t>(facts_->stats.max_recursive_depth, depth_);
    PrimExpr result = Recurse([&] { return MakeHere(e); });
    --depth_;
    return result;
  }
  /// Counting references is a good part of the time: expressions are passed on, not copied.
  PrimExpr MakeHere(const PrimExpr& e) {
    if (IsConst(e)) return e;
    if (auto* n = AsBinary(e)) {
      if (PrimExpr known = DifferenceOfCasts(e); known.defined()) return known;
      PrimExpr turned = Turn(e, n);
      if (turned.defined()) {
        PrimExpr result = Make(turned);
        auto* less = e.as<LEObj>() ? result.as<LTObj>() : nullptr;
        return less && !IsLoose(less) ? LT(less->a, less->b, LooseMark()) : result;
      }
      bool constant_first = IsConst(n->a);
      if (constant_first || IsConst(n->b)) {
        if (PrimExpr simple = Neutral(e); simple.defined()) return simple;
      }
      if (constant_first) {
        PrimExpr ordered = Ordered(e, n);
        return IsConst(ordered) ? ordered : ByRules(ordered);
      }
    }
    return ByRules(e);
  }
  /// `e`, a constant or an expression that is spelled as the rules are.
  PrimExpr ByRules(const PrimExpr& e) {
    DataType t = e.dtype();
    if (AsBinary(e)) {
      PrimExpr chain = Chain(e);
      if (chain.defined()) return chain;
    } else if (auto* n = e.as<NotObj>()) {
      if (auto c = AsConstInt(n->a)) return MakeConst(t, *c == 0 ? 1 : 0);
      // Not x <= c is c < x.
      auto* less = n->a.as<LTObj>();
      auto limit = less && IsLoose(less) ? AsConstInt(less->b) : std::nullopt;
      if (limit && less->b.dtype().is_scalar())
        return Make(LT(MakeConst(less->b.dtype(), *limit - 1), less->a));
    } else if (auto* n = e.as<SelectObj>()) {
      if (auto c = AsConstInt(n->condition)) return *c ? n->true_value : n->false_value;
    } else if (auto* n = e.as<CastObj>()) {
      PrimExpr folded = SimplifyCast(n);
      if (folded.defined()) return folded;
    } else if (auto* n = e.as<CallObj>()) {
      if (n->Is(builtin::likely()) && AsConstInt(n->args[0])) return n->args[0];
      if (auto c = n->Is(builtin::clz()) ? AsConstInt(n->args[0]) : std::nullopt) {
        DataType of = n->args[0].dtype();
        uint64_t bits = static_cast<uint64_t>(*c) << (64 - of.bits());
        return MakeConst(t, bits ? std::countl_zero(bits) : of.bits());
      }
    }
    if (t.is_integer() && facts_->TraitsOf(e).pure) {
      Interval bound = facts_->BoundOf(e);
      if (bound.IsPoint()) return MakeConst(t, bound.lo);
      if (Residue r = facts_->ResidueOf(e); r.IsPoint() && Interval::OfType(t).Contains(r.base))
        return MakeConst(t, r.base);
    } else if (t.is_bool() && facts_->TraitsOf(e).pure) {
      if (auto known = facts_->Decide(e)) return MakeConst(t, *known ? 1 : 0);
    }
    if (PrimExpr reduced = WithoutCommonFactor(e); reduced.defined()) return Make(reduced);
    if (t.is_vector() || IsVectorCompare(e)) {
      PrimExpr vector = SimplifyVector(e, facts_);
      if (vector.defined()) {
        if (auto* b = vector.as<BroadcastObj>())
          return Broadcast(Mutate(b->value), b->lanes, b->span);
        return Make(Below<PrimExpr, PrimExprObj>(vector));
      }
    }
    if (t.is_float() && AsBinary(e)) return e;  // the rules for arithmetic are about integers
    Match match(facts_);
    for (const CompiledRule* rule : RulesFor(e)) {
      ++facts_->stats.rewrites_attempted;
      if (!match.Try(*rule, e)) continue;
      PrimExpr result = match.Build(*rule, [this](const PrimExpr& n) { return Make(n); });
      if (!result.defined() || result.dtype() != t) continue;
      ++facts_->stats.rewrites_performed;
      return result;
    }
    return e;
  }
  /// One choice for two of the same alternative; the second condition is asked as before.
  PrimExpr JoinChoices(const PrimExpr& e) {
    auto* n = e.as<CallObj>();
    if (!n || !n->Is(builtin::if_then_else())) return PrimExpr();
    const PrimExpr &c = n->args[0], &t = n->args[1], &f = n->args[2];
    auto* then = t.as<CallObj>();
    if (then && then->Is(builtin::if_then_else()) && ExprDeepEqual(then->args[2], f))
      return if_then_else(Make(And(c, then->args[0])), then->args[1], f, n->span);
    auto* other = f.as<CallObj>();
    if (other && other->Is(builtin::if_then_else()) && ExprDeepEqual(other->args[1], t))
      return if_then_else(Make(Or(c, other->args[0])), t, other->args[2], n->span);
    return PrimExpr();
  }
  /// Chains of one operator: conditions associate to the left, and an operand of min and max that
  /// is in the chain already is dropped. Undefined where nothing changes.
  PrimExpr Chain(const PrimExpr& e) {
    if (auto* n = e.as<AndObj>(); n && n->b.as<AndObj>()) {
      auto* b = n->b.as<AndObj>();
      return Make(And(Make(And(n->a, b->a)), b->b));
    }
    if (auto* n = e.as<OrObj>(); n && n->b.as<OrObj>()) {
      auto* b = n->b.as<OrObj>();
      return Make(Or(Make(Or(n->a, b->a)), b->b));
    }
    PrimExpr extreme = WithoutRepeated<MinObj>(e);
    return extreme.defined() ? extreme : WithoutRepeated<MaxObj>(e);
  }
  template <class N>
  PrimExpr WithoutRepeated(const PrimExpr& e) {
    auto* n = e.as<N>();
    if (!n || !facts_->TraitsOf(e).pure) return PrimExpr();
    for (auto [chain, operand] : {std::pair{&n->a, &n->b}, std::pair{&n->b, &n->a}}) {
      const PrimExpr* rest = chain;
      for (int i = 0; i < kMaxChain; ++i) {
        auto* link = rest->template as<N>();
        if (!link) break;
        if (ExprDeepEqual(link->b, *operand) || ExprDeepEqual(link->a, *operand)) return *chain;
        rest = &link->a;
      }
    }
    return PrimExpr();
  }
  /// 6 x < 4 y + 3 as 3 x < 2 y + 2; undefined where the factors have nothing in common.
  PrimExpr WithoutCommonFactor(const PrimExpr& e) {
    bool less = e.as<LTObj>();
    if (!less && !e.as<EQObj>()) return PrimExpr();
    auto* n = AsBinary(e);
    // Only products have factors: this keeps the usual comparison cheap.
    auto is_sum = [](const PrimExpr& x) {
      return x.as<MulObj>() || x.as<AddObj>() || x.as<SubObj>();
    };
    if (!is_sum(n->a) && !is_sum(n->b)) return PrimExpr();
    if (!facts_->IsIndex(n->a) || !facts_->IsIndex(n->b)) return PrimExpr();
    LinearForm a = facts_->ToLinear(n->a), b = facts_->ToLinear(n->b);
    int64_t g = std::gcd(a.Gcd(), b.Gcd());
    Wide rest = Wide{b.base} - a.base;  // sum of a < sum of b + rest
    DataType t = n->a.dtype();
    if (!a.valid || !b.valid || g <= 1) return PrimExpr();
    if (!less && rest % g != 0) return MakeConst(e.dtype(), 0);
    Wide limit = less ? FloorDivInt<Wide>(rest - 1, g) + 1 : rest / g;
    for (LinearForm* form : {&a, &b}) {
      form->base = 0;
      for (LinearTerm& term : form->terms) term.coeff /= g;
    }
    if (limit < Interval::OfType(t).lo || limit > Interval::OfType(t).hi) return PrimExpr();
    PrimExpr left = Mutate(a.ToExpr(t)),
             right = Mutate(b.ToExpr(t) + MakeConst(t, static_cast<int64_t>(limit)));
    return less ? PrimExpr(LT(left, right)) : PrimExpr(EQ(left, right));
  }
  static bool IsVectorCompare(const PrimExpr& e) {
    auto* n = AsBinary(e);
    return n && n->a.dtype().is_vector();
  }
  static bool IsConst(const PrimExpr& e) { return AsConstInt(e) || e.as<FloatImmObj>(); }
  /// Constants folded, or on the right; min and max keep the order they were written in. The first
  /// operand is a constant.
  static PrimExpr Ordered(const PrimExpr& e, const BinaryOpFields* n) {
    bool extreme = e.as<MinObj>() || e.as<MaxObj>();
    if (extreme && !IsConst(n->b)) return e;
    PrimExpr folded = MakeBinaryNode(e->type_index(), n->a, n->b);
    auto* m = AsBinary(folded);
    return m && m->a.same_as(n->a) ? e : folded;
  }
  /// 0 and 1 where they are neutral, by the operators themselves; undefined where they know
  /// nothing.
  PrimExpr Neutral(const PrimExpr& e) {
    auto* n = AsBinary(e);
    // They do nothing else with one constant: asking them builds a node.
    auto is_neutral = [](const PrimExpr& x) {
      auto c = AsConstInt(x);
      auto* f = x.as<FloatImmObj>();
      return c ? *c == 0 || *c == 1 : f && f->value == 1;
    };
    if (!is_neutral(n->a) && !is_neutral(n->b) && !(IsConst(n->a) && IsConst(n->b)))
      return PrimExpr();
    if (!facts_->TraitsOf(e).pure) return PrimExpr();
    PrimExpr r;
    if (e.as<AddObj>())
      r = add(n->a, n->b);
    else if (e.as<SubObj>())
      r = sub(n->a, n->b);
    else if (e.as<MulObj>())
      r = mul(n->a, n->b);
    else if (e.as<DivObj>())
      r = div(n->a, n->b);
    else if (e.as<ModObj>() && n->a.dtype().is_integer())
      r = truncmod(n->a, n->b);
    else if (e.as<FloorDivObj>())
      r = floordiv(n->a, n->b);
    else if (e.as<FloorModObj>())
      r = floormod(n->a, n->b);
    else if (e.as<AndObj>())
      r = logical_and(n->a, n->b);
    else if (e.as<OrObj>())
      r = logical_or(n->a, n->b);
    // The operators build the same node when they know nothing.
    bool knows =
        r.defined() && (r->type_index() != e->type_index() || r.same_as(n->a) || r.same_as(n->b));
    return knows ? r : PrimExpr();
  }
  /// One spelling per comparison: see rules_compare.cc.
  PrimExpr Turn(const PrimExpr& e, const BinaryOpFields* n) {
    DataType t = n->a.dtype();
    if (e.as<GTObj>()) return LT(n->b, n->a);
    if (e.as<GEObj>()) return LE(n->b, n->a);
    if (e.as<NEObj>()) return Not(Make(EQ(n->a, n->b)));
    if (!e.as<LEObj>() || !t.is_integer()) return PrimExpr();
    auto a = AsConstInt(n->a), b = AsConstInt(n->b);
    if (a && b) return PrimExpr();
    Interval domain = Interval::OfType(t);
    bool exact = !(t.is_uint() && t.bits() == 64);
    if (b && exact && *b < domain.hi && *b != INT64_MAX) return LT(n->a, MakeConst(t, *b + 1));
    if (a && exact && *a > domain.lo && *a != INT64_MIN) return LT(MakeConst(t, *a - 1), n->b);
    if (facts_->IsIndex(n->a) && facts_->IsIndex(n->b))
      return LT(n->a, Make(Add(n->b, MakeConst(t, 1))));
    return PrimExpr();
  }
  PrimExpr SimplifyCast(const CastObj* n) {
    PrimExpr folded = cast(n->dtype, n->value);
    if (!folded.as<CastObj>()) return folded;
    if (auto* inner = n->value.as<CastObj>()) {
      DataType from = inner->value.dtype(), via = inner->dtype;
      bool ints = (from.is_integer() || from.is_bool()) && via.is_integer() &&
                  (n->dtype.is_integer() || n->dtype.is_bool());
      Interval value = facts_->BoundOf(inner->value);
      bool exact = value.Within(Interval::OfType(via)) &&
                   (value.Bounded() || (from.code() == via.code() && via.bits() >= from.bits()));
      // Dropping to fewer bits at the end forgets what the middle added.
      bool narrows = ints && n->dtype.is_integer() && from.is_integer() &&
                     n->dtype.bits() <= via.bits() && n->dtype.bits() <= from.bits();
      if (ints && (exact || narrows)) return Make(cast(n->dtype, inner->value));
    }
    return PrimExpr();
  }

  /// int64(x + 1) - int64(x) is 1: indices do not wrap. Undefined for other differences.
  PrimExpr DifferenceOfCasts(const PrimExpr& e) {
    auto* n = e.as<SubObj>();
    auto *a = n ? n->a.as<CastObj>() : nullptr, *b = n ? n->b.as<CastObj>() : nullptr;
    if (!a || !b || a->value.dtype() != b->value.dtype() || !e.dtype().is_int()) return PrimExpr();
    if (!facts_->IsIndex(a->value) || !facts_->IsIndex(b->value)) return PrimExpr();
    if (e.dtype().bits() < a->value.dtype().bits()) return PrimExpr();
    LinearForm difference = facts_->ToLinear(a->value);
    difference.Add(facts_->ToLinear(b->value), -1);
    if (!difference.IsConst()) return PrimExpr();
    return MakeConst(e.dtype(), difference.base);
  }

  static constexpr int kMaxDepth = 48;
  static constexpr int kMaxChain = 16;
  static constexpr int64_t kManyVisits = 1 << 10;
  Analyzer::Impl* facts_;
  int depth_ = 0;
  int64_t visits_ = 0;
};

/// The readable spellings: x - 1 for x + (-1), x != y, x <= y for x < y + 1, x + 2 < y for
/// x < y + (-2); x <= 5 and 5 <= x stay as they were written.
class Spelling : public ExprWalk<Spelling> {
 public:
  explicit Spelling(Analyzer::Impl* facts) : facts_(facts) {}
  using ExprWalk::Rewrite;
  ObjectRef Rewrite(const PrimExprObj* node) {
    PrimExpr e = ffi::GetRef<PrimExpr>(node);
    if (e.as<VarObj>() || e.as<IntImmObj>() || facts_->IsSimpleSum(e)) return e;
    if (auto* memo = facts_->memos.Find(e); memo && memo->spelled.defined()) return memo->spelled;
    ObjectRef result = e.as<AddObj>()   ? Spell(e.as<AddObj>())
                       : e.as<LTObj>()  ? Spell(e.as<LTObj>())
                       : e.as<NotObj>() ? Spell(e.as<NotObj>())
                                        : MapChildren(node, *this);
    return facts_->memos.At(e)->spelled = Any(result).cast<PrimExpr>();
  }
  ObjectRef Spell(const AddObj* n) {
    auto c = n->b.as<IntImmObj>();
    if (c && n->dtype.is_int() && c->value < 0 && c->value != Interval::OfType(n->dtype).lo &&
        c->value != INT64_MIN) {
      return Sub(Mutate(n->a), IntImm(n->dtype, -c->value), n->span);
    }
    return Below<Add>(n);
  }
  ObjectRef Spell(const LTObj* n) {
    bool loose = IsLoose(n);
    DataType t = n->a.dtype();
    auto* low = n->a.as<IntImmObj>();
    auto* high = n->b.as<IntImmObj>();
    if (loose && low && low->value < Interval::OfType(t).hi)
      return LE(IntImm(t, low->value + 1), Mutate(n->b));
    if (loose && high && high->value > Interval::OfType(t).lo)
      return LE(Mutate(n->a), IntImm(t, high->value - 1));
    auto* sum = n->b.as<AddObj>();
    auto* shift = sum && t.is_int() ? sum->b.as<IntImmObj>() : nullptr;
    if (!shift || shift->value == INT64_MIN || !facts_->IsIndex(n->b)) {
      return loose ? LT(Mutate(n->a), Mutate(n->b)) : Below<LT>(n);
    }
    // a < b + shift
    bool equal = shift->value == 1 || (loose && shift->value != 0);
    int64_t rest = shift->value - (equal ? 1 : 0);
    PrimExpr a = Mutate(n->a), b = Mutate(sum->a);
    if (rest > 0) b = Add(b, IntImm(t, rest));
    if (rest < 0 && -rest <= Interval::OfType(t).hi)
      a = Plus(a, -rest);
    else if (rest < 0)
      b = Add(b, IntImm(t, rest));
    if (auto* less = b.as<SubObj>(); less && rest == 0) {  // a sum that was never taken apart
      if (auto* c = less->b.as<IntImmObj>(); c && c->value > 0) {
        a = Plus(a, c->value);
        b = less->a;
      }
    }
    return equal ? ObjectRef(LE(a, b)) : ObjectRef(LT(a, b));
  }
  /// The constant joins one that is there.
  static PrimExpr Plus(const PrimExpr& e, int64_t c) {
    if (auto sum = AsConstInt(e)) return MakeConst(e.dtype(), *sum + c);
    return Add(e, IntImm(e.dtype(), c));
  }
  ObjectRef Spell(const NotObj* n) {
    if (auto* eq = n->a.as<EQObj>()) return NE(Mutate(eq->a), Mutate(eq->b), n->span);
    return Below<Not>(n);
  }

 private:
  Analyzer::Impl* facts_;
};
}  // namespace

PrimExpr Analyzer::Impl::RewriteSimplify(const PrimExpr& e) {
  return Spelling(this).Mutate(Rewriter(this).Mutate(e));
}

}  // namespace tvm::arith
