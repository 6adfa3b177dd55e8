// SPDX-License-Identifier: Apache-2.0
// Local functions become functions of the module; what they use from around them is passed to them.
#include <unordered_set>

#include "lowering.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Finds local functions that are needed as values: they are no callee, or another local function
/// uses them.
class FunctionValues : public ExprVisitor {
 public:
  std::unordered_set<const Object*> ids;

 private:
  void VisitBinding_(const VarBindingObj* binding) final {
    const Object* id = binding->var->vid.get();
    if (!binding->value.as<FunctionObj>()) return ExprVisitor::VisitBinding_(binding);
    owner_[id] = around_.empty() ? nullptr : around_.back();
    around_.push_back(id);
    ExprVisitor::VisitBinding_(binding);
    around_.pop_back();
  }
  void VisitExpr_(const CallObj* op) final {
    auto* callee = op->op.as<VarObj>();
    if (!callee || !IsCalledHere(callee->vid.get())) VisitExpr(op->op);
    for (const Expr& arg : op->args) VisitExpr(arg);
  }
  void VisitExpr_(const VarObj* op) final {
    if (owner_.count(op->vid.get())) ids.insert(op->vid.get());
  }
  bool IsCalledHere(const Object* id) const {
    auto it = owner_.find(id);
    const Object* here = around_.empty() ? nullptr : around_.back();
    return it != owner_.end() && (it->second == here || id == here);
  }
  std::unordered_map<const Object*, const Object*> owner_;  // the local function it is bound in
  std::vector<const Object*> around_;
};

class Lifter : public ExprMutator {
 public:
  explicit Lifter(const IRModule& mod) : ExprMutator(mod), before_(mod) {}
  IRModule Run() {
    IRModule after = MapFunctions(before_, [&](const GlobalVar& var, const Function& func) {
      FunctionValues finder;
      finder.VisitExpr(func);
      values_ = std::move(finder.ids);
      name_ = std::string(View(var->name_hint));
      return As<Function>(VisitExpr(func));
    });
    if (done_.empty()) return after;
    Map<GlobalVar, BaseFunc> functions = after->functions;
    for (const auto& [var, func] : done_) functions.Set(var, func);
    return IRModule(functions, after->attrs, after->global_infos);
  }

  void VisitBinding_(const VarBindingObj* binding) final {
    auto* func = binding->value.as<FunctionObj>();
    if (!func) return ExprMutator::VisitBinding_(binding);
    const Object* id = binding->var->vid.get();
    Lift(binding->var, ffi::GetRef<Function>(func));
    if (values_.count(id)) ReEmitBinding(binding, Closure(lifted_.at(id)));
  }
  Expr VisitExpr_(const CallObj* op) final {
    auto* callee = op->op.as<VarObj>();
    const Lifted* known = callee ? FindHere(callee->vid.get()) : nullptr;
    if (known) {
      Array<Expr> args = VisitExprs(op->args);
      for (const Expr& value : VisitExprs(known->captured)) args.push_back(value);
      return Call(known->var, args, op->attrs, op->sinfo_args, op->span);
    }
    if (!callee) return ExprMutator::VisitExpr_(op);
    Expr function = VisitExpr(op->op);
    if (function.same_as(op->op) || GetStructInfoAs<FuncStructInfoObj>(function))
      return ExprMutator::VisitExpr_(op);
    // What was a function whose signature is known is a closure now.
    auto* info = GetStructInfoAs<FuncStructInfoObj>(op->op);
    const LoweredOps& ops = LoweredOps::Get();
    return Call(info && info->purity ? ops.invoke_pure_closure : ops.invoke_closure,
                {function, Tuple(VisitExprs(op->args))}, {}, {GetStructInfo(ffi::GetRef<Expr>(op))},
                op->span);
  }
  /// The function itself as a value inside of its own body.
  Expr VisitExpr_(const VarObj* op) final {
    bool is_own = !around_.empty() && around_.back() == op->vid.get();
    return is_own ? Closure(lifted_.at(op->vid.get())) : ExprMutator::VisitExpr_(op);
  }

