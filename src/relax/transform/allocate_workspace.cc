// SPDX-License-Identifier: Apache-2.0
// External functions that need memory to work in get it as a last argument.
#include <algorithm>
#include <unordered_map>

#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
constexpr const char* kWorkspaceSize = "WorkspaceSize";

TensorStructInfo WorkspaceInfo(int64_t bytes) {
  return TensorStructInfo(Array<PrimExpr>{IntImm::Int64(bytes)}, DataType::UInt(8));
}
/// The bytes that a function for a backend asks for.
int64_t WorkspaceSize(const FunctionObj* func) {
  return func && func->attrs.Has("Codegen") ? func->GetAttr<int64_t>(kWorkspaceSize, 0) : 0;
}
/// A function for a backend, and the local one in it, with a parameter for the workspace.
class WorkspaceParam : public ExprMutator {
 public:
  explicit WorkspaceParam(int64_t bytes) : info_(WorkspaceInfo(bytes)) {}
  Expr VisitExpr_(const FunctionObj* op) final {
    Optional<Expr> outer = current_;
    Var workspace("workspace", info_);
    current_ = workspace;
    Array<Var> params = op->params;
    params.push_back(workspace);
    SeqExpr body = VisitWithNewScope(op->body, params);
    current_ = outer;
    return Function(params, body, op->ret_struct_info, op->is_pure, op->attrs, op->span);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* func = binding->value.as<FunctionObj>();
    if (!func || !func->attrs.Has("Composite")) return ExprMutator::VisitBinding_(binding);
    ReEmitBinding(binding, VisitExpr(binding->value));
    locals_.push_back(binding->var->vid.get());
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<VarObj>();
    bool is_local =
        callee && std::find(locals_.begin(), locals_.end(), callee->vid.get()) != locals_.end();
    if (!is_local) return visited;
    Array<Expr> args = call->args;
    args.push_back(current_.value());
    return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
  }

 private:
  StructInfo info_;
  Optional<Expr> current_;
  std::vector<const Object*> locals_;
};

/// Functions that call them allocate the largest workspace once, and hand it on.
class WorkspaceProvider : public ExprMutator {
 public:
  WorkspaceProvider(const IRModule& mod, int64_t bytes,
                    const std::unordered_map<std::string, GlobalVar>& renamed)
      : ExprMutator(mod), bytes_(bytes), renamed_(renamed) {}
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    return WorkspaceSize(func.get()) != 0 ? func : ExprMutator::VisitFunction(var, func);
  }
  Expr VisitExpr_(const FunctionObj* op) final {
    workspace_ = std::nullopt;
    return ExprMutator::VisitExpr_(op);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<GlobalVarObj>();
    auto it = callee ? renamed_.find(callee->name_hint) : renamed_.end();
    if (it == renamed_.end()) return visited;
    Array<Expr> args = call->args;
    args.push_back(Workspace());
    return Call(it->second, args, call->attrs, {}, call->span);
  }

 private:
  Var Workspace() {
    if (!workspace_) {
      ShapeExpr shape(Array<PrimExpr>{IntImm::Int64(bytes_)});
      workspace_ =
          builder_->Emit(CallOperator("relax.builtin.alloc_tensor",
                                      {shape, DataTypeImm(DataType::UInt(8)), PrimValue::Int64(0)}),
                         "workspace_main");
    }
    return workspace_.value();
  }
  int64_t bytes_;
  const std::unordered_map<std::string, GlobalVar>& renamed_;
  Optional<Var> workspace_;
};

IRModule AllocateWorkspace(IRModule mod) {
  int64_t bytes = 0;
  for (const auto& [var, func] : mod->functions)
    bytes = std::max(bytes, WorkspaceSize(func.as<FunctionObj>()));
  if (bytes == 0) return mod;
  BlockBuilder builder = BlockBuilder::Create(mod);
  std::unordered_map<std::string, GlobalVar> renamed;  // another signature is another function
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    if (WorkspaceSize(func) == 0) continue;
    auto changed = As<Function>(WorkspaceParam(bytes).VisitExpr(ffi::GetRef<Function>(func)));
    GlobalVar fresh = builder->AddFunction(changed, var->name_hint);
    builder->UpdateFunction(fresh, WithAttr(changed, tvm::attr::kGlobalSymbol, fresh->name_hint));
    renamed.emplace(var->name_hint, fresh);
  }
  IRModule after = WorkspaceProvider(builder->GetModule(), bytes, renamed).VisitFunctions();
  Map<GlobalVar, BaseFunc> functions = after->functions;
  for (const auto& [name, fresh] : renamed) functions.erase(after->GetGlobalVar(name));
  return IRModule(functions, after->attrs, after->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    AllocateWorkspace, 0,
    R"(Functions {"Codegen": …, "WorkspaceSize": bytes} get a last parameter, a tensor of as many
bytes as the largest of them wants; their callers allocate it once.)");
}  // namespace tvm::relax
