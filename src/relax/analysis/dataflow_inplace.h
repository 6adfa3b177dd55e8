// SPDX-License-Identifier: Apache-2.0
// Which calls of a dataflow block may overwrite an argument.
#pragma once
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "tvm/relax/expr.h"

namespace tvm::relax {

/// From the binding of a variable to its last use; -1: it comes from outside, and the number of
/// bindings: it is seen behind the block.
struct LiveRange {
  Var var;
  int64_t begin = -1, end = -1;
};
/// In the order in which the variables come.
std::vector<LiveRange> DataflowLiveness(const DataflowBlock& block);

/// Where the values of variables may be: places are numbered, -1 is any place. A tuple has a place
/// of its own; what its fields may be is in `tuples`.
struct Aliases {
  static constexpr int64_t kAnywhere = -1;
  std::vector<std::pair<Var, std::set<int64_t>>> places;  // in the order of their definitions
  std::map<int64_t, std::vector<std::set<int64_t>>> tuples;
};
/// The inputs are in places of their own.
Aliases DataflowAliases(const DataflowBlock& block, const Array<Var>& inputs);

/// A call, by the index of its binding, that may overwrite any one of these arguments.
struct InplaceChoice {
  int64_t binding;
  std::vector<int64_t> args;
};
/// Elementwise calls with an argument that nobody needs afterwards and whose memory nobody else
/// has: large enough for the result, and of its very shape.
struct InplaceChoices {
  std::vector<InplaceChoice> large_enough, exact;
};
InplaceChoices FindInplaceChoices(const DataflowBlock& block, const Array<Var>& inputs);

}  // namespace tvm::relax
