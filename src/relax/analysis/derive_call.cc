// SPDX-License-Identifier: Apache-2.0
// What a call of a function returns, from the function's struct info and the arguments.
#include "relax/analysis/match.h"
#include "tir/text.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/block_builder.h"

namespace tvm::relax {
namespace {
std::string NameOf(const Expr& callee) {
  if (auto* var = callee.as<GlobalVarObj>()) return var->name_hint;
  if (auto* var = callee.as<VarObj>()) return var->name_hint();
  return "the function";
}
}  // namespace

StructInfo DeriveCallRetStructInfo(const FuncStructInfo& func, const Call& call,
                                   const BlockBuilder& builder) {
  if (func->IsOpaque()) {
    if (!func->derive_func) return func->ret;
    return CallBack(func->derive_func.value()->func.value(), call, builder).cast<StructInfo>();
  }
  const Array<StructInfo>& params = func->params.value();
  if (params.size() != call->args.size()) {
    TVM_FFI_THROW(OpValueError) << NameOf(call->op) << ": expected " << params.size()
                                << " arguments, got " << call->args.size();
  }
  Map<tir::Var, PrimExpr> bindings;
  for (size_t i = 0; i < params.size(); ++i)
    BindSymbolic(params[i], GetStructInfo(call->args[i]), &bindings);
  auto bound = [&](const tir::Var& var) { return bindings.Get(var).value_or(PrimExpr()); };
  arith::Analyzer* analyzer = builder.defined() ? builder->analyzer() : nullptr;
  for (size_t i = 0; i < params.size(); ++i) {
    StructInfo given = GetStructInfo(call->args[i]);
    StructInfo wanted = bindings.empty() ? params[i] : SubstituteStructInfo(params[i], bindings);
    BaseCheckResult check = StructInfoBaseCheck(wanted, given, analyzer);
    if (check > BaseCheckResult::kFailL1) continue;
    TVM_FFI_THROW(OpValueError) << NameOf(call->op) << ": expected argument " << i << " to be "
                                << tir::TextOf(params[i]) << ", got " << tir::TextOf(given)
                                << (check == BaseCheckResult::kFailL1
                                        ? "; a match_cast could check it at run time"
                                        : "");
  }
  return EraseToWellDefined(func->ret, bound);
}

namespace {
/// The caller says it: nothing is any value, one is the result, several are a tuple.
StructInfo InferBySinfoArgs(Call call, Any) {
  const Array<StructInfo>& infos = call->sinfo_args;
  if (infos.empty()) return ObjectStructInfo::Get();
  return infos.size() == 1 ? infos[0] : TupleStructInfo(infos);
}

TVM_REGISTER() {
  Def("tvm.relax.struct_info.infer_by_sinfo_args", &InferBySinfoArgs,
      "What the caller says: sinfo_args of the call.", Arg("call"), Arg("ctx"));
  Def("relax.analysis.derive_call_ret_struct_info", &DeriveCallRetStructInfo,
      "What the call of a function with this struct info returns.", Arg("func_sinfo"), Arg("call"),
      Arg("ctx"));
}
}  // namespace
}  // namespace tvm::relax
