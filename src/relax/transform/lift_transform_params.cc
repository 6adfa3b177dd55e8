// SPDX-License-Identifier: Apache-2.0
// What is computed from weights alone becomes a function of its own, which runs once.
#include <unordered_set>

#include "relax/transform/weights.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
constexpr const char* kConsume = "relax.lift_transform_params.consume_params";
TVM_REGISTER() {
  ::tvm::transform::DefConfig<bool>(
      kConsume, false, "transform_params gives up each weight as soon as it has taken it.");
}

/// What of a function is lifted, and what the rest of it uses of that.
struct LiftPlan {
  Function func;
  size_t inputs = 0;
  std::unordered_set<const Object*> lifted;  // ids of variables
  std::vector<Binding> bindings;             // of them, in order
  std::vector<Var> outputs;                  // also weights as they are
};

bool StopsLifting(const Expr& value) {
  static const Op& stop = *new Op(Op::Get("relax.builtin.stop_lift_params"));
  auto* call = value.as<CallObj>();
  return call && call->Is(stop);
}

LiftPlan MakePlan(const Function& func, size_t inputs) {
  LiftPlan plan;
  plan.func = func;
  plan.inputs = inputs;
  std::unordered_set<const Object*> weights, symbolic, of_weights;
  auto define = [&](const StructInfo& info) {
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(info)) symbolic.insert(var.get());
  };
  for (size_t i = inputs; i < func->params.size(); ++i) {
    weights.insert(func->params[i]->vid.get());
    define(GetStructInfo(func->params[i]));
  }
  of_weights = weights;
  std::unordered_set<const Object*> seen;
  // Bindings that stay, to see what they use; constants may stay and be lifted.
  auto use = [&](const Array<Var>& vars) {
    for (const Var& var : vars) {
      const Object* id = var->vid.get();
      if (of_weights.count(id) && seen.insert(id).second) plan.outputs.push_back(var);
    }
  };
  for (const BindingBlock& block : func->body->blocks) {
    for (const Binding& binding : block->bindings) {
      Expr value = ValueOf(binding);
      bool liftable = !StopsLifting(value) && !value.as<FunctionObj>() && !FindImpureCall(value);
      bool depends = false;
      for (const Var& var : FreeVars(value)) {
        const Object* id = var->vid.get();
        liftable = liftable && (weights.count(id) || plan.lifted.count(id));
        depends |= of_weights.count(id) > 0;
      }
      for (const tir::Var& var : FreeSymbolicVars(value))
        liftable = liftable && symbolic.count(var.get());
      if (!liftable) {
        use(UsedVars(value));
        continue;
      }
      plan.lifted.insert(binding->var->vid.get());
      plan.bindings.push_back(binding);
      if (depends) of_weights.insert(binding->var->vid.get());
      if (auto* cast = binding.as<MatchCastObj>()) define(cast->struct_info);
    }
  }
  use(UsedVars(func->body->body));
  // What does not come from a weight stays where it is.
  std::erase_if(plan.lifted, [&](const Object* id) { return !of_weights.count(id); });
  return plan;
}

/// Bindings without those that are lifted; what they gave are parameters now.
class LiftedRemover : public VarReplacer {
 public:
  explicit LiftedRemover(const LiftPlan& plan) : plan_(plan) {}
  void VisitBinding(const Binding& binding) final {
    if (!plan_.lifted.count(binding->var->vid.get())) VarReplacer::VisitBinding(binding);
  }

 private:
  const LiftPlan& plan_;
};