 private:
  struct Lifted {
    GlobalVar var;
    Array<Expr> captured;  // behind the function's own parameters
    const Object* owner;
  };
  const Lifted* FindHere(const Object* id) const {
    auto it = lifted_.find(id);
    if (it == lifted_.end()) return nullptr;
    const Object* here = around_.empty() ? nullptr : around_.back();
    return it->second.owner == here || id == here ? &it->second : nullptr;
  }
  Expr Closure(const Lifted& lifted) {
    return Call(LoweredOps::Get().make_closure, {lifted.var, Tuple(VisitExprs(lifted.captured))});
  }
  void Lift(const Var& var, const Function& func) {
    const Object* id = var->vid.get();
    Lifted lifted{NewName(name_ + "_" + std::string(View(var->name_hint()))),
                  {},
                  around_.empty() ? nullptr : around_.back()};
    Array<Var> params = func->params;
    for (const Var& free : FreeVars(func)) {
      if (free->vid.get() == id || FindUncaptured(free->vid.get())) continue;
      lifted.captured.push_back(free);
      // The function around this one is a closure here.
      Expr outside = VisitExpr(free);
      bool is_known = outside->struct_info_.has_value();
      Var param(free->vid, is_known ? GetStructInfo(outside) : ObjectStructInfo::Get());
      if (!is_known) SetVarRemap(free->vid, param);
      params.push_back(param);
    }
    // Symbolic variables that no parameter defines.
    Function whole(params, func->body, func->ret_struct_info, func->is_pure, func->attrs,
                   func->span);
    Array<PrimExpr> symbolic;
    for (const tir::Var& free : FreeSymbolicVars(whole)) symbolic.push_back(free);
    if (!symbolic.empty()) {
      lifted.captured.push_back(ShapeExpr(symbolic));
      params.push_back(Var("tir_vars", ShapeStructInfo(symbolic)));
    }
    auto infos = params.Map([](const Var& param) { return GetStructInfo(param); });
    UpdateStructInfo(lifted.var, FuncStructInfo(infos, func->ret_struct_info, func->is_pure));
    lifted_.insert_or_assign(id, lifted);
    around_.push_back(id);
    std::string outer = std::exchange(name_, std::string(View(lifted.var->name_hint)));
    SeqExpr body = VisitWithNewScope(func->body, params);
    name_ = outer;
    around_.pop_back();
    if (!around_.empty()) var_remap_.erase(around_.back());
    bool holds = IsBaseOf(func->ret_struct_info, GetStructInfo(body));
    Function result(params, body,
                    holds ? Optional<StructInfo>(func->ret_struct_info) : std::nullopt,
                    func->is_pure, func->attrs, func->span);
    result = CopyWithNewVars(result);
    UpdateStructInfo(lifted.var, GetStructInfo(result));
    done_.emplace_back(lifted.var, result);
  }
  /// A local function that is only called is no value that could be captured.
  bool FindUncaptured(const Object* id) const { return lifted_.count(id) && !values_.count(id); }
  GlobalVar NewName(const std::string& name) {
    std::string unique = name;
    for (int i = 1; before_->FindGlobalVar(unique).defined() || !names_.insert(unique).second; ++i)
      unique = name + std::to_string(i);
    return GlobalVar(unique);
  }

  IRModule before_;
  std::string name_;                          // of the function that is being visited
  std::unordered_set<const Object*> values_;  // local functions that are needed as values
  std::unordered_map<const Object*, Lifted> lifted_;
  std::vector<const Object*> around_;
  std::vector<std::pair<GlobalVar, Function>> done_;
  std::unordered_set<std::string> names_;
};
IRModule LambdaLift(IRModule mod) { return Lifter(mod).Run(); }
}  // namespace
TVM_RELAX_PASS(
    LambdaLift, 1,
    "A local function f of main  ->  main_f of the module; variables it uses from around "
    "it are its last parameters, bound by R.make_closure where f is a value.");
}  // namespace tvm::relax
