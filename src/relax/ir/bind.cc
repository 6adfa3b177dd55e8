// SPDX-License-Identifier: Apache-2.0
// Functions with variables replaced: binding of parameters and symbolic variables, inlining.
#include "tvm/relax/bind.h"

#include <unordered_set>

#include "relax/analysis/dims.h"
#include "relax/analysis/match.h"
#include "tir/text.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"

namespace tvm::relax {

Expr VarReplacer::VisitExpr_(const VarObj* op) {
  auto it = values_.find(op->vid.get());
  return it == values_.end() ? ExprMutator::VisitExpr_(op) : it->second;
}
Var VarReplacer::VisitVarDef(const Var& var) {
  if (!renew_) return ExprMutator::VisitVarDef(var);
  if (var_remap_.count(var->vid.get())) return var_remap_.at(var->vid.get()).second;
  Optional<StructInfo> info = var->struct_info_;
  if (info) {
    RenewSymbolic(info.value());
    info = VisitStructInfo(info.value());
  }
  Var renewed = var.as<DataflowVarObj>() ? DataflowVar(var->name_hint(), info, var->span)
                                         : Var(var->name_hint(), info, var->span);
  SetVarRemap(var->vid, renewed);
  return renewed;
}
void VarReplacer::RenewSymbolic(const StructInfo& info) {
  for (const tir::Var& var : DefinableTIRVarsInStructInfo(info)) {
    if (!symbolic_.count(var)) symbolic_.Set(var, tir::Var(var->name_hint, var.dtype()));
  }
}
void VarReplacer::VisitBinding_(const MatchCastObj* binding) {
  // The cast is visited before its variable, and both shall speak of the same new variables.
  if (renew_) RenewSymbolic(binding->struct_info);
  ExprMutator::VisitBinding_(binding);
}
StructInfo VarReplacer::VisitStructInfo(const StructInfo& info) {
  return SubstituteStructInfo(info, symbolic_);
}
PrimExpr VarReplacer::VisitPrimExpr(const PrimExpr& e) {
  if (symbolic_.empty()) return e;
  return SubstituteDim(e, [&](const tir::Var& v) { return symbolic_.Get(v).value_or(PrimExpr()); });
}

Function CopyWithNewVars(const Function& func) {
  // All at once: a parameter may use a variable that a later one defines.
  Map<tir::Var, PrimExpr> renewed;
  for (const tir::Var& var : DefinedSymbolicVars(func))
    renewed.Set(var, tir::Var(var->name_hint, var.dtype()));
  VarReplacer replacer(renewed);
  replacer.RenewDefinitions();
  return OnDeepStack([&] { return As<Function>(replacer.VisitExpr(func)); });
}

Function BindSymbolicVars(const Function& func,
                          const Map<Variant<String, tir::Var>, PrimExpr>& binding_map) {
  Array<tir::Var> known = DefinedSymbolicVars(func);
  for (const tir::Var& var : FreeSymbolicVars(func)) known.push_back(var);
  Map<tir::Var, PrimExpr> symbolic;
  for (const auto& [key, value] : binding_map) {
    bool found = false;
    auto name = key.as<String>();
    for (const tir::Var& var : known) {
      if (name ? var->name_hint != *name : !var.same_as(*key.as<tir::Var>())) continue;
      symbolic.Set(var, cast(var.dtype(), value));
      found = true;
    }
    if (!found) {
      std::string list;
      for (const tir::Var& var : known)
        list += (list.empty() ? "" : ", ") + std::string(var->name_hint);
      TVM_FFI_THROW(ValueError) << "bind_symbolic_vars: expected a symbolic variable of the "
                                   "function ("
                                << (list.empty() ? "it has none" : list) << "), got '"
                                << (name ? *name : (*key.as<tir::Var>())->name_hint) << "'";
    }
  }
  VarReplacer replacer(symbolic);
  return OnDeepStack([&] { return As<Function>(replacer.VisitExpr(func)); });
}

Function BindParams(const Function& func, const Map<Variant<String, Var>, Expr>& binding_map) {
  Map<tir::Var, PrimExpr> symbolic;
  std::unordered_map<const Object*, Expr> values;
  for (const auto& [key, value] : binding_map) {
    auto name = key.as<String>();
    size_t found = 0;
    for (const Var& param : func->params) {
      if (name ? param->name_hint() != *name : !param.same_as(*key.as<Var>())) continue;
      ++found;
      StructInfo wanted = GetStructInfo(param), given = GetStructInfo(value);
      BindSymbolic(wanted, given, &symbolic);
      if (StructInfoBaseCheck(SubstituteStructInfo(wanted, symbolic), given) <
          BaseCheckResult::kFailL2) {
        TVM_FFI_THROW(ValueError) << "bind_params: expected " << tir::TextOf(wanted)
                                  << " for the parameter '" << param->name_hint() << "', got "
                                  << tir::TextOf(given);
      }
      values[param->vid.get()] = value;
    }
    if (found != 1) {
      std::vector<std::string_view> names;
      std::string list;
      for (const Var& param : func->params) {
        names.push_back(View(param->vid->name_hint));
        list += (list.empty() ? "" : ", ") + std::string(names.back());
      }
      String wanted = name ? *name : (*key.as<Var>())->name_hint();
      TVM_FFI_THROW(ValueError) << "bind_params: expected one parameter of the function ("
                                << (list.empty() ? "it has none" : list) << "), got '" << wanted
                                << "', which is " << (found ? "the name of several" : "none")
                                << (found ? "" : DidYouMean(View(wanted), names));
    }
  }
  Array<Var> params;
  VarReplacer replacer(symbolic);
  for (const Var& param : func->params) {
    auto it = values.find(param->vid.get());
    if (it == values.end()) {
      params.push_back(param);
    } else {
      replacer.Replace(param, it->second);
    }
  }
  Function rest(params, func->body, func->ret_struct_info, func->is_pure, func->attrs, func->span);
  return OnDeepStack([&] { return As<Function>(replacer.VisitExpr(rest)); });
}

namespace {
class Inliner : public ExprMutator {
 public:
  explicit Inliner(const std::unordered_map<std::string, Function>& functions)
      : functions_(functions) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<GlobalVarObj>();
    auto it = callee ? functions_.find(callee->name_hint) : functions_.end();
    if (it == functions_.end()) return visited;
    if (!open_.insert(it->first).second) {
      TVM_FFI_THROW(ValueError) << "inline_functions: expected functions that do not call "
                                   "themselves, got '"
                                << it->first << "'";
    }
    Function func = CopyWithNewVars(it->second);
    if (func->params.size() != call->args.size()) {
      TVM_FFI_THROW(ValueError) << it->first << ": expected " << func->params.size()
                                << " arguments, got " << call->args.size();
    }
    Map<tir::Var, PrimExpr> symbolic;
    for (size_t i = 0; i < func->params.size(); ++i)
      BindSymbolic(GetStructInfo(func->params[i]), GetStructInfo(call->args[i]), &symbolic);
    VarReplacer replacer(symbolic);
    for (size_t i = 0; i < func->params.size(); ++i)
      replacer.Replace(func->params[i], call->args[i]);
    Expr body = VisitExpr(replacer.VisitExpr(func->body));
    open_.erase(it->first);
    return body;
  }