/// Makes transform_params of one function, or of several with the same weights.
class TransformMaker {
 public:
  TransformMaker(const LiftPlan& first, bool consume)
      : builder_(BlockBuilder::Create()), consume_(consume) {
    Function func = CopyWithNewVars(first.func);
    for (size_t i = first.inputs; i < func->params.size(); ++i)
      infos_.push_back(GetStructInfo(func->params[i]));
    params_ = Var("params", TupleStructInfo(infos_));
    builder_->BeginScope(Array<Var>{params_});
    builder_->BeginSequence();
    if (!consume_) builder_->BeginDataflowBlock();
    static const ExternFunc& reset = *new ExternFunc("vm.builtin.tuple_reset_item");
    for (size_t i = first.inputs; i < func->params.size(); ++i) {
      auto index = static_cast<int64_t>(i - first.inputs);
      weights_.push_back(
          builder_->Emit(TupleGetItem(params_, index), func->params[i]->name_hint()));
      if (!consume_) continue;
      builder_->Emit(
          Call(reset, {params_, PrimValue::Int64(index)}, {}, {TupleStructInfo::Void()}));
    }
  }
  /// Adds the work of a function; gives the places of its outputs in the result.
  std::vector<size_t> Add(const LiftPlan& plan) {
    Map<tir::Var, PrimExpr> symbolic;
    std::unordered_map<const Object*, Expr> values;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const Var param = plan.func->params[plan.inputs + i];
      values[param->vid.get()] = weights_[i];
      MatchSymbolic(GetStructInfo(param), infos_[i], &symbolic);
    }
    for (const Binding& binding : plan.bindings) {
      VarReplacer replacer(symbolic);
      for (const Var& var : FreeVars(ValueOf(binding)))
        replacer.Replace(var, values.at(var->vid.get()));
      Expr value = builder_->Normalize(replacer.VisitExpr(ValueOf(binding)));
      auto [known, is_new] = known_.try_emplace(value, Var());
      if (is_new) {
        known->second = builder_->Emit(value, binding->var->name_hint());
      }
      Var now = known->second;
      if (auto* cast = binding.as<MatchCastObj>())
        now = builder_->EmitMatchCast(now, replacer.VisitStructInfo(cast->struct_info),
                                      binding->var->name_hint());
      values[binding->var->vid.get()] = now;
    }
    std::vector<size_t> places;
    for (const Var& output : plan.outputs) {
      Expr value = values.at(output->vid.get());
      size_t place = 0;
      while (place < outputs_.size() && !outputs_[place].same_as(value)) ++place;
      if (place == outputs_.size()) outputs_.push_back(value);
      places.push_back(place);
    }
    return places;
  }
  Function Finish(const String& name) {
    Expr result = Tuple(Array<Expr>(outputs_.begin(), outputs_.end()));
    if (!consume_) {
      result = builder_->EmitOutput(result);
      builder_->CloseBlock();
    } else {
      result = builder_->Emit(result);
    }
    SeqExpr before(Array<BindingBlock>(), result);
    SeqExpr body = MakeSeq(before, builder_->EndSequence(), result);
    builder_->EndScope();
    DictAttrs attrs(Map<String, Any>{{attr::kGlobalSymbol, name}});
    return RemoveAllUnused(Function({params_}, body, std::nullopt, !consume_, attrs));
  }
  size_t size() const { return outputs_.size(); }
  StructInfo InfoOf(size_t place) const { return GetStructInfo(outputs_[place]); }

 private:
  static void MatchSymbolic(const StructInfo& from, const StructInfo& to,
                            Map<tir::Var, PrimExpr>* map) {
    Array<tir::Var> a = TIRVarsInStructInfo(from), b = TIRVarsInStructInfo(to);
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) map->Set(a[i], b[i]);
  }
  BlockBuilder builder_;
  bool consume_;
  Var params_;
  Array<StructInfo> infos_;
  std::vector<Var> weights_;
  std::vector<Expr> outputs_;
  std::unordered_map<Expr, Var, StructuralHasher, StructuralEquals> known_;
};

