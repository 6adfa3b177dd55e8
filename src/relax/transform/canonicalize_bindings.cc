// SPDX-License-Identifier: Apache-2.0
// Bindings that only give another name, casts that say nothing new, items of known tuples.
#include "relax/transform/canonicalize_bindings.h"

#include <unordered_set>

#include "relax/analysis/match.h"
#include "tir/text.h"
#include "tvm/expr/substitute.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
// ---- symbolic variables -----------------------------------------------------------------------
Function CanonicalizeTIRVariables(Function func, IRModule) {
  Map<tir::Var, PrimExpr> known;
  arith::Analyzer analyzer;
  VisitBindings(
      func, [&](const Binding& binding) {
        auto* cast = binding.as<MatchCastObj>();
        if (!cast) return;
        Map<tir::Var, PrimExpr> found;
        BindSymbolic(cast->struct_info, GetStructInfo(cast->value), &found);
        for (const auto& [var, value] : found) {
          PrimExpr now = tir::Substitute(value, known);
          if (now.same_as(var)) continue;
          auto before = known.Get(var);
          if (!before) {
            if (!tir::UsesVar(now, [v = var.get()](const tir::VarObj* used) { return used == v; }))
              known.Set(var, now);
            continue;
          }
          if (analyzer.CanProve(tir::NE(before.value(), now))) {
            TVM_FFI_THROW(ValueError)
                << "CanonicalizeBindings: MatchCast statements must be consistent:"
                   " expected '"
                << var->name_hint << "' to be " << tir::TextOf(before.value()) << ", got "
                << tir::TextOf(now);
          }
        }
      });
  // Parameters define their variables themselves.
  for (const Var& param : func->params) {
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(GetStructInfo(param))) known.erase(var);
  }
  if (known.empty()) return func;
  return As<Function>(VarReplacer(known).VisitExpr(func));
}

// ---- bindings ---------------------------------------------------------------------------------
/// Outputs of a dataflow block that only rename a variable of the block: the variable is defined
/// under the output's name at once.
std::unordered_map<const Object*, Var> RenamedOutputs(const DataflowBlockObj* block) {
  std::unordered_map<const Object*, Var> renamed;
  std::unordered_set<const Object*> inside;
  for (const Binding& binding : block->bindings) {
    auto* bind = binding.as<VarBindingObj>();
    auto* value = bind ? bind->value.as<DataflowVarObj>() : nullptr;
    if (value && !binding->var.as<DataflowVarObj>() && inside.count(value->vid.get()))
      renamed.try_emplace(value->vid.get(), binding->var);
    if (binding->var.as<DataflowVarObj>()) inside.insert(binding->var->vid.get());
  }
  return renamed;
}

class Canonicalizer : public ExprMutator {
 public:
  void VisitBindingBlock(const BindingBlock& block) final {
    auto* dataflow = block.as<DataflowBlockObj>();
    if (!dataflow) return ExprMutator::VisitBindingBlock(block);
    for (auto& [id, var] : RenamedOutputs(dataflow)) renamed_.insert_or_assign(id, var);
    auto outer = std::exchange(inside_, {});
    for (const Binding& binding : block->bindings) inside_.insert(binding->var->vid.get());
    ExprMutator::VisitBindingBlock(block);
    inside_ = std::move(outer);
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    auto it = renamed_.find(binding->var->vid.get());
    if (it != renamed_.end()) {
      Var output = it->second;
      SetVarRemap(binding->var->vid, output);
      VarBinding moved(output, binding->value, binding->span);
      done_.insert(output->vid.get());
      return ReEmitBinding(moved.get(), Simplify(VisitExpr(binding->value)));
    }
    Expr value = Simplify(VisitExpr(binding->value));
    auto* other = value.as<VarObj>();
    if (done_.count(binding->var->vid.get()) && other && other->vid.same_as(binding->var->vid))
      return;
    if (other && CanStandFor(ffi::GetRef<Var>(other), binding->var))
      return SetVarRemap(binding->var->vid, ffi::GetRef<Var>(other));
    ReEmitBinding(binding, value);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    Expr value = VisitExpr(binding->value);
    auto* other = value.as<VarObj>();
    bool says_nothing = other && IsBaseOf(binding->struct_info, GetStructInfo(value));
    if (says_nothing && CanStandFor(ffi::GetRef<Var>(other), binding->var))
      return SetVarRemap(binding->var->vid, ffi::GetRef<Var>(other));
    ExprMutator::VisitBinding_(binding);
  }

 private:
  /// A variable of a dataflow block is not seen where an output is.
  bool CanStandFor(const Var& value, const Var& var) const {
    if (value.as<DataflowVarObj>() && !var.as<DataflowVarObj>()) return false;
    return IsBaseOf(GetStructInfo(var), GetStructInfo(value));
  }
  /// Not a variable of another dataflow block, which a value of an output may use.
  bool IsSeen(const Expr& expr) const {
    auto* var = expr.as<DataflowVarObj>();
    return !var || inside_.count(var->vid.get());
  }
  Optional<Expr> Known(const Expr& expr) const {
    auto* var = expr.as<VarObj>();
    return var ? LookupBinding(ffi::GetRef<Var>(var)) : Optional<Expr>();
  }
  Expr Simplify(const Expr& expr) const {
    if (auto* item = expr.as<TupleGetItemObj>()) {
      Optional<Expr> value = Known(item->tuple_value);
      auto* tuple = value ? value.value().as<TupleObj>() : nullptr;
      return tuple && IsSeen(tuple->fields[item->index]) ? tuple->fields[item->index] : expr;
    }
    auto* tuple = expr.as<TupleObj>();
    if (!tuple || tuple->fields.empty()) return expr;
    // (t[0], t[1]) is t.
    Optional<Expr> whole;
    for (size_t i = 0; i < tuple->fields.size(); ++i) {
      Optional<Expr> value = Known(tuple->fields[i]);
      auto* item = value ? value.value().as<TupleGetItemObj>() : nullptr;
      if (!item || item->index != static_cast<int64_t>(i)) return expr;
      if (whole && !whole.value().same_as(item->tuple_value)) return expr;
      whole = item->tuple_value;
    }
    auto* info = GetStructInfoAs<TupleStructInfoObj>(whole.value());
    bool is_whole = info && info->fields.size() == tuple->fields.size() && IsSeen(whole.value());
    return is_whole ? whole.value() : expr;
  }
  std::unordered_set<const Object*> inside_;  // variables of the block that is being visited
  std::unordered_map<const Object*, Var> renamed_;
  std::unordered_set<const Object*> done_;
};
}  // namespace
Function CanonicalizeRelaxBindings(Function func, IRModule) {
  return As<Function>(Canonicalizer().VisitExpr(func));
}
TVM_RELAX_FUNCTION_PASS(CanonicalizeTIRVariables, 1,
                        "y = R.match_cast(x, R.Tensor((n,))), x: R.Tensor((4,))  ->  n is 4");
TVM_RELAX_FUNCTION_PASS(CanonicalizeRelaxBindings, 1,
                        "y = x; z = (a, b)[0]  ->  uses of x and a; casts that say nothing new go");

namespace {
transform::Pass CanonicalizeBindings() {
  return transform::Sequential({transform::GetPass("relax.CanonicalizeTIRVariables"),
                                transform::GetPass("relax.CanonicalizeRelaxBindings")},
                               "CanonicalizeBindings");
}
TVM_REGISTER() {
  Def("relax.transform.CanonicalizeBindings", &CanonicalizeBindings,
      "CanonicalizeTIRVariables, then CanonicalizeRelaxBindings.");
}
}  // namespace
}  // namespace tvm::relax
