// SPDX-License-Identifier: Apache-2.0
// Values of bindings rewritten one by one: rewrite_call and what passes are made of.
#include "relax/dpl/rewrite.h"
#include "relax/dpl/scope.h"
#include "relax/transform/canonicalize_bindings.h"
#include "tir/text.h"
#include "tvm/ir/callback.h"

namespace tvm::relax {
namespace {
class ValueRewriter : public ScopedMutator {
 public:
  ValueRewriter(const char* name, const RewriteRule& rule) : name_(name), rule_(rule) {}
  bool changed = false;
  bool renames_output = false;  // an output of a dataflow block is another name of a variable in it

  void VisitBinding_(const VarBindingObj* binding) final {
    Expr before = builder_->Normalize(VisitExpr(binding->value));
    applied_ = 0;
    parts_.clear();
    Expr value = Rewritten(before, binding->var);
    if (value.same_as(before)) {
      ReEmitBinding(binding, value);
      return Define(As<Var>(VisitExpr(binding->var)), value);
    }
    changed = true;
    if (auto* other = value.as<VarObj>()) {
      bool inside = other->IsInstance<DataflowVarObj>();
      bool is_output = builder_->CurrentBlockIsDataflow() && !binding->var.as<DataflowVarObj>();
      if (!is_output) return SetVarRemap(binding->var->vid, ffi::GetRef<Var>(other));
      renames_output = renames_output || inside;
    }
    ReEmitBinding(binding, value);
    Define(As<Var>(VisitExpr(binding->var)), value);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    ScopedMutator::VisitBinding_(binding);
    Define(As<Var>(VisitExpr(binding->var)));
  }

 private:
  static constexpr int kMostRewrites = 10000;  // at one binding
  /// The value after the rule was applied as often as it can be; `place` is for messages.
  Expr Rewritten(Expr value, const Var& place) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { return Rewritten(value, place); });
    Bindings lookup = [this](const Var& var) { return ValueInScope(var); };
    while (!IsLeaf(value)) {
      Optional<Expr> next = rule_(value, lookup);
      if (!next || next.value().same_as(value)) break;
      if (++applied_ > kMostRewrites) {
        TVM_FFI_THROW(ValueError) << name_ << ": expected the rewriting to come to an end, got "
                                  << kMostRewrites << " replacements for the binding of '"
                                  << place->name_hint() << "', the last one of "
                                  << tir::TextOf(value) << " by " << tir::TextOf(next.value());
      }
      Expr now = builder_->Normalize(Flat(next.value(), place));
      if (StructInfoBaseCheck(GetStructInfo(value), GetStructInfo(now)) ==
          BaseCheckResult::kFailL0) {
        TVM_FFI_THROW(TypeError) << name_ << ": expected " << tir::TextOf(GetStructInfo(value))
                                 << ", got " << tir::TextOf(GetStructInfo(now))
                                 << " in the place of " << tir::TextOf(value);
      }
      value = now;
    }
    return value;
  }
  /// The expression with its operands as leaves: nested ones are rewritten and bound.
  Expr Flat(const Expr& expr, const Var& place) {
    if (StackIsLow()) [[unlikely]]
      return Recurse([&] { return Flat(expr, place); });
    if (auto* var = expr.as<VarObj>()) {
      if (!InScope(ffi::GetRef<Var>(var))) {
        TVM_FFI_THROW(ValueError) << name_ << ": expected variables that are in scope where '"
                                  << place->name_hint() << "' is bound, got '" << var->name_hint()
                                  << "'";
      }
      return VisitExpr(expr);
    }
    if (const Var* var = BoundTo(expr)) return *var;
    auto operands = [&](const Array<Expr>& exprs) {
      return exprs.Map([&](const Expr& e) { return Operand(e, place); });
    };
    if (auto* call = expr.as<CallObj>()) {
      Array<Expr> args = operands(call->args);
      Expr op = Operand(call->op, place);
      if (args.same_as(call->args) && op.same_as(call->op)) return expr;
      return Call(op, args, call->attrs, call->sinfo_args, call->span);
    }
    if (auto* tuple = expr.as<TupleObj>()) {
      Array<Expr> fields = operands(tuple->fields);
      return fields.same_as(tuple->fields) ? expr : Tuple(fields, tuple->span);
    }
    if (auto* item = expr.as<TupleGetItemObj>()) {
      Expr tuple = Operand(item->tuple_value, place);
      return tuple.same_as(item->tuple_value) ? expr : TupleGetItem(tuple, item->index, item->span);
    }
    return expr;
  }
  Expr Operand(const Expr& expr, const Var& place) {
    auto it = parts_.find(expr.get());
    if (it != parts_.end()) return it->second.second;
    Expr flat = Flat(expr, place);
    if (IsLeafOrTuple(flat)) return flat;
    Expr value = Rewritten(builder_->Normalize(flat), place);
    if (!IsLeaf(value)) {
      Var var = builder_->Emit(value);
      Define(var, value);
      value = var;
    }
    parts_.emplace(expr.get(), std::pair(expr, value));
    return value;
  }
  const char* name_;
  const RewriteRule& rule_;
  int applied_ = 0;
  // What nested expressions were bound to: one object used twice gets one binding.
  std::unordered_map<const Object*, std::pair<Expr, Expr>> parts_;
};
}  // namespace

Function RewriteValues(const Function& func, const char* name, const RewriteRule& rule) {
  return OnDeepStack([&] {
    ValueRewriter rewriter(name, rule);
    auto after = As<Function>(rewriter.VisitExpr(func));
    if (!rewriter.changed) return func;
    if (rewriter.renames_output) after = CanonicalizeRelaxBindings(after, IRModule());
    return RemoveAllUnused(after);
  });
}

Optional<Expr> AsReplacement(const char* name, const Any& result) {
  if (result == nullptr) return std::nullopt;
  auto expr = result.try_cast<Expr>();
  if (!expr) {
    TVM_FFI_THROW(TypeError) << name << ": expected the rewriter to return an expression or None, "
                             << "got " << result.GetTypeKey();
  }
  return *expr;
}
RewriteRule RuleOf(const char* name, const DFPattern& pattern, const ffi::Function& rewriter) {
  return [=](const Expr& value, const Bindings& bindings) {
    auto matches = ExtractMatchedExpr(pattern, value, bindings);
    if (!matches) return Optional<Expr>();
    return AsReplacement(name, CallBack(rewriter, value, matches.value()));
  };
}

namespace {
Function RewriteCall(DFPattern pattern, ffi::Function rewriter, Function func) {
  return RewriteValues(func, "rewrite_call", RuleOf("rewrite_call", pattern, rewriter));
}
TVM_REGISTER() {
  Def("relax.dpl.rewrite_call", &RewriteCall,
      "The function with every value that matches replaced by rewriter(value, {pattern: "
      "expression}), which may return None, until nothing matches.",
      Arg("pattern"), Arg("rewriter"), Arg("func"));
}
}  // namespace
}  // namespace tvm::relax
