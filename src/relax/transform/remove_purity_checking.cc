// SPDX-License-Identifier: Apache-2.0
// From here on functions are pure because they say so: what they call is not checked.
#include "lowering.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class PurityRemover : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  Expr VisitExpr_(const FunctionObj* op) final {
    auto func = As<Function>(ExprMutator::VisitExpr_(op));
    if (!func->is_pure || func->HasNonzeroAttr("relax.force_pure")) return func;
    return WithAttr(func, "relax.force_pure", true);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    const LoweredOps& ops = LoweredOps::Get();
    if (call->Is(ops.invoke_pure_closure))
      return Call(ops.invoke_closure, call->args, call->attrs, call->sinfo_args, call->span);
    if (!call->Is(ops.call_pure_packed) && !call->Is(ops.call_inplace_packed)) return visited;
    Array<Expr> args(call->args.begin() + 1, call->args.end());
    bool has_attrs = call->Is(ops.call_pure_packed);  // those of the other one are its own
    return Call(call->args[0], args, has_attrs ? call->attrs : std::nullopt, call->sinfo_args,
                call->span);
  }
};
Function RemovePurityChecking(Function func, IRModule mod) {
  return As<Function>(PurityRemover(WithoutFunctions(mod)).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(RemovePurityChecking, 0,
                        "y = R.call_pure_packed(\"f\", x)  ->  y = R.call_packed(\"f\", x), in "
                        "functions that say relax.force_pure.");
}  // namespace tvm::relax
