// SPDX-License-Identifier: Apache-2.0
// Runs of kernels whose memory stays where it is become functions that a CUDA graph records once
// and replays.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "lowering.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
/// Bindings that are recorded together.
struct Region {
  std::vector<const VarBindingObj*> bindings;
  bool has_kernel = false;
  Array<Var> inputs, outputs;
};
/// What is recorded of a function.
struct GraphPlan {
  std::vector<std::pair<const VarBindingObj*, int64_t>> storages;  // and their sizes
  std::vector<Region> regions;
};

class RegionFinder {
 public:
  RegionFinder(const Function& func, const IRModule& mod) : mod_(mod) {
    // Weights stay where they are; the first parameters change from call to call.
    if (auto inputs = func->GetAttr<int64_t>("num_input")) {
      for (size_t i = std::max<int64_t>(inputs.value(), 0); i < func->params.size(); ++i)
        fixed_.insert(func->params[i]->vid.get());
    }
    for (const BindingBlock& block : func->body->blocks) {
      for (const Binding& binding : block->bindings) Look(binding);
    }
    Close();
    FindEnds(func);
  }
  GraphPlan plan;

 private:
  void Look(const Binding& binding) {
    auto* bind = binding.as<VarBindingObj>();
    if (!bind) return Close();
    if (auto bytes = StorageBytes(bind->value)) {
      plan.storages.emplace_back(bind, *bytes);
      fixed_.insert(bind->var->vid.get());
      return;
    }
    bool is_kernel = IsKernel(bind->value);
    if (!is_kernel && !IsFixedValue(bind->value)) return Close();
    fixed_.insert(bind->var->vid.get());
    open_.bindings.push_back(bind);
    open_.has_kernel |= is_kernel;
  }
  void Close() {
    if (open_.has_kernel) plan.regions.push_back(std::move(open_));
    open_ = Region();
  }
  static std::optional<int64_t> StorageBytes(const Expr& value) {
    auto* call = value.as<CallObj>();
    if (!call || !call->Is(LoweredOps::Get().alloc_storage)) return std::nullopt;
    auto* size = call->args[0].as<ShapeExprObj>();
    bool is_global = View(call->args[2].as<StringImmObj>()->value) == "global";
    if (!size || size->values.size() != 1 || !is_global) return std::nullopt;
    return AsConstInt(size->values[0]);
  }
  /// The same values at the same addresses in every call.
  bool IsFixed(const Expr& expr) const {
    if (auto* var = expr.as<VarObj>()) return fixed_.count(var->vid.get());
    if (auto* tuple = expr.as<TupleObj>()) {
      return Recurse([&] {
        return std::all_of(tuple->fields.begin(), tuple->fields.end(),
                           [&](const Expr& field) { return IsFixed(field); });
      });
    }
    if (auto* shape = expr.as<ShapeExprObj>()) {
      return std::all_of(shape->values.begin(), shape->values.end(),
                         [](const PrimExpr& e) { return e.as<IntImmObj>(); });
    }
    if (auto* prim = expr.as<PrimValueObj>())
      return prim->value.as<IntImmObj>() || prim->value.as<FloatImmObj>();
    return expr.as<ConstantObj>() || expr.as<StringImmObj>() || expr.as<DataTypeImmObj>() ||
           expr.as<GlobalVarObj>();
  }
  bool AreFixed(const Array<Expr>& args) const {
    return std::all_of(args.begin(), args.end(), [&](const Expr& arg) { return IsFixed(arg); });
  }
  /// Names, tuples and views of fixed memory.
  bool IsFixedValue(const Expr& value) const {
    if (auto* item = value.as<TupleGetItemObj>()) return IsFixed(item->tuple_value);
    auto* call = value.as<CallObj>();
    if (!call) return IsFixed(value);
    const LoweredOps& ops = LoweredOps::Get();
    return (call->Is(ops.alloc_tensor) || call->Is(ops.reshape) || call->Is(ops.view)) &&
           AreFixed(call->args);
  }
  bool IsKernel(const Expr& value) const {
    auto* call = value.as<CallObj>();
    if (!call) return false;
    bool is_dynamic = call->Is(LoweredOps::Get().call_tir_dyn);
    auto* callee = (is_dynamic ? Expr(call->args[0]) : call->op).as<GlobalVarObj>();
    if (!callee) return false;
    GlobalVar var = mod_->FindGlobalVar(callee->name_hint);
    auto* kernel = var.defined() ? mod_->Lookup(var).as<tir::PrimFuncObj>() : nullptr;
    return kernel && !kernel->HasNonzeroAttr(tir::attr::kIsHostFunc) && AreFixed(call->args);
  }
  /// What regions take from before them, and what is needed behind them.
  void FindEnds(const Function& func) {
    std::unordered_map<const Object*, size_t> region_of_binding;
    std::unordered_map<const Object*, std::pair<size_t, Var>> defined_in;
    for (size_t i = 0; i < plan.regions.size(); ++i) {
      for (const VarBindingObj* binding : plan.regions[i].bindings) {
        region_of_binding[binding] = i;
        defined_in[binding->var->vid.get()] = {i, binding->var};
      }
    }
    constexpr size_t kOutside = -1;
    std::vector<std::unordered_set<const Object*>> taken(plan.regions.size());
    std::unordered_set<const Object*> given;
    auto use = [&](const Var& var, size_t where) {
      const Object* id = var->vid.get();
      auto it = defined_in.find(id);
      size_t from = it == defined_in.end() ? kOutside : it->second.first;
      if (from == where) return;
      if (where != kOutside && taken[where].insert(id).second)
        plan.regions[where].inputs.push_back(var);
      if (from != kOutside && given.insert(id).second)
        plan.regions[from].outputs.push_back(it->second.second);
    };
    for (const BindingBlock& block : func->body->blocks) {
      for (const Binding& binding : block->bindings) {
        auto it = region_of_binding.find(binding.get());
        size_t where = it == region_of_binding.end() ? kOutside : it->second;
        for (const Var& var : UsedVars(ValueOf(binding))) use(var, where);
      }
    }
    for (const Var& var : UsedVars(func->body->body)) use(var, kOutside);
  }

