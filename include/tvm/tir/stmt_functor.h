// SPDX-License-Identifier: Apache-2.0
// What passes over statements share: replacing bodies, wrapping statements, fresh definitions.
#pragma once
#include <vector>

#include "tvm/tir/function.h"

namespace tvm::tir {

/// `func` with another body; the same object when the body is the same.
PrimFunc WithBody(PrimFunc func, Stmt body);

/// `func` with its body rewritten by a mutator.
template <class M>
PrimFunc RewriteBody(PrimFunc func, M&& mutator) {
  Stmt body = mutator.Mutate(func->body);
  return WithBody(std::move(func), std::move(body));
}

/// `body` inside `nest`, outermost first: statements whose own bodies are ignored (loops, lets,
/// attributes, allocations, declarations, assertions, conditions without else).
Stmt MergeNest(const std::vector<Stmt>& nest, Stmt body);

/// A copy of the program in which every variable, iterator and buffer defined inside is a new one.
PrimFunc RenewDefs(const PrimFunc& func);

/// Rewrites statements and expressions with two callbacks. `preorder(node)` gives the node's replacement
/// (whose children are not visited) or None; `postorder(node)` sees the node with its children done.
/// With `only_enable`, only nodes of those type keys are passed.
Stmt IRTransform(Stmt stmt, const Optional<Function>& preorder, const Optional<Function>& postorder,
                 const Optional<Array<String>>& only_enable = {});

/// The program with every variable defined once: a definition that repeats another one's variable gets
/// a new variable.
PrimFunc ConvertSSA(PrimFunc func);
Stmt ConvertSSA(Stmt stmt);

}  // namespace tvm::tir
