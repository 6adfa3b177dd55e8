// SPDX-License-Identifier: Apache-2.0
// Calls that only give a tensor another shape become reshapes, which are views and cost nothing.
#include "lowering.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
/// Which functions of the module are reshapes: each is looked at once.
class ReshapeFunctions {
 public:
  explicit ReshapeFunctions(IRModule mod) : mod_(std::move(mod)) {}
  bool Has(const GlobalVar& callee) {
    auto [it, is_new] = known_.try_emplace(callee.get(), false);
    if (!is_new) return it->second;
    GlobalVar var = mod_->FindGlobalVar(callee->name_hint);
    if (!var.defined()) return false;
    auto func = mod_->Lookup(var).as<tir::PrimFunc>();
    return it->second = func && HasReshapePattern(*func);
  }

 private:
  IRModule mod_;
  std::unordered_map<const Object*, bool> known_;
};

class ReshapeRewriter : public ExprMutator {
 public:
  ReshapeRewriter(const IRModule& mod, ReshapeFunctions* reshapes)
      : ExprMutator(WithoutFunctions(mod)), reshapes_(reshapes) {}
  /// What leaves the block stays a tensor of its own: its memory is not that of an argument.
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* call = binding->value.as<CallObj>();
    bool inside = binding->var.as<DataflowVarObj>() && builder_->CurrentBlockIsDataflow();
    if (!inside || !call || !IsReshape(call)) return ExprMutator::VisitBinding_(binding);
    auto* out = call->sinfo_args[0].as<TensorStructInfoObj>();
    Expr data = VisitExpr(call->args[1].as<TupleObj>()->fields[0]);
    ReEmitBinding(binding,
                  Call(LoweredOps::Get().reshape, {data, out->shape.value()}, {}, {}, call->span));
  }

 private:
  bool IsReshape(const CallObj* call) {
    if (!call->Is(LoweredOps::Get().call_tir) || !call->sinfo_args[0].as<TensorStructInfoObj>())
      return false;
    auto* args = call->args[1].as<TupleObj>();
    auto* callee = call->args[0].as<GlobalVarObj>();
    return args && !args->fields.empty() && callee &&
           GetStructInfoAs<TensorStructInfoObj>(args->fields[0]) &&
           reshapes_->Has(ffi::GetRef<GlobalVar>(callee));
  }
  ReshapeFunctions* reshapes_;
};

IRModule RewriteDataflowReshape(IRModule mod) {
  ReshapeFunctions reshapes(mod);
  return MapFunctions(mod, [&](const GlobalVar&, const Function& func) {
    return As<Function>(ReshapeRewriter(mod, &reshapes).VisitExpr(func));
  });
}
}  // namespace
TVM_RELAX_PASS(RewriteDataflowReshape, 0,
               "lv = R.call_tir(f, (x,), R.Tensor((6, 4)))  ->  lv = R.reshape(x, (6, 4)), where f "
               "only moves elements in order and lv stays in its dataflow block.");
}  // namespace tvm::relax
