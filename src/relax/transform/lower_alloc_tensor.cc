// SPDX-License-Identifier: Apache-2.0
// Each tensor that is still allocated by itself gets a storage of its own.
#include "lowering.h"
#include "relax/transform/calls_op.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class AllocLowerer : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    const LoweredOps& ops = LoweredOps::Get();
    if (!call->Is(ops.new_tensor)) return visited;
    auto* shape = GetStructInfoAs<ShapeStructInfoObj>(call->args[0]);
    if (!shape->values) {
      TVM_FFI_THROW(ValueError) << "LowerAllocTensor: expected a shape whose dimensions are known, "
                                   "got "
                                << TextOf(call->args[0]);
    }
    DataType dtype = call->args[1].as<DataTypeImmObj>()->value;
    const Expr &device = call->args[2], &scope = call->args[3];
    ShapeExpr size = StorageSize(shape->values.value(), dtype, scope.as<StringImmObj>()->value);
    Var storage = builder_->Emit(Call(ops.alloc_storage, {size, device, scope, DataTypeImm(dtype)}),
                                 "storage");
    return Call(ops.alloc_tensor,
                {storage, PrimValue::Int64(0), call->args[0], call->args[1], device}, {}, {},
                call->span);
  }
};
Function LowerAllocTensor(Function func, IRModule mod) {
  if (!CallsOp(func, [](const OpObj* op) { return op == LoweredOps::Get().new_tensor.get(); }))
    return func;
  return As<Function>(AllocLowerer(WithoutFunctions(mod)).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(LowerAllocTensor, 0,
                        "R.builtin.alloc_tensor((4,), \"float32\")  ->  a tensor at the beginning "
                        "of R.memory.alloc_storage((16,))");
}  // namespace tvm::relax
