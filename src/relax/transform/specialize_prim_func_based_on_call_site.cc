// SPDX-License-Identifier: Apache-2.0
// Buffers of PrimFuncs in the memory in which their callers have the tensors.
#include "relax/transform/call_site.h"
#include "tvm/expr/substitute.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Memory scopes of the tensors that a call_tir gives to its PrimFunc, in the order of parameters;
/// "" where nothing is said.
std::vector<String> ScopesOf(const Call& call) {
  std::vector<String> scopes;
  auto add = [&](const StructInfo& info) {
    auto* tensor = info.as<TensorStructInfoObj>();
    scopes.push_back(tensor && tensor->vdevice ? tensor->vdevice.value()->memory_scope : "");
  };
  for (const Expr& arg : call->args[1].as<TupleObj>()->fields) add(GetStructInfo(arg));
  StructInfo out = call->sinfo_args[0];
  auto* outs = out.as<TupleStructInfoObj>();
  if (!outs) add(out);
  for (size_t i = 0; outs && i < outs->fields.size(); ++i) add(outs->fields[i]);
  return scopes;
}
tir::PrimFunc WithScopes(const Function&, const Call& call, tir::PrimFunc func) {
  static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
  if (!call->Is(call_tir) || !call->args[1].as<TupleObj>()) return func;
  Map<tir::Var, PrimExpr> moved;
  std::vector<String> scopes = ScopesOf(call);
  for (size_t i = 0; i < std::min(scopes.size(), func->params.size()); ++i) {
    tir::Buffer buffer = func.BufferOf(func->params[i]);
    if (!buffer.defined() || scopes[i].empty() || buffer.scope() == scopes[i]) continue;
    moved.Set(buffer->data,
              tir::Var(buffer->data->name_hint, PointerType(PrimType(buffer->dtype), scopes[i])));
  }
  return moved.empty() ? func : tir::Substitute(func, moved);
}
IRModule SpecializePrimFuncBasedOnCallSite(IRModule mod) {
  return SpecializeForCallSites(mod, &WithScopes);
}
}  // namespace
TVM_RELAX_PASS(SpecializePrimFuncBasedOnCallSite, 0,
               "R.call_tir(cls.f, (x,), ...), where x is on a device with memory_scope "
               "\"global.texture\"  ->  f's buffer for x has that scope");
}  // namespace tvm::relax