  IRModule mod_;
  std::unordered_set<const Object*> fixed_;
  Region open_;
};

/// The storages that all functions of the module share: the largest of each with the largest of
/// the others, and so on.
struct SharedStorages {
  std::vector<int64_t> sizes;
  std::unordered_map<const Object*, int64_t> index_of;  // binding -> place in the tuple
  const CallObj* first = nullptr;
  void Add(const GraphPlan& plan) {
    auto storages = plan.storages;
    std::stable_sort(storages.begin(), storages.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (size_t i = 0; i < storages.size(); ++i) {
      auto [binding, bytes] = storages[i];
      if (i == sizes.size()) sizes.push_back(0);
      sizes[i] = std::max(sizes[i], bytes);
      index_of[binding] = static_cast<int64_t>(i);
      if (!first) first = binding->value.as<CallObj>();
    }
  }
  Function MakeFunction() const {
    BlockBuilder builder = BlockBuilder::Create();
    builder->BeginSequence();
    Array<Expr> made;
    for (int64_t bytes : sizes) {
      Array<Expr> args = first->args;
      args.Set(0, ShapeExpr({IntImm::Int64(bytes)}));
      made.push_back(builder->Emit(Call(first->op, args), "storage"));
    }
    Tuple result(made);
    SeqExpr body = MakeSeq(SeqExpr({}, result), builder->EndSequence(), result);
    return WithAttr(Function(Array<Var>(), body), "relax.force_pure", true);
  }
};

class GraphRewriter : public ExprMutator {
 public:
  GraphRewriter(const IRModule& mod, const GraphPlan& plan, const SharedStorages& storages,
                GlobalVar allocator, BlockBuilder functions, String name)
      : ExprMutator(WithoutFunctions(mod)),
        storages_(storages),
        allocator_(std::move(allocator)),
        functions_(std::move(functions)),
        name_(std::move(name)) {
    for (const Region& region : plan.regions) {
      for (const VarBindingObj* binding : region.bindings) recorded_.insert(binding);
      ends_[region.bindings.back()] = &region;
    }
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    if (auto it = storages_.index_of.find(binding); it != storages_.index_of.end()) {
      if (!memory_.defined()) {
        memory_ =
            builder_->Emit(CallWithMachine("get_cached_alloc", {allocator_, PrimValue::Int64(0)},
                                           GetStructInfoAs<FuncStructInfoObj>(allocator_)->ret));
      }
      return ReEmitBinding(binding, TupleGetItem(memory_, it->second));
    }
    if (!recorded_.count(binding)) return ExprMutator::VisitBinding_(binding);
    auto it = ends_.find(binding);
    if (it != ends_.end()) Replay(*it->second);
  }

