// SPDX-License-Identifier: Apache-2.0
// Operators of the graph become calls of PrimFuncs.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/structural_equal.h"
#include "relax/legalize/lowering.h"
#include "tvm/ir/structural.h"
#include "tvm/ir/target.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/relax/transform.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
using LegalizeMap = Map<String, ffi::Function>;

bool HasKnownShape(const StructInfo& info) {
  if (auto* tensor = info.as<TensorStructInfoObj>())
    return tensor->Dims().has_value() && !tensor->IsUnknownDtype();
  if (auto* tuple = info.as<TupleStructInfoObj>())
    return std::all_of(tuple->fields.begin(), tuple->fields.end(), HasKnownShape);
  if (auto* shape = info.as<ShapeStructInfoObj>()) return shape->values.has_value();
  return true;
}
/// The target of the first tensor among the arguments that is on a device.
Optional<Target> TargetOf(const Call& call) {
  for (const Expr& argument : call->args) {
    auto* tensor = GetStructInfoAs<TensorStructInfoObj>(argument);
    if (tensor && tensor->vdevice) return tensor->vdevice.value()->target;
  }
  return std::nullopt;
}

/// A target is the current one while the object lives.
struct TargetScope {
  Target target;
  explicit TargetScope(Target t) : target(std::move(t)) {
    ffi::Function::GetGlobalRequired("target.EnterTarget")(target);
  }
  ~TargetScope() { ffi::Function::GetGlobalRequired("target.ExitTarget")(target); }
};

/// The arguments of a call, those in tuples one by one.
std::vector<Expr> Leaves(const Call& call) {
  std::vector<Expr> leaves;
  for (const Expr& argument : call->args) {
    if (auto* tuple = argument.as<TupleObj>()) {
      leaves.insert(leaves.end(), tuple->fields.begin(), tuple->fields.end());
    } else {
      leaves.push_back(argument);
    }
  }
  return leaves;
}

/// Lowerings that were made before: models repeat the same operators on the same shapes, and what
/// our own lowerings give follows from the operator and from what is known of its arguments.
class KnownLowerings {
 public:
  /// What the lowering of a call follows from; nothing when there may be more.
  static std::optional<Array<Any>> Key(const Call& call, const RewriteCallFn& lower,
                                       const Optional<Target>& target) {
    // A function of a user, which may do anything, is one object; a wrapper is made each time.
    if (lower.packed().same_as(lower.packed())) return std::nullopt;
    Array<Any> key{call->op, call->attrs, call->sinfo_args, GetStructInfo(call), target};
    for (const Expr& argument : call->args) {
      auto* tuple = argument.as<TupleObj>();
      if (tuple) key.push_back(static_cast<int64_t>(tuple->fields.size()));
    }
    for (const Expr& leaf : Leaves(call)) {
      Any known = KnownOf(leaf);
      if (known == nullptr) return std::nullopt;
      key.push_back(known);
    }
    return key;
  }
  /// The call lowered as an equal one was, or an undefined expression.
  Expr Find(const Array<Any>& key, const Call& call) const {
    auto [begin, end] = by_outline_.equal_range(OutlineHash(key));
    for (auto it = begin; it != end; ++it) {
      const Lowering& known = it->second;
      if (!StructuralEqual(known.key, key)) continue;
      std::vector<Expr> leaves = Leaves(call);
      Array<Expr> args;
      for (size_t i : known.args) args.push_back(leaves[i]);
      Call result(known.call->op, {known.call->args[0], Tuple(args)}, {}, known.call->sinfo_args,
                  call->span);
      UpdateStructInfo(result, GetStructInfo(known.call));
      return result;
    }
    return Expr(nullptr);
  }
  /// Keeps what a call became when it is a call of a PrimFunc with some of the same arguments.
  void Add(const Array<Any>& key, const Call& before, const Expr& after) {
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    auto* call = after.as<CallObj>();
    if (!call || !call->op.same_as(call_tir) || call->args.size() != 2 || call->attrs) return;
    auto* tuple = call->args[1].as<TupleObj>();
    if (!tuple || !call->struct_info_) return;
    std::vector<Expr> leaves = Leaves(before);
    Lowering lowering{key, ffi::GetRef<Call>(call), {}};
    for (const Expr& arg : tuple->fields) {
      auto is_arg = [&](const Expr& leaf) { return leaf.same_as(arg); };
      auto at = std::find_if(leaves.begin(), leaves.end(), is_arg);
      // Which one is meant cannot be told where an argument is given twice.
      if (std::count_if(leaves.begin(), leaves.end(), is_arg) != 1) return;
      lowering.args.push_back(at - leaves.begin());
    }
    by_outline_.emplace(OutlineHash(key), std::move(lowering));
  }

