// SPDX-License-Identifier: Apache-2.0
// exp, tanh, erf and softmax by the functions that are named fast.
#include "relax/legalize/lowering.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
constexpr struct {
  const char *op, *name, *function, *attribute;
} kFastFunctions[] = {
    {"relax.exp", "fast_exp", "topi.fast_exp", nullptr},
    {"relax.erf", "fast_erf", "topi.fast_erf", nullptr},
    {"relax.tanh", "fast_tanh", "topi.fast_tanh", nullptr},
    {"relax.nn.softmax", "fast_softmax", "topi.nn.fast_softmax", "axis"},
};

class FastMath : public ExprMutator {
 public:
  explicit FastMath(const IRModule& mod) : ExprMutator(mod) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<OpObj>();
    auto* tensor = callee && !call->args.empty()
                       ? GetStructInfoAs<TensorStructInfoObj>(call->args[0])
                       : nullptr;
    if (!tensor || !tensor->Dims()) return visited;
    for (const auto& row : kFastFunctions) {
      if (callee->name != row.op) continue;
      builder_->Normalize(visited);
      Lowered lowered(builder_, ffi::GetRef<Call>(call));
      std::vector<Any> arguments{lowered.Argument(0)};
      if (row.attribute) arguments.push_back(lowered.Attr(row.attribute));
      return lowered.Finish(row.name, lowered.Run(row.function, arguments));
    }
    return visited;
  }

 private:
};
IRModule FastMathTransform(IRModule mod) { return FastMath(mod).VisitFunctions(); }
}  // namespace
TVM_RELAX_PASS(
    FastMathTransform, 0,
    "exp, tanh, erf and nn.softmax  ->  call_tir of topi's fast_exp, fast_tanh, fast_erf, "
    "nn.fast_softmax");
}  // namespace tvm::relax
