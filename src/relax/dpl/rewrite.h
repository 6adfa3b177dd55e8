// SPDX-License-Identifier: Apache-2.0
// What the kinds of rewriting have in common.
#pragma once
#include "tvm/relax/dpl.h"

namespace tvm::relax {

/// The result of a rewriter that users wrote: an expression, or None for "as it was". Errors begin
/// with `name`.
Optional<Expr> AsReplacement(const char* name, const Any& result);
/// Replaces what matches by what `rewriter(expression, {pattern: expression})` gives.
RewriteRule RuleOf(const char* name, const DFPattern& pattern, const ffi::Function& rewriter);

/// New values of variables of a block; none when there is nothing to do.
using NewValues = std::vector<std::pair<Var, Expr>>;
using BlockRule = std::function<NewValues(const BindingBlock& block)>;
/// Applies the rule to every dataflow block (with `plain_blocks` to every block without side
/// effects) until it gives nothing. Bindings are put into an order in which values come before
/// their uses, and what nobody uses any more goes.
Function RewriteBlocks(const Function& func, const char* name, const BlockRule& rule,
                       bool plain_blocks);

/// The new values for a match; none when it shall stay.
using RewriteMatch = std::function<Map<Var, Expr>(const PatternMatch&, const Map<Var, Expr>&)>;
/// Rewrites all matches of the context in a block that have no call in common.
BlockRule RuleOf(const PatternContext& context, const RewriteMatch& rewrite);

}  // namespace tvm::relax
