// SPDX-License-Identifier: Apache-2.0
// A batch normalisation behind a convolution goes into its weights.
#include <algorithm>
#include <unordered_map>

#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class BatchNormFolder : public ExprMutator {
 public:
  BatchNormFolder(const Function& func, bool keep_training) : keep_training_(keep_training) {
    PostOrderVisit(func, [&](const Expr& e) {
      if (auto* var = e.as<VarObj>()) ++uses_[var->vid.get()];
    });
  }
  Expr VisitExpr_(const TupleGetItemObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* item = visited.as<TupleGetItemObj>();
    const CallObj* norm = item ? CallBehind(item->tuple_value, "relax.nn.batch_norm") : nullptr;
    if (!norm || !AreConstant(norm->args, 1)) return visited;
    auto* attrs = norm->attrs.value().as<BatchNormAttrsObj>();
    if (attrs->training && keep_training_) return visited;
    if (item->index > 0) return norm->args[item->index + 2];  // the moving statistics
    const CallObj* conv = CallBehind(norm->args[0], "relax.nn.conv2d");
    if (!conv || !AreConstant(conv->args, 1) || !IsUsedOnce(norm->args[0])) return visited;
    return Folded(conv, norm, attrs).value_or(visited);
  }

 private:
  const CallObj* CallBehind(const Expr& expr, const char* op) const {
    auto* var = expr.as<VarObj>();
    Optional<Expr> value = var ? LookupBinding(ffi::GetRef<Var>(var)) : std::nullopt;
    auto* call = value ? value.value().as<CallObj>() : nullptr;
    return call && call->op.same_as(Op::Get(op)) ? call : nullptr;
  }
  static bool AreConstant(const Array<Expr>& args, size_t first) {
    return std::all_of(args.begin() + first, args.end(),
                       [](const Expr& e) { return e.as<ConstantObj>() != nullptr; });
  }
  /// By its definition and by one use.
  bool IsUsedOnce(const Expr& var) const {
    auto it = uses_.find(var.as<VarObj>()->vid.get());
    return it == uses_.end() || it->second <= 2;
  }
  Expr Make(const char* name, const std::vector<AnyView>& params) {
    return builder_->Emit(CallOperator(name, params));
  }
  Optional<Expr> Folded(const CallObj* conv, const CallObj* norm, const BatchNormAttrsObj* attrs) {
    auto* layouts = conv->attrs.value().as<Conv2DAttrsObj>();
    auto place = [](const String& layout, char axis) {
      std::string_view text = View(layout);
      return text.size() == 4 ? static_cast<int64_t>(text.find(axis)) : -1;
    };
    int64_t out = place(layouts->kernel_layout, 'O'), channel = place(layouts->out_layout, 'C');
    int64_t axis = attrs->axis < 0 ? attrs->axis + 4 : attrs->axis;
    if (out < 0 || out > 3 || axis != channel) return std::nullopt;
    // y * scale + (beta - mean * scale)
    Expr gamma = norm->args[1], beta = norm->args[2], mean = norm->args[3], var = norm->args[4];
    Expr deviation = Make("relax.sqrt", {Make("relax.add", {var, attrs->epsilon})});
    Expr scale = attrs->scale ? Make("relax.divide", {gamma, deviation})
                              : Make("relax.divide", {Make("relax.ones_like", {var}), deviation});
    Expr shift = Make("relax.multiply", {mean, scale});
    shift = attrs->center ? Make("relax.subtract", {beta, shift}) : Make("relax.negative", {shift});
    Expr weight = Make("relax.multiply", {conv->args[1], Spread(scale, out)});
    Expr result = builder_->Emit(Call(conv->op, {conv->args[0], weight}, conv->attrs));
    return CallOperator("relax.add", {result, Spread(shift, channel)});
  }
  /// A vector as a tensor of four dimensions that runs along one of them.
  Expr Spread(const Expr& vector, int64_t axis) {
    Ints others;
    for (int64_t i = 0; i < 4; ++i) {
      if (i != axis) others.push_back(IntImm::Int32(i));
    }
    return Make("relax.expand_dims", {vector, others});
  }
  std::unordered_map<const Object*, int> uses_;
  bool keep_training_;
};

Function FoldBatchnormToConv2D(Function func, IRModule, bool keep_training) {
  return OnDeepStack([&] {
    Expr changed = BatchNormFolder(func, keep_training).VisitExpr(func);
    return changed.same_as(func) ? func : RemoveAllUnused(As<Function>(changed));
  });
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    FoldBatchnormToConv2D, 0,
    "R.nn.batch_norm(R.nn.conv2d(x, w), …)[0] with constant parameters becomes a convolution with "
    "scaled weights and an addition. FoldConstant computes the weights. With keep_training, "
    "normalisation by the statistics of the batch stays what it is.",
    Arg("keep_training", false));
}  // namespace tvm::relax
