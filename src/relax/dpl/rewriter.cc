// SPDX-License-Identifier: Apache-2.0
// Rewriters as objects: of a pattern and a function, of a module with a pattern and its
// replacement, one after another.
#include <unordered_set>

#include "relax/analysis/match.h"
#include "relax/dpl/rewrite.h"
#include "tir/text.h"
#include "tvm/ir/callback.h"
#include "tvm/ir/structural.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attribute.h"
#include "tvm/relax/bind.h"

namespace tvm::relax {

/// Rewrites functions; what it calls from its own module comes along.
struct PatternMatchingRewriterObj : NodeObj {
  Map<GlobalVar, BaseFunc> new_subroutines;
  static constexpr uint32_t _type_child_slots = 4;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&& def) {
    def("new_subroutines", &PatternMatchingRewriterObj::new_subroutines,
        Default(Map<GlobalVar, BaseFunc>()));
  }
  virtual ~PatternMatchingRewriterObj() = default;
  virtual Function Run(const Function& func) const = 0;
  /// The same for one value, where one value is all that is looked at.
  virtual std::optional<RewriteRule> Rule() const { return std::nullopt; }
  TVM_FFI_DECLARE_OBJECT_INFO("relax.dpl.PatternMatchingRewriter", PatternMatchingRewriterObj,
                              NodeObj);
};
TVM_NODE_REF(PatternMatchingRewriter, ObjectRef, PatternMatchingRewriterObj);

constexpr const char* kRewriter = "PatternMatchingRewriter";

struct ExprPatternRewriterObj : PatternMatchingRewriterObj {
  DFPattern pattern;
  ffi::Function func;  // (expression, {pattern: expression}) -> expression or None
  static constexpr std::string_view kParamOrder = "pattern,func,new_subroutines";
  static void Fields(auto&& def) {
    def("pattern", &ExprPatternRewriterObj::pattern);
    def("func", &ExprPatternRewriterObj::func);
  }
  std::optional<RewriteRule> Rule() const final { return RuleOf(kRewriter, pattern, func); }
  Function Run(const Function& f) const final { return RewriteValues(f, kRewriter, *Rule()); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.ExprPatternRewriter", ExprPatternRewriterObj,
                                    PatternMatchingRewriterObj);
};
TVM_NODE_REF(ExprPatternRewriter, PatternMatchingRewriter, ExprPatternRewriterObj);

/// Several values that are replaced together, by the items of a tuple.
struct TupleRewriterObj : PatternMatchingRewriterObj {
  Array<DFPattern> patterns;
  ffi::Function func;  // (None, {pattern: expression}) -> tuple or None
  static constexpr std::string_view kParamOrder = "patterns,func,new_subroutines";
  static void Fields(auto&& def) {
    def("patterns", &TupleRewriterObj::patterns);
    def("func", &TupleRewriterObj::func);
  }
  Function Run(const Function& f) const final;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.TupleRewriter", TupleRewriterObj,
                                    PatternMatchingRewriterObj);
};
TVM_NODE_REF(TupleRewriter, PatternMatchingRewriter, TupleRewriterObj);

/// What the left one does not rewrite, the right one may.
struct OrRewriterObj : PatternMatchingRewriterObj {
  PatternMatchingRewriter lhs, rhs;
  static constexpr std::string_view kParamOrder = "lhs,rhs,new_subroutines";
  static void Fields(auto&& def) {
    def("lhs", &OrRewriterObj::lhs);
    def("rhs", &OrRewriterObj::rhs);
  }
  void Init() {
    for (const auto& part : {lhs, rhs}) {
      for (const auto& [var, func] : part->new_subroutines) new_subroutines.Set(var, func);
    }
  }
  std::optional<RewriteRule> Rule() const final {
    auto left = lhs->Rule(), right = rhs->Rule();
    if (!left || !right) return std::nullopt;
    return [left, right](const Expr& value, const Bindings& bindings) {
      Optional<Expr> result = (*left)(value, bindings);
      return result ? result : (*right)(value, bindings);
    };
  }
  Function Run(const Function& func) const final {
    if (auto rule = Rule()) return RewriteValues(func, kRewriter, *rule);
    constexpr int kMostRounds = 1000;
    Function before = func;
    for (int round = 0; round < kMostRounds; ++round) {
      Function after = rhs->Run(lhs->Run(before));
      if (after.same_as(before)) return after;
      before = after;
    }
    TVM_FFI_THROW(ValueError) << kRewriter << ": expected the rewriting to come to an end, got "
                              << kMostRounds << " rounds, the last one with "
                              << tir::TextOf(before);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.dpl.OrRewriter", OrRewriterObj,
                                    PatternMatchingRewriterObj);
};
TVM_NODE_REF(OrRewriter, PatternMatchingRewriter, OrRewriterObj);

