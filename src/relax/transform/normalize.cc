// SPDX-License-Identifier: Apache-2.0
// Programs brought into normal form.
#include "tvm/relax/block_builder.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function Normalize(Function func, IRModule mod) {
  return As<Function>(BlockBuilder::Create(mod)->Normalize(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(Normalize, 1,
                        "y = f(g(x))  ->  gv = g(x); y = f(gv): arguments are leaves, and every "
                        "expression has struct info.");
}  // namespace tvm::relax
