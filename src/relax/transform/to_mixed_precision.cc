// SPDX-License-Identifier: Apache-2.0
// Products in float16 or bfloat16, and what lies between them.
#include <unordered_set>

#include "relax/transform/signature.h"
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
const DataType kHigh = DataType::Float(32);

int64_t PolicyOf(const Expr& value) {
  auto* call = value.as<CallObj>();
  auto* op = call ? call->op.as<OpObj>() : nullptr;
  return op ? TMixedPrecisionPolicy.Get(call->op, static_cast<int64_t>(kNever)) : kNever;
}
bool IsHigh(const StructInfo& info) {
  if (auto* tensor = info.as<TensorStructInfoObj>()) return tensor->dtype == kHigh;
  auto* tuple = info.as<TupleStructInfoObj>();
  return tuple && !tuple->fields.empty() &&
         std::all_of(tuple->fields.begin(), tuple->fields.end(), IsHigh);
}
/// An operator that follows its operands needs some.
bool HasHighOperand(const CallObj* call) {
  return std::any_of(call->args.begin(), call->args.end(),
                     [](const Expr& arg) { return IsHigh(GetStructInfo(arg)); });
}

/// A scalar in float32 that is known when the program runs: it cannot be cast.
bool IsHighScalar(const Expr& arg) {
  auto* prim = GetStructInfoAs<PrimStructInfoObj>(arg);
  return prim && prim->dtype == kHigh && !arg.as<PrimValueObj>();
}

/// Which variables of dataflow blocks are kept in the low precision: those that only products use,
/// directly or through operators that follow.
class DTypeDecider : public ExprVisitor {
 public:
  bool IsLow(const Var& var) const {
    auto it = wants_.find(var->vid.get());
    return it != wants_.end() && it->second == Wants{true, false};
  }

 private:
  struct Wants {
    bool low = false, high = false;
    bool operator==(const Wants&) const = default;
  };
  void VisitBindingBlock_(const DataflowBlockObj* block) final {
    for (size_t i = block->bindings.size(); i-- > 0;) {
      const Binding binding = block->bindings[i];
      const Expr value = ValueOf(binding);
      bool passes_on = PolicyOf(value) == kFollow || value.as<TupleObj>() ||
                       value.as<TupleGetItemObj>() || value.as<VarObj>();
      bool low = PolicyOf(value) == kAlways ||
                 (passes_on && binding->var.as<DataflowVarObj>() && IsLow(binding->var));
      for (const Var& var : UsedVars(value)) {
        Wants& wants = wants_[var->vid.get()];
        (low ? wants.low : wants.high) = true;
      }
      if (!binding->var.as<DataflowVarObj>()) wants_[binding->var->vid.get()].high = true;
    }
  }
  std::unordered_map<const Object*, Wants> wants_;
};

/// The attributes with another out_dtype, where they have one.
Attrs WithOutType(const Attrs& attrs, DataType dtype) {
  auto change = [&]<class Obj>(const Obj* old) {
    if constexpr (std::is_same_v<Obj, MatmulAttrsObj>) {
      return Attrs(MatmulAttrs(dtype));
    } else {
      auto node = ffi::make_object<Obj>(*old);
      node->out_dtype = dtype;
      return Attrs(ObjectRef(std::move(node)).template as<Attrs>().value());
    }
  };
  if (auto* a = attrs.as<MatmulAttrsObj>()) return change(a);
  if (auto* a = attrs.as<Conv1DAttrsObj>()) return change(a);
  if (auto* a = attrs.as<Conv2DAttrsObj>()) return change(a);
  if (auto* a = attrs.as<Conv3DAttrsObj>()) return change(a);
  if (auto* a = attrs.as<Conv1DTransposeAttrsObj>()) return change(a);
  if (auto* a = attrs.as<Conv2DTransposeAttrsObj>()) return change(a);
  return attrs;
}

