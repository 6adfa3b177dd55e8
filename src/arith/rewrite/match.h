// SPDX-License-Identifier: Apache-2.0
// Matching of patterns, evaluation of conditions, building of replacements.
#pragma once
#include <array>
#include <functional>
#include <memory>

#include "arith/impl.h"
#include "arith/rewrite/rule.h"

namespace tvm::arith {

/// A pattern prepared for matching.
struct Template {
  int32_t type = 0;   // type index of the node
  int wildcard = -1;  // its number, for a wildcard
  WildKind kind = kAnyValue;
  bool is_const = false;
  int64_t value = 0;  // of a constant
  bool is_bool = false;
  std::array<const Template*, 3> kids{};
};

struct CompiledRule {
  const char* table;
  int row;
  Needs needs;
  const Template *from, *to, *when;  // when: null for "always"
};
using Candidates = std::vector<const CompiledRule*>;
/// The rules that may fit `e` by the kinds of it and its operands, in the order of the tables.
const Candidates& RulesFor(const PrimExpr& e);

/// One attempt to use a rule.
class Match {
 public:
  explicit Match(Analyzer::Impl* facts) : facts_(facts) {}
  /// Whether the rule may be used on `e`.
  bool Try(const CompiledRule& rule, const PrimExpr& e);
  /// The replacement; `make` simplifies each new node. Undefined when a constant does not fit.
  PrimExpr Build(const CompiledRule& rule, const std::function<PrimExpr(const PrimExpr&)>& make);

 private:
  bool Bind(const Template* t, const PrimExpr& e);
  bool Holds(const Template* cond);
  std::optional<Wide> Constant(const Template* t);
  Interval Range(const Template* t);
  Residue Class(const Template* t);
  bool StaysInType(const Template* t);
  PrimExpr BuildNode(const Template* t, const CompiledRule& rule,
                     const std::function<PrimExpr(const PrimExpr&)>& make);
  PrimExpr MakeConstant(Wide value, bool is_bool, bool wraps);

  Analyzer::Impl* facts_;
  std::array<const PrimExpr*, kWildcards> bound_;  // parts of the node that is matched
  DataType type_;                                  // of the integers in the rule
  int lanes_ = 1;
};

/// The node of a binary type index; operands are put in the usual order and constants folded.
PrimExpr MakeBinaryNode(int32_t type_index, PrimExpr a, PrimExpr b);
/// Operands of a binary node, or null.
const BinaryOpFields* AsBinary(const PrimExpr& e);
bool IsCommutative(int32_t type_index);

}  // namespace tvm::arith
