// SPDX-License-Identifier: Apache-2.0
// What a call of a function returns, from the function's struct info and the arguments.
#include "relax/analysis/symbolic_vars.h"
#include "tir/text.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/block_builder.h"
#include "tvm/relax/distributed.h"

namespace tvm::relax {
namespace {
using Bindings = Map<tir::Var, PrimExpr>;

/// Binds the symbolic variables of a parameter to what stands in their places in the argument.
class Matcher {
 public:
  explicit Matcher(Bindings* bindings) : bindings_(bindings) {}
  void Match(const StructInfo& param, const StructInfo& arg) {
    if (StackIsLow()) return Recurse([&] { Match(param, arg); });
    if (param->type_index() != arg->type_index()) return;
    if (auto* p = param.as<TensorStructInfoObj>()) {
      Optional<Array<PrimExpr>> dims = p->Dims(), given = arg.as<TensorStructInfoObj>()->Dims();
      if (dims && given) MatchDims(dims.value(), given.value());
    } else if (auto* p = param.as<ShapeStructInfoObj>()) {
      auto* a = arg.as<ShapeStructInfoObj>();
      if (p->values && a->values) MatchDims(p->values.value(), a->values.value());
    } else if (auto* p = param.as<PrimStructInfoObj>()) {
      auto* a = arg.as<PrimStructInfoObj>();
      if (p->value && a->value) MatchOne(p->value.value(), a->value.value());
    } else if (auto* p = param.as<TupleStructInfoObj>()) {
      auto* a = arg.as<TupleStructInfoObj>();
      for (size_t i = 0; i < std::min(p->fields.size(), a->fields.size()); ++i)
        Match(p->fields[i], a->fields[i]);
    } else if (auto* p = param.as<distributed::DTensorStructInfoObj>()) {
      Match(p->tensor_sinfo, arg.as<distributed::DTensorStructInfoObj>()->tensor_sinfo);
    }
  }

 private:
  void MatchDims(const Array<PrimExpr>& param, const Array<PrimExpr>& arg) {
    if (param.size() != arg.size()) return;
    for (size_t i = 0; i < param.size(); ++i) MatchOne(param[i], arg[i]);
  }
  void MatchOne(const PrimExpr& param, const PrimExpr& arg) {
    auto* var = param.as<tir::VarObj>();
    if (!var || var->dtype != arg.dtype()) return;
    auto ref = ffi::GetRef<tir::Var>(var);
    if (!bindings_->count(ref)) bindings_->Set(ref, arg);
  }
  Bindings* bindings_;
};

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
  Bindings bindings;
  Matcher matcher(&bindings);
  for (size_t i = 0; i < params.size(); ++i) matcher.Match(params[i], GetStructInfo(call->args[i]));
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
