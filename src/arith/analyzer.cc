// SPDX-License-Identifier: Apache-2.0
// The analyzer's public face: facts in, proofs and simplified expressions out.
#include "tvm/arith/analyzer.h"

#include "arith/impl.h"

namespace tvm::arith {

ConstIntBound::ConstIntBound(int64_t min_value, int64_t max_value) {
  *this = New<ConstIntBound>(
      [&](ConstIntBoundObj* n) { n->min_value = min_value, n->max_value = max_value; });
}
ModularSet::ModularSet(int64_t coeff, int64_t base) {
  *this = New<ModularSet>([&](ModularSetObj* n) { n->coeff = coeff, n->base = base; });
}

Analyzer::Analyzer() : impl_(std::make_unique<Impl>(this)) {}
Analyzer::~Analyzer() = default;

// ---- facts ------------------------------------------------------------------------------------
namespace {
/// One variable means one thing: a second, different fact is a mistake of the caller.
template <class Facts, class V, class Same>
void SetFact(Facts* facts, const Var& var, V value, bool allow_override, Same same,
             const char* what) {
  auto it = facts->find(var.get());
  if (it != facts->end() && !allow_override && !same(it->second, value)) {
    TVM_FFI_THROW(ValueError) << "Analyzer." << what << ": expected a variable without a different "
                              << "fact about it, got " << var->name_hint
                              << " again (allow_override replaces the fact)";
  }
  (*facts).insert_or_assign(var.get(), std::move(value));
}
}  // namespace

void Analyzer::Bind(const Var& var, const PrimExpr& value, bool allow_override) {
  PrimExpr v = value.dtype() == var.dtype() ? value : cast(var.dtype(), value);
  v = Simplify(v);
  if (UsesVar(v, [&](const VarObj* other) { return other == var.get(); })) {
    TVM_FFI_THROW(ValueError) << "Analyzer.bind: expected a value without the variable itself, got "
                              << "one with " << var->name_hint;
  }
  SetFact(&impl_->values, var, v, allow_override, ExprDeepEqual, "bind");
  impl_->keep_alive.push_back(var);
  if (!impl_->TraitsOf(v).index) impl_->data_vars.insert_or_assign(var.get(), true);
  impl_->DataVarsChanged();
  if (v.dtype().is_integer()) {
    impl_->var_bounds.insert_or_assign(var.get(), impl_->BoundOf(v));
    impl_->var_residues.insert_or_assign(var.get(), impl_->ResidueOf(v));
  }
  impl_->FactsChanged();
}
void Analyzer::Bind(const Var& var, const Range& range, bool allow_override) {
  PrimExpr min = cast(var.dtype(), range->min), extent = cast(var.dtype(), range->extent);
  if (IsOne(extent)) return Bind(var, min, allow_override);
  Range r = Range::FromMinExtent(min, extent);
  SetFact(
      &impl_->var_ranges, var, r, allow_override,
      [](const Range& a, const Range& b) {
        return ExprDeepEqual(a->min, b->min) && ExprDeepEqual(a->extent, b->extent);
      },
      "bind");
  impl_->keep_alive.push_back(var);
  Interval bound{impl_->BoundOf(min).lo, Interval::kPosInf};
  if (impl_->IsIndex(min) && impl_->IsIndex(extent)) {
    bound.hi = (impl_->BoundOf(min) + impl_->BoundOf(extent) - Interval::Point(1)).hi;
  }
  bound = Interval::OfType(var.dtype()).Intersect(bound);
  if (allow_override) {
    impl_->values.erase(var.get());
    impl_->var_residues.erase(var.get());
  }
  impl_->var_bounds.insert_or_assign(var.get(), bound);
  if (!AsConstInt(min) || !AsConstInt(extent))
    impl_->AddGlobalFact(min <= var && var < min + extent);
  impl_->FactsChanged();
}
void Analyzer::Bind(const Map<Var, Range>& ranges, bool allow_override) {
  for (const auto& [var, range] : ranges) Bind(var, range, allow_override);
}
void Analyzer::Update(const Var& var, const ConstIntBound& bound, bool allow_override) {
  Interval value{bound->min_value, bound->max_value};
  SetFact(&impl_->var_bounds, var, value, allow_override, std::equal_to<>(), "update");
  impl_->keep_alive.push_back(var);
  impl_->FactsChanged();
}
void Analyzer::Update(const Var& var, const ModularSet& set, bool allow_override) {
  Residue value = Residue::Make(set->coeff, set->base);
  SetFact(&impl_->var_residues, var, value, allow_override, std::equal_to<>(), "update");
  impl_->keep_alive.push_back(var);
  impl_->FactsChanged();
}
bool Analyzer::IsBound(const Var& var) const {
  return impl_->var_bounds.count(var.get()) || impl_->values.count(var.get());
}
void Analyzer::MarkData(const Var& var) {
  impl_->data_vars.insert_or_assign(var.get(), true);
  impl_->keep_alive.push_back(var);
  impl_->DataVarsChanged();
  impl_->FactsChanged();
}
void Analyzer::MarkGlobalNonNeg(const PrimExpr& value) {
  impl_->AddGlobalFact(MakeZero(value.dtype()) <= value);
}
std::function<void()> Analyzer::EnterConstraint(const PrimExpr& cond) {
  if (!cond.dtype().is_bool()) {
    TVM_FFI_THROW(TypeError) << "Analyzer.constraint_scope: expected a bool, got " << cond.dtype();
  }
  // Also the simplified form: a comparison may show its bounds only then.
  PrimExpr simple = impl_->RewriteSimplify(cond);
  Impl::Mark mark = impl_->Enter(cond);
  if (!simple.same_as(cond) && !AsConstInt(simple)) impl_->Enter(simple);
  return [impl = impl_.get(), mark] { impl->Leave(mark); };
}

// ---- simplification ---------------------------------------------------------------------------
namespace {
/// Nodes of the expression written out; a part that is shared counts each time, but is looked at
/// once.
double SizeOf(const PrimExpr& e, std::unordered_map<const Object*, double>* sizes) {
  auto it = sizes->find(e.get());
  if (it != sizes->end()) return it->second;
  double size = 1;
  Recurse([&] {
    VisitChildren(e.get(), [&](const ObjectRef& child) {
      if (auto part = child.as<PrimExpr>()) size += SizeOf(*part, sizes);
    });
  });
  return (*sizes)[e.get()] = size;
}
double SizeOf(const PrimExpr& e) {
  std::unordered_map<const Object*, double> sizes;
  return SizeOf(e, &sizes);
}
}  // namespace

PrimExpr Analyzer::Simplify(const PrimExpr& e, int steps) {
  if (e->IsInstance<IntImmObj>() || impl_->IsSimpleSum(e)) return e;
  PrimExpr result = e;
  for (int i = 0; i < steps; ++i) {
    PrimExpr next = i % 2 == 0 ? impl_->RewriteSimplify(result) : impl_->CanonicalSimplify(result);
    if (AsConstInt(next)) return next;
    if (i > 0 && next.same_as(result)) break;
    // A sum multiplied out may be larger than the product it came from.
    if (i % 2 == 1 && SizeOf(next) > SizeOf(result)) break;
    result = next;
  }
  return impl_->extensions & kConvertBooleanToAndOfOrs ? impl_->AsAndOfOrs(result) : result;
}
PrimExpr Analyzer::rewrite_simplify(const PrimExpr& e) {
  PrimExpr result = impl_->RewriteSimplify(e);
  return impl_->extensions & kConvertBooleanToAndOfOrs ? impl_->AsAndOfOrs(result) : result;
}
PrimExpr Analyzer::canonical_simplify(const PrimExpr& e) { return impl_->CanonicalSimplify(e); }

// ---- proofs -----------------------------------------------------------------------------------
bool Analyzer::CanProve(const PrimExpr& cond, ProofStrength strength) {
  if (auto c = AsConstInt(cond)) return *c != 0;
  if (!cond.dtype().is_bool()) {
    TVM_FFI_THROW(TypeError) << "Analyzer.can_prove: expected a bool, got " << cond.dtype();
  }
  PrimExpr simple = Simplify(cond);
  if (auto c = AsConstInt(simple)) return *c != 0;
  if (auto* n = simple.as<AndObj>()) return CanProve(n->a, strength) && CanProve(n->b, strength);
  auto equal_after_cancelling = [&](const PrimExpr& a, const PrimExpr& b) {
    return a.dtype().is_integer() && IsZero(impl_->CanonicalSimplify(Sub(a, b)));
  };
  if (auto* n = simple.as<EQObj>(); n && equal_after_cancelling(n->a, n->b)) return true;
  if (auto* n = simple.as<LEObj>(); n && impl_->IsIndex(n->a) && impl_->IsIndex(n->b)) {
    if (impl_->BoundOf(impl_->CanonicalSimplify(n->b - n->a)).lo >= 0) return true;
  }
  if (auto* n = simple.as<LTObj>(); n && impl_->IsIndex(n->a) && impl_->IsIndex(n->b)) {
    if (impl_->BoundOf(impl_->CanonicalSimplify(n->b - n->a)).lo > 0) return true;
  }
  return strength == ProofStrength::kSymbolicBound && impl_->ProveBySymbolicBound(simple);
}
bool Analyzer::CanProveEqual(const PrimExpr& a, const PrimExpr& b) {
  if (a.same_as(b)) return true;
  auto x = AsConstInt(a), y = AsConstInt(b);
  if (x && y) return *x == *y;
  if (a.dtype().is_float() || b.dtype().is_float() || a.dtype().is_handle() ||
      b.dtype().is_handle()) {
    return ExprDeepEqual(a, b) && !a.dtype().is_float();
  }
  return CanProve(equal(a, b));
}
bool Analyzer::CanProveGreaterEqual(const PrimExpr& e, int64_t lower_bound) {
  if (impl_->BoundOf(e).lo >= lower_bound) return true;
  return impl_->BoundOf(Simplify(e)).lo >= lower_bound;
}
bool Analyzer::CanProveLess(const PrimExpr& e, int64_t upper_bound) {
  if (impl_->BoundOf(e).hi < upper_bound) return true;
  return impl_->BoundOf(Simplify(e)).hi < upper_bound;
}
bool Analyzer::CanProveLessEqualThanSymbolicShapeValue(const PrimExpr& lhs, const PrimExpr& shape) {
  if (CanProve(less_equal(lhs, shape), ProofStrength::kSymbolicBound)) return true;
  // A symbolic extent that is a product is at least its constant factor, for extents are positive.
  auto c = AsConstInt(lhs);
  auto* product = shape.as<MulObj>();
  auto factor = product ? AsConstInt(product->b) : std::nullopt;
  return c && factor && *c <= *factor && CanProveGreaterEqual(product->a, 1);
}

// ---- sets -------------------------------------------------------------------------------------
ConstIntBound Analyzer::const_int_bound(const PrimExpr& e) {
  Interval bound = impl_->BoundOf(e);
  if (impl_->IsIndex(e)) bound = bound.Intersect(impl_->BoundOf(impl_->ToLinear(e)));
  return ConstIntBound(bound.lo, bound.hi);
}
ModularSet Analyzer::modular_set(const PrimExpr& e) {
  Residue r = impl_->ResidueOf(e);
  return ModularSet(r.coeff, r.base);
}
IntSet Analyzer::int_set(const PrimExpr& e, const DomMap& dom_map) {
  return EvalSet(e, dom_map, this);
}
IntSet Analyzer::int_set(const PrimExpr& e) {
  DomMap domains;
  for (const auto& [var, range] : impl_->var_ranges) {
    domains.Set(ffi::GetRef<Var>(var), IntSet::FromRange(range));
  }
  return EvalSet(e, domains, this);
}

// ---- settings ---------------------------------------------------------------------------------
int64_t Analyzer::enabled_extensions() const { return impl_->extensions; }
void Analyzer::set_enabled_extensions(int64_t flags) {
  impl_->extensions = flags;
  impl_->FactsChanged();
}
Map<String, int64_t> Analyzer::rewrite_stats() const {
  const RewriteStats& s = impl_->stats;
  return {{"nodes_visited", s.nodes_visited},
          {"constraints_entered", s.constraints_entered},
          {"rewrites_attempted", s.rewrites_attempted},
          {"rewrites_performed", s.rewrites_performed},
          {"max_recursive_depth", s.max_recursive_depth}};
}
void Analyzer::reset_rewrite_stats() { impl_->stats = {}; }

}  // namespace tvm::arith
