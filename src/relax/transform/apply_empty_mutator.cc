// SPDX-License-Identifier: Apache-2.0
// A mutator without handlers: for tests that nothing changes.
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function ApplyEmptyCppMutator(Function func, IRModule mod) {
  return As<Function>(ExprMutator(mod).VisitExpr(func));
}
TVM_REGISTER() {
  ::tvm::transform::DefPass("relax.testing.transform.ApplyEmptyCppMutator",
                            FunctionPassOf<&ApplyEmptyCppMutator>(&ApplyEmptyCppMutator),
                            "Visits the functions with a mutator that changes nothing.",
                            {.name = "ApplyEmptyCppMutator"});
}
}  // namespace
}  // namespace tvm::relax
