// SPDX-License-Identifier: Apache-2.0
// Values that were computed before are not computed again.
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Values in normal form differ in what they are made of: looking at that is enough, and constants
/// are not read.
struct ValueHash {
  size_t operator()(const Expr& value) const {
    return Recurse([&] {
      size_t hash = value->type_index();
      auto mix = [&](size_t more) { hash = hash * 0x9e3779b97f4a7c15 + more; };
      if (auto* call = value.as<CallObj>()) {
        mix((*this)(call->op));
        for (const Expr& arg : call->args) mix((*this)(arg));
        if (call->attrs) mix(StructuralHash(call->attrs.value()));
      } else if (auto* tuple = value.as<TupleObj>()) {
        for (const Expr& field : tuple->fields) mix((*this)(field));
      } else if (auto* item = value.as<TupleGetItemObj>()) {
        mix((*this)(item->tuple_value));
        mix(item->index);
      } else if (auto* var = value.as<VarObj>()) {
        mix(reinterpret_cast<size_t>(var->vid.get()));
      } else if (auto* global = value.as<GlobalVarObj>()) {
        mix(std::hash<std::string_view>()(View(global->name_hint)));
      } else if (value.as<OpObj>()) {
        mix(reinterpret_cast<size_t>(value.get()));
      }
      return hash;
    });
  }
};

class SubexprEliminator : public ExprMutator {
 public:
  explicit SubexprEliminator(bool call_only) : call_only_(call_only) {}
  Expr VisitExpr_(const SeqExprObj* op) final {
    size_t depth = known_order_.size();
    Expr result = ExprMutator::VisitExpr_(op);
    Forget(depth, false);  // what a branch computed is not seen behind it
    return result;
  }
  void VisitBindingBlock(const BindingBlock& block) final {
    size_t depth = known_order_.size();
    ExprMutator::VisitBindingBlock(block);
    if (block.as<DataflowBlockObj>()) Forget(depth, true);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    Expr value = builder_->Normalize(VisitExpr(binding->value));
    if (!IsCandidate(value)) return ReEmitBinding(binding, value);
    auto it = known_.find(value);
    if (it == known_.end()) {
      ReEmitBinding(binding, value);
      Var var = As<Var>(VisitExpr(binding->var));
      known_.emplace(value, var);
      known_order_.push_back(value);
      return;
    }
    const Var& before = it->second;
    bool is_output = before.as<DataflowVarObj>() && !binding->var.as<DataflowVarObj>();
    if (is_output) return ReEmitBinding(binding, before);
    SetVarRemap(binding->var->vid, before);
  }

 private:
  bool IsCandidate(const Expr& value) const {
    if (auto* call = value.as<CallObj>())
      return !IsImpureCall(call) && !TAllocator.Get(call->op, false);
    auto* constant = value.as<ConstantObj>();  // larger ones would have to be read
    bool is_number = constant && constant->data.numel() == 1;
    return !call_only_ && (is_number || value.as<TupleObj>() || value.as<TupleGetItemObj>());
  }
  void Forget(size_t depth, bool only_dataflow) {
    size_t kept = depth;
    for (size_t i = depth; i < known_order_.size(); ++i) {
      auto it = known_.find(known_order_[i]);
      if (only_dataflow && !it->second.as<DataflowVarObj>()) {
        known_order_[kept++] = known_order_[i];
      } else {
        known_.erase(it);
      }
    }
    known_order_.resize(kept);
  }
  bool call_only_;
  std::unordered_map<Expr, Var, ValueHash, StructuralEquals> known_;
  std::vector<Expr> known_order_;
};
/// Whether a function has calls that overwrite their arguments: two values that are equal before
/// such a call may differ behind it.
bool HasInplaceCalls(const Function& func) {
  struct Finder : ExprVisitor {
    bool found = false;
    void VisitExpr_(const CallObj* call) final {
      static const Op &tir = *new Op(Op::Get("relax.call_tir_inplace")),
                      &packed = *new Op(Op::Get("relax.call_inplace_packed"));
      found |= call->Is(tir) || call->Is(packed);
      ExprVisitor::VisitExpr_(call);
    }
  } finder;
  finder.VisitExpr(func);
  return finder.found;
}
Function EliminateCommonSubexpr(Function func, IRModule, bool call_only) {
  if (HasInplaceCalls(func)) return func;
  return As<Function>(SubexprEliminator(call_only).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(EliminateCommonSubexpr, 1,
                        "a = f(x); b = f(x)  ->  a = f(x), b is a. Functions with calls in place "
                        "stay as they are.",
                        Arg("call_only", false));
}  // namespace tvm::relax