namespace {
/// The use of the arguments of calls, for the search in a block.
struct UseCollector {
  PatternContext context = PatternContext::Create();
  std::unordered_set<const Object*> seen;
  void Visit(const DFPattern& pattern) {
    if (!seen.insert(pattern.get()).second) return;
    DFPattern core = pattern;
    while (true) {
      if (auto* p = core.as<AttrPatternObj>()) {
        core = p->pattern;
      } else if (auto* p = core.as<StructInfoPatternObj>()) {
        core = p->pattern;
      } else {
        break;
      }
    }
    auto* call = core.as<CallPatternObj>();
    auto* item = core.as<TupleGetItemPatternObj>();
    for (size_t i = 0; call && i < call->args.size(); ++i)
      Use(call->args[i], pattern, static_cast<int64_t>(i));
    if (item) Use(item->tuple, pattern, 0);
  }
  void Use(const DFPattern& producer, const DFPattern& consumer, int64_t index) {
    context.Add(UseConstraint(producer, consumer, index, false));
    Visit(producer);
  }
};
}  // namespace

Function TupleRewriterObj::Run(const Function& f) const {
  UseCollector uses;
  for (const DFPattern& pattern : patterns) uses.Visit(pattern);
  auto rewrite = [&](const PatternMatch& match, const Map<Var, Expr>&) {
    Map<Var, Expr> result;
    Map<DFPattern, Expr> found;
    for (const DFPattern& pattern : match.Patterns()) found.Set(pattern, match[pattern]);
    Optional<Expr> tuple = AsReplacement(kRewriter, CallBack(func, nullptr, found));
    if (!tuple) return result;
    auto* fields = tuple.value().as<TupleObj>();
    if (fields && fields->fields.size() != patterns.size()) {
      TVM_FFI_THROW(ValueError) << kRewriter << ": expected a tuple of " << patterns.size()
                                << " expressions, got " << fields->fields.size();
    }
    for (size_t i = 0; i < patterns.size(); ++i) {
      Expr item = fields ? fields->fields[i] : TupleGetItem(tuple.value(), static_cast<int64_t>(i));
      result.Set(As<Var>(found.at(patterns[i])), item);
    }
    return result;
  };
  return RewriteBlocks(f, kRewriter, RuleOf(uses.context, rewrite), true);
}

namespace {
// ---- of a module ------------------------------------------------------------------------------
/// The pattern that a function of the graph language spells out.
class PatternMaker {
 public:
  explicit PatternMaker(const Function& func) {
    for (const Var& param : func->params) {
      params.push_back(OfKind(Wildcard(), GetStructInfo(param)));
      known_[param->vid.get()] = params.back();
    }
    for (const BindingBlock& block : func->body->blocks) {
      for (const Binding& binding : block->bindings) {
        DFPattern pattern = Make(ValueOf(binding));
        if (auto* cast = binding.as<MatchCastObj>()) pattern = OfKind(pattern, cast->struct_info);
        known_[binding->var->vid.get()] = pattern;
      }
    }
    if (auto* tuple = func->body->body.as<TupleObj>()) {
      for (const Expr& field : tuple->fields) outputs.push_back(Make(field));
    } else {
      result = Make(func->body->body);
    }
  }
  Array<DFPattern> params, outputs;  // outputs: of a function that returns a tuple
  DFPattern result;

