// SPDX-License-Identifier: Apache-2.0
// Functions whose parameters or results change, and the calls of them.
#include "relax/transform/signature.h"

#include "tvm/ir/structural.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Names of functions that are used as a value: anything but the callee of a call.
struct ValueUses : ExprVisitor {
  std::unordered_set<std::string> names;
  void VisitExpr_(const GlobalVarObj* op) final { names.insert(op->name_hint); }
  void VisitExpr_(const CallObj* op) final {
    if (!op->op.as<GlobalVarObj>()) VisitExpr(op->op);
    for (const Expr& arg : op->args) VisitExpr(arg);
  }
};
struct CallVisitor : ExprVisitor {
  const std::function<void(const GlobalVar&, const Call&)>& visit;
  explicit CallVisitor(const std::function<void(const GlobalVar&, const Call&)>& visit)
      : visit(visit) {}
  void VisitExpr_(const CallObj* op) final {
    if (auto* callee = op->op.as<GlobalVarObj>())
      visit(ffi::GetRef<GlobalVar>(callee), ffi::GetRef<Call>(op));
    ExprVisitor::VisitExpr_(op);
  }
};

struct Replacement {
  GlobalVar var;
  NewSignature change;
};
class CallUpdater : public ExprMutator {
 public:
  CallUpdater(const IRModule& mod, const std::unordered_map<std::string, Replacement>& changes)
      : ExprMutator(mod), changes_(changes) {}
  Expr VisitExpr_(const GlobalVarObj* op) final {
    auto it = changes_.find(op->name_hint);
    return it == changes_.end() ? ffi::GetRef<Expr>(op) : Expr(it->second.var);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* callee = op->op.as<GlobalVarObj>();
    auto it = callee ? changes_.find(callee->name_hint) : changes_.end();
    if (it == changes_.end() || !it->second.change.args) return visited;
    auto* call = visited.as<CallObj>();
    return Call(call->op, it->second.change.args(ffi::GetRef<Call>(call)), call->attrs,
                call->sinfo_args, call->span);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* call = binding->value.as<CallObj>();
    auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr;
    auto it = callee ? changes_.find(callee->name_hint) : changes_.end();
    if (it != changes_.end() && it->second.change.item)
      results_[binding->var->vid.get()] = &it->second.change;
    ExprMutator::VisitBinding_(binding);
  }
  Expr VisitExpr_(const TupleGetItemObj* op) final {
    auto* var = op->tuple_value.as<VarObj>();
    auto it = var ? results_.find(var->vid.get()) : results_.end();
    if (it == results_.end()) return ExprMutator::VisitExpr_(op);
    return it->second->item(VisitExpr(op->tuple_value), op->index);
  }

 private:
  const std::unordered_map<std::string, Replacement>& changes_;
  std::unordered_map<const Object*, const NewSignature*> results_;  // of calls, by variable
};

/// Whether the function names one of them.
bool Names(const Expr& func, const std::unordered_map<std::string, Replacement>& functions) {
  struct Finder : ExprVisitor {
    const std::unordered_map<std::string, Replacement>& functions;
    bool found = false;
    explicit Finder(const std::unordered_map<std::string, Replacement>& functions)
        : functions(functions) {}
    void VisitExpr(const Expr& expr) final {
      if (!found) ExprVisitor::VisitExpr(expr);
    }
    void VisitExpr_(const GlobalVarObj* op) final { found |= functions.count(op->name_hint) > 0; }
    void VisitVarDef(const Var&) final {}
  } finder(functions);
  finder.VisitExpr(func);
  return finder.found;
}
GlobalVar VarFor(const String& name, const Function& func) {
  GlobalVar var(name);
  UpdateStructInfo(var, GetStructInfo(func));
  return var;
}
}  // namespace

std::unordered_map<std::string, Function> PrivateCallees(const IRModule& mod,
                                                         bool (*wanted)(const Function&)) {
  std::unordered_map<std::string, Function> result;
  const String key = attr::kGlobalSymbol;
  for (const auto& [var, base] : mod->functions) {
    auto func = base.as<Function>();
    if (func && !(*func)->GetAttr<String>(key) && (!wanted || wanted(*func)))
      result[var->name_hint] = *func;
  }
  if (result.empty()) return result;
  ValueUses uses;
  for (const auto& [var, base] : mod->functions) {
    if (base.as<FunctionObj>()) uses.VisitExpr(base);
  }
  for (const std::string& name : uses.names) result.erase(name);
  return result;
}

void VisitCallsOfFunctions(const IRModule& mod,
                           const std::function<void(const GlobalVar&, const Call&)>& visit) {
  for (const auto& [var, base] : mod->Sorted()) {
    if (base.as<FunctionObj>()) CallVisitor(visit).VisitExpr(base);
  }
}

IRModule ChangeSignatures(const IRModule& mod,
                          const std::unordered_map<std::string, NewSignature>& changes) {
  if (changes.empty()) return mod;
  Map<GlobalVar, BaseFunc> functions;
  std::unordered_map<std::string, Replacement> replaced;
  for (const auto& [var, func] : mod->functions) {
    auto it = changes.find(var->name_hint);
    if (it == changes.end()) {
      functions.Set(var, func);
      continue;
    }
    const NewSignature& change = it->second;
    bool is_same = !change.args && !change.item &&
                   StructuralEqual(GetStructInfo(change.func), GetStructInfo(func));
    GlobalVar now = is_same ? var : VarFor(var->name_hint, change.func);
    functions.Set(now, change.func);
    if (is_same) continue;
    replaced[std::string(var->name_hint)] = {now, it->second};
  }
  while (!replaced.empty()) {
    IRModule before(functions, mod->attrs, mod->global_infos);
    CallUpdater updater(before, replaced);
    std::unordered_map<std::string, Replacement> next;
    for (const auto& [var, base] : before->Sorted()) {
      if (!base.as<FunctionObj>() || !Names(base, replaced)) continue;
      auto func = As<Function>(updater.VisitExpr(base));
      if (func.same_as(base)) continue;
      functions.erase(var);
      GlobalVar now = var;
      if (!StructuralEqual(GetStructInfo(func), GetStructInfo(base))) {
        now = VarFor(var->name_hint, func);
        next[std::string(var->name_hint)] = {now, {}};
      }
      functions.Set(now, func);
    }
    replaced = std::move(next);
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}

}  // namespace tvm::relax
