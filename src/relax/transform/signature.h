// SPDX-License-Identifier: Apache-2.0
// Functions whose parameters or results change, and the calls of them.
#pragma once
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "tvm/relax/block_builder.h"

namespace tvm::relax {

/// Private functions of the graph language that others only call: who else knows them cannot rely
/// on their parameters. By name, which outlives a module; all,
/// or those that `wanted` takes.
std::unordered_map<std::string, Function> PrivateCallees(const IRModule& mod,
                                                         bool (*wanted)(const Function&) = nullptr);

/// A function in place of another.
struct NewSignature {
  Function func;
  /// The arguments that a call of the other one gives it; absent: the same.
  std::function<Array<Expr>(const Call&)> args = nullptr;
  /// An item of the other one's result, taken from this one's; absent: the same item.
  std::function<Expr(const Expr& result, int64_t index)> item = nullptr;
};
/// The module with these functions, by name. Whatever calls them is inferred again, and so on where
/// that changes what a caller returns.
IRModule ChangeSignatures(const IRModule& mod,
                          const std::unordered_map<std::string, NewSignature>& changes);

/// Calls `visit` on the calls of functions of the module, in the order of the callers' names.
void VisitCallsOfFunctions(const IRModule& mod,
                           const std::function<void(const GlobalVar&, const Call&)>& visit);

}  // namespace tvm::relax
