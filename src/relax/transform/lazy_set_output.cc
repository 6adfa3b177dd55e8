// SPDX-License-Identifier: Apache-2.0
// Results that are given away when they are computed.
#include <unordered_set>

#include "relax/transform/weights.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class OutputSetter : public ExprMutator {
 public:
  explicit OutputSetter(const Function& func) : func_(func) {
    results_ = {func->body->body};
    if (auto* tuple = func->body->body.as<TupleObj>()) results_ = tuple->fields;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (auto* var = results_[i].as<VarObj>()) index_[var->vid.get()].push_back(i);
    }
  }
  Function Run() {
    setter_ = Var("fset_output",
                  FuncStructInfo({PrimStructInfo(DataType::Int(64)), ObjectStructInfo::Get()},
                                 TupleStructInfo::Void(), false));
    size_t inputs = NumInputs(func_, "LazySetOutput").value_or(0);
    Array<Var> params = func_->params;
    params.insert(params.begin() + inputs, setter_);
    builder_->BeginScope(params);
    builder_->BeginSequence();
    // Results that are parameters or constants are there from the beginning.
    std::unordered_set<const Object*> bound;
    VisitBindings(func_, [&](const Binding& b) { bound.insert(b->var->vid.get()); });
    for (size_t i = 0; i < results_.size(); ++i) {
      auto* var = results_[i].as<VarObj>();
      if (!var || !bound.count(var->vid.get())) Set(i, results_[i]);
    }
    for (const BindingBlock& block : func_->body->blocks) {
      VisitBindingBlock(block);
      if (!block.as<DataflowBlockObj>()) continue;
      // A dataflow block has no side effects: its outputs are given away behind it.
      for (const Binding& binding : block->bindings) SetAll(binding->var);
    }
    SeqExpr body = MakeSeq(func_->body, builder_->EndSequence(), Tuple(Array<Expr>()));
    builder_->EndScope();
    DictAttrs attrs = func_->attrs;
    if (inputs) attrs = WithAttr(attrs, "num_input", static_cast<int64_t>(inputs) + 1);
    return Function(params, body, std::nullopt, false, attrs, func_->span);
  }
  void VisitBinding(const Binding& binding) final {
    ExprMutator::VisitBinding(binding);
    if (!builder_->CurrentBlockIsDataflow()) SetAll(binding->var);
  }

 private:
  void SetAll(const Var& var) {
    auto it = index_.find(var->vid.get());
    if (it == index_.end()) return;
    for (size_t i : it->second) Set(i, VisitExpr(var));
  }
  void Set(size_t i, const Expr& value) {
    builder_->Emit(Call(setter_, {PrimValue::Int64(static_cast<int64_t>(i)), value}));
  }
  Function func_;
  Var setter_;
  Array<Expr> results_;
  std::unordered_map<const Object*, std::vector<size_t>> index_;
};
Function LazySetOutput(Function func, IRModule) {
  if (!func->GetAttr<String>(attr::kGlobalSymbol)) return func;
  return OutputSetter(func).Run();
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    LazySetOutput, 0,
    "main(x) returns (y, z)  ->  main(fset_output, x), which calls "
    "fset_output(R.prim_value(0), y) when y is computed, and so on, and returns "
    "nothing");
}  // namespace tvm::relax
