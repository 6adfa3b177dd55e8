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

/// New values of variables of the block, for a match; empty when there is nothing to do.
using RewriteMatch = std::function<Map<Var, Expr>(const PatternMatch&, const Map<Var, Expr>&)>;
/// Applies `rewrite` to the matches of the context in every dataflow block (with `plain_blocks` in
/// every block without side effects) until there are none.
Function RewriteBlocks(const Function& func, const char* name, const PatternContext& context,
                       const RewriteMatch& rewrite, bool plain_blocks);

}  // namespace tvm::relax