 private:
  struct Lowering {
    Array<Any> key;
    Call call;
    std::vector<size_t> args;  // as leaves of the call before
  };
  static bool AreConstant(const Array<PrimExpr>& values) {
    return std::all_of(values.begin(), values.end(),
                       [](const PrimExpr& e) { return e.as<IntImmObj>() != nullptr; });
  }
  static Any KnownOf(const Expr& leaf) {
    if (auto* constant = leaf.as<ConstantObj>(); constant && constant->IsScalar()) {
      PrimExpr value = ScalarOf(leaf);
      return value.defined() ? Any(value) : Any(nullptr);
    }
    if (auto* shape = leaf.as<ShapeExprObj>())
      return AreConstant(shape->values) ? Any(leaf) : Any(nullptr);
    if (auto* prim = leaf.as<PrimValueObj>()) {
      bool is_constant = prim->value.as<IntImmObj>() || prim->value.as<FloatImmObj>();
      return is_constant ? Any(leaf) : Any(nullptr);
    }
    if (leaf.as<StringImmObj>() || leaf.as<DataTypeImmObj>()) return leaf;
    auto* tensor = GetStructInfoAs<TensorStructInfoObj>(leaf);
    auto dims = tensor ? tensor->Dims() : std::nullopt;
    if (!dims || !AreConstant(dims.value())) return nullptr;
    return ffi::GetRef<StructInfo>(tensor);
  }
  std::unordered_multimap<uint64_t, Lowering> by_outline_;
};

