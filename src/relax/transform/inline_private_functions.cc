// SPDX-License-Identifier: Apache-2.0
// Calls of private functions replaced by their bodies.
#include "relax/transform/signature.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Whether a dataflow block may hold what a function does, the functions it calls included.
class DataflowFit {
 public:
  explicit DataflowFit(const std::unordered_map<std::string, Function>& bodies) : bodies_(bodies) {}
  bool operator()(const std::string& name) {
    auto [it, is_new] = known_.try_emplace(name, true);
    auto body = bodies_.find(name);
    if (!is_new || body == bodies_.end()) return it->second;
    bool fits = true;
    VisitBindings(body->second->body, [&](const Binding& binding) {
      Expr value = ValueOf(binding);
      fits = fits && !value.as<IfObj>() && !value.as<FunctionObj>();
    });
    for (const GlobalVar& callee : AllGlobalVars(body->second))
      fits = fits && (*this)(callee->name_hint);
    return known_[name] = fits;
  }

 private:
  const std::unordered_map<std::string, Function>& bodies_;
  std::unordered_map<std::string, bool> known_;
};
/// Functions that a dataflow block calls.
struct DataflowCallees : ExprVisitor {
  std::unordered_set<std::string> names;
  void VisitBindingBlock_(const DataflowBlockObj* block) final {
    for (const Binding& binding : block->bindings) {
      auto* call = ValueOf(binding).as<CallObj>();
      auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr;
      if (callee) names.insert(callee->name_hint);
    }
    ExprVisitor::VisitBindingBlock_(block);
  }
};

IRModule InlinePrivateFunctions(IRModule mod) {
  auto callees = PrivateCallees(mod);
  if (callees.empty()) return mod;
  for (const Array<GlobalVar>& group : DetectRecursion(mod)) {
    for (const GlobalVar& var : group) callees.erase(var->name_hint);
  }
  DataflowCallees in_dataflow;
  for (const auto& [var, base] : mod->functions) {
    if (base.as<FunctionObj>()) in_dataflow.VisitExpr(base);
  }
  DataflowFit fits_dataflow(callees);
  std::unordered_map<std::string, Function> bodies;
  for (const auto& [name, func] : callees) {
    // What a function may do that says it is pure, its callers may not.
    bool kept = func->HasNonzeroAttr("relax.force_pure") ||
                (in_dataflow.names.count(name) && !fits_dataflow(name));
    if (!kept) bodies.emplace(name, func);
  }
  if (bodies.empty()) return mod;
  Map<GlobalVar, BaseFunc> functions;
  for (const auto& [var, base] : mod->functions) {
    if (bodies.count(var->name_hint)) continue;
    auto func = base.as<Function>();
    functions.Set(var, func ? InlineFunctions(*func, bodies) : base);
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(InlinePrivateFunctions, 0,
               "y = cls.f(x), where private f(a) returns g(a)  ->  y = g(x); f goes. Functions "
               "that call themselves, or that are used as values, stay.");
}  // namespace tvm::relax
