// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation of a function that is one dataflow block.
#include <unordered_set>

#include "tir/text.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
bool IsCallOf(const Expr& expr, const char* name) {
  auto* call = expr.as<CallObj>();
  auto* op = call ? call->op.as<OpObj>() : nullptr;
  return op && op->name == name;
}
/// Whether something in a value of that kind has a gradient.
bool IsDifferentiable(const StructInfo& info) {
  if (auto* tensor = info.as<TensorStructInfoObj>())
    return tensor->dtype.is_float() || tensor->dtype.is_bfloat16();
  auto* tuple = info.as<TupleStructInfoObj>();
  return tuple && std::any_of(tuple->fields.begin(), tuple->fields.end(), IsDifferentiable);
}

/// The gradient of one variable as far as it is known: of a tensor, or of the items of a tuple.
struct Adjoint {
  Expr value{nullptr};
  std::vector<Adjoint> items;
};

class Differentiator {
 public:
  Differentiator(const BlockBuilder& builder, const Function& func, const Array<Var>& wanted,
                 int64_t target_index)
      : func_(func), wanted_(wanted), builder_(builder) {
    FindTarget(target_index);
    FindDependent();
  }

  Function Run() {
    builder_->BeginScope(func_->params);
    builder_->BeginSequence();
    builder_->BeginDataflowBlock();
    const Array<Binding>& bindings = func_->body->blocks[0]->bindings;
    for (const Binding& binding : bindings) Forward(binding);
    auto* target = GetStructInfoAs<TensorStructInfoObj>(target_);
    Expr one = CallOperator("relax.ones", {ShapeExpr(Array<PrimExpr>()), target->dtype});
    Add(&adjoints_[target_->vid.get()], GetStructInfo(target_), one, target_->name_hint());
    for (size_t i = bindings.size(); i-- > 0;) Backward(bindings[i]);
    Array<Expr> gradients;
    for (const Var& param : wanted_) {
      Expr gradient = Whole(adjoints_[param->vid.get()], GetStructInfo(param));
      gradients.push_back(builder_->EmitOutput(gradient, param->name_hint() + "_adjoint_out"));
    }
    builder_->CloseBlock();
    Tuple result({func_->body->body, Tuple(gradients)});
    SeqExpr body = MakeSeq(func_->body, builder_->EndSequence(), result);
    builder_->EndScope();
    Function adjoint(func_->params, body, std::nullopt, func_->is_pure, func_->attrs);
    return RemoveAllUnused(adjoint);
  }