 private:
  static DFPattern OfKind(const DFPattern& pattern, const StructInfo& info) {
    return New<StructInfoPattern>([&](StructInfoPatternObj* n) {
      n->pattern = pattern;
      n->struct_info = info;
    });
  }
  DFPattern Make(const Expr& expr) {
    if (auto* var = expr.as<VarObj>()) {
      auto it = known_.find(var->vid.get());
      if (it != known_.end()) return it->second;
    }
    if (auto* call = expr.as<CallObj>()) return MakeCall(call);
    if (auto* tuple = expr.as<TupleObj>())
      return IsTuple(tuple->fields.Map([&](const Expr& e) { return Make(e); }));
    if (auto* item = expr.as<TupleGetItemObj>()) {
      return New<TupleGetItemPattern>([&](TupleGetItemPatternObj* n) {
        n->tuple = Make(item->tuple_value);
        n->index = item->index;
      });
    }
    // Symbolic variables in them are bound.
    if (expr.as<ShapeExprObj>() || expr.as<PrimValueObj>())
      return OfKind(Wildcard(), GetStructInfo(expr));
    if (auto* global = expr.as<GlobalVarObj>())
      return New<GlobalVarPattern>([&](GlobalVarPatternObj* n) { n->name = global->name_hint; });
    if (auto* func = expr.as<ExternFuncObj>()) {
      return New<ExternFuncPattern>(
          [&](ExternFuncPatternObj* n) { n->global_symbol = func->global_symbol; });
    }
    if (!IsLeaf(expr)) {
      TVM_FFI_THROW(TypeError) << kRewriter << ": expected calls, tuples and constants in the "
                               << "pattern, got " << tir::TextOf(expr);
    }
    return New<ExprPattern>([&](ExprPatternObj* n) { n->expr = expr; });
  }
  DFPattern MakeCall(const CallObj* call) {
    Array<DFPattern> args = call->args.Map([&](const Expr& e) { return Make(e); });
    DFPattern pattern = CallOf(Make(call->op), args);
    if (!call->sinfo_args.empty())
      pattern = OfKind(pattern, GetStructInfo(ffi::GetRef<Expr>(call)));
    if (!call->attrs) return pattern;
    return New<AttrPattern>([&](AttrPatternObj* n) {
      n->pattern = pattern;
      n->attrs = AllAttributes(call->attrs.value());
    });
  }
  std::unordered_map<const Object*, DFPattern> known_;
};

/// All patterns that a pattern is made of.
struct PatternCollector : Visitor<PatternCollector, DFPatternObj> {
  std::unordered_set<const Object*> all;
  void Visit(const DFPatternObj* pattern) {
    if (all.insert(pattern).second) VisitChildren(pattern, *this);
  }
};
/// What the function returns for these arguments, as one expression.
Expr Inlined(const Function& func, const Array<Expr>& args) {
  Map<tir::Var, PrimExpr> symbolic;
  for (size_t i = 0; i < args.size(); ++i)
    BindSymbolic(GetStructInfo(func->params[i]), GetStructInfo(args[i]), &symbolic);
  VarReplacer replacer(symbolic);
  for (size_t i = 0; i < args.size(); ++i) replacer.Replace(func->params[i], args[i]);
  for (const BindingBlock& block : func->body->blocks) {
    for (const Binding& binding : block->bindings)
      replacer.Replace(binding->var, replacer.VisitExpr(ValueOf(binding)));
  }
  return replacer.VisitExpr(func->body->body);
}

Function FunctionNamed(const IRModule& mod, const char* name) {
  GlobalVar var = mod->FindGlobalVar(name);
  if (!var.defined()) {
    TVM_FFI_THROW(KeyError) << kRewriter << ": expected a module with a function '" << name
                            << "', got none";
  }
  BaseFunc func = mod->Lookup(var);
  if (!func.as<FunctionObj>()) {
    TVM_FFI_THROW(TypeError) << kRewriter << ": expected '" << name
                             << "' to be a relax.Function, got " << func->GetTypeKey();
  }
  return As<Function>(func);
}
void CheckSignatures(const Function& pattern, const Function& replacement) {
  auto complain = [](const std::string& what) {
    TVM_FFI_THROW(ValueError) << kRewriter << ": expected the pattern and the replacement to have "
                              << "one signature, got " << what;
  };
  size_t n = pattern->params.size(), m = replacement->params.size();
  if (n != m) complain(std::to_string(n) + " and " + std::to_string(m) + " parameters");
  auto signature = [](const Function& f) {
    Array<StructInfo> params;
    for (const Var& param : f->params) params.push_back(GetStructInfo(param));
    return FuncStructInfo(params, TupleStructInfo::Void());
  };
  if (!StructuralEqual(signature(pattern), signature(replacement)))
    complain(tir::TextOf(signature(pattern)) + " and " + tir::TextOf(signature(replacement)));
  StructInfo wanted = pattern->ret_struct_info, got = replacement->ret_struct_info;
  if (StructInfoBaseCheck(wanted, got) == BaseCheckResult::kFailL0)
    complain("results " + tir::TextOf(wanted) + " and " + tir::TextOf(got));
}

PatternMatchingRewriter FromModule(IRModule mod) {
  Function pattern = FunctionNamed(mod, "pattern"), replacement = FunctionNamed(mod, "replacement");
  CheckSignatures(pattern, replacement);
  Map<GlobalVar, BaseFunc> subroutines;
  for (const auto& [var, func] : mod->Sorted()) {
    if (var->name_hint == "pattern" || var->name_hint == "replacement") continue;
    if (func->GetAttr<String>(tvm::attr::kGlobalSymbol)) {
      TVM_FFI_THROW(ValueError) << kRewriter
                                << ": expected the other functions of the module to be "
                                << "private, but '" << var->name_hint << "' is publicly exposed";
    }
    subroutines.Set(var, func);
  }
  PatternMaker made(pattern);
  auto replace = ffi::Function::FromTyped(
      [params = made.params, replacement](Any, Map<DFPattern, Expr> matches) {
        return Inlined(replacement,
                       params.Map([&](const DFPattern& param) { return matches.at(param); }));
      });
  PatternCollector used;
  if (made.result.defined()) used(made.result);
  for (const DFPattern& output : made.outputs) used(output);
  for (size_t i = 0; i < made.params.size(); ++i) {
    if (!used.all.count(made.params[i].get())) {
      TVM_FFI_THROW(ValueError) << kRewriter << ": expected the pattern to use its parameter '"
                                << pattern->params[i]->name_hint() << "'";
    }
  }
  if (made.result.defined()) {
    return New<ExprPatternRewriter>([&](ExprPatternRewriterObj* n) {
      n->pattern = made.result;
      n->func = replace;
      n->new_subroutines = subroutines;
    });
  }
  return New<TupleRewriter>([&](TupleRewriterObj* n) {
    n->patterns = made.outputs;
    n->func = replace;
    n->new_subroutines = subroutines;
  });
}

// ---- running ----------------------------------------------------------------------------------
class CalleeRenamer : public ExprMutator {
 public:
  std::unordered_map<const Object*, GlobalVar> names;
  Expr VisitExpr_(const GlobalVarObj* op) final {
    auto it = names.find(op);
    return it == names.end() ? ffi::GetRef<Expr>(op) : Expr(it->second);
  }
};
IRModule RunOnModule(const PatternMatchingRewriter& rewriter, const IRModule& mod) {
  BlockBuilder builder = BlockBuilder::Create(mod);
  CalleeRenamer renamer;
  for (const auto& [var, base] : mod->Sorted()) {
    auto* func = base.as<FunctionObj>();
    if (!func) continue;
    Function after = rewriter->Run(ffi::GetRef<Function>(func));
    if (after.same_as(base)) continue;
    for (const GlobalVar& callee : AllGlobalVars(after)) {
      auto routine = rewriter->new_subroutines.Get(callee);
      if (routine && !renamer.names.count(callee.get()))
        renamer.names[callee.get()] = builder->AddFunction(routine.value(), callee->name_hint);
    }
    builder->UpdateFunction(var, As<Function>(renamer.VisitExpr(after)));
  }
  return builder->GetModule();
}
Variant<Function, IRModule> RunRewriter(PatternMatchingRewriter rewriter,
                                        Variant<Function, IRModule> program) {
  return OnDeepStack([&]() -> Variant<Function, IRModule> {
    if (auto func = program.as<Function>()) return rewriter->Run(*func);
    return RunOnModule(rewriter, *program.as<IRModule>());
  });
}
TVM_REGISTER() {
  RegisterBase<PatternMatchingRewriterObj>("Rewrites what matches, in functions and modules.");
  RegisterNode<ExprPatternRewriterObj>("Replaces values that match a pattern.");
  RegisterNode<TupleRewriterObj>("Replaces several values at once by the items of a tuple.");
  RegisterNode<OrRewriterObj>("One rewriter, and another for what the first does not match.");
  Def("relax.dpl.PatternMatchingRewriter._from_module", &FromModule, "", Arg("mod"));
  Def("relax.dpl.PatternMatchingRewriter._run", &RunRewriter, "", Arg("self"), Arg("obj"));
}
}  // namespace
}  // namespace tvm::relax
