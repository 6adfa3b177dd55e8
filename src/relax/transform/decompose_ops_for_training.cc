// SPDX-License-Identifier: Apache-2.0
// Normalisation as arithmetic, by the statistics of what is normalised.
#include "relax/transform/calls_op.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class TrainingDecomposer : public ExprMutator {
 public:
  using ExprMutator::ExprMutator;
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    static const Op &batch_norm = *new Op(Op::Get("relax.nn.batch_norm")),
                    &layer_norm = *new Op(Op::Get("relax.nn.layer_norm"));
    bool is_batch = call && call->Is(batch_norm);
    if (!is_batch && !(call && call->Is(layer_norm))) return visited;
    auto* data = GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
    if (!data || data->ndim < 0 || data->IsUnknownDtype()) return visited;
    return is_batch ? BatchNorm(call, data) : LayerNorm(call, data);
  }

 private:
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  /// Axes that are not among `axes`.
  static Ints Others(const std::vector<int64_t>& axes, int64_t ndim) {
    Ints others;
    for (int64_t i = 0; i < ndim; ++i) {
      if (std::find(axes.begin(), axes.end(), i) == axes.end()) others.push_back(IntImm::Int32(i));
    }
    return others;
  }
  /// Statistics over some axes have the dimensions of the others, and are spread over them again;
  /// gamma and beta have the dimensions of `params`.
  template <class Attrs>
  Expr Normalized(const CallObj* call, const Attrs* attrs, Expr mean, Expr var, const Ints& over,
                  const Ints& spread_params) {
    auto spread = [&](const Expr& value, const Ints& axes) {
      return axes.empty() ? value : Make("relax.expand_dims", {value, axes});
    };
    Expr deviation = Make("relax.sqrt", {Make("relax.add", {spread(var, over), attrs->epsilon})});
    Expr centered = Make("relax.subtract", {call->args[0], spread(mean, over)});
    Expr result = Make("relax.divide", {centered, deviation});
    if (attrs->scale)
      result = Make("relax.multiply", {result, spread(call->args[1], spread_params)});
    if (attrs->center) result = Make("relax.add", {result, spread(call->args[2], spread_params)});
    return result;
  }
  Expr BatchNorm(const CallObj* call, const TensorStructInfoObj* data) {
    auto* attrs = call->attrs.value().as<BatchNormAttrsObj>();
    int64_t axis = attrs->axis < 0 ? attrs->axis + data->ndim : attrs->axis;
    Ints others = Others({axis}, data->ndim);
    Expr mean = Make("relax.mean", {call->args[0], others});
    Expr var = Make("relax.variance", {call->args[0], others});
    Expr result = Normalized(call, attrs, mean, var, others, others);
    auto moved = [&](int arg, const Expr& batch) {
      Expr kept = Make("relax.multiply", {call->args[arg], 1 - attrs->momentum});
      return Make("relax.add", {kept, Make("relax.multiply", {batch, attrs->momentum})});
    };
    return Tuple({result, moved(3, mean), moved(4, var)});
  }
  Expr LayerNorm(const CallObj* call, const TensorStructInfoObj* data) {
    auto* attrs = call->attrs.value().as<LayerNormAttrsObj>();
    Ints over;
    std::vector<int64_t> axes;
    for (const auto& item : attrs->axes) {
      int64_t axis = item->value < 0 ? item->value + data->ndim : item->value;
      axes.push_back(axis);
      over.push_back(IntImm::Int32(axis));
    }
    // Parameters in another order of dimensions than the data's are left to the kernel.
    if (!std::is_sorted(axes.begin(), axes.end())) return ffi::GetRef<Expr>(call);
    Expr mean = Make("relax.mean", {call->args[0], over});
    Expr var = Make("relax.variance", {call->args[0], over});
    return Normalized(call, attrs, mean, var, over, Others(axes, data->ndim));
  }
};

IRModule DecomposeOpsForTraining(IRModule mod, Optional<String> func_name) {
  if (func_name) mod->GetGlobalVar(func_name.value());  // raises where there is none
  auto wanted = [](const OpObj* op) {
    return View(op->name) == "relax.nn.batch_norm" || View(op->name) == "relax.nn.layer_norm";
  };
  return MapFunctions(mod, [&](const GlobalVar& var, const Function& func) {
    if (func_name && func_name.value() != var->name_hint) return func;
    if (!CallsOp(func, wanted)) return func;
    return OnDeepStack([&] { return As<Function>(TrainingDecomposer(mod).VisitExpr(func)); });
  });
}
}  // namespace
TVM_RELAX_PASS(
    DecomposeOpsForTraining, 0,
    "Batch normalisation becomes arithmetic with the statistics of the batch, which move "
    "the mean and the variance it returns, layer normalisation with those of its rows; "
    "in all functions or in one.",
    Arg("func_name", nullptr));
}  // namespace tvm::relax