 private:
  const std::unordered_map<std::string, Function>& functions_;
  std::unordered_set<std::string> open_;
};
}  // namespace

Function InlineFunctions(const Function& func,
                         const std::unordered_map<std::string, Function>& functions) {
  return OnDeepStack([&] { return As<Function>(Inliner(functions).VisitExpr(func)); });
}

namespace {
/// Functions by name or variable.
Function InlineFunctionMap(const Function& func,
                           const Map<Variant<String, GlobalVar>, Function>& function_map) {
  std::unordered_map<std::string, Function> functions;
  for (const auto& [key, body] : function_map) {
    auto name = key.as<String>();
    functions[std::string(name ? *name : (*key.as<GlobalVar>())->name_hint)] = body;
  }
  return InlineFunctions(func, functions);
}
TVM_REGISTER() {
  Def("relax.CopyWithNewVars", &CopyWithNewVars, "The function with new variables.", Arg("func"));
  Def("relax.FunctionBindSymbolicVars", &BindSymbolicVars,
      "The function with symbolic variables replaced.", Arg("func"), Arg("binding_map"));
  Def("relax.FunctionBindParams", &BindParams, "The function with parameters fixed.", Arg("func"),
      Arg("binding_map"));
  Def("relax.FunctionInlineFunctions", &InlineFunctionMap, "The function with calls inlined.",
      Arg("func"), Arg("function_map"));
  Def(
      "relax.GetShapeOf",
      [](Expr expr) -> Expr {
        StructInfo info = GetStructInfo(expr);
        if (info.as<ShapeStructInfoObj>()) return expr;
        auto* tensor = info.as<TensorStructInfoObj>();
        if (!tensor)
          TVM_FFI_THROW(TypeError) << "get_shape_of: expected a tensor, got " << tir::TextOf(info);
        if (tensor->shape) return tensor->shape.value();
        Call call(Op::Get("relax.shape_of"), {expr});
        UpdateStructInfo(call, ShapeStructInfo(tensor->ndim));
        return call;
      },
      "The shape of a tensor as an expression.", Arg("expr"));
}
}  // namespace
}  // namespace tvm::relax
