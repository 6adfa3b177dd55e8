// SPDX-License-Identifier: Apache-2.0
// Operators whose algorithm depends on the target are lowered for it before all others.
#include <algorithm>

#include "tvm/relax/analysis.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Lowers the operators of these names and leaves all others.
IRModule LegalizeOnly(const IRModule& mod, const std::vector<Op>& wanted) {
  auto is_wanted = [&](const Expr& op) {
    return std::any_of(wanted.begin(), wanted.end(), [&](const Op& o) { return o.same_as(op); });
  };
  bool found = false;
  for (const auto& [var, func] : mod->functions) {
    if (!func.as<FunctionObj>()) continue;
    VisitBindings(func, [&](const Binding& binding) {
      auto* call = ValueOf(binding).as<CallObj>();
      found = found || (call && is_wanted(call->op));
    });
  }
  if (!found) return mod;
  Array<String> others;
  for (const OperatorInfo* info : ListOperators()) {
    if (!is_wanted(info->op)) others.push_back(info->op->name);
  }
  return transform::GetPass("relax.LegalizeOps", {nullptr, others})(mod);
}
std::vector<Op> Operators(std::initializer_list<const char*> names) {
  std::vector<Op> ops;
  for (const char* name : names) ops.push_back(Op::Get(name));
  return ops;
}
IRModule DispatchSampling(IRModule mod) {
  return LegalizeOnly(mod, Operators({"relax.multinomial_from_uniform"}));
}
IRModule DispatchSortScan(IRModule mod) {
  return LegalizeOnly(mod, Operators({"relax.sort", "relax.argsort", "relax.topk", "relax.cumsum",
                                      "relax.cumprod"}));
}
}  // namespace
TVM_RELAX_PASS(DispatchSampling, 0,
               "R.multinomial_from_uniform(...)  ->  R.call_tir of its kernel for the target.");
TVM_RELAX_PASS(DispatchSortScan, 0,
               "R.sort, argsort, topk, cumsum and cumprod  ->  R.call_tir of their kernels for the "
               "target.");
}  // namespace tvm::relax
