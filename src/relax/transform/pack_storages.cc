// SPDX-License-Identifier: Apache-2.0
// The storages of a function become one arena, and its tensors lie in it where they fit: one
// allocation per call, and less memory than storages that tensors use as a whole.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_set>

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

/// Memory that grows, with holes where something has ended.
class Arena {
 public:
  int64_t size() const { return size_; }
  /// The smallest hole that is large enough, else the end, with the hole there if there is one.
  int64_t Take(int64_t bytes) {
    auto fit = by_size_.lower_bound({bytes, 0});
    if (fit != by_size_.end()) {
      auto [hole, offset] = *fit;
      Remove(holes_.find(offset));
      if (hole > bytes) Insert(offset + bytes, hole - bytes);
      return offset;
    }
    int64_t offset = size_;
    if (!holes_.empty()) {
      auto last = std::prev(holes_.end());
      if (last->first + last->second == size_) {
        offset = last->first;
        Remove(last);
      }
    }
    size_ = offset + bytes;
    return offset;
  }
  void Give(int64_t offset, int64_t bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && next->first == offset + bytes) {
      bytes += next->second;
      next = Remove(next);
    }
    if (next != holes_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        Remove(before);
      }
    }
    Insert(offset, bytes);
  }

 private:
  using Holes = std::map<int64_t, int64_t>;  // offset -> bytes
  void Insert(int64_t offset, int64_t bytes) {
    holes_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  Holes::iterator Remove(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return holes_.erase(hole);
  }
  Holes holes_;
  std::set<std::pair<int64_t, int64_t>> by_size_;
  int64_t size_ = 0;
};

/// Storages of one device and scope, and where their tensors go.
struct ArenaPlan {
  Arena arena;
  std::priority_queue<std::tuple<int, int64_t, int64_t>,
                      std::vector<std::tuple<int, int64_t, int64_t>>, std::greater<>>
      running;  // (end, offset, bytes)
  size_t storages = 0;
  const CallObj* first = nullptr;  // the storage whose device, scope and dtype it has
  Optional<Var> var;
};
struct Placed {
  ArenaPlan* plan;
  int64_t offset;
};
class ArenaPlanner {
 public:
  explicit ArenaPlanner(const Function& func)
      : lifetimes_(FindLifetimes(func, OpaqueCalls::kMayKeepMemory)) {
    FindStorages();
    for (const LiveValue& live : lifetimes_.values) Place(live);
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
  void Place(const LiveValue& live) {
    auto* call = AsCall(live, LoweredOps::Get().alloc_tensor);
    if (!call || live.bases.size() != 1) return;
    auto it = storages.find(live.bases[0]->var->vid.get());
    if (it == storages.end()) return;
    ArenaPlan& plan = *it->second;
    for (; !plan.running.empty() && std::get<0>(plan.running.top()) < live.begin;
         plan.running.pop())
      plan.arena.Give(std::get<1>(plan.running.top()), std::get<2>(plan.running.top()));
    int64_t bytes = Aligned(std::max<int64_t>(BytesOfTensor(live), 1));
    int64_t offset = plan.arena.Take(bytes);
    tensors[live.var->vid.get()] = {&plan, offset};
    plan.running.emplace(live.end, offset, bytes);
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
      plan->var = builder_->Emit(Call(ops.alloc_storage, {ShapeExpr({Dim(plan->arena.size())}),
                                                          args[1], args[2], args[3]}),
                                 "arena");
      return;
    }
    auto it = planner_->tensors.find(id);
    if (it == planner_->tensors.end()) return ExprMutator::VisitBinding_(binding);
    auto* call = binding->value.as<CallObj>();
    Array<Expr> args = VisitExprs(call->args);
    args.Set(0, it->second.plan->var.value());
    args.Set(1, PrimValue::Int64(it->second.offset));
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
