// SPDX-License-Identifier: Apache-2.0
// Parameters of private functions that nobody uses go.
#include "relax/analysis/match.h"
#include "relax/transform/signature.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// What the variables in the parameters' struct info are in a call.
Map<tir::Var, PrimExpr> Bound(const Function& func, const Call& call) {
  Map<tir::Var, PrimExpr> known;
  for (size_t i = 0; i < func->params.size(); ++i)
    BindSymbolic(GetStructInfo(func->params[i]), GetStructInfo(call->args[i]), &known);
  return known;
}

struct Needed {
  std::vector<size_t> params;  // by index
  Array<tir::Var> symbolic;    // defined by other parameters only
};
/// `unknown`: variables whose value some caller does not know. They stay with their parameters.
Needed FindNeeded(const Function& func, const std::unordered_set<const Object*>& unknown) {
  std::unordered_set<const Object*> used, symbolic, defined;
  for (const Var& var : UsedVars(func->body)) used.insert(var->vid.get());
  for (const tir::Var& var : FreeSymbolicVars(func->body)) symbolic.insert(var.get());
  for (const tir::Var& var : TIRVarsInStructInfo(func->ret_struct_info)) symbolic.insert(var.get());
  Needed result;
  Array<tir::Var> mentioned;
  for (size_t i = 0; i < func->params.size(); ++i) {
    StructInfo info = GetStructInfo(func->params[i]);
    bool kept = used.count(func->params[i]->vid.get());
    // A scalar that stands for a variable is how the variable would be passed.
    bool is_scalar = info.as<PrimStructInfoObj>();
    Array<tir::Var> defines = DefinableTIRVarsInStructInfo(info);
    for (const tir::Var& var : defines)
      kept |= symbolic.count(var.get()) && (is_scalar || unknown.count(var.get()));
    for (const tir::Var& var : TIRVarsInStructInfo(info)) {
      mentioned.push_back(var);
      if (kept) symbolic.insert(var.get());
    }
    if (!kept) continue;
    result.params.push_back(i);
    for (const tir::Var& var : defines) defined.insert(var.get());
  }
  for (const tir::Var& var : mentioned) {
    if (symbolic.count(var.get()) && defined.insert(var.get()).second)
      result.symbolic.push_back(var);
  }
  return result;
}

/// Whether the expressions of the body use some parameter nowhere; struct info may still.
bool HasUnusedParameter(const Function& func) {
  struct Finder : ExprVisitor {
    std::unordered_set<const Object*> unused;
    void VisitExpr(const Expr& expr) final {
      if (!unused.empty()) ExprVisitor::VisitExpr(expr);
    }
    void VisitExpr_(const VarObj* op) final { unused.erase(op->vid.get()); }
    void VisitVarDef(const Var&) final {}
  } finder;
  for (const Var& param : func->params) finder.unused.insert(param->vid.get());
  finder.VisitExpr(func->body);
  return !finder.unused.empty();
}

IRModule RemoveUnusedParameters(IRModule mod) {
  auto callees = PrivateCallees(mod, &HasUnusedParameter);
  if (callees.empty()) return mod;
  std::unordered_set<const Object*> unknown;
  VisitCallsOfFunctions(mod, [&](const GlobalVar& callee, const Call& call) {
    auto it = callees.find(callee->name_hint);
    if (it == callees.end()) return;
    Map<tir::Var, PrimExpr> known = Bound(it->second, call);
    for (const tir::Var& var : DefinedSymbolicVars(it->second)) {
      if (!known.count(var)) unknown.insert(var.get());
    }
  });
  std::unordered_map<std::string, NewSignature> changes;
  for (const auto& [name, func] : callees) {
    Needed needed = FindNeeded(func, unknown);
    if (needed.params.size() == func->params.size()) continue;
    Array<Var> params;
    for (size_t i : needed.params) params.push_back(func->params[i]);
    for (const tir::Var& var : needed.symbolic)
      params.push_back(Var("param_" + var->name_hint, PrimStructInfo(var)));
    changes[name] = {
        Function(params, func->body, func->ret_struct_info, func->is_pure, func->attrs, func->span),
        [func, needed](const Call& call) {
          Array<Expr> args;
          for (size_t i : needed.params) args.push_back(call->args[i]);
          Map<tir::Var, PrimExpr> known = Bound(func, call);
          for (const tir::Var& var : needed.symbolic) args.push_back(PrimValue(known.at(var)));
          return args;
        }};
  }
  return ChangeSignatures(mod, changes);
}
}  // namespace
TVM_RELAX_PASS(RemoveUnusedParameters, 0,
               "private f(a, b), which does not use b  ->  f(a). A symbolic variable that only b "
               "defines becomes a scalar parameter where it is used.");
}  // namespace tvm::relax
