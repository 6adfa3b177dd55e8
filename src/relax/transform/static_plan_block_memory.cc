// SPDX-License-Identifier: Apache-2.0
// Tensors whose size is known before the function runs share storages, one after the other.
#include <map>
#include <optional>
#include <queue>
#include <unordered_set>

#include "lowering.h"
#include "relax/analysis/lifetime.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/infer.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
// ---- bounds of symbolic variables ---------------------------------------------------------------
/// What a function's attributes say about the variables of its signature.
class Bounds {
 public:
  explicit Bounds(const Function& func) {
    std::map<std::string_view, tir::Var> vars;
    for (const Var& param : func->params) {
      for (const tir::Var& var : TIRVarsInStructInfo(GetStructInfo(param)))
        vars.emplace(View(var->name_hint), var);
      for (const PrimExpr& e : CollectNonNegativeExpressions(GetStructInfo(param)))
        analyzer_.MarkGlobalNonNeg(e);
    }
    auto upper = Read(func, "tir_var_upper_bound", vars);
    auto lower = Read(func, "tir_var_lower_bound", vars);
    for (const String& name :
         func->GetAttr<Array<String>>("tir_non_negative_var").value_or(Array<String>()))
      analyzer_.MarkGlobalNonNeg(VarOf("tir_non_negative_var", name, vars));
    for (const auto& [name, value] : upper) {
      const tir::Var& var = vars.at(name);
      int64_t low = lower.count(name) ? lower.at(name) : 0;
      if (low > value) {
        TVM_FFI_THROW(ValueError) << "StaticPlanBlockMemory: expected tir_var_lower_bound of '"
                                  << name << "' to be at most its upper bound " << value << ", got "
                                  << low;
      }
      analyzer_.Bind(var, Range::FromMinExtent(Dim(low), Dim(value - low + 1)), true);
      bounded_.insert(var.get());
    }
  }
  PrimExpr Simplify(const PrimExpr& e) { return analyzer_.Simplify(e); }
  /// The largest value, when every variable has an upper bound.
  std::optional<int64_t> UpperBound(const PrimExpr& e) {
    if (auto value = AsConstInt(e)) return value;
    bool known = !tir::UsesVar(e, [&](const tir::VarObj* var) { return !bounded_.count(var); });
    if (!known) return std::nullopt;
    int64_t bound = analyzer_.const_int_bound(e)->max_value;
    return bound >= INT64_MAX / 2 ? std::nullopt : std::optional(bound);
  }

 private:
  using Vars = std::map<std::string_view, tir::Var>;
  static const tir::Var& VarOf(const char* attr, const String& name, const Vars& vars) {
    auto it = vars.find(View(name));
    if (it == vars.end()) {
      TVM_FFI_THROW(ValueError) << "StaticPlanBlockMemory: expected " << attr
                                << " to name variables of the function's parameters, got '" << name
                                << "'";
    }
    return it->second;
  }
  static std::map<std::string, int64_t, std::less<>> Read(const Function& func, const char* attr,
                                                          const Vars& vars) {
    std::map<std::string, int64_t, std::less<>> bounds;
    auto given = func->GetAttr<Map<String, Any>>(attr);
    if (!given) return bounds;
    for (const auto& [name, value] : given.value()) {
      VarOf(attr, name, vars);
      auto bound = value.try_cast<int64_t>();
      auto imm = value.try_cast<IntImm>();
      if (!bound && imm) bound = (*imm)->value;
      if (!bound || *bound < 0) {
        TVM_FFI_THROW(ValueError) << "StaticPlanBlockMemory: expected " << attr << " of '" << name
                                  << "' to be an integer that is not negative, got "
                                  << (bound ? std::to_string(*bound) : value.GetTypeKey());
      }
      bounds[std::string(View(name))] = *bound;
    }
    return bounds;
  }
  arith::Analyzer analyzer_;
  std::unordered_set<const Object*> bounded_;
};

// ---- the plan -----------------------------------------------------------------------------------
struct PlannedStorage {
  int64_t bytes = 0;
  std::optional<PrimExpr> dynamic;  // the size, where it has no bound
  DataType dtype;                   // of its first tensor
  Expr device, scope;
};
/// The storages of a function, and which of them each tensor is in.
struct Plan {
  std::vector<PlannedStorage> storages;
  std::unordered_map<const Object*, size_t> storage_of;  // by the Id of the tensor's variable
};

class Planner {
 public:
  Planner(const Function& func, Plan* plan) : bounds_(func), plan_(plan) {
    Lifetimes lifetimes = FindLifetimes(func, OpaqueCalls::kMayKeepMemory);
    std::vector<std::vector<const LiveValue*>> by_scope(lifetimes.scopes.size());
    for (const LiveValue& value : lifetimes.values) {
      if (IsPlannable(value)) by_scope[value.scope].push_back(&value);
    }
    for (const auto& tensors : by_scope) PlanScope(tensors);
  }

 private:
  struct Request {
    int64_t bytes;
    std::optional<PrimExpr> dynamic;
    const CallObj* alloc;
  };
  using Pool = std::multimap<int64_t, size_t>;  // free storages by size
  using DynamicPool = std::unordered_multimap<PrimExpr, size_t, StructuralHasher, StructuralEquals>;

