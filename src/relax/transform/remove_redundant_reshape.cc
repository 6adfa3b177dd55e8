// SPDX-License-Identifier: Apache-2.0
// Reshapes of reshapes, and reshapes to the shape that is there.
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class ReshapeRemover : public ExprMutator {
 public:
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    if (!IsReshape(call)) return visited;
    Expr data = call->args[0];
    while (auto* before = Reshaped(data)) data = before->args[0];
    // The shapes of both are known, and a reshape keeps the number of elements.
    auto* from = GetStructInfoAs<TensorStructInfoObj>(data);
    auto* to = GetStructInfoAs<ShapeStructInfoObj>(call->args[1]);
    bool same = from && to && from->Dims() && to->values && from->ndim == to->ndim &&
                IsBaseOf(ShapeStructInfo(to->values.value()), ShapeStructInfo(from->Dims().value()),
                         builder_->analyzer());
    if (same) return data;
    if (data.same_as(call->args[0])) return visited;
    return Call(call->op, {data, call->args[1]}, call->attrs, call->sinfo_args, call->span);
  }

 private:
  static bool IsReshape(const CallObj* call) {
    static const Op& reshape = *new Op(Op::Get("relax.reshape"));
    return call && call->Is(reshape);
  }
  const CallObj* Reshaped(const Expr& data) const {
    auto* var = data.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : Optional<Expr>();
    auto* call = value ? value.value().as<CallObj>() : nullptr;
    return IsReshape(call) ? call : nullptr;
  }
};
Function RemoveRedundantReshape(Function func, IRModule) {
  return RemoveAllUnused(As<Function>(ReshapeRemover().VisitExpr(func)));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(RemoveRedundantReshape, 0,
                        "y = reshape(reshape(x, s), t)  ->  y = reshape(x, t), or x where t is its "
                        "shape");
}  // namespace tvm::relax
