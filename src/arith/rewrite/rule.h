// SPDX-License-Identifier: Apache-2.0
// The language of the rule tables: rows of patterns over wildcards.
//
//   {floordiv(x * c1 + y, c2), x * (c1 / c2) + floordiv(y, c2), c2 > 0 && c1 % c2 == 0, kIndex}
//
// x y z w stand for integers, n for an integer that is no constant, c1 c2 c3 for integer constants,
// p q r for conditions, u v for values of any type; a wildcard that occurs twice must match equal
// expressions. Operands of +, *, min, max, ==, && and || match in either order. In replacements and
// conditions constants are computed. A condition holds when it is computed to be true, or when
// bounds and residues prove it.
#pragma once
#include <vector>

#include "tvm/expr/op.h"

namespace tvm::arith {

/// What a rule needs beside its condition.
enum Needs : int {
  kWraps = 0,  ///< Holds in arithmetic modulo 2^n; its constants wrap.
  kFits = 1,   ///< Holds for all numbers, if the constants it computes are numbers of the type.
  kIndex = 2,  ///< Holds where nothing overflows: index arithmetic, or bounds prove it.
};

/// An expression of wildcards; nothing is folded while it is built.
struct Pat {
  PrimExpr expr;
  Pat(PrimExpr expr) : expr(std::move(expr)) {}   // NOLINT(*)
  Pat(int value) : expr(IntImm::Int64(value)) {}  // NOLINT(*)
  Pat(bool value) : expr(IntImm::Bool(value)) {}  // NOLINT(*)
};
#define TVM_PATTERN_OP(name, Node) \
  inline Pat name(const Pat& a, const Pat& b) { return Pat(tir::Node(a.expr, b.expr)); }
TVM_PATTERN_OP(operator+, Add)
TVM_PATTERN_OP(operator-, Sub)
TVM_PATTERN_OP(operator*, Mul)
TVM_PATTERN_OP(floordiv, FloorDiv)
TVM_PATTERN_OP(floormod, FloorMod)
TVM_PATTERN_OP(truncdiv, Div)
TVM_PATTERN_OP(truncmod, Mod)
TVM_PATTERN_OP(min, Min)
TVM_PATTERN_OP(max, Max)
TVM_PATTERN_OP(operator<, LT)
TVM_PATTERN_OP(operator<=, LE)
TVM_PATTERN_OP(operator>, GT)
TVM_PATTERN_OP(operator>=, GE)
TVM_PATTERN_OP(operator==, EQ)
TVM_PATTERN_OP(operator!=, NE)
TVM_PATTERN_OP(operator&&, And)
TVM_PATTERN_OP(operator||, Or)
#undef TVM_PATTERN_OP
inline Pat operator!(const Pat& a) { return Pat(tir::Not(a.expr)); }
inline Pat select(const Pat& c, const Pat& t, const Pat& f) {
  return Pat(tir::Select(c.expr, t.expr, f.expr));
}

struct Rule {
  Pat from, to;
  Pat when = true;
  Needs needs = kWraps;
  Rule(Pat from, Pat to) : from(from), to(to) {}
  Rule(Pat from, Pat to, Pat when) : from(from), to(to), when(when) {}
  Rule(Pat from, Pat to, Pat when, Needs needs) : from(from), to(to), when(when), needs(needs) {}
  Rule(Pat from, Pat to, Needs needs) : from(from), to(to), needs(needs) {}
};
using Rules = std::vector<Rule>;

enum WildKind : int { kInt, kNoConst, kConst, kCond, kAnyValue };
constexpr int kWildcards = 13;
struct Wildcards {
  Pat x, y, z, w, n, c1, c2, c3, p, q, r, u, v;
};
const Wildcards& TheWildcards();
/// Its number, or -1.
int WildcardNumber(const tir::VarObj* var);
WildKind WildcardKind(int number);

/// Says the names in a table's function.
#define TVM_WILDCARDS() \
  [[maybe_unused]] const auto& [x, y, z, w, n, c1, c2, c3, p, q, r, u, v] = TheWildcards()

struct RuleTable {
  const char* name;
  Rules (*rows)();
};
/// All tables; rows are tried in this order.
const std::vector<RuleTable>& RuleTables();

}  // namespace tvm::arith
