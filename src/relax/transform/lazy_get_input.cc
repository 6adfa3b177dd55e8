// SPDX-License-Identifier: Apache-2.0
// Weights that are asked for when they are used first.
#include "relax/transform/weights.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Asks for each weight before the first binding that uses it.
class InputGetter : public ExprMutator {
 public:
  InputGetter(const Function& func, size_t inputs) : func_(func), inputs_(inputs) {
    for (size_t i = inputs; i < func->params.size(); ++i)
      index_[func->params[i]->vid.get()] = i - inputs;
  }
  Function Run() {
    StructInfo object = ObjectStructInfo::Get();
    getter_ =
        Var("fget_param", FuncStructInfo({PrimStructInfo(DataType::Int(64)), object}, object));
    Array<Var> params(func_->params.begin(), func_->params.begin() + inputs_);
    params.push_back(getter_);
    SeqExpr body = VisitWithNewScope(func_->body, params);
    return Function(params, body, std::nullopt, func_->is_pure, func_->attrs, func_->span);
  }
  void VisitBinding(const Binding& binding) final {
    // A branch may be left out, and what it got is not seen behind it: its weights come before it.
    if (depth_ == 1) Get(UsedVars(ValueOf(binding)));
    ExprMutator::VisitBinding(binding);
  }
  Expr VisitExpr_(const SeqExprObj* op) final {
    if (depth_++ > 0) {
      Expr inner = ExprMutator::VisitExpr_(op);
      --depth_;
      return inner;
    }
    builder_->BeginSequence();
    for (const BindingBlock& block : op->blocks) VisitBindingBlock(block);
    Get(UsedVars(op->body));
    Expr body = builder_->NormalizeArgument(VisitExpr(op->body));
    --depth_;
    return MakeSeq(ffi::GetRef<SeqExpr>(op), builder_->EndSequence(), body);
  }
  Expr VisitExpr_(const VarObj* op) final {
    auto it = found_.find(op->vid.get());
    return it == found_.end() ? ExprMutator::VisitExpr_(op) : Expr(it->second);
  }

 private:
  void Get(const Array<Var>& used) {
    for (const Var& var : used) {
      auto it = index_.find(var->vid.get());
      if (it == index_.end() || found_.count(var->vid.get())) continue;
      Call call(getter_,
                {PrimValue::Int64(static_cast<int64_t>(it->second)), StringImm(var->name_hint())});
      Var object = builder_->Emit(call, var->name_hint());
      // What follows the dataflow block may use the weight as well.
      StructInfo info = GetStructInfo(var);
      Var weight(builder_->GetUniqueName(var->name_hint()), info);
      builder_->EmitNormalized(MatchCast(weight, object, info));
      found_.emplace(var->vid.get(), weight);
    }
  }
  Function func_;
  size_t inputs_;
  int depth_ = 0;
  Var getter_;
  std::unordered_map<const Object*, size_t> index_;
  std::unordered_map<const Object*, Var> found_;
};
Function LazyGetInput(Function func, IRModule) {
  if (!func->GetAttr<String>(attr::kGlobalSymbol)) return func;
  size_t inputs = NumInputs(func, "LazyGetInput").value_or(0);
  return InputGetter(func, inputs).Run();
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    LazyGetInput, 0,
    "main(x, w) with num_input 1 (0 by default)  ->  main(x, fget_param), where "
    "w is fget_param(R.prim_value(0), R.str(\"w\")), asked for before its first "
    "use");
}  // namespace tvm::relax
