// SPDX-License-Identifier: Apache-2.0
// Visitors and mutators: what they do where nobody overrides them.
#include "tvm/relax/expr_functor.h"

#include "tir/text.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/op.h"

namespace tvm::relax {
namespace {
/// Which handler of `Class` takes an expression.
template <class Class, class R>
R Dispatch(Class* self, const Expr& expr) {
  using Fn = R (*)(Class*, const Object*);
#define ROW(Name)                                                                           \
  {Name##Obj::RuntimeTypeIndex(),                                                           \
   reinterpret_cast<HandlerTable::Fn>(static_cast<Fn>([](Class* self, const Object* node) { \
     return self->VisitExpr_(static_cast<const Name##Obj*>(node));                          \
   }))},
  static const HandlerTable table({TVM_RELAX_EXPRS(ROW)});
#undef ROW
  auto fn = reinterpret_cast<Fn>(table.Find(expr->type_index()));
  if (!fn) {
    TVM_FFI_THROW(TypeError) << "expected an expression of a function of the graph language, got "
                             << expr->GetTypeKey();
  }
  return fn(self, expr.get());
}
}  // namespace

// ---- visitor ----------------------------------------------------------------------------------
void ExprVisitor::VisitExpr(const Expr& expr) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { VisitExpr(expr); });
  Dispatch<ExprVisitor, void>(this, expr);
}
void ExprVisitor::VisitExpr_(const ConstantObj*) {}
void ExprVisitor::VisitExpr_(const VarObj*) {}
void ExprVisitor::VisitExpr_(const DataflowVarObj* op) {
  VisitExpr_(static_cast<const VarObj*>(op));
}
void ExprVisitor::VisitExpr_(const ShapeExprObj*) {}
void ExprVisitor::VisitExpr_(const ExternFuncObj*) {}
void ExprVisitor::VisitExpr_(const GlobalVarObj*) {}
void ExprVisitor::VisitExpr_(const OpObj*) {}
void ExprVisitor::VisitExpr_(const PrimValueObj*) {}
void ExprVisitor::VisitExpr_(const StringImmObj*) {}
void ExprVisitor::VisitExpr_(const DataTypeImmObj*) {}
void ExprVisitor::VisitExpr_(const TupleObj* op) {
  for (const Expr& field : op->fields) VisitExpr(field);
}
void ExprVisitor::VisitExpr_(const TupleGetItemObj* op) { VisitExpr(op->tuple_value); }
void ExprVisitor::VisitExpr_(const CallObj* op) {
  VisitExpr(op->op);
  for (const Expr& arg : op->args) VisitExpr(arg);
  for (const StructInfo& info : op->sinfo_args) VisitStructInfo(info);
}
void ExprVisitor::VisitExpr_(const IfObj* op) {
  VisitExpr(op->cond);
  VisitExpr(op->true_branch);
  VisitExpr(op->false_branch);
}
void ExprVisitor::VisitExpr_(const FunctionObj* op) {
  for (const Var& param : op->params) VisitVarDef(param);
  VisitExpr(op->body);
  VisitStructInfo(op->ret_struct_info);
}
void ExprVisitor::VisitExpr_(const SeqExprObj* op) {
  for (const BindingBlock& block : op->blocks) VisitBindingBlock(block);
  VisitExpr(op->body);
}
void ExprVisitor::VisitBinding(const Binding& binding) {
  if (auto* bind = binding.as<VarBindingObj>()) return VisitBinding_(bind);
  VisitBinding_(binding.as<MatchCastObj>());
}
void ExprVisitor::VisitBinding_(const VarBindingObj* binding) {
  VisitExpr(binding->value);
  VisitVarDef(binding->var);
}
void ExprVisitor::VisitBinding_(const MatchCastObj* binding) {
  VisitExpr(binding->value);
  VisitStructInfo(binding->struct_info);
  VisitVarDef(binding->var);
}
void ExprVisitor::VisitBindingBlock(const BindingBlock& block) {
  if (auto* dataflow = block.as<DataflowBlockObj>()) return VisitBindingBlock_(dataflow);
  VisitBindingBlock_(block.get());
}
void ExprVisitor::VisitBindingBlock_(const BindingBlockObj* block) {
  for (const Binding& binding : block->bindings) VisitBinding(binding);
}
void ExprVisitor::VisitBindingBlock_(const DataflowBlockObj* block) {
  VisitBindingBlock_(static_cast<const BindingBlockObj*>(block));
}
void ExprVisitor::VisitVarDef(const Var& var) {
  if (var->struct_info_) VisitStructInfo(var->struct_info_.value());
}