class Legalizer : public ExprMutator {
 public:
  Legalizer(const IRModule& mod, const LegalizeMap& custom, const Array<String>& skipped)
      : ExprMutator(mod), before_(mod), custom_(custom) {
    for (const String& name : skipped) skipped_.insert(Op::Get(name).get());
  }
  IRModule Run() {
    IRModule after = VisitFunctions();
    // A lowering may use a Schedule to say what it computes: that is no schedule of the function.
    for (const auto& [var, base] : after->functions) {
      auto func = base.as<tir::PrimFunc>();
      if (!func || !(*func)->scheduled_by_hand || before_->FindGlobalVar(var->name_hint).defined())
        continue;
      tir::PrimFunc made = *func;
      Edit(&made)->scheduled_by_hand = false;
      builder_->UpdateFunction(var, made);
    }
    return builder_->GetModule();
  }
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    target_ = func->GetAttr<Target>(tvm::attr::kTarget);
    return ExprMutator::VisitFunction(var, func);
  }

  Expr VisitExpr_(const CallObj* op) override {
    // Arguments whose struct info changed may change what is known of the result.
    Expr visited = builder_->Normalize(ExprMutator::VisitExpr_(op));
    auto* call = visited.as<CallObj>();
    return call ? Legalized(ffi::GetRef<Call>(call)) : visited;
  }

 private:
  Expr Legalized(const Call& call) {
    auto* op = call->op.as<OpObj>();
    if (!op || skipped_.count(op)) return call;
    auto custom = custom_.find(op->name);
    if (custom != custom_.end()) {
      Any lowered = CallBack((*custom).second, builder_, call);
      auto* expr = lowered.as<RelaxExprObj>();
      if (!expr) {
        TVM_FFI_THROW(TypeError) << "LegalizeOps: expected an expression from the function for "
                                 << op->name << ", got " << lowered.GetTypeKey();
      }
      return Again(call, ffi::GetRef<Expr>(expr));
    }
    const auto* lower = FLegalize.Find(op);
    const auto* packed = FCallPacked.Find(op);
    if (!lower && !packed) return call;
    if (RequiresArgumentShapes.Get(call->op, true)) {
      bool known = HasKnownShape(GetStructInfo(call)) || op->name == "relax.dynamic_strided_slice";
      for (const Expr& argument : call->args)
        known = known && HasKnownShape(GetStructInfo(argument));
      if (!known) return call;
    }
    if (!lower) return AsPackedCall(call, *packed);
    Optional<Target> target = TargetOf(call);
    if (!target) target = target_;
    auto key = KnownLowerings::Key(call, *lower, target);
    if (key) {
      if (Expr known = known_.Find(*key, call); known.defined()) return known;
    }
    Expr result = Lower(call, *lower, target);
    if (key) known_.Add(*key, call, result);
    return result;
  }
  Expr Lower(const Call& call, const RewriteCallFn& lower, const Optional<Target>& target) {
    if (!target) return Again(call, lower(builder_, call));
    TargetScope scope(target.value());
    Expr result = Again(call, lower(builder_, call));
    SetTarget(result, target.value());
    return result;
  }
  /// What a call became may be an operator again.
  Expr Again(const Call& before, const Expr& after) {
    if (after.same_as(before)) return after;
    Expr normal = builder_->Normalize(after);
    auto* call = normal.as<CallObj>();
    auto* op = call ? call->op.as<OpObj>() : nullptr;
    if (!op || call->op.same_as(before->op)) return normal;
    return Legalized(ffi::GetRef<Call>(call));
  }
  Expr AsPackedCall(const Call& call, const String& name) {
    ExternFunc callee(name);
    if (!FPurity.Get(call->op, true))
      return Call(callee, call->args, call->attrs, {GetStructInfo(call)});
    Array<Expr> args = {callee};
    for (const Expr& argument : call->args) args.push_back(argument);
    return Call(Op::Get("relax.call_pure_packed"), args, call->attrs, {GetStructInfo(call)});
  }
  /// The function that a call_tir calls is for this target.
  void SetTarget(const Expr& expr, const Target& target) {
    auto* call = expr.as<CallObj>();
    static const Op& call_tir = *new Op(Op::Get("relax.call_tir"));
    if (!call || !call->op.same_as(call_tir)) return;
    auto var = Any(call->args[0]).cast<GlobalVar>();
    BaseFunc func = builder_->module()->Lookup(var);
    if (func->GetAttr<Target>(tvm::attr::kTarget)) return;
    builder_->UpdateFunction(var,
                             WithAttr(Any(func).cast<tir::PrimFunc>(), tvm::attr::kTarget, target));
  }

  IRModule before_;
  LegalizeMap custom_;
  KnownLowerings known_;
  std::unordered_set<const OpObj*> skipped_;
  Optional<Target> target_;
};

IRModule LegalizeOps(IRModule mod, Optional<LegalizeMap> customize_legalize_map,
                     Optional<Array<String>> skip_ops, bool) {
  return Legalizer(mod, customize_legalize_map.value_or({}), skip_ops.value_or({})).Run();
}
}  // namespace
TVM_RELAX_PASS(
    LegalizeOps, 0,
    "Replaces operators by calls of PrimFuncs that compute them. A function (builder, call) in "
    "customize_legalize_map is used for the operator of its name; operators in skip_ops stay.",
    Arg("customize_legalize_map", nullptr), Arg("skip_ops", nullptr), Arg("enable_warning", false));
}  // namespace tvm::relax
