// SPDX-License-Identifier: Apache-2.0
// The storages of a function become one arena, and its tensors lie in it where they fit: one
// allocation per call, and less memory than storages that tensors use as a whole.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "arena_layout.h"
#include "lowering.h"
#include "relax/analysis/lifetime.h"
#include "tvm/expr/op.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
constexpr int64_t kAlignment = 64;  // of a tensor, as everywhere
int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Storages of one device and scope, and where their tensors go.
struct ArenaPlan {
  std::vector<ArenaRequest> requests;
  ArenaLayout layout;
  size_t storages = 0;
  const CallObj* first = nullptr;  // the storage whose device, scope and dtype it has
  Optional<Var> var;
};
struct Placed {
  ArenaPlan* plan;
  size_t request;
};
class ArenaPlanner {
 public:
  explicit ArenaPlanner(const Function& func)
      : lifetimes_(FindLifetimes(func, OpaqueCalls::kMayKeepMemory)) {
    FindStorages();
    for (const LiveValue& live : lifetimes_.values) Request(live);
    for (auto& [key, plan] : plans_) plan.layout = LayOutArena(plan.requests);
  }
  std::unordered_map<const Object*, Placed> tensors;  // by Id
  std::unordered_map<const Object*, ArenaPlan*> storages;
  bool IsUseful() const {
    return std::any_of(plans_.begin(), plans_.end(),
                       [](const auto& plan) { return plan.second.storages > 1; });
  }

 private:
  static const CallObj* AsCall(const LiveValue& live, const Op& op) {
    auto* call = live.value.defined() ? live.value.as<CallObj>() : nullptr;
    return call && call->Is(op) ? call : nullptr;
  }
  /// Storages of constant size in the body of the function that only hold tensors, all of which
  /// have an end there.
  void FindStorages() {
    const LoweredOps& ops = LoweredOps::Get();
    std::unordered_set<const LiveValue*> bad;
    for (const LiveValue& live : lifetimes_.values) {
      auto* tensor = AsCall(live, ops.alloc_tensor);
      bool good = tensor && live.scope == 0 && !live.escapes && !live.LeavesScope() &&
                  AsConstInt(tensor->args[1].as<PrimValueObj>()->value) == 0;
      if (good) continue;
      for (const LiveValue* base : live.bases) bad.insert(base);
    }
    for (const LiveValue& live : lifetimes_.values) {
      auto* call = AsCall(live, ops.alloc_storage);
      if (!call || live.scope != 0 || live.escapes || live.LeavesScope() || bad.count(&live))
        continue;
      auto* size = call->args[0].as<ShapeExprObj>();
      if (!size || size->values.size() != 1 || !AsConstInt(size->values[0])) continue;
      auto device = AsConstInt(call->args[1].as<PrimValueObj>()->value).value_or(0);
      ArenaPlan& plan =
          plans_[{device, std::string(View(call->args[2].as<StringImmObj>()->value))}];
      if (!plan.first) plan.first = call;
      ++plan.storages;
      storages[live.var->vid.get()] = &plan;
    }
  }
  void Request(const LiveValue& live) {
    auto* call = AsCall(live, LoweredOps::Get().alloc_tensor);
    if (!call || live.bases.size() != 1) return;
    auto it = storages.find(live.bases[0]->var->vid.get());
    if (it == storages.end()) return;
    ArenaPlan& plan = *it->second;
    tensors[live.var->vid.get()] = {&plan, plan.requests.size()};
    int64_t bytes = Aligned(std::max<int64_t>(BytesOfTensor(live), 1));
    plan.requests.push_back({live.begin, live.end, bytes});
  }
  /// A tensor of symbolic shape may be as large as its storage.
  static int64_t BytesOfTensor(const LiveValue& live) {
    auto* info = GetStructInfoAs<TensorStructInfoObj>(live.var);
    auto dims = info->Dims();
    auto bytes = dims ? AsConstInt(BytesOf(dims.value(), info->dtype)) : std::nullopt;
    if (bytes) return *bytes;
    auto* storage = live.bases[0]->value.as<CallObj>();
    return *AsConstInt(storage->args[0].as<ShapeExprObj>()->values[0]);
  }
  Lifetimes lifetimes_;
  std::map<std::pair<int64_t, std::string>, ArenaPlan> plans_;
};

class ArenaApplier : public ExprMutator {
 public:
  ArenaApplier(const IRModule& mod, ArenaPlanner* planner)
      : ExprMutator(WithoutFunctions(mod)), planner_(planner) {}
  void VisitBinding_(const VarBindingObj* binding) final {
    const Object* id = binding->var->vid.get();
    const LoweredOps& ops = LoweredOps::Get();
    if (auto it = planner_->storages.find(id); it != planner_->storages.end()) {
      ArenaPlan* plan = it->second;
      if (plan->var) return;
      const Array<Expr>& args = plan->first->args;
      plan->var = builder_->Emit(
          Call(ops.alloc_storage, {ShapeExpr({Dim(plan->layout.size)}), args[1], args[2], args[3]}),
          "arena");
      return;
    }
    auto it = planner_->tensors.find(id);
    if (it == planner_->tensors.end()) return ExprMutator::VisitBinding_(binding);
    auto* call = binding->value.as<CallObj>();
    Array<Expr> args = VisitExprs(call->args);
    args.Set(0, it->second.plan->var.value());
    args.Set(1, PrimValue::Int64(it->second.plan->layout.offsets[it->second.request]));
    ReEmitBinding(binding, Call(ops.alloc_tensor, args, {}, {}, call->span));
  }

 private:
  ArenaPlanner* planner_;
};

Function PackStorages(Function func, IRModule mod) {
  ArenaPlanner planner(func);
  if (!planner.IsUseful()) return func;
  return As<Function>(ArenaApplier(mod, &planner).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(PackStorages, 0,
                        "a = R.memory.alloc_storage(R.shape([64])); b = R.memory.alloc_storage("
                        "R.shape([256]))  ->  one storage with the tensors at offsets, in each "
                        "function that plans its memory.");
}  // namespace tvm::relax