class PrecisionRewriter : public ExprMutator {
 public:
  PrecisionRewriter(const IRModule& mod, const DTypeDecider& decider, DataType low,
                    DataType out_dtype)
      : ExprMutator(mod), decider_(decider), low_(low), out_dtype_(out_dtype) {}
  void VisitBindingBlock(const BindingBlock& block) final {
    if (block.as<DataflowBlockObj>()) casts_.clear();
    ExprMutator::VisitBindingBlock(block);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    if (!builder_->CurrentBlockIsDataflow()) return ExprMutator::VisitBinding_(binding);
    bool low = binding->var.as<DataflowVarObj>() && decider_.IsLow(binding->var) &&
               IsHigh(GetStructInfo(binding->var));
    ReEmitBinding(binding, Rewritten(binding->value, low));
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    if (!builder_->CurrentBlockIsDataflow()) return ExprMutator::VisitBinding_(binding);
    Expr value = As(binding->value, kHigh);
    builder_->EmitNormalized(
        MatchCast(binding->var, builder_->NormalizeArgument(value), binding->struct_info));
  }

 private:
  Expr Rewritten(const Expr& value, bool low) {
    auto* call = value.as<CallObj>();
    if (!call) return As(VisitBelow(value, low), low ? low_ : kHigh);
    int64_t policy = PolicyOf(value);
    if (policy == kAlways && HasHighOperand(call)) {
      Call product(
          call->op, Operands(call, low_),
          call->attrs ? Optional<Attrs>(WithOutType(call->attrs.value(), out_dtype_)) : call->attrs,
          call->sinfo_args, call->span);
      return As(builder_->Normalize(product), low ? low_ : kHigh);
    }
    bool follows = policy == kFollow && HasHighOperand(call) && low &&
                   std::none_of(call->args.begin(), call->args.end(), IsHighScalar);
    Call same(call->op, Operands(call, follows ? low_ : kHigh), call->attrs, call->sinfo_args,
              call->span);
    return As(builder_->Normalize(same), low ? low_ : kHigh);
  }
  /// Tuples and their items, whose parts are cast one by one.
  Expr VisitBelow(const Expr& value, bool low) {
    if (auto* tuple = value.as<TupleObj>()) {
      return Tuple(tuple->fields.Map([&](const Expr& f) { return As(f, low ? low_ : kHigh); }));
    }
    return builder_->Normalize(VisitExpr(value));
  }
  Array<Expr> Operands(const CallObj* call, DataType dtype) {
    return call->args.Map([&](const Expr& arg) { return As(arg, dtype); });
  }
  /// The expression, of which tensors in float32 or the low precision are of this type.
  Expr As(const Expr& before, DataType dtype) {
    if (auto* tuple = before.as<TupleObj>())
      return Tuple(tuple->fields.Map([&](const Expr& f) { return As(f, dtype); }));
    Expr expr = before.as<VarObj>() ? VisitExpr(before) : before;
    if (auto* scalar = expr.as<PrimValueObj>(); scalar && scalar->value.dtype() == kHigh)
      return PrimValue(cast(dtype, scalar->value));
    StructInfo info = GetStructInfo(expr);
    if (auto* tuple = info.as<TupleStructInfoObj>()) return AsTuple(expr, tuple, dtype);
    auto* tensor = info.as<TensorStructInfoObj>();
    // What came in low precision stays so; only what this pass changed is changed back.
    bool differs = tensor && tensor->dtype != dtype &&
                   (tensor->dtype == kHigh ||
                    (tensor->dtype == low_ && dtype == kHigh && IsOwn(before, expr)));
    if (!differs) return expr;
    if (expr.as<ConstantObj>()) return CallOperator("relax.wrap_param", {expr, dtype});
    auto* var = expr.as<VarObj>();
    if (!var) return CallOperator("relax.astype", {builder_->NormalizeArgument(expr), dtype});
    auto [it, is_new] = casts_.try_emplace({var->vid.get(), dtype == low_}, Var());
    if (is_new) it->second = builder_->Emit(CallOperator("relax.astype", {expr, dtype}));
    return it->second;
  }
  /// Whether a value in low precision was in float32 before.
  bool IsOwn(const Expr& before, const Expr& now) const {
    if (!before.as<VarObj>()) return true;  // a result that is being made
    return IsHigh(GetStructInfo(before)) || !before.same_as(now);
  }
  Expr AsTuple(const Expr& expr, const TupleStructInfoObj* info, DataType dtype) {
    bool differs = false;
    for (const StructInfo& field : info->fields) {
      auto* tensor = field.as<TensorStructInfoObj>();
      differs |= tensor && tensor->dtype == (dtype == low_ ? kHigh : low_);
    }
    if (!differs) return expr;
    Expr leaf = builder_->NormalizeArgument(expr);
    Array<Expr> fields;
    for (size_t i = 0; i < info->fields.size(); ++i) {
      Expr item = builder_->Emit(TupleGetItem(leaf, static_cast<int64_t>(i)));
      fields.push_back(As(item, dtype));
    }
    return Tuple(fields);
  }

