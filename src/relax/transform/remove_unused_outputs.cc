// SPDX-License-Identifier: Apache-2.0
// Items of the tuples that private functions return, which no caller takes, go.
#include <set>

#include "relax/transform/signature.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
using Items = std::unordered_map<std::string, std::set<int64_t>>;  // by function

/// Which items of the results of functions are taken. A result that is used as a whole takes all.
class ItemCollector : public ExprVisitor {
 public:
  explicit ItemCollector(Items* items) : items_(items) {}
  void VisitBinding_(const VarBindingObj* binding) final {
    auto* call = binding->value.as<CallObj>();
    auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr;
    if (callee && items_->count(callee->name_hint))
      results_[binding->var->vid.get()] = std::string(callee->name_hint);
    ExprVisitor::VisitBinding_(binding);
  }
  void VisitExpr_(const TupleGetItemObj* op) final {
    const std::string* callee = CalleeOf(op->tuple_value);
    if (!callee) return ExprVisitor::VisitExpr_(op);
    auto it = items_->find(*callee);
    if (it != items_->end()) it->second.insert(op->index);
  }
  void VisitExpr_(const VarObj* op) final {
    if (const std::string* callee = CalleeOf(ffi::GetRef<Expr>(op))) items_->erase(*callee);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    // A call may stand in a cast as it is.
    auto* call = binding->value.as<CallObj>();
    if (auto* callee = call ? call->op.as<GlobalVarObj>() : nullptr)
      items_->erase(callee->name_hint);
    ExprVisitor::VisitBinding_(binding);
  }

 private:
  const std::string* CalleeOf(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    auto it = var ? results_.find(var->vid.get()) : results_.end();
    return it == results_.end() ? nullptr : &it->second;
  }
  Items* items_;
  std::unordered_map<const Object*, std::string> results_;
};

/// What the function returns with these items only; one item is no tuple.
Function WithItems(const Function& func, const std::set<int64_t>& items) {
  Expr result = func->body->body;
  Optional<Expr> value = result;
  if (auto* var = result.as<VarObj>()) value = GetVar2Val(func->body).Get(ffi::GetRef<Var>(var));
  auto* tuple = value ? value.value().as<TupleObj>() : nullptr;
  BlockBuilder builder = BlockBuilder::Create();
  builder->BeginScope(func->params);
  builder->BeginSequence();
  for (const BindingBlock& block : func->body->blocks) builder->AppendBlock(block);
  Array<Expr> fields;
  for (int64_t i : items) {
    bool seen = tuple && !tuple->fields[i].as<DataflowVarObj>();
    fields.push_back(seen ? tuple->fields[i] : Expr(TupleGetItem(result, i)));
  }
  Expr body = builder->NormalizeArgument(fields.size() == 1 ? fields[0] : Expr(Tuple(fields)));
  SeqExpr seq = MakeSeq(func->body, builder->EndSequence(), body);
  builder->EndScope();
  Function changed(func->params, seq, std::nullopt, func->is_pure, func->attrs, func->span);
  return RemoveAllUnused(changed);
}

IRModule RemoveUnusedOutputs(IRModule mod) {
  auto callees = PrivateCallees(mod);
  Items items;
  for (const auto& [name, func] : callees) {
    if (func->ret_struct_info.as<TupleStructInfoObj>()) items[name];
  }
  for (const auto& [var, base] : mod->functions) {
    if (base.as<FunctionObj>()) ItemCollector(&items).VisitExpr(base);
  }
  std::unordered_map<std::string, NewSignature> changes;
  for (const auto& [name, taken] : items) {
    const Function& func = callees.at(name);
    if (taken.size() == func->ret_struct_info.as<TupleStructInfoObj>()->fields.size()) continue;
    NewSignature& change = changes[name];
    change.func = WithItems(func, taken);
    change.item = [taken = taken](const Expr& result, int64_t index) -> Expr {
      if (taken.size() == 1) return result;
      return TupleGetItem(result, std::distance(taken.begin(), taken.find(index)));
    };
  }
  return ChangeSignatures(mod, changes);
}
}  // namespace
TVM_RELAX_PASS(RemoveUnusedOutputs, 0,
               "private f returns (a, b, c), and only f(x)[0] and f(x)[2] are used  ->  f returns "
               "(a, c); of a single item no tuple is made.");
}  // namespace tvm::relax
