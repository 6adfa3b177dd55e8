// SPDX-License-Identifier: Apache-2.0
// For which values of a variable a comparison holds.
#include "arith/impl.h"
#include "tvm/arith/pattern.h"

namespace tvm::arith {
namespace {

/// Brings `lhs <= rhs` (or >=) to `var <= rhs`, one operation at a time.
class BoundDeducer {
 public:
  BoundDeducer(const PrimExpr& var, const DomMap& hints, const DomMap& relax)
      : var_(var), relax_(relax) {
    auto tell = [&](const DomMap& domains) {
      for (const auto& [v, set] : domains) {
        if (!set.IsNothing() && set.HasLowerBound() && set.HasUpperBound()) {
          PrimExpr one = MakeConst(v.dtype(), 1);
          analyzer_.Bind(v, Range::FromMinExtent(set.min(), set.max() - set.min() + one), true);
        }
      }
    };
    tell(hints);
    tell(relax);
  }
  IntSet Deduce(const PrimExpr& cond) {
    if (auto* n = cond.as<LTObj>()) return Solve(n->a, n->b - MakeConst(n->b.dtype(), 1));
    if (auto* n = cond.as<LEObj>()) return Solve(n->a, n->b);
    if (auto* n = cond.as<GTObj>()) return Solve(n->b, n->a - MakeConst(n->a.dtype(), 1));
    if (auto* n = cond.as<GEObj>()) return Solve(n->b, n->a);
    if (auto* n = cond.as<EQObj>(); n && n->a.dtype().is_index()) {
      return Intersect({Solve(n->a, n->b), Solve(n->b, n->a)});
    }
    if (auto* n = cond.as<AndObj>()) return Intersect({Deduce(n->a), Deduce(n->b)});
    if (auto* n = cond.as<CallObj>(); n && n->Is(builtin::likely())) return Deduce(n->args[0]);
    return IntSet::Nothing();
  }

 private:
  bool Uses(const PrimExpr& e) {
    bool found = false;
    PreOrderVisit(e, [&](const ObjectRef& n) {
      auto part = n.as<PrimExpr>();
      found = found || (part && ExprDeepEqual(*part, var_));
      return !found;
    });
    return found;
  }
  /// a <= b
  IntSet Solve(const PrimExpr& a, const PrimExpr& b) {
    if (!a.dtype().is_index() || !b.dtype().is_index()) return IntSet::Nothing();
    // What stands for `var` in linear forms: `var` itself or the one term it occurs in.
    LinearForm form = analyzer_.impl()->ToLinear(analyzer_.canonical_simplify(a - b));
    std::optional<size_t> which;
    PrimExpr symbolic;
    for (size_t i = 0; i < form.terms.size(); ++i) {
      if (!Uses(form.terms[i].atom)) continue;
      if (which) return IntSet::Nothing();
      which = i;
    }
    DataType t = a.dtype();
    if (!form.valid) return IntSet::Nothing();
    if (!which) {
      // The variable cancelled out: the condition holds for all of its values or for none.
      return analyzer_.CanProve(a <= b) ? IntSet::Everything() : IntSet::Nothing();
    }
    LinearTerm term = form.terms[*which];
    form.terms.erase(form.terms.begin() + static_cast<int64_t>(*which));
    PrimExpr rest = form.ToExpr(t);
    // coeff * atom + rest <= 0
    if (term.coeff > 0) return Peel(term.atom, floordiv(-rest, MakeConst(t, term.coeff)), true);
    PrimExpr c = MakeConst(t, -term.coeff);
    return Peel(term.atom, ceildiv(rest, c), false);
  }
  /// atom <= limit (upper) or atom >= limit
  IntSet Peel(const PrimExpr& atom, const PrimExpr& limit, bool upper) {
    DataType t = atom.dtype();
    if (ExprDeepEqual(atom, var_)) {
      // The limit must hold for all values of the relaxed variables.
      IntSet values = EvalSet(limit, relax_, &analyzer_);
      PrimExpr end = analyzer_.Simplify(upper ? values.min() : values.max());
      if (is_pos_inf(end) || is_neg_inf(end)) return IntSet::Nothing();
      return upper ? IntSet::Interval(neg_inf(), end) : IntSet::Interval(end, pos_inf());
    }
    if (auto* n = atom.as<FloorDivObj>();
        n && !Uses(n->b) && analyzer_.CanProveGreaterEqual(n->b, 1)) {
      // x // c <= l is x <= l c + c - 1; x // c >= l is x >= l c
      PrimExpr end = limit * n->b + (upper ? n->b - MakeConst(t, 1) : MakeZero(t));
      return upper ? Solve(n->a, end) : Solve(end, n->a);
    }
    if (auto* n = atom.as<MulObj>()) {
      const PrimExpr &x = Uses(n->a) ? n->a : n->b, &k = Uses(n->a) ? n->b : n->a;
      if (Uses(k)) return IntSet::Nothing();
      bool positive = analyzer_.CanProveGreaterEqual(k, 1), negative = analyzer_.CanProveLess(k, 0);
      if (!positive && !negative) return IntSet::Nothing();
      bool down = upper == positive;  // the variable's bound is from above
      PrimExpr end = down ? floordiv(limit, k) : -floordiv(-limit, k);
      return down ? Solve(x, end) : Solve(end, x);
    }
    if (auto* n = atom.as<MinObj>()) return Lattice(n->a, n->b, limit, upper, true);
    if (auto* n = atom.as<MaxObj>()) return Lattice(n->a, n->b, limit, upper, false);
    if (auto* n = atom.as<CastObj>(); n && n->value.dtype().is_index()) {
      return upper ? Solve(n->value, cast(n->value.dtype(), limit))
                   : Solve(cast(n->value.dtype(), limit), n->value);
    }
    return IntSet::Nothing();
  }
  /// min(a, b) >= l and max(a, b) <= l hold where both hold; the other two where the one with the
  /// variable does (a smaller set, which is asked for).
  IntSet Lattice(const PrimExpr& a, const PrimExpr& b, const PrimExpr& limit, bool upper,
                 bool is_min) {
    auto side = [&](const PrimExpr& e) { return upper ? Solve(e, limit) : Solve(limit, e); };
    if (upper == is_min) return side(Uses(a) ? a : b);
    return Intersect({side(a), side(b)});
  }
  PrimExpr var_;
  const DomMap& relax_;
  Analyzer analyzer_;
};
}  // namespace

IntSet DeduceBound(const PrimExpr& var, const PrimExpr& cond, const DomMap& hint_map,
                   const DomMap& relax_map) {
  if (!cond.dtype().is_bool())
    TVM_FFI_THROW(TypeError) << "deduce_bound: expected a bool condition, got " << cond.dtype();
  return BoundDeducer(var, hint_map, relax_map).Deduce(cond);
}

namespace {
TVM_REGISTER() {
  Def("arith.deduce_bound", &DeduceBound,
      "The values of `var` for which `cond` holds for all values of the variables in `relax_map`; "
      "`hint_map` says "
      "what is known of the others.",
      Arg("var"), Arg("cond"), Arg("hint_map"), Arg("relax_map"));
}
}  // namespace
}  // namespace tvm::arith