 private:
  static Call CallWithMachine(const std::string& name, Array<Expr> args, StructInfo result) {
    return Call(LoweredOps::Get().call_with_vm,
                {ExternFunc("vm.builtin.cuda_graph." + name), Tuple(args)}, {}, {result});
  }
  void Replay(const Region& region) {
    Array<Binding> bindings;
    for (const VarBindingObj* binding : region.bindings)
      bindings.push_back(ffi::GetRef<VarBinding>(binding));
    Tuple result(Array<Expr>(region.outputs.begin(), region.outputs.end()));
    SeqExpr body({BindingBlock(bindings)}, result);
    UpdateStructInfo(body, GetStructInfo(result));
    Function captured = CopyWithNewVars(Function(region.inputs, body));
    captured = WithAttr(captured, "relax.force_pure", true);
    GlobalVar var =
        functions_->AddFunction(captured, std::string(View(name_)) + "_cuda_graph_capture");
    Array<Expr> inputs(region.inputs.begin(), region.inputs.end());
    Var replayed = builder_->Emit(CallWithMachine(
        "run_or_capture", {var, Tuple(VisitExprs(inputs)), PrimValue::Int64(next_++)},
        GetStructInfo(result)));
    for (size_t i = 0; i < region.outputs.size(); ++i) {
      VarBinding item(region.outputs[i], TupleGetItem(replayed, static_cast<int64_t>(i)));
      builder_->EmitNormalized(item);
    }
  }
  const SharedStorages& storages_;
  GlobalVar allocator_;
  BlockBuilder functions_;
  String name_;
  std::unordered_set<const Object*> recorded_;
  std::unordered_map<const Object*, const Region*> ends_;
  Var memory_;
  int64_t next_ = 0;
};

IRModule RewriteCUDAGraph(IRModule mod) {
  auto context = transform::PassContext::Current();
  if (!context->GetConfig<bool>("relax.backend.use_cuda_graph")) return mod;
  std::vector<std::tuple<GlobalVar, Function, GraphPlan>> plans;
  SharedStorages storages;
  for (const auto& [var, base] : mod->Sorted()) {
    auto func = base.as<Function>();
    if (!func) continue;
    GraphPlan plan = RegionFinder(*func, mod).plan;
    if (plan.regions.empty()) continue;
    storages.Add(plan);
    plans.emplace_back(var, *func, std::move(plan));
  }
  if (plans.empty()) return mod;
  BlockBuilder functions = BlockBuilder::Create(mod);
  GlobalVar allocator;
  if (!storages.sizes.empty())
    allocator = functions->AddFunction(storages.MakeFunction(), "cuda_graph_alloc");
  std::vector<std::pair<GlobalVar, Function>> changed;
  for (const auto& [var, func, plan] : plans) {
    GraphRewriter rewriter(mod, plan, storages, allocator, functions, var->name_hint);
    changed.emplace_back(var, As<Function>(rewriter.VisitExpr(func)));
  }
  Map<GlobalVar, BaseFunc> all = functions->GetModule()->functions;
  for (const auto& [var, func] : changed) all.Set(var, func);
  return IRModule(all, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_REGISTER() {
  transform::DefConfig<bool>("relax.backend.use_cuda_graph", false,
                             "Runs of kernels are recorded and replayed as CUDA graphs.");
}
TVM_RELAX_PASS(
    RewriteCUDAGraph, 0,
    "Kernels on memory that stays where it is  ->  a function main_cuda_graph_capture, "
    "run by vm.builtin.cuda_graph.run_or_capture, and their storages by get_cached_alloc "
    "of cuda_graph_alloc; with the option relax.backend.use_cuda_graph.");
}  // namespace tvm::relax