void PostOrderVisit(const Expr& expr, const std::function<void(const Expr&)>& visit) {
  struct Walk : ExprVisitor {
    const std::function<void(const Expr&)>& visit;
    explicit Walk(const std::function<void(const Expr&)>& visit) : visit(visit) {}
    void VisitExpr(const Expr& e) final {
      ExprVisitor::VisitExpr(e);
      visit(e);
    }
    void VisitVarDef(const Var& var) final { visit(var); }
  } walk(visit);
  walk.VisitExpr(expr);
}

// ---- mutator ----------------------------------------------------------------------------------
Expr ExprMutator::VisitExpr(const Expr& expr) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { return VisitExpr(expr); });
  return Dispatch<ExprMutator, Expr>(this, expr);
}
Array<Expr> ExprMutator::VisitExprs(const Array<Expr>& exprs) {
  Array<Expr> result = exprs;
  for (size_t i = 0; i < exprs.size(); ++i) {
    const Expr before = exprs[i];
    Expr now = VisitExpr(before);
    if (!now.same_as(before)) result.Set(i, now);
  }
  return result;
}
#define SAME(Name) \
  Expr ExprMutator::VisitExpr_(const Name##Obj* op) { return ffi::GetRef<Expr>(op); }
SAME(Constant)
SAME(ExternFunc)
SAME(GlobalVar)
SAME(Op)
SAME(StringImm)
SAME(DataTypeImm)
#undef SAME
Expr ExprMutator::VisitExpr_(const VarObj* op) {
  auto it = var_remap_.find(op->vid.get());
  return it == var_remap_.end() ? ffi::GetRef<Expr>(op) : Expr(it->second.second);
}
Expr ExprMutator::VisitExpr_(const DataflowVarObj* op) {
  return VisitExpr_(static_cast<const VarObj*>(op));
}
Expr ExprMutator::VisitExpr_(const ShapeExprObj* op) {
  auto values = op->values.Map([&](const PrimExpr& e) { return VisitPrimExpr(e); });
  return values.same_as(op->values) ? ffi::GetRef<Expr>(op) : ShapeExpr(values, op->span);
}
Expr ExprMutator::VisitExpr_(const PrimValueObj* op) {
  PrimExpr value = VisitPrimExpr(op->value);
  return value.same_as(op->value) ? ffi::GetRef<Expr>(op) : PrimValue(value, op->span);
}
Expr ExprMutator::VisitExpr_(const TupleObj* op) {
  Array<Expr> fields = VisitExprs(op->fields);
  return fields.same_as(op->fields) ? ffi::GetRef<Expr>(op) : Tuple(fields, op->span);
}
Expr ExprMutator::VisitExpr_(const TupleGetItemObj* op) {
  Expr value = VisitExpr(op->tuple_value);
  if (value.same_as(op->tuple_value)) return ffi::GetRef<Expr>(op);
  if (auto* tuple = value.as<TupleObj>()) return tuple->fields[op->index];
  return TupleGetItem(value, op->index, op->span);
}
Expr ExprMutator::VisitExpr_(const CallObj* op) {
  Expr callee = VisitExpr(op->op);
  Array<Expr> args = VisitExprs(op->args);
  auto infos = op->sinfo_args.Map([&](const StructInfo& info) { return VisitStructInfo(info); });
  bool same = callee.same_as(op->op) && args.same_as(op->args) && infos.same_as(op->sinfo_args);
  return same ? ffi::GetRef<Expr>(op) : Call(callee, args, op->attrs, infos, op->span);
}
Expr ExprMutator::VisitExpr_(const IfObj* op) {
  Expr cond = VisitExpr(op->cond);
  SeqExpr yes = VisitWithNewScope(op->true_branch), no = VisitWithNewScope(op->false_branch);
  bool same =
      cond.same_as(op->cond) && yes.same_as(op->true_branch) && no.same_as(op->false_branch);
  return same ? ffi::GetRef<Expr>(op) : If(cond, yes, no, op->span);
}
Expr ExprMutator::VisitExpr_(const FunctionObj* op) {
  Array<Var> params = op->params;
  for (size_t i = 0; i < op->params.size(); ++i) {
    Var param = VisitVarDef(op->params[i]);
    if (!param.same_as(op->params[i])) params.Set(i, param);
  }
  SeqExpr body = VisitWithNewScope(op->body, params);
  StructInfo ret = VisitStructInfo(op->ret_struct_info);
  if (params.same_as(op->params) && body.same_as(op->body) && ret.same_as(op->ret_struct_info))
    return ffi::GetRef<Expr>(op);
  // What the function was said to return may no longer be so.
  bool holds = IsBaseOf(ret, GetStructInfo(body));
  return Function(params, body, holds ? Optional<StructInfo>(ret) : std::nullopt, op->is_pure,
                  op->attrs, op->span);
}
Expr ExprMutator::VisitExpr_(const SeqExprObj* op) {
  size_t depth = builder_->Depth();
  builder_->BeginSequence();
  try {
    for (const BindingBlock& block : op->blocks) VisitBindingBlock(block);
    Expr body = builder_->NormalizeArgument(VisitExpr(op->body));
    return MakeSeq(ffi::GetRef<SeqExpr>(op), builder_->EndSequence(), body);
  } catch (...) {
    builder_->UnwindTo(depth);
    throw;
  }
}
IRModule ExprMutator::VisitFunctions() {
  const IRModule before = builder_->module();
  for (const auto& [var, base] : before->Sorted()) {
    auto func = base.as<Function>();
    if (!func) continue;
    Function now = VisitFunction(var, *func);
    if (!now.same_as(base)) builder_->UpdateFunction(var, now);
  }
  return builder_->GetModule();
}
Function ExprMutator::VisitFunction(const GlobalVar&, const Function& func) {
  return As<Function>(VisitExpr(func));
}
SeqExpr ExprMutator::VisitWithNewScope(const Expr& body, const Optional<Array<Var>>& params) {
  builder_->BeginScope(params);
  try {
    // Through VisitExpr, so that a handler of sequences sees bodies too.
    SeqExpr result = SeqExpr::Of(VisitExpr(SeqExpr::Of(body)));
    builder_->EndScope();
    return result;
  } catch (...) {
    builder_->EndScope();
    throw;
  }
}

void ExprMutator::VisitBindingBlock(const BindingBlock& block) {
  if (!block.as<DataflowBlockObj>()) {
    for (const Binding& binding : block->bindings) VisitBinding(binding);
    return;
  }
  size_t depth = builder_->Depth();
  builder_->BeginDataflowBlock();
  try {
    for (const Binding& binding : block->bindings) VisitBinding(binding);
    builder_->CloseBlock();
  } catch (...) {
    builder_->UnwindTo(depth);
    throw;
  }
}
void ExprMutator::VisitBinding(const Binding& binding) {
  if (auto* bind = binding.as<VarBindingObj>()) return VisitBinding_(bind);
  VisitBinding_(binding.as<MatchCastObj>());
}
void ExprMutator::VisitBinding_(const VarBindingObj* binding) {
  ReEmitBinding(binding, VisitExpr(binding->value));
}
void ExprMutator::ReEmitBinding(const VarBindingObj* binding, const Expr& value) {
  Expr normal = builder_->Normalize(value);
  Var var = VisitVarDef(binding->var);
  StructInfo info = GetStructInfo(normal);
  bool same = var->struct_info_ && (var->struct_info_.value().same_as(info) ||
                                    StructuralEqual(var->struct_info_.value(), info));
  if (same && var.same_as(binding->var) && normal.same_as(binding->value))
    return builder_->EmitNormalized(ffi::GetRef<VarBinding>(binding));
  if (!same) var = WithStructInfo(var, info);
  if (!var.same_as(binding->var)) SetVarRemap(binding->var->vid, var);
  builder_->EmitNormalized(VarBinding(var, normal, binding->span));
}
void ExprMutator::VisitBinding_(const MatchCastObj* binding) {
  Expr value = builder_->NormalizeArgument(VisitExpr(binding->value));
  StructInfo info = VisitStructInfo(binding->struct_info);
  Var var = VisitVarDef(binding->var);
  bool same = value.same_as(binding->value) && info.same_as(binding->struct_info) &&
              var.same_as(binding->var);
  if (same) return builder_->EmitNormalized(ffi::GetRef<MatchCast>(binding));
  if (!info.same_as(binding->struct_info)) var = WithStructInfo(var, info);
  if (!var.same_as(binding->var)) SetVarRemap(binding->var->vid, var);
  builder_->EmitNormalized(MatchCast(var, value, info, binding->span));
}
Var ExprMutator::VisitVarDef(const Var& var) {
  if (auto it = var_remap_.find(var->vid.get()); it != var_remap_.end()) return it->second.second;
  if (!var->struct_info_) return var;
  StructInfo info = VisitStructInfo(var->struct_info_.value());
  if (info.same_as(var->struct_info_.value())) return var;
  Var changed = WithStructInfo(var, info);
  SetVarRemap(var->vid, changed);
  return changed;
}

}  // namespace tvm::relax
