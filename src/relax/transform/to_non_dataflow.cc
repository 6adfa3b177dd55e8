// SPDX-License-Identifier: Apache-2.0
// Dataflow blocks as plain ones.
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class ToPlain : public ExprMutator {
 public:
  void VisitBindingBlock(const BindingBlock& block) final {
    for (const Binding& binding : block->bindings) VisitBinding(binding);
  }
  Var VisitVarDef(const Var& var) final {
    Var visited = ExprMutator::VisitVarDef(var);
    if (!visited.as<DataflowVarObj>()) return visited;
    Var plain(visited->vid, visited->struct_info_, visited->span);
    SetVarRemap(var->vid, plain);
    return plain;
  }
};
Function ToNonDataflow(Function func, IRModule) { return As<Function>(ToPlain().VisitExpr(func)); }
}  // namespace
TVM_RELAX_FUNCTION_PASS(ToNonDataflow, 0,
                        "with R.dataflow(): lv = f(x); R.output(lv)  ->  lv = f(x)");
}  // namespace tvm::relax
