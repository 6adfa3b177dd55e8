// SPDX-License-Identifier: Apache-2.0
// Operators that are simpler ones together.
#include "relax/transform/calls_op.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class InferenceDecomposer : public ExprMutator {
 public:
  InferenceDecomposer(const IRModule& mod, bool keep_training)
      : ExprMutator(mod), keep_training_(keep_training) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    static const Op &batch_norm = *new Op(Op::Get("relax.nn.batch_norm")),
                    &to_shape = *new Op(Op::Get("relax.tensor_to_shape"));
    if (call && call->Is(batch_norm)) return Normalized(call);
    if (call && call->Is(to_shape)) return Shape(call);
    return visited;
  }

 private:
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  /// (x - mean) / sqrt(var + epsilon) * gamma + beta; mean and variance are what they were.
  Expr Normalized(const CallObj* call) {
    auto* attrs = call->attrs.value().as<BatchNormAttrsObj>();
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    if ((attrs->training && keep_training_) || !data || data->ndim < 0)
      return ffi::GetRef<Expr>(call);
    int64_t axis = attrs->axis < 0 ? attrs->axis + data->ndim : attrs->axis;
    Ints others;
    for (int64_t i = 0; i < data->ndim; ++i) {
      if (i != axis) others.push_back(IntImm::Int32(i));
    }
    auto spread = [&](int arg) { return Make("relax.expand_dims", {call->args[arg], others}); };
    Expr mean = spread(3), var = spread(4);
    Expr deviation = Make("relax.sqrt", {Make("relax.add", {var, attrs->epsilon})});
    Expr result = Make("relax.divide", {Make("relax.subtract", {call->args[0], mean}), deviation});
    if (attrs->scale) result = Make("relax.multiply", {result, spread(1)});
    if (attrs->center) result = Make("relax.add", {result, spread(2)});
    return Tuple({result, call->args[3], call->args[4]});
  }
  /// The dimensions become symbolic variables.
  Expr Shape(const CallObj* call) {
    auto* info = GetStructInfoAs<ShapeStructInfoObj>(ffi::GetRef<Expr>(call));
    if (!info || info->ndim < 0) return ffi::GetRef<Expr>(call);
    Array<PrimExpr> dims;
    for (int64_t i = 0; i < info->ndim; ++i)
      dims.push_back(tir::Var("x_" + std::to_string(i), DataType::Int(64)));
    Expr shape = builder_->Emit(Call(Op::Get("relax.call_pure_packed"),
                                     {ExternFunc("vm.builtin.tensor_to_shape"), call->args[0]}, {},
                                     {ShapeStructInfo(info->ndim)}));
    builder_->EmitMatchCast(shape, ShapeStructInfo(dims));
    return ShapeExpr(dims);
  }
  bool keep_training_;
};

IRModule DecomposeOpsForInference(IRModule mod, Optional<String> func_name, bool keep_training) {
  if (func_name) mod->GetGlobalVar(func_name.value());  // raises where there is none
  auto wanted = [](const OpObj* op) {
    return View(op->name) == "relax.nn.batch_norm" || View(op->name) == "relax.tensor_to_shape";
  };
  return MapFunctions(mod, [&](const GlobalVar& var, const Function& func) {
    if (func_name && func_name.value() != var->name_hint) return func;
    if (!CallsOp(func, wanted)) return func;
    return OnDeepStack(
        [&] { return As<Function>(InferenceDecomposer(mod, keep_training).VisitExpr(func)); });
  });
}
}  // namespace
TVM_RELAX_PASS(DecomposeOpsForInference, 0,
               "Batch normalisation becomes arithmetic with the moving statistics, tensor_to_shape "
               "a call and a cast that names the dimensions; in all functions or in one. With "
               "keep_training, normalisation by the statistics of the batch stays what it is.",
               Arg("func_name", nullptr), Arg("keep_training", false));
}  // namespace tvm::relax
