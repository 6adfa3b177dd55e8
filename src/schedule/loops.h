// SPDX-License-Identifier: Apache-2.0
// What primitives on loops share.
#pragma once
#include <initializer_list>

#include "schedule/analysis.h"
#include "tvm/arith/iter_affine_map.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

/// Refuses a loop that is annotated, bound to a thread or has steps: what these mean would be lost.
/// Also one that is not serial, unless the primitive makes it serial, which changes no result.
void RequirePlain(const ForObj* loop, bool is_made_serial = false);
Map<Var, Range> DomainsOf(const State& state, const std::vector<LoopId>& loops);
/// Refuses unless every loop but the first is the only statement of another one; returns the loops
/// from the outermost in.
std::vector<LoopId> RequireOneNest(const State& state, const std::vector<LoopId>& loops);
/// Refuses an empty list and one that has a loop twice.
void RequireDistinct(const State& state, const std::vector<LoopId>& loops);

/// A factor or length in the type of the loop's variable. Refuses a constant that does not fit.
PrimExpr InTypeOf(const ForObj* loop, const PrimExpr& factor);

/// The loops around a block, where they are its iterators and contain nothing else; refuses others.
std::vector<For> IterLoops(const Placed& block);

/// Replaces loop variables in statements and in the bindings of blocks.
struct LoopVarRewrite {
  Map<Var, PrimExpr> values;
  Map<Var, Range> domains;  // of the loops around, as they will be
  PrimExpr predicate;       // what will hold of them, or undefined
  bool simplify_unit_loops = false;
  State::BlockReuse reuse;  // filled: blocks whose inside changed

  Stmt operator()(const Stmt& stmt);
};
/// `stmt` run only where `predicate` holds: blocks get it as their predicate.
Stmt AddPredicate(const Stmt& stmt, const PrimExpr& predicate);

}  // namespace tvm::tir