/// The function whose weights are the results of transform_params: all `count` of them, of which
/// it uses those at `places`.
Function WithoutLifted(const LiftPlan& plan, const std::vector<size_t>& places, size_t count,
                       const TransformMaker& maker) {
  Array<Var> params(plan.func->params.begin(), plan.func->params.begin() + plan.inputs);
  std::vector<Var> transformed(count);
  LiftedRemover remover(plan);
  for (size_t i = 0; i < places.size(); ++i) {
    Var param("transformed_param_" + std::to_string(places[i]), GetStructInfo(plan.outputs[i]));
    transformed[places[i]] = param;
    remover.Replace(plan.outputs[i], param);
  }
  for (size_t i = 0; i < count; ++i) {
    if (!transformed[i].defined()) {
      // Of other functions: what is known of it here must not speak of their variables.
      StructInfo info = EraseToWellDefined(
          maker.InfoOf(i), [](const tir::Var&) { return PrimExpr(); },
          [](const Var&) -> Optional<Expr> { return std::nullopt; });
      transformed[i] = Var("transformed_param_" + std::to_string(i), info);
    }
    params.push_back(transformed[i]);
  }
  Function rest(params, plan.func->body, plan.func->ret_struct_info, plan.func->is_pure,
                plan.func->attrs, plan.func->span);
  return As<Function>(remover.VisitExpr(rest));
}

IRModule LiftTransformParams(IRModule mod, Variant<bool, Array<String>> shared_transform) {
  auto names = shared_transform.as<Array<String>>();
  bool shared = names || shared_transform.as<bool>().value_or(false);
  std::unordered_set<std::string> chosen;
  if (names) {
    for (const String& name : *names) {
      mod->GetGlobalVar(name);  // raises when there is none
      chosen.insert(name);
    }
  }
  bool consume = transform::PassContext::Current()->GetConfig<bool>(kConsume);
  std::vector<std::pair<GlobalVar, LiftPlan>> plans;
  for (const auto& [var, base] : mod->Sorted()) {
    auto func = base.as<Function>();
    if (!func || (names && !chosen.count(var->name_hint))) continue;
    auto inputs = NumInputs(*func, "LiftTransformParams");
    if (!inputs) continue;
    plans.emplace_back(var, MakePlan(*func, *inputs));
  }
  if (plans.empty()) return mod;
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  auto add = [&](const String& name, const Function& func) {
    if (mod->FindGlobalVar(name).defined()) {
      TVM_FFI_THROW(ValueError) << "LiftTransformParams: expected no function '" << name
                                << "', got one: the weights were lifted before";
    }
    GlobalVar var(name);
    UpdateStructInfo(var, GetStructInfo(func));
    functions.Set(var, func);
  };
  auto replace = [&](const GlobalVar& var, const Function& func) {
    functions.erase(var);
    GlobalVar now(var->name_hint);
    UpdateStructInfo(now, GetStructInfo(func));
    functions.Set(now, func);
  };
  if (!shared) {
    for (const auto& [var, plan] : plans) {
      TransformMaker maker(plan, consume);
      std::vector<size_t> places = maker.Add(plan);
      String name = var->name_hint + "_transform_params";
      add(name, maker.Finish(name));
      replace(var, WithoutLifted(plan, places, maker.size(), maker));
    }
  } else {
    const LiftPlan& first = plans[0].second;
    TransformMaker maker(first, consume);
    std::vector<std::vector<size_t>> places;
    for (const auto& [var, plan] : plans) {
      size_t own = plan.func->params.size() - plan.inputs;
      bool same = own == first.func->params.size() - first.inputs;
      for (size_t i = 0; same && i < own; ++i) {
        same = StructuralEqual(GetStructInfo(plan.func->params[plan.inputs + i]),
                               GetStructInfo(first.func->params[first.inputs + i]), true);
      }
      if (!same) {
        TVM_FFI_THROW(ValueError) << "LiftTransformParams: expected the same weights in '"
                                  << plans[0].first->name_hint << "' and '" << var->name_hint
                                  << "', which share a transform, got others";
      }
      places.push_back(maker.Add(plan));
    }
    add("transform_params", maker.Finish("transform_params"));
    for (size_t i = 0; i < plans.size(); ++i)
      replace(plans[i].first, WithoutLifted(plans[i].second, places[i], maker.size(), maker));
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(
    LiftTransformParams, 1,
    "main(x, w) with num_input 1, where v = permute_dims(w); y = matmul(x, v)  ->  "
    "main_transform_params(params) returns (permute_dims(params[0]),), and main(x, "
    "transformed_param_0) uses that. shared_transform: one function transform_params for all, or "
    "for those named.",
    Arg("shared_transform", false));
}  // namespace tvm::relax
