// SPDX-License-Identifier: Apache-2.0
// Functions for external code generators are built by them.
#include <tvm/ffi/extra/module.h>

#include <map>
#include <unordered_set>

#include "runtime/host_tensor.h"
#include "tir/text.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Calls of functions that were built become calls of the code that came out.
class ExternalCaller : public ExprMutator {
 public:
  ExternalCaller(const IRModule& mod, const std::unordered_set<std::string>& built)
      : ExprMutator(mod), built_(built) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<GlobalVarObj>();
    if (!callee || !built_.count(callee->name_hint)) return visited;
    static const Op& dps_packed = *new Op(Op::Get("relax.call_dps_packed"));
    return Call(dps_packed, {ExternFunc(callee->name_hint), Tuple(call->args)}, {},
                {GetStructInfo(ffi::GetRef<Expr>(op))}, op->span);
  }

 private:
  const std::unordered_set<std::string>& built_;
};

/// What was cut out for a backend as functions like any others.
class MarkRemover : public ExprMutator {
 public:
  Expr VisitExpr_(const FunctionObj* op) final {
    auto func = As<Function>(ExprMutator::VisitExpr_(op));
    for (const char* key : {"Codegen", "Composite", "Primitive"}) func = WithoutAttr(func, key);
    return func;
  }
};

std::unordered_set<std::string> Reachable(const IRModule& mod, const Array<String>& entries) {
  std::unordered_set<std::string> seen;
  std::vector<std::string> open;
  for (const String& name : entries) open.push_back(mod->GetGlobalVar(name)->name_hint);
  while (!open.empty()) {
    std::string name = open.back();
    open.pop_back();
    GlobalVar var = mod->FindGlobalVar(name);
    if (!var.defined() || !seen.insert(name).second) continue;
    auto* func = mod->Lookup(var).as<FunctionObj>();
    if (!func) continue;
    for (const GlobalVar& callee : AllGlobalVars(ffi::GetRef<Function>(func)))
      open.push_back(callee->name_hint);
  }
  return seen;
}

/// Calls the generator of one backend; an error says what it was to build.
Array<ffi::Module> BuildBy(const std::string& backend, const Array<Function>& functions,
                           const Map<String, Any>& options,
                           const Map<Constant, String>& constant_names) {
  std::string name = "relax.ext." + backend;
  auto generator = ffi::Function::GetGlobal(name);
  std::string symbols;
  for (const Function& func : functions)
    symbols += (symbols.empty() ? "'" : ", '") +
               std::string(func->GetAttr<String>(tvm::attr::kGlobalSymbol).value()) + "'";
  if (!generator) {
    TVM_FFI_THROW(ValueError) << "RunCodegen: expected a code generator '" << name
                              << "' for the functions " << symbols << ", got none of that name";
  }
  Any result;
  try {
    result = CallBack(*generator, functions, options, constant_names);
  } catch (const ffi::Error& e) {
    std::string text = "RunCodegen: expected '" + name + "' to build " + symbols + ", got " +
                       std::string(e.kind()) + ": " + std::string(e.message());
    for (const Function& func : functions) text += "\n" + tir::TextOf(func);
    throw ffi::Error(e.kind(), text, e.backtrace());
  }
  auto modules = result.try_cast<Array<ffi::Module>>();
  if (!modules) {
    TVM_FFI_THROW(TypeError) << "RunCodegen: expected '" << name
                             << "' to return an array of modules, got " << result.GetTypeKey();
  }
  return *modules;
}

IRModule RunCodegen(IRModule mod, Optional<Map<String, Map<String, Any>>> target_options,
                    Optional<Array<String>> entry_functions, bool fallback) {
  std::map<std::string, std::vector<std::pair<GlobalVar, Function>>> by_backend;
  Array<String> entries = entry_functions.value_or({});
  std::unordered_set<std::string> reachable = Reachable(mod, entries);
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    auto backend = func ? func->GetAttr<String>("Codegen") : Optional<String>();
    if (!backend || (!entries.empty() && !reachable.count(var->name_hint))) continue;
    Function named =
        WithAttr(ffi::GetRef<Function>(func), tvm::attr::kGlobalSymbol, var->name_hint);
    by_backend[backend.value()].emplace_back(var, named);
  }
  if (by_backend.empty()) return mod;

  Map<Constant, String> constant_names;
  Map<String, ffi::Tensor> constants =
      mod->attrs.Get<Map<String, ffi::Tensor>>("const_name_to_constant").value_or({});
  Array<ffi::Module> modules = mod->attrs.Get<Array<ffi::Module>>("external_mods").value_or({});
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  Map<String, String> failures;
  std::unordered_set<std::string> built;
  for (const auto& [backend, members] : by_backend) {
    Array<Function> list;
    for (const auto& [var, func] : members) {
      PostOrderVisit(func, [&, name = std::string(var->name_hint)](const Expr& e) {
        auto* constant = e.as<ConstantObj>();
        if (!constant || constant_names.count(ffi::GetRef<Constant>(constant))) return;
        String unique = name + "_const_" + std::to_string(constant_names.size());
        constant_names.Set(ffi::GetRef<Constant>(constant), unique);
        constants.Set(unique, runtime::HostTensor(constant->data));
      });
      list.push_back(func);
    }
    Map<String, Any> options =
        target_options.value_or({}).Get(String(backend)).value_or(Map<String, Any>());
    try {
      for (const ffi::Module& made : BuildBy(backend, list, options, constant_names))
        modules.push_back(made);
    } catch (const ffi::Error& e) {
      if (!fallback || e.kind() == "KeyboardInterrupt") throw;
      failures.Set(backend, std::string(e.message()));
      for (const auto& [var, func] : members) {
        Expr plain = MarkRemover().VisitExpr(WithoutAttr(func, tvm::attr::kGlobalSymbol));
        functions.Set(var, As<Function>(plain));
      }
      continue;
    }
    for (const auto& [var, func] : members) {
      built.insert(var->name_hint);
      functions.erase(var);
    }
  }
  ExternalCaller caller(mod, built);
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    if (!func || func->GetAttr<String>("Codegen")) continue;
    Expr changed = caller.VisitExpr(ffi::GetRef<Function>(func));
    if (!changed.same_as(base)) functions.Set(var, As<Function>(changed));
  }
  DictAttrs attrs = WithAttr(mod->attrs, "external_mods", modules);
  if (!failures.empty()) attrs = WithAttr(attrs, "codegen_failures", failures);
  if (!constants.empty()) attrs = WithAttr(attrs, "const_name_to_constant", constants);
  return IRModule(functions, attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    RunCodegen, 0,
    R"(Functions {"Codegen": backend} (those that the entry functions reach) are given to the
registered function relax.ext.<backend>(functions, options, names of constants), which returns
modules: they are kept in the attribute external_mods, and calls become call_dps_packed. With
fallback, what a backend fails to build becomes functions like any others, and the attribute
codegen_failures says why.)",
    Arg("target_options", nullptr), Arg("entry_functions", nullptr), Arg("fallback", false));
}  // namespace tvm::relax
