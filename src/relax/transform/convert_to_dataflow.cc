// SPDX-License-Identifier: Apache-2.0
// Runs of bindings without side effects as dataflow blocks.
#include <unordered_set>

#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
bool IsDataflow(const Binding& binding) {
  Expr value = ValueOf(binding);
  return !value.as<IfObj>() && !value.as<FunctionObj>() && !FindImpureCall(value);
}

/// Numbers the runs, and finds the variables that only their own run uses.
class RunFinder : public ExprVisitor {
 public:
  explicit RunFinder(int64_t min_size) : min_size_(min_size) {}
  std::unordered_map<const Object*, int> run_of;  // binding -> its run
  bool IsInner(const Var& var) const {
    auto it = defined_in_.find(var->vid.get());
    return it != defined_in_.end() && !used_outside_.count(var->vid.get());
  }

 private:
  void VisitBindingBlock_(const BindingBlockObj* block) final {
    const auto& bindings = block->bindings;
    for (size_t begin = 0, end; begin < bindings.size(); begin = end) {
      for (end = begin; end < bindings.size() && IsDataflow(bindings[end]);) ++end;
      if (static_cast<int64_t>(end - begin) >= min_size_) {
        ++runs_;
        for (size_t i = begin; i < end; ++i) {
          run_of[bindings[i].get()] = runs_;
          defined_in_[bindings[i]->var->vid.get()] = runs_;
        }
      }
      if (end == begin) ++end;
    }
    for (const Binding& binding : bindings) {
      auto it = run_of.find(binding.get());
      int outer = std::exchange(current_, it == run_of.end() ? 0 : it->second);
      VisitBinding(binding);
      current_ = outer;
    }
  }
  void VisitExpr_(const VarObj* op) final {
    auto it = defined_in_.find(op->vid.get());
    if (it != defined_in_.end() && it->second != current_) used_outside_.insert(op->vid.get());
  }
  void VisitExpr_(const SeqExprObj* op) final {
    for (const BindingBlock& block : op->blocks) VisitBindingBlock(block);
    int outer = std::exchange(current_, 0);
    VisitExpr(op->body);
    current_ = outer;
  }
  int64_t min_size_;
  int runs_ = 0, current_ = 0;
  std::unordered_map<const Object*, int> defined_in_;
  std::unordered_set<const Object*> used_outside_;
};

class ToDataflow : public ExprMutator {
 public:
  explicit ToDataflow(const RunFinder& runs) : runs_(runs) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (block.as<DataflowBlockObj>()) return ExprMutator::VisitBindingBlock(block);
    int open = 0;
    auto change_to = [&](int run) {
      if (run == open) return;
      if (open) builder_->CloseBlock();
      if (run) builder_->BeginDataflowBlock();
      open = run;
    };
    for (const Binding& binding : block->bindings) {
      auto it = runs_.run_of.find(binding.get());
      change_to(it == runs_.run_of.end() ? 0 : it->second);
      VisitBinding(binding);
    }
    change_to(0);
  }
  Var VisitVarDef(const Var& var) final {
    Var visited = ExprMutator::VisitVarDef(var);
    if (visited.as<DataflowVarObj>() || !runs_.IsInner(var)) return visited;
    DataflowVar inner(visited->vid, visited->struct_info_, visited->span);
    SetVarRemap(var->vid, inner);
    return inner;
  }

 private:
  const RunFinder& runs_;
};
Function ConvertToDataflow(Function func, IRModule, int64_t min_size) {
  RunFinder runs(min_size);
  runs.VisitExpr(func);
  return As<Function>(ToDataflow(runs).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(ConvertToDataflow, 0,
                        "a = f(x); b = g(a)  ->  with R.dataflow(): a = f(x); b = g(a); "
                        "R.output(b), for at least min_size bindings without side effects.",
                        Arg("min_size", 2));
}  // namespace tvm::relax
