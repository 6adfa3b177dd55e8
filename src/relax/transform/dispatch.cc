// SPDX-License-Identifier: Apache-2.0
// Operators whose algorithm depends on the target are lowered for it before all others.
#include "lowering.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
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
