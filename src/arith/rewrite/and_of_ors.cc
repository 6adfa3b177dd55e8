// SPDX-License-Identifier: Apache-2.0
// Conditions as a conjunction of disjunctions.
#include "arith/impl.h"

namespace tvm::arith {
namespace {
constexpr size_t kMostClauses = 64;  // distribution may square their number
using Clause = std::vector<PrimExpr>;

/// The clauses of `e`; none when they are too many.
std::optional<std::vector<Clause>> Clauses(const PrimExpr& e) {
  return Recurse([&]() -> std::optional<std::vector<Clause>> {
    if (auto* n = e.as<AndObj>()) {
      auto a = Clauses(n->a), b = Clauses(n->b);
      if (!a || !b || a->size() + b->size() > kMostClauses) return std::nullopt;
      a->insert(a->end(), b->begin(), b->end());
      return a;
    }
    if (auto* n = e.as<OrObj>()) {
      auto a = Clauses(n->a), b = Clauses(n->b);
      if (!a || !b || a->size() * b->size() > kMostClauses) return std::nullopt;
      std::vector<Clause> result;
      for (const Clause& x : *a) {
        for (const Clause& y : *b) {
          result.push_back(x);
          result.back().insert(result.back().end(), y.begin(), y.end());
        }
      }
      return result;
    }
    return std::vector<Clause>{{e}};
  });
}
}  // namespace

PrimExpr Analyzer::Impl::AsAndOfOrs(const PrimExpr& e) {
  auto clauses = Clauses(e);
  if (!clauses || clauses->size() == 1) return e;
  PrimExpr result = const_true();
  std::vector<PrimExpr> seen;
  for (const Clause& clause : *clauses) {
    PrimExpr either = const_false();
    for (const PrimExpr& literal : clause) either = either || literal;
    either = RewriteSimplify(either);
    bool again = std::any_of(seen.begin(), seen.end(),
                             [&](const PrimExpr& s) { return ExprDeepEqual(s, either); });
    if (again) continue;
    seen.push_back(either);
    result = result && either;
  }
  return result;
}

}  // namespace tvm::arith
