// SPDX-License-Identifier: Apache-2.0
// Parameters with another struct info.
#include "relax/transform/signature.h"
#include "tvm/ir/callback.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class ParamUpdater : public ExprMutator {
 public:
  ParamUpdater(const IRModule& mod, ffi::Function sinfo_func)
      : ExprMutator(mod), mod_(mod), sinfo_func_(std::move(sinfo_func)) {}
  IRModule Run() {
    for (const auto& [var, base] : mod_->Sorted()) Update(var);
    return ChangeSignatures(mod_, changes_);
  }
  Expr VisitExpr_(const FunctionObj* op) final {
    for (const Var& param : op->params) {
      Any result = CallBack(sinfo_func_, param);
      if (result == nullptr) continue;
      auto info = result.as<StructInfo>();
      if (!info) {
        TVM_FFI_THROW(TypeError)
            << "UpdateParamStructInfo: expected struct info or None for the parameter '"
            << param->name_hint() << "', got " << result.GetTypeKey();
      }
      SetVarRemap(param->vid, WithStructInfo(param, *info));
    }
    return ExprMutator::VisitExpr_(op);
  }
  Expr VisitExpr_(const GlobalVarObj* op) final {
    auto it = vars_.find(op->name_hint);
    return it == vars_.end() ? ffi::GetRef<Expr>(op) : Expr(it->second);
  }

 private:
  /// First what the function calls: what that returns now says what the function returns.
  void Update(const GlobalVar& var) {
    if (StackIsLow()) return Recurse([&] { Update(var); });
    GlobalVar own = mod_->FindGlobalVar(var->name_hint);
    if (!own.defined() || !seen_.insert(std::string(own->name_hint)).second) return;
    BaseFunc base = mod_->Lookup(own);
    if (!base.as<FunctionObj>()) return;
    for (const GlobalVar& callee : AllGlobalVars(base)) Update(callee);
    auto func = As<Function>(VisitExpr(base));
    if (func.same_as(base)) return;
    changes_[std::string(own->name_hint)].func = func;
    if (StructuralEqual(GetStructInfo(func), GetStructInfo(base))) return;
    GlobalVar now(own->name_hint);
    UpdateStructInfo(now, GetStructInfo(func));
    vars_.emplace(own->name_hint, now);
  }
  IRModule mod_;
  ffi::Function sinfo_func_;
  std::unordered_set<std::string> seen_;
  std::unordered_map<std::string, GlobalVar> vars_;
  std::unordered_map<std::string, NewSignature> changes_;
};

IRModule UpdateParamStructInfo(IRModule mod, ffi::Function sinfo_func) {
  return ParamUpdater(mod, sinfo_func).Run();
}
}  // namespace
TVM_RELAX_PASS(UpdateParamStructInfo, 1,
               "x: A  ->  x: B where sinfo_func(x) returns B, not None; what is computed from x is "
               "inferred again.",
               Arg("sinfo_func"));
}  // namespace tvm::relax
