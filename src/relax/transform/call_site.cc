// SPDX-License-Identifier: Apache-2.0
// PrimFuncs that become special for the places that call them.
#include "relax/transform/call_site.h"

#include <unordered_set>

#include "tvm/ir/structural.h"
#include "tvm/relax/expr_functor.h"

namespace tvm::relax {

bool IsCallTIR(const CallObj* call) {
  static const auto& ops = *new std::unordered_set<const Object*>{
      Op::Get("relax.call_tir").get(), Op::Get("relax.call_tir_inplace").get(),
      Op::Get("relax.call_tir_with_grad").get()};
  return call && ops.count(call->op.get()) > 0;
}

namespace {
/// The PrimFuncs that the calls of one PrimFunc want.
struct Variants {
  std::vector<std::pair<tir::PrimFunc, std::vector<const CallObj*>>> items;
  void Add(const tir::PrimFunc& func, const CallObj* call) {
    for (auto& [known, calls] : items) {
      if (known.same_as(func) || StructuralEqual(known, func)) return calls.push_back(call);
    }
    items.push_back({func, {call}});
  }
};
struct SiteCollector : ExprVisitor {
  std::function<void(const CallObj*)> visit;
  std::unordered_set<std::string> other_uses;
  void VisitExpr_(const CallObj* op) final {
    if (!IsCallTIR(op)) return ExprVisitor::VisitExpr_(op);
    visit(op);
    for (size_t i = 1; i < op->args.size(); ++i) VisitExpr(op->args[i]);
  }
  void VisitExpr_(const GlobalVarObj* op) final { other_uses.insert(op->name_hint); }
};
class CalleeReplacer : public ExprMutator {
 public:
  CalleeReplacer(const IRModule& mod, const std::unordered_map<const CallObj*, GlobalVar>& callees)
      : ExprMutator(mod), callees_(callees) {}
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto it = callees_.find(op);
    if (it == callees_.end()) return visited;
    auto* call = visited.as<CallObj>();
    Array<Expr> args = call->args;
    args.Set(0, it->second);
    return Call(call->op, args, call->attrs, call->sinfo_args, call->span);
  }

 private:
  const std::unordered_map<const CallObj*, GlobalVar>& callees_;
};
}  // namespace

IRModule SpecializeForCallSites(const IRModule& mod, const ForCallSite& specialize) {
  std::unordered_map<std::string, Variants> variants;
  std::vector<std::string> order;
  SiteCollector collector;
  for (const auto& [var, base] : mod->Sorted()) {
    auto caller = base.as<Function>();
    if (!caller) continue;
    collector.visit = [&](const CallObj* call) {
      auto callee = Any(call->args[0]).cast<GlobalVar>();
      auto func = mod->Lookup(callee).as<tir::PrimFunc>();
      if (!func) return;
      auto [it, is_new] = variants.try_emplace(callee->name_hint);
      if (is_new) order.push_back(callee->name_hint);
      it->second.Add(specialize(*caller, ffi::GetRef<Call>(call), *func), call);
    };
    collector.VisitExpr(base);
  }
  BlockBuilder builder = BlockBuilder::Create(mod);
  std::unordered_map<const CallObj*, GlobalVar> callees;
  bool changed = false;
  for (const std::string& name : order) {
    GlobalVar var = mod->GetGlobalVar(name);
    BaseFunc before = mod->Lookup(var);
    bool is_free = !collector.other_uses.count(name);  // whether the name can have another function
    for (const auto& [func, calls] : variants[name].items)
      is_free = is_free && !func.same_as(before);
    for (const auto& [func, calls] : variants[name].items) {
      if (func.same_as(before)) continue;
      changed = true;
      GlobalVar now = var;
      if (is_free) {
        builder->UpdateFunction(var, func);
        is_free = false;
        continue;
      }
      now = builder->AddFunction(WithoutAttr(func, attr::kGlobalSymbol), name);
      for (const CallObj* call : calls) callees[call] = now;
    }
  }
  if (!changed) return mod;
  return CalleeReplacer(builder->GetModule(), callees).VisitFunctions();
}

}  // namespace tvm::relax
