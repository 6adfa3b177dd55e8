// SPDX-License-Identifier: Apache-2.0
// Gradients of calls of PrimFuncs: functions of tensor expressions that are registered by name.
#include "relax/gradient/gradient.h"
#include "tvm/ir/callback.h"

namespace tvm::relax {
namespace {
Values OfCallTIRWithGrad(Grad& r) {
  const String& name = r.attrs<CallTIRWithGradAttrsObj>()->te_grad_name;
  auto rule = ffi::Function::GetGlobal("tvm.relax.te_grad._register." + name);
  if (!rule) r.Refuse("the name '" + std::string(name) + "', which is not registered");
  Expr gradients = CallBack(*rule, r.y().expr, r.call, r.g().expr, r.builder).cast<Expr>();
  // One tensor stands for a tuple of it.
  Expr leaf = r.builder->NormalizeArgument(gradients);
  bool is_tuple = GetStructInfoAs<TupleStructInfoObj>(leaf);
  return {{}, r.Of(is_tuple ? leaf : Expr(Tuple({leaf})))};
}
TVM_REGISTER() { RegisterGradient({"relax.call_tir_with_grad", &OfCallTIRWithGrad}); }
}  // namespace
}  // namespace tvm::relax
