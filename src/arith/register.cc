// SPDX-License-Identifier: Apache-2.0
// Analyzer for Python: an object whose methods are functions of the registry.
#include "arith/impl.h"
#include "arith/rewrite/rule.h"

namespace tvm::arith {
namespace {
struct AnalyzerObj : NodeObj {
  std::shared_ptr<Analyzer> analyzer;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&&) {}
  void Init() { analyzer = std::make_shared<Analyzer>(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("arith.Analyzer", AnalyzerObj, NodeObj);
};
TVM_NODE_REF(AnalyzerRef, ObjectRef, AnalyzerObj);
using Self = AnalyzerRef;

void Bind(Self self, Var var, Variant<Range, PrimExpr> value, bool allow_override) {
  if (auto range = value.as<Range>())
    self->analyzer->Bind(var, *range, allow_override);
  else
    self->analyzer->Bind(var, value.get<PrimExpr>(), allow_override);
}
void Update(Self self, Var var, ObjectRef info, bool override_) {
  if (auto bound = info.as<ConstIntBound>()) return self->analyzer->Update(var, *bound, override_);
  if (auto set = info.as<ModularSet>()) return self->analyzer->Update(var, *set, override_);
  TVM_FFI_THROW(TypeError) << "Analyzer.update: expected a ConstIntBound or ModularSet, got "
                           << info->GetTypeKey();
}
/// Rows of [table, row number, pattern, replacement, condition, needs].
Array<Any> ListRules() {
  Array<Any> rows;
  for (const RuleTable& table : RuleTables()) {
    int64_t row = 0;
    for (const Rule& rule : table.rows()) {
      const char* needs = rule.needs == kWraps ? "wraps" : rule.needs == kFits ? "fits" : "index";
      rows.push_back(Array<Any>{String(table.name), row++, rule.from.expr, rule.to.expr,
                                rule.when.expr, String(needs)});
    }
  }
  return rows;
}

TVM_REGISTER() {
  RegisterNode<ConstIntBoundObj>("Constant bounds of an expression, both included.");
  RegisterNode<ModularSetObj>("The numbers coeff * k + base.");
  RegisterNode<AnalyzerObj>(
      "Facts about integer variables, and the simplification and proofs they allow.");
  Arg self("self"), expr("expr");
  Def(
      "arith.Analyzer.const_int_bound",
      [](Self s, PrimExpr e) { return s->analyzer->const_int_bound(e); },
      "The constant bounds of an expression.", self, expr);
  Def(
      "arith.Analyzer.const_int_bound_is_bound",
      [](Self s, Var v) { return s->analyzer->IsBound(v); }, "Whether the variable was bound.",
      self, Arg("var"));
  Def(
      "arith.Analyzer.modular_set", [](Self s, PrimExpr e) { return s->analyzer->modular_set(e); },
      "The residue class of an expression.", self, expr);
  Def(
      "arith.Analyzer.simplify",
      [](Self s, PrimExpr e, int64_t steps) {
        return s->analyzer->Simplify(e, static_cast<int>(steps));
      },
      "The expression simplified by rewriting and canonical form in turn.", self, expr,
      Arg("steps", 2));
  Def(
      "arith.Analyzer.rewrite_simplify",
      [](Self s, PrimExpr e) { return s->analyzer->rewrite_simplify(e); },
      "The expression simplified by the tables of rules.", self, expr);
  Def(
      "arith.Analyzer.canonical_simplify",
      [](Self s, PrimExpr e) { return s->analyzer->canonical_simplify(e); },
      "The expression as a sum of products, quotients and remainders merged.", self, expr);
  Def(
      "arith.Analyzer.int_set",
      [](Self s, PrimExpr e, DomMap m) { return s->analyzer->int_set(e, m); },
      "The values of an expression while the variables run over their sets.", self, expr,
      Arg("dom_map"));
  Def(
      "arith.Analyzer.can_prove",
      [](Self s, PrimExpr e, int64_t strength) {
        return s->analyzer->CanProve(e, static_cast<ProofStrength>(strength));
      },
      "Whether the condition certainly holds.", self, expr, Arg("strength", 0));
  Def(
      "arith.Analyzer.can_prove_equal",
      [](Self s, PrimExpr a, PrimExpr b) { return s->analyzer->CanProveEqual(a, b); },
      "Whether the expressions are certainly equal.", self, Arg("lhs"), Arg("rhs"));
  Def("arith.Analyzer.bind", &Bind, "Says that a variable is an expression, or runs over a range.",
      self, Arg("var"), expr, Arg("allow_override", false));
  Def("arith.Analyzer.update", &Update, "Says what is known of a variable.", self, Arg("var"),
      Arg("info"), Arg("override", false));
  Def(
      "arith.Analyzer._enter",
      [](Self s, PrimExpr cond) {
        return Function::FromTyped([s, leave = s->analyzer->EnterConstraint(cond)] { leave(); });
      },
      "Says that a condition holds until the result is called.", self, Arg("constraint"));
  Def(
      "arith.Analyzer._stats", [](Self s) { return s->analyzer->rewrite_stats(); },
      "Counters of the rewrite simplifier.", self);
  Def(
      "arith.Analyzer.reset_rewrite_simplify_stats",
      [](Self s) { s->analyzer->reset_rewrite_stats(); }, "Sets the counters to 0.", self);
  Def(
      "arith.Analyzer._get_extensions", [](Self s) { return s->analyzer->enabled_extensions(); },
      "The enabled extensions, as flags.", self);
  Def(
      "arith.Analyzer._set_extensions",
      [](Self s, int64_t flags) { s->analyzer->set_enabled_extensions(flags); },
      "Enables extensions.", self, Arg("flags"));
  Def("arith._rules", &ListRules,
      "All rules of the rewrite simplifier: [table, row, pattern, replacement, condition, needs].");
}
}  // namespace
}  // namespace tvm::arith
