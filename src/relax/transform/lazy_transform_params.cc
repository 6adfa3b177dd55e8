// SPDX-License-Identifier: Apache-2.0
// transform_params that gets its weights and gives its results one at a time.
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
struct LazyCalls {
  Optional<String> get, set;
  Array<Expr> get_args, set_args;
};

class LazyTransformer : public ExprMutator {
 public:
  LazyTransformer(const Function& func, const LazyCalls& calls) : func_(func), calls_(calls) {
    Expr result = func->body->body;
    if (auto* var = result.as<VarObj>()) {
      VisitBindings(func, [&](const Binding& b) {
        if (b->var->vid.get() == var->vid.get() && ValueOf(b).as<TupleObj>()) result = ValueOf(b);
      });
    }
    auto* tuple = result.as<TupleObj>();
    if (!tuple) {
      TVM_FFI_THROW(ValueError) << "LazyTransformParams: expected a function that returns a tuple, "
                                   "got another result";
    }
    results_ = tuple->fields;
    for (size_t i = 0; i < results_.size(); ++i) {
      if (auto* var = results_[i].as<VarObj>()) index_[var->vid.get()].push_back(i);
    }
  }
  Function Run() {
    Array<Var> params = func_->params;
    if (calls_.get) params.erase(params.begin());
    builder_->BeginScope(params);
    builder_->BeginSequence();
    for (const BindingBlock& block : func_->body->blocks) {
      for (const Binding& binding : block->bindings) VisitBinding(binding);
    }
    if (calls_.set) {
      for (size_t i = 0; i < results_.size(); ++i) {
        if (!results_[i].as<VarObj>()) Set(i, results_[i]);
      }
    }
    Expr body = calls_.set ? Expr(Tuple(Array<Expr>())) : VisitExpr(func_->body->body);
    body = builder_->NormalizeArgument(body);
    SeqExpr seq = MakeSeq(func_->body, builder_->EndSequence(), body);
    builder_->EndScope();
    return RemoveAllUnused(Function(params, seq, std::nullopt, false, func_->attrs, func_->span));
  }
  Var VisitVarDef(const Var& var) final {
    Var visited = ExprMutator::VisitVarDef(var);
    if (!visited.as<DataflowVarObj>()) return visited;
    Var plain(visited->vid, visited->struct_info_, visited->span);
    SetVarRemap(var->vid, plain);
    return plain;
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* item = binding->value.as<TupleGetItemObj>();
    bool gets = calls_.get && item && item->tuple_value.same_as(func_->params[0]);
    if (gets) {
      Array<Expr> args = calls_.get_args;
      args.push_back(PrimValue::Int64(item->index));
      Var object =
          builder_->Emit(Call(ExternFunc(calls_.get.value()), args, {}, {ObjectStructInfo::Get()}));
      Var weight = VisitVarDef(binding->var);
      builder_->EmitNormalized(MatchCast(weight, object, GetStructInfo(binding->var)));
    } else {
      ExprMutator::VisitBinding_(binding);
    }
    if (!calls_.set) return;
    auto it = index_.find(binding->var->vid.get());
    if (it == index_.end()) return;
    for (size_t i : it->second) Set(i, VisitExpr(binding->var));
  }

 private:
  void Set(size_t i, const Expr& value) {
    Array<Expr> args = calls_.set_args;
    args.push_back(PrimValue::Int64(static_cast<int64_t>(i)));
    args.push_back(value);
    builder_->Emit(Call(ExternFunc(calls_.set.value()), args, {}, {TupleStructInfo::Void()}));
  }
  Function func_;
  const LazyCalls& calls_;
  Array<Expr> results_;
  std::unordered_map<const Object*, std::vector<size_t>> index_;
};

IRModule LazyTransformParams(IRModule mod, Optional<String> fget_item, Optional<String> fset_item,
                             Array<Expr> extra_get_item_params, Array<Expr> extra_set_item_params) {
  LazyCalls calls{fget_item, fset_item, extra_get_item_params, extra_set_item_params};
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, base] : mod->functions) {
    auto func = base.as<Function>();
    std::string_view name = View(var->name_hint);
    if (!func || !name.ends_with("transform_params")) continue;
    if ((*func)->params.size() != 1 || !GetStructInfoAs<TupleStructInfoObj>((*func)->params[0])) {
      TVM_FFI_THROW(ValueError) << "LazyTransformParams: expected '" << var->name_hint
                                << "' to take one tuple, got " << (*func)->params.size()
                                << " parameters";
    }
    Function lazy = LazyTransformer(*func, calls).Run();
    functions.erase(var);
    GlobalVar now(var->name_hint);
    UpdateStructInfo(now, GetStructInfo(lazy));
    functions.Set(now, lazy);
  }
  if (functions.same_as(mod->functions)) return mod;
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    LazyTransformParams, 0,
    "main_transform_params(params) returns (f(params[0]),)  ->  main_transform_params(): w = "
    "fget_item(0); fset_item(0, f(w)), packed functions by name.",
    Arg("fget_item", String("get_item")), Arg("fset_item", String("set_item")),
    Arg("extra_get_item_params", Array<Expr>()), Arg("extra_set_item_params", Array<Expr>()));
}  // namespace tvm::relax
