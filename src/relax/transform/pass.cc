// SPDX-License-Identifier: Apache-2.0
// Passes that are given by a function of one function, or of one dataflow block, at a time.
#include <algorithm>
#include <unordered_set>

#include "ir/global_vars.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
using transform::Pass, transform::PassContext, transform::PassInfo, transform::PassObj;

IRModule MapFunctions(const IRModule& mod,
                      const std::function<Function(const GlobalVar&, const Function&)>& change) {
  std::vector<std::pair<GlobalVar, Function>> work;  // kernels, which may be many, are not sorted
  for (const auto& [var, base] : mod->functions) {
    if (auto func = base.as<Function>()) work.emplace_back(var, *std::move(func));
  }
  std::sort(work.begin(), work.end(), [](const auto& a, const auto& b) {
    return View(a.first->name_hint) < View(b.first->name_hint);
  });
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, func] : work) {
    Function changed = change(var, func);
    if (!changed.same_as(func)) functions.Set(var, changed);
  }
  return WithFunctions(mod, functions);
}

/// Each function of the graph language as `pass_func(function, module, context)` gives it.
struct FunctionPassObj : PassObj {
  ffi::Function pass_func;
  static void Fields(auto&& def) {
    def("pass_func", &FunctionPassObj::pass_func);
    def("info", &PassObj::info);
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override {
    return MapFunctions(mod, [&](const GlobalVar&, const Function& func) {
      Any result = CallBack(pass_func, func, mod, ctx);
      auto changed = result.as<Function>();
      if (!changed || !changed->defined()) {
        TVM_FFI_THROW(TypeError) << info->name
                                 << ": expected the pass to return a relax.Function, got "
                                 << result.GetTypeKey();
      }
      return *changed;
    });
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.FunctionPass", FunctionPassObj, PassObj);
};

/// Each dataflow block as `pass_func(block, module, context)` gives it.
struct DataflowBlockPassObj : PassObj {
  ffi::Function pass_func;
  static void Fields(auto&& def) {
    def("pass_func", &DataflowBlockPassObj::pass_func);
    def("info", &PassObj::info);
  }
  IRModule Run(IRModule mod, const PassContext& ctx) const override;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.DataflowBlockPass", DataflowBlockPassObj, PassObj);
};

namespace {
class BlockRewriter : public ExprMutator {
 public:
  BlockRewriter(const DataflowBlockPassObj* pass, const IRModule& mod, const PassContext& ctx)
      : ExprMutator(mod), pass_(pass), mod_(mod), ctx_(ctx) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (!block.as<DataflowBlockObj>()) return ExprMutator::VisitBindingBlock(block);
    Any result = CallBack(pass_->pass_func, block, mod_, ctx_);
    auto changed = result.as<DataflowBlock>();
    if (!changed || !changed->defined()) {
      TVM_FFI_THROW(TypeError) << pass_->info->name
                               << ": expected the pass to return a DataflowBlock, got "
                               << result.GetTypeKey();
    }
    CheckOutputs(block, *changed);
    ExprMutator::VisitBindingBlock(*changed);
  }

 private:
  /// What is behind the block relies on its outputs.
  void CheckOutputs(const BindingBlock& before, const BindingBlock& after) const {
    std::unordered_set<const Object*> defined;
    for (const Binding& binding : after->bindings) defined.insert(binding->var->vid.get());
    for (const Binding& binding : before->bindings) {
      if (binding->var.as<DataflowVarObj>() || defined.count(binding->var->vid.get())) continue;
      TVM_FFI_THROW(ValueError) << pass_->info->name
                                << ": expected the block to define its output '"
                                << binding->var->name_hint() << "', got none of that variable";
    }
  }
  const DataflowBlockPassObj* pass_;
  const IRModule& mod_;
  const PassContext& ctx_;
};

TVM_REGISTER() {
  RegisterNode<FunctionPassObj>("A pass over functions: (function, module, context) -> function.");
  RegisterNode<DataflowBlockPassObj>(
      "A pass over dataflow blocks: (block, module, context) -> block.");
}
}  // namespace

IRModule DataflowBlockPassObj::Run(IRModule mod, const PassContext& ctx) const {
  return MapFunctions(mod, [&](const GlobalVar&, const Function& func) {
    return As<Function>(BlockRewriter(this, mod, ctx).VisitExpr(func));
  });
}
}  // namespace tvm::relax
