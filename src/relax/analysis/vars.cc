// SPDX-License-Identifier: Apache-2.0
// Which variables an expression binds and uses, and where values come from.
#include <unordered_set>

#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {
namespace {
/// Variables, each once, in the order in which they come.
template <class Ref>
struct OrderedRefs {
  Array<Ref> items;
  std::unordered_set<const Object*> seen;
  void Add(const Object* key, const Ref& item) {
    if (seen.insert(key).second) items.push_back(item);
  }
};
struct VarCollector : ExprVisitor {
  OrderedRefs<Var> bound, used, all;
  OrderedRefs<GlobalVar> globals;
  void VisitExpr_(const VarObj* op) final {
    auto var = ffi::GetRef<Var>(op);
    used.Add(op->vid.get(), var);
    all.Add(op->vid.get(), var);
  }
  void VisitExpr_(const GlobalVarObj* op) final { globals.Add(op, ffi::GetRef<GlobalVar>(op)); }
  void VisitVarDef(const Var& var) final {
    ExprVisitor::VisitVarDef(var);
    bound.Add(var->vid.get(), var);
    all.Add(var->vid.get(), var);
  }
  void VisitStructInfo(const StructInfo& info) final {
    if (auto* tensor = info.as<TensorStructInfoObj>()) {
      if (tensor->shape) VisitExpr(tensor->shape.value());
    } else if (auto* tuple = info.as<TupleStructInfoObj>()) {
      Recurse([&] {
        for (const StructInfo& field : tuple->fields) VisitStructInfo(field);
      });
    }
  }
  explicit VarCollector(const Expr& expr) { VisitExpr(expr); }
};
struct BindingVisitor : ExprVisitor {
  const std::function<void(const Binding&)>& visit;
  explicit BindingVisitor(const std::function<void(const Binding&)>& visit) : visit(visit) {}
  void VisitBinding(const Binding& binding) final {
    visit(binding);
    ExprVisitor::VisitBinding(binding);
  }
};
}  // namespace

Array<Var> BoundVars(const Expr& expr) { return VarCollector(expr).bound.items; }
Array<Var> UsedVars(const Expr& expr) { return VarCollector(expr).used.items; }
Array<Var> AllVars(const Expr& expr) { return VarCollector(expr).all.items; }
Array<GlobalVar> AllGlobalVars(const Expr& expr) { return VarCollector(expr).globals.items; }
Array<Var> FreeVars(const Expr& expr) {
  VarCollector vars(expr);
  Array<Var> result;
  for (const Var& var : vars.used.items) {
    if (!vars.bound.seen.count(var->vid.get())) result.push_back(var);
  }
  return result;
}
void VisitBindings(const Expr& expr, const std::function<void(const Binding&)>& visit) {
  BindingVisitor(visit).VisitExpr(expr);
}
Expr ValueOf(const Binding& binding) {
  if (auto* bind = binding.as<VarBindingObj>()) return bind->value;
  return binding.as<MatchCastObj>()->value;
}

Map<Var, Expr> GetVar2Val(const Expr& expr) {
  Map<Var, Expr> values;
  VisitBindings(expr, [&](const Binding& b) { values.Set(b->var, ValueOf(b)); });
  return values;
}

namespace {
Map<String, Array<Binding>> NameToBinding(Function func) {
  Map<String, Array<Binding>> result;
  VisitBindings(func, [&](const Binding& binding) {
    Array<Binding> known = result.Get(binding->var->name_hint()).value_or(Array<Binding>());
    known.push_back(binding);
    result.Set(binding->var->name_hint(), known);
  });
  return result;
}
/// The variables whose values use each variable; those that nobody uses have no users.
Map<Var, Array<Var>> UDChain(DataflowBlock block) {
  std::unordered_map<const Object*, std::pair<Var, Array<Var>>> users;
  std::vector<const Object*> order;
  auto entry = [&](const Var& var) -> Array<Var>& {
    auto [it, is_new] = users.try_emplace(var->vid.get(), var, Array<Var>());
    if (is_new) order.push_back(var->vid.get());
    return it->second.second;
  };
  for (const Binding& binding : block->bindings) {
    for (const Var& used : UsedVars(ValueOf(binding))) entry(used).push_back(binding->var);
    entry(binding->var);
  }
  Map<Var, Array<Var>> result;
  for (const Object* id : order) result.Set(users.at(id).first, users.at(id).second);
  return result;
}

TVM_REGISTER() {
  Def("relax.analysis.bound_vars", &BoundVars, "Variables that the expression defines.",
      Arg("expr"));
  Def("relax.analysis.free_vars", &FreeVars, "Variables that it uses and does not define.",
      Arg("expr"));
  Def("relax.analysis.used_vars", &UsedVars, "Variables that it uses.", Arg("expr"));
  Def("relax.analysis.all_vars", &AllVars, "Variables that it defines or uses.", Arg("expr"));
  Def("relax.analysis.all_global_vars", &AllGlobalVars, "Functions that it refers to.",
      Arg("expr"));
  Def("relax.analysis.get_var2val", &GetVar2Val, "The value of each variable that is bound.",
      Arg("func"));
  Def("relax.analysis.name_to_binding", &NameToBinding, "All bindings of each name.", Arg("func"));
  Def("relax.analysis.udchain", &UDChain, "The variables whose values use each variable.",
      Arg("dfb"));
  Def(
      "relax.analysis.post_order_visit",
      [](Expr expr, ffi::Function visit) {
        OnDeepStack([&] { PostOrderVisit(expr, [&](const Expr& e) { CallBack(visit, e); }); });
      },
      "Calls fvisit on every expression, operands first.", Arg("expr"), Arg("fvisit"));
}
}  // namespace
}  // namespace tvm::relax
