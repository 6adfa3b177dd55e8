// SPDX-License-Identifier: Apache-2.0
// Values end when nobody needs them any more, and give their memory back.
#include "lowering.h"
#include "relax/analysis/lifetime.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
/// Other names, constants and functions are not the function's to end.
bool OwnsMemory(const LiveValue& live) {
  const Expr& value = live.value;
  bool is_made = value.defined() && (value.as<CallObj>() || value.as<TupleObj>() ||
                                     value.as<TupleGetItemObj>() || value.as<IfObj>());
  return is_made && HoldsMemory(GetStructInfo(live.var));
}
bool IsKill(const Expr& value) {
  auto* call = value.as<CallObj>();
  const LoweredOps& ops = LoweredOps::Get();
  return call &&
         (call->Is(ops.kill_tensor) || call->Is(ops.kill_storage) || call->Is(ops.kill_object));
}

class Killer : public ExprMutator {
 public:
  Killer(const IRModule& mod, const Lifetimes& lifetimes) : ExprMutator(WithoutFunctions(mod)) {
    // What was made last ends first: tensors before their storage.
    for (auto it = lifetimes.values.rbegin(); it != lifetimes.values.rend(); ++it) {
      if (!OwnsMemory(*it) || it->LeavesScope()) continue;
      const BindingObj* last = lifetimes.scopes[it->scope][it->end];
      // A program that went through this pass before.
      auto* bind = ffi::GetRef<Binding>(last).as<VarBindingObj>();
      if (!bind || !IsKill(bind->value)) ends_[last].push_back(&*it);
    }
  }
  void VisitBinding(const Binding& binding) final {
    ExprMutator::VisitBinding(binding);
    auto it = ends_.find(binding.get());
    if (it == ends_.end()) return;
    for (const LiveValue* value : it->second)
      builder_->Emit(Call(KillOf(*value), {VisitExpr(value->var)}), "_");
  }

 private:
  static Op KillOf(const LiveValue& live) {
    const LoweredOps& ops = LoweredOps::Get();
    auto* call = live.value.as<CallObj>();
    if (call && call->Is(ops.alloc_tensor)) return ops.kill_tensor;
    if (call && call->Is(ops.alloc_storage)) return ops.kill_storage;
    return ops.kill_object;
  }
  std::unordered_map<const BindingObj*, std::vector<const LiveValue*>> ends_;
};
Function KillAfterLastUse(Function func, IRModule mod) {
  Lifetimes lifetimes = FindLifetimes(func, OpaqueCalls::kKeepNothing);
  return As<Function>(Killer(mod, lifetimes).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(KillAfterLastUse, 0,
                        "R.memory.kill_tensor(t), kill_storage(s), R.vm.kill_object(o) behind the "
                        "last use of a value and of all that shares its memory.");
}  // namespace tvm::relax
