// SPDX-License-Identifier: Apache-2.0
// Groups of bindings that become functions of their own.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tvm/relax/expr.h"

namespace tvm::relax {

/// The function that the bindings of a group become.
struct BindingGroup {
  std::string name;
  Map<String, Any> attrs;
  bool binds_constants = false;  // constants stay inside; otherwise they are parameters
};
/// The groups of a dataflow block, and which of them a variable (its id) belongs to.
struct Grouping {
  std::vector<BindingGroup> groups;
  std::unordered_map<const Object*, size_t> group_of;
};
using FindGroups = std::function<Grouping(const DataflowBlock&)>;

/// The module with every group of its dataflow blocks made into a private function, in whose place
/// is a call. What a group takes from outside are parameters, each once; symbolic variables that no
/// parameter shows are a last one, `tir_vars`; several results are a tuple. Functions that are
/// groups already, or belong to a code generator, stay. ValueError when groups need each other.
IRModule ExtractGroups(const IRModule& mod, const FindGroups& find);

}  // namespace tvm::relax