 private:
  // ---- what depends on what -------------------------------------------------------------------
  void FindTarget(int64_t index) {
    Array<Expr> results = {func_->body->body};
    if (auto* tuple = func_->body->body.as<TupleObj>()) results = tuple->fields;
    if (index < 0 || index >= static_cast<int64_t>(results.size())) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected target_index in [0, " << results.size()
                                << "), got " << index;
    }
    const Expr result = results[index];
    auto* info = GetStructInfoAs<TensorStructInfoObj>(result);
    if (!result.as<VarObj>() || !info || info->ndim != 0 ||
        !IsDifferentiable(GetStructInfo(result))) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected the target to be a scalar of a "
                                   "floating-point type, got "
                                << tir::TextOf(GetStructInfo(result));
    }
    target_ = As<Var>(result);
  }
  void FindDependent() {
    for (const Var& param : wanted_) dependent_.insert(param->vid.get());
    for (const Binding& binding : func_->body->blocks[0]->bindings) {
      const Expr value = ValueOf(binding);
      bool depends = false, again = false;
      for (const Var& var : UsedVars(value)) {
        depends |= dependent_.count(var->vid.get()) > 0;
        again |= again_.count(var->vid.get()) > 0;
      }
      const Object* id = binding->var->vid.get();
      if (depends && IsDifferentiable(GetStructInfo(binding->var)) &&
          !IsCallOf(value, "relax.grad.no_grad"))
        dependent_.insert(id);
      if (IsCallOf(value, "relax.grad.start_checkpoint")) {
        starts_.insert(id);
        again_.insert(id);
      } else if (IsCallOf(value, "relax.grad.end_checkpoint")) {
        for (const Var& var : UsedVars(value)) again_.erase(var->vid.get());
      } else if (again) {
        again_.insert(id);
      }
      values_[id] = value;
    }
    for (const Object* id : starts_) again_.erase(id);
  }

  // ---- forward --------------------------------------------------------------------------------
  void Forward(const Binding& binding) {
    Expr value = ValueOf(binding);
    bool marks = IsCallOf(value, "relax.grad.start_checkpoint") ||
                 IsCallOf(value, "relax.grad.end_checkpoint");
    if (!marks) return builder_->EmitNormalized(binding);
    builder_->EmitNormalized(VarBinding(binding->var, value.as<CallObj>()->args[0]));
  }
  /// What stands between checkpoints is computed again where the gradient needs it.
  Expr Recomputed(const Expr& expr) {
    if (auto* tuple = expr.as<TupleObj>()) {
      Array<Expr> fields = tuple->fields.Map([&](const Expr& f) { return Recomputed(f); });
      return fields.same_as(tuple->fields) ? expr : Tuple(fields);
    }
    auto* var = expr.as<VarObj>();
    if (!var || !again_.count(var->vid.get())) return expr;
    auto it = recomputed_.find(var->vid.get());
    if (it != recomputed_.end()) return it->second;
    Expr value = values_.at(var->vid.get());
    VarReplacer replacer;
    for (const Var& used : UsedVars(value)) replacer.Replace(used, Recomputed(used));
    Var again = builder_->Emit(replacer.VisitExpr(value), var->name_hint() + "_cp");
    recomputed_.emplace(var->vid.get(), again);
    return again;
  }

  // ---- backward -------------------------------------------------------------------------------
  void Backward(const Binding& binding) {
    auto it = adjoints_.find(binding->var->vid.get());
    if (it == adjoints_.end() || !dependent_.count(binding->var->vid.get())) return;
    Adjoint adjoint = it->second;
    const Expr value = ValueOf(binding);
    if (auto* call = value.as<CallObj>()) {
      OfCall(binding->var, call, Whole(adjoint, GetStructInfo(binding->var)));
    } else if (auto* tuple = value.as<TupleObj>()) {
      for (size_t i = 0; i < adjoint.items.size(); ++i) Pass(tuple->fields[i], adjoint.items[i]);
    } else if (auto* item = value.as<TupleGetItemObj>()) {
      auto* info = GetStructInfoAs<TupleStructInfoObj>(item->tuple_value);
      Adjoint whole;
      whole.items.resize(info->fields.size());
      whole.items[item->index] = adjoint;
      Pass(item->tuple_value, whole);
    } else {
      Pass(value, adjoint);
    }
  }
  void OfCall(const Var& var, const CallObj* call, const Expr& gradient) {
    const GradientFn* rule = FPrimalGradient.Find(call->op);
    if (!rule) {
      TVM_FFI_THROW(ValueError)
          << "Gradient: expected operators with a gradient (register_gradient adds one), got "
          << tir::TextOf(ffi::GetRef<Call>(call));
    }
    Array<Expr> args = call->args.Map([&](const Expr& arg) { return Recomputed(arg); });
    Call again = ffi::GetRef<Call>(call);
    Var result = var;
    if (!args.same_as(call->args)) {
      again = As<Call>(
          builder_->Normalize(Call(call->op, args, call->attrs, call->sinfo_args, call->span)));
      result = As<Var>(Recomputed(var));
    }
    Var output_grad = As<Var>(AsVar(gradient));
    Array<Expr> gradients = (*rule)(result, again, output_grad, builder_);
    if (gradients.size() != call->args.size()) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected " << call->args.size()
                                << " gradients, one for each argument, got " << gradients.size()
                                << " of " << tir::TextOf(ffi::GetRef<Call>(call));
    }
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!IsCallOf(gradients[i], "relax.grad.no_grad")) Pass(call->args[i], gradients[i]);
    }
  }
  Expr AsVar(const Expr& expr) {
    Expr leaf = builder_->NormalizeArgument(expr);
    return leaf.as<VarObj>() ? leaf : Expr(builder_->Emit(leaf));
  }
  /// Adds what flows to an expression: to a variable, or to each field of a tuple.
  void Pass(const Expr& to, const Adjoint& adjoint) {
    if (adjoint.value.defined()) return Pass(to, adjoint.value);
    for (size_t i = 0; i < adjoint.items.size(); ++i) {
      if (auto* tuple = to.as<TupleObj>()) {
        Pass(tuple->fields[i], adjoint.items[i]);
      } else if (auto* var = to.as<VarObj>(); var && dependent_.count(var->vid.get())) {
        auto* info = GetStructInfoAs<TupleStructInfoObj>(to);
        Adjoint* own = &adjoints_[var->vid.get()];
        own->items.resize(info->fields.size());
        AddAll(&own->items[i], info->fields[i], adjoint.items[i], var->name_hint());
      }
    }
  }
  void Pass(const Expr& to, const Expr& gradient) {
    if (auto* tuple = to.as<TupleObj>()) {
      Expr leaf = builder_->NormalizeArgument(gradient);
      for (size_t i = 0; i < tuple->fields.size(); ++i) Pass(tuple->fields[i], ItemOf(leaf, i));
      return;
    }
    auto* var = to.as<VarObj>();
    if (!var || !dependent_.count(var->vid.get())) return;
    Add(&adjoints_[var->vid.get()], GetStructInfo(to), gradient, var->name_hint());
  }
  static Expr ItemOf(const Expr& leaf, size_t i) {
    if (auto* tuple = leaf.as<TupleObj>()) return tuple->fields[i];
    return TupleGetItem(leaf, static_cast<int64_t>(i));
  }
  void AddAll(Adjoint* to, const StructInfo& info, const Adjoint& from, const String& name) {
    if (from.value.defined()) return Add(to, info, from.value, name);
    auto* tuple = info.as<TupleStructInfoObj>();
    if (!tuple || from.items.empty()) return;
    to->items.resize(tuple->fields.size());
    for (size_t i = 0; i < from.items.size(); ++i)
      AddAll(&to->items[i], tuple->fields[i], from.items[i], name);
  }
  void Add(Adjoint* to, const StructInfo& info, const Expr& gradient, const String& name) {
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      to->items.resize(tuple->fields.size());
      Expr leaf = builder_->NormalizeArgument(gradient);
      for (size_t i = 0; i < tuple->fields.size(); ++i)
        Add(&to->items[i], tuple->fields[i], ItemOf(leaf, i), name);
      return;
    }
    if (!IsDifferentiable(info)) return;
    Expr sum = gradient;
    if (to->value.defined()) {
      Expr leaf = builder_->NormalizeArgument(gradient);
      sum = CallOperator("relax.add", {to->value, leaf});
    }
    to->value = builder_->Emit(sum, name + "_adjoint");
  }
  /// The whole gradient, zero where nothing flowed.
  Expr Whole(const Adjoint& adjoint, const StructInfo& info) {
    if (auto* tuple = info.as<TupleStructInfoObj>()) {
      Array<Expr> fields;
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        fields.push_back(builder_->NormalizeArgument(
            Whole(adjoint.items.empty() ? Adjoint() : adjoint.items[i], tuple->fields[i])));
      }
      return Tuple(fields);
    }
    if (adjoint.value.defined()) return adjoint.value;
    auto* tensor = info.as<TensorStructInfoObj>();
    if (!tensor || !tensor->Dims()) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected tensors of known shapes, got "
                                << tir::TextOf(info);
    }
    return CallOperator("relax.zeros", {ShapeExpr(tensor->Dims().value()), tensor->dtype});
  }

  Function func_;
  Array<Var> wanted_;
  BlockBuilder builder_;
  Var target_;
  std::unordered_set<const Object*> dependent_;       // on what the gradient is asked for
  std::unordered_set<const Object*> again_, starts_;  // between checkpoints
  std::unordered_map<const Object*, Expr> values_;
  std::unordered_map<const Object*, Var> recomputed_;
  std::unordered_map<const Object*, Adjoint> adjoints_;
};

