// SPDX-License-Identifier: Apache-2.0
// Scalars that are computed from symbolic variables are computed by functions.
#include "lowering.h"
#include "relax/analysis/symbolic_vars.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
class PrimValueComputer : public ExprMutator {
 public:
  /// New functions go into `functions`.
  PrimValueComputer(const IRModule& mod, BlockBuilder functions)
      : ExprMutator(WithoutFunctions(mod)), functions_(std::move(functions)) {}
  Expr VisitExpr_(const PrimValueObj* op) final {
    const PrimExpr& value = op->value;
    if (value.as<IntImmObj>() || value.as<FloatImmObj>() || value.as<tir::VarObj>())
      return ffi::GetRef<Expr>(op);
    Array<tir::Var> params;
    Array<Expr> args;
    Map<tir::Var, PrimExpr> inside;
    VisitVars(value, [&](const tir::VarObj* used) {
      auto var = ffi::GetRef<tir::Var>(used);
      if (inside.count(var)) return;
      params.push_back(tir::Var(var->name_hint, var.dtype()));
      args.push_back(PrimValue(var));
      inside.Set(var, params.back());
    });
    PrimExpr result = tir::Substitute(value, inside);
    tir::PrimFunc func(params,
                       tir::Evaluate(tir::Call(result.dtype(), tir::builtin::ret(), {result})),
                       PrimType(result.dtype()), {}, HostFunctionAttrs());
    return Call(functions_->AddFunction(func, "compute_symbolic_expr"), args);
  }

 private:
  BlockBuilder functions_;
};

IRModule ComputePrimValue(IRModule mod) {
  BlockBuilder functions = BlockBuilder::Create(mod);
  Map<GlobalVar, BaseFunc> changed;
  for (const auto& [var, func] : mod->Sorted()) {
    if (!func.as<FunctionObj>()) continue;
    Expr now = PrimValueComputer(mod, functions).VisitExpr(func);
    if (!now.same_as(func)) changed.Set(var, As<Function>(now));
  }
  if (changed.empty()) return mod;
  Map<GlobalVar, BaseFunc> all = functions->GetModule()->functions;
  for (const auto& [var, func] : changed) all.Set(var, func);
  return IRModule(all, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(ComputePrimValue, 0,
               "R.prim_value(n * 2)  ->  the call of a function compute_symbolic_expr(n) that "
               "returns n * 2.");
}  // namespace tvm::relax
