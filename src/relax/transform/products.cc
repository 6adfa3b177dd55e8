// SPDX-License-Identifier: Apache-2.0
// What passes over products of matrices have in common.
#include "relax/transform/products.h"

#include <algorithm>

namespace tvm::relax {

CompileTime::CompileTime(const Function& func) {
  if (!func->attrs.Has("num_input")) return;
  auto known = ffi::Function::GetGlobalRequired("relax.analysis.computable_at_compile_time")(func)
                   .cast<Array<Var>>();
  for (const Var& var : known) ids_.push_back(var->vid.get());
  std::sort(ids_.begin(), ids_.end());
}
bool CompileTime::Knows(const Expr& expr) const {
  if (expr.as<ConstantObj>()) return true;
  auto* var = expr.as<VarObj>();
  return var && std::binary_search(ids_.begin(), ids_.end(), var->vid.get());
}

}  // namespace tvm::relax