  struct PairHash {
    size_t operator()(const std::pair<const Object*, bool>& p) const {
      return std::hash<const Object*>()(p.first) * 2 + p.second;
    }
  };
  const DTypeDecider& decider_;
  DataType low_, out_dtype_;
  std::unordered_map<std::pair<const Object*, bool>, Var, PairHash> casts_;
};

IRModule ToMixedPrecision(IRModule mod, DataType out_dtype,
                          Optional<Array<String>> fp16_input_names, DataType dtype) {
  if (dtype != DataType::Float(16) && dtype != DataType::BFloat16()) {
    TVM_FFI_THROW(ValueError) << "ToMixedPrecision: expected dtype float16 or bfloat16, got "
                              << dtype;
  }
  if (out_dtype != kHigh && out_dtype != dtype) {
    TVM_FFI_THROW(ValueError) << "ToMixedPrecision: expected out_dtype float32 or " << dtype
                              << ", got " << out_dtype;
  }
  std::unordered_set<std::string> low_inputs;
  for (const String& name : fp16_input_names.value_or({})) low_inputs.insert(name);
  std::unordered_map<std::string, NewSignature> changes;
  for (const auto& [var, base] : mod->Sorted()) {
    auto func = base.as<Function>();
    if (!func) continue;
    DTypeDecider decider;
    decider.VisitExpr(*func);
    PrecisionRewriter rewriter(mod, decider, dtype, out_dtype);
    for (const Var& param : (*func)->params) {
      auto* tensor = GetStructInfoAs<TensorStructInfoObj>(param);
      if (!tensor || tensor->dtype != kHigh || !low_inputs.count(param->name_hint())) continue;
      StructInfo info = tensor->shape
                            ? TensorStructInfo(tensor->shape.value(), dtype, tensor->vdevice)
                            : TensorStructInfo(dtype, tensor->ndim, tensor->vdevice);
      rewriter.SetVarRemap(param->vid, WithStructInfo(param, info));
    }
    auto changed = As<Function>(rewriter.VisitExpr(*func));
    if (!changed.same_as(base)) changes[std::string(var->name_hint)].func = changed;
  }
  return ChangeSignatures(mod, changes);
}
}  // namespace
TVM_RELAX_PASS(
    ToMixedPrecision, 0,
    "y = matmul(x, w)  ->  y = matmul(astype(x, float16), astype(w, float16), "
    "out_dtype), in dataflow blocks: products take float16 (or dtype, bfloat16) and add up in "
    "out_dtype, what only moves or combines elements between them is float16, the rest and all "
    "results float32. Constants are wrapped in wrap_param, which folding replaces by the cast "
    "tensor. Parameters of fp16_input_names become float16.",
    Arg("out_dtype", DataType::Float(32)), Arg("fp16_input_names", nullptr),
    Arg("dtype", DataType::Float(16)));
}  // namespace tvm::relax