/// The parameters of the copy at the places of those that are wanted.
Array<Var> WantedParams(const Function& func, const Function& copy,
                        const Optional<Array<Var>>& wanted) {
  Array<Var> result;
  auto add = [&](size_t i) {
    if (!IsDifferentiable(GetStructInfo(copy->params[i]))) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected tensors of floating-point numbers to "
                                   "differentiate by, got '"
                                << copy->params[i]->name_hint() << "', "
                                << tir::TextOf(GetStructInfo(copy->params[i]));
    }
    result.push_back(copy->params[i]);
  };
  if (!wanted) {
    for (size_t i = 0; i < copy->params.size(); ++i) add(i);
    return result;
  }
  for (const Var& var : wanted.value()) {
    size_t i = 0;
    while (i < func->params.size() && !func->params[i]->vid.same_as(var->vid)) ++i;
    if (i == func->params.size()) {
      TVM_FFI_THROW(ValueError) << "Gradient: expected require_grads to be parameters of the "
                                   "function, got '"
                                << var->name_hint() << "'";
    }
    add(i);
  }
  return result;
}

IRModule Gradient(IRModule mod, String func_name, Optional<Variant<Array<Var>, Var>> require_grads,
                  int64_t target_index) {
  auto func = mod->Lookup(func_name).as<Function>();
  if (!func) {
    TVM_FFI_THROW(TypeError) << "Gradient: expected a function of the graph language, got '"
                             << func_name << "'";
  }
  const Array<BindingBlock> blocks = (*func)->body->blocks;
  if (blocks.size() != 1 || !blocks[0].as<DataflowBlockObj>()) {
    TVM_FFI_THROW(ValueError) << "Gradient: expected '" << func_name
                              << "' to be one dataflow block (with R.dataflow() or with "
                              << "bb.dataflow()), got "
                              << (blocks.size() == 1 ? "a block that is none"
                                                     : std::to_string(blocks.size()) + " blocks");
  }
  Optional<Array<Var>> wanted;
  if (require_grads) {
    auto one = require_grads.value().as<Var>();
    wanted = one ? Array<Var>{*one} : *require_grads.value().as<Array<Var>>();
  }
  Function copy = CopyWithNewVars(*func);
  BlockBuilder builder = BlockBuilder::Create(mod);  // rules may add functions
  Array<Var> params = WantedParams(*func, copy, wanted);
  Function adjoint = Differentiator(builder, copy, params, target_index).Run();
  String name = func_name + "_adjoint";
  if (adjoint->GetAttr<String>(attr::kGlobalSymbol))
    adjoint = WithAttr(adjoint, attr::kGlobalSymbol, name);
  Map<GlobalVar, BaseFunc> functions = builder->GetModule()->functions;
  if (GlobalVar before = mod->FindGlobalVar(name); before.defined()) functions.erase(before);
  GlobalVar var(name);
  UpdateStructInfo(var, GetStructInfo(adjoint));
  functions.Set(var, adjoint);
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_RELAX_PASS(Gradient, 0,
               "main(x) returns y  ->  also main_adjoint(x), which returns (y, (gradients,)): of "
               "the result at target_index, a scalar, by the parameters of require_grads (all by "
               "default). main must be one dataflow block. What is between start_checkpoint and "
               "end_checkpoint is computed again.",
               Arg("func_name"), Arg("require_grads", nullptr), Arg("target_index", 0));
}  // namespace tvm::relax