  /// A tensor that nobody keeps: its end is known.
  static bool IsPlannable(const LiveValue& live) {
    auto* call = live.value.defined() ? live.value.as<CallObj>() : nullptr;
    return call && call->Is(LoweredOps::Get().new_tensor) && !live.escapes && !live.LeavesScope() &&
           GetStructInfoAs<TensorStructInfoObj>(live.var)->Dims().has_value();
  }
  /// Tensors of one scope in the order in which they are made; a storage serves again behind the
  /// end of the tensor in it.
  void PlanScope(const std::vector<const LiveValue*>& tensors) {
    using Release = std::pair<int, size_t>;  // after that position, that storage
    std::priority_queue<Release, std::vector<Release>, std::greater<>> running;
    std::map<std::pair<int64_t, std::string>, std::pair<Pool, DynamicPool>> pools;
    auto pool_of = [&](const Expr& device, const Expr& scope) -> auto& {
      auto index = AsConstInt(device.as<PrimValueObj>()->value).value_or(0);
      return pools[{index, std::string(View(scope.as<StringImmObj>()->value))}];
    };
    for (const LiveValue* tensor : tensors) {
      auto request = RequestOf(*tensor);
      if (!request) continue;
      while (!running.empty() && running.top().first < tensor->begin) {
        const PlannedStorage& storage = plan_->storages[running.top().second];
        auto& [fixed, dynamic] = pool_of(storage.device, storage.scope);
        if (storage.dynamic) {
          dynamic.emplace(*storage.dynamic, running.top().second);
        } else {
          fixed.emplace(storage.bytes, running.top().second);
        }
        running.pop();
      }
      auto& [fixed, dynamic] = pool_of(request->alloc->args[2], request->alloc->args[3]);
      size_t storage = request->dynamic ? TakeDynamic(*request, &dynamic) : Take(*request, &fixed);
      plan_->storage_of[tensor->var->vid.get()] = storage;
      if (tensor->IsUsed()) running.emplace(tensor->end, storage);
    }
  }
  std::optional<Request> RequestOf(const LiveValue& tensor) {
    auto* call = tensor.value.as<CallObj>();
    auto* info = GetStructInfoAs<TensorStructInfoObj>(tensor.var);
    std::string_view scope = View(call->args[3].as<StringImmObj>()->value);
    if (scope.starts_with("global.texture")) return std::nullopt;  // its size is no number
    PrimExpr bytes = BytesOf(info->Dims().value(), info->dtype);
    if (auto bound = bounds_.UpperBound(bytes)) {
      if (*bound == 0) return std::nullopt;
      return Request{*bound, std::nullopt, call};
    }
    return Request{0, bounds_.Simplify(bytes), call};
  }
  size_t New(const Request& request) {
    plan_->storages.push_back({request.bytes, request.dynamic,
                               request.alloc->args[1].as<DataTypeImmObj>()->value,
                               request.alloc->args[2], request.alloc->args[3]});
    return plan_->storages.size() - 1;
  }
  /// The smallest that is large enough, else the largest, which grows; nothing that is 16 times
  /// larger or smaller.
  size_t Take(const Request& request, Pool* pool) {
    constexpr int64_t kRange = 16;
    auto it = pool->lower_bound(request.bytes);
    bool fits = it != pool->end() && it->first / kRange <= request.bytes;
    if (!fits && it != pool->begin()) {
      --it;
      fits = it->first >= request.bytes / kRange;
    }
    if (!fits) return New(request);
    size_t storage = it->second;
    pool->erase(it);
    plan_->storages[storage].bytes = std::max(plan_->storages[storage].bytes, request.bytes);
    return storage;
  }
  size_t TakeDynamic(const Request& request, DynamicPool* pool) {
    auto it = pool->find(*request.dynamic);
    if (it == pool->end()) return New(request);
    size_t storage = it->second;
    pool->erase(it);
    return storage;
  }
  Bounds bounds_;
  Plan* plan_;
};

class PlanApplier : public ExprMutator {
 public:
  PlanApplier(const IRModule& mod, const Plan& plan)
      : ExprMutator(WithoutFunctions(mod)), plan_(plan), emitted_(plan.storages.size()) {}
  void VisitBinding_(const VarBindingObj* binding) final {
    auto it = plan_.storage_of.find(binding->var->vid.get());
    if (it == plan_.storage_of.end()) return ExprMutator::VisitBinding_(binding);
    const LoweredOps& ops = LoweredOps::Get();
    Optional<Var>& storage = emitted_[it->second];
    if (!storage) {
      const PlannedStorage& planned = plan_.storages[it->second];
      ShapeExpr size({planned.dynamic ? *planned.dynamic : Dim(planned.bytes)});
      storage = builder_->Emit(Call(ops.alloc_storage, {size, planned.device, planned.scope,
                                                        DataTypeImm(planned.dtype)}),
                               "storage");
    }
    auto* call = binding->value.as<CallObj>();
    ReEmitBinding(binding, Call(ops.alloc_tensor,
                                {storage.value(), PrimValue::Int64(0), VisitExpr(call->args[0]),
                                 call->args[1], call->args[2]},
                                {}, {}, call->span));
  }

 private:
  const Plan& plan_;
  std::vector<Optional<Var>> emitted_;
};

Function StaticPlanBlockMemory(Function func, IRModule mod) {
  Plan plan;
  Planner(func, &plan);
  if (plan.storages.empty()) return func;
  return As<Function>(PlanApplier(mod, plan).VisitExpr(func));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(StaticPlanBlockMemory, 0,
                        "R.builtin.alloc_tensor(...)  ->  R.memory.alloc_tensor in a storage that "
                        "tensors use one after the other; the attributes tir_var_upper_bound and "
                        "tir_var_lower_bound bound symbolic sizes.");
}  // namespace tvm::relax
