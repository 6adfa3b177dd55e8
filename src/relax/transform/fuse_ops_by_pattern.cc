// SPDX-License-Identifier: Apache-2.0
// Operators that match a backend's patterns become functions of their own.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "relax/fuse/groups.h"
#include "tvm/ir/callback.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/bind.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/fusion_pattern.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {

std::string BackendOf(const String& pattern_name) {
  std::string_view name = View(pattern_name);
  return std::string(name.substr(0, name.find('.')));
}

namespace {
/// The matches of all patterns in one dataflow block.
class PatternGroups {
 public:
  PatternGroups(const DataflowBlock& block, bool bind_constants) : bind_constants_(bind_constants) {
    for (const Binding& binding : block->bindings) {
      auto* bind = binding.as<VarBindingObj>();
      if (!bind) continue;
      index_[bind->var->vid.get()] = bindings_.size();
      bindings_.push_back(bind);
    }
    block_ = block;
  }
  /// Later bindings first: they have the longer matches. What is taken stays taken.
  void Take(const FusionPattern& pattern) {
    for (size_t i = bindings_.size(); i-- > 0;) {
      const VarBindingObj* binding = bindings_[i];
      // Another name of a result is no operator.
      if (grouping_.group_of.count(binding->var->vid.get()) || binding->value.as<VarObj>())
        continue;
      PatternMatch match(
          [this](const Var& var) -> Optional<Expr> {
            auto it = index_.find(var->vid.get());
            return it == index_.end() ? Optional<Expr>() : bindings_[it->second]->value;
          },
          true);
      if (match.Find(pattern->pattern, binding->var)) Add(pattern, match, binding);
    }
  }
  Grouping Finish() { return std::move(grouping_); }

 private:
  void Add(const FusionPattern& pattern, const PatternMatch& match, const VarBindingObj* root) {
    std::set<size_t> members;  // as indices, in the order of the bindings
    for (const DFPattern& part : match.Patterns()) {
      bool is_computation = part.as<CallPatternObj>() || part.as<TupleGetItemPatternObj>() ||
                            part.as<TuplePatternObj>();
      auto* var = is_computation ? match[part].as<VarObj>() : nullptr;
      // Names between an operator and the one that uses it belong to the group, too.
      while (var) {
        auto found = index_.find(var->vid.get());
        if (found == index_.end()) break;
        if (grouping_.group_of.count(var->vid.get())) return;
        members.insert(found->second);
        var = bindings_[found->second]->value.as<VarObj>();
      }
    }
    if (members.empty()) return;
    Map<String, Expr> annotated;
    for (const auto& [name, part] : pattern->annotation_patterns) {
      if (match.Has(part)) annotated.Set(name, match.LookThrough(match[part]));
    }
    if (pattern->check && !Accepts(pattern, root, annotated, members)) return;
    BindingGroup group;
    group.binds_constants = bind_constants_;
    group.attrs = {{"Composite", pattern->name}, {"Primitive", true}};
    if (pattern->attrs_getter) AddAttributes(pattern, annotated, &group.attrs);
    group.name = "fused";
    for (size_t i : members) {
      grouping_.group_of[bindings_[i]->var->vid.get()] = grouping_.groups.size();
      auto* call = bindings_[i]->value.as<CallObj>();
      if (call) group.name += "_" + CalleeName(call);
    }
    grouping_.groups.push_back(std::move(group));
  }
  static std::string CalleeName(const CallObj* call) {
    std::string name = "call";
    if (auto* op = call->op.as<OpObj>()) name = op->name;
    if (!call->args.empty()) {
      if (auto* callee = call->args[0].as<GlobalVarObj>()) name = callee->name_hint;
      if (auto* callee = call->args[0].as<ExternFuncObj>()) name = callee->global_symbol;
    }
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
  bool Accepts(const FusionPattern& pattern, const VarBindingObj* root,
               const Map<String, Expr>& annotated, const std::set<size_t>& members) {
    if (!usages_) FillBlockFacts();
    auto context = New<PatternCheckContext>([&](PatternCheckContextObj* n) {
      n->matched_expr = root->value;
      n->annotated_expr = annotated;
      for (size_t i : members) n->matched_bindings.Set(bindings_[i]->var, bindings_[i]->value);
      n->var_usages = usages_.value();
      n->value_to_bound_var = bound_vars_;
    });
    Any result = CallBack(pattern->check.value(), context);
    auto accepted = result.try_cast<bool>();
    if (!accepted) {
      TVM_FFI_THROW(TypeError) << "FuseOpsByPattern: expected the check of '" << pattern->name
                               << "' to return a bool, got " << result.GetTypeKey();
    }
    return *accepted;
  }
  static void AddAttributes(const FusionPattern& pattern, const Map<String, Expr>& annotated,
                            Map<String, Any>* attrs) {
    Any result = CallBack(pattern->attrs_getter.value(), annotated);
    auto more = result.try_cast<Map<String, Any>>();
    if (!more) {
      TVM_FFI_THROW(TypeError) << "FuseOpsByPattern: expected attrs_getter of '" << pattern->name
                               << "' to return a dictionary, got " << result.GetTypeKey();
    }
    for (const auto& [key, value] : *more) attrs->Set(key, value);
  }
  void FillBlockFacts() {
    std::unordered_map<const Object*, std::vector<Var>> users;
    for (const Binding& binding : block_->bindings) {
      for (const Var& used : UsedVars(ValueOf(binding)))
        users[used->vid.get()].push_back(binding->var);
    }
    Map<Var, Array<Var>> usages;
    for (const VarBindingObj* binding : bindings_) {
      const auto& list = users[binding->var->vid.get()];
      usages.Set(binding->var, Array<Var>(list.begin(), list.end()));
      bound_vars_.Set(binding->value, binding->var);
    }
    usages_ = usages;
  }
  bool bind_constants_;
  DataflowBlock block_;
  std::vector<const VarBindingObj*> bindings_;
  std::unordered_map<const Object*, size_t> index_;  // in bindings_, by Id
  Grouping grouping_;
  Optional<Map<Var, Array<Var>>> usages_;
  Map<Expr, Var> bound_vars_;
};

/// Composite functions become functions {"Codegen": backend} that call them as local ones.
class CodegenAnnotator : public ExprMutator {
 public:
  explicit CodegenAnnotator(const IRModule& mod) : ExprMutator(mod), mod_(mod) {}
  IRModule Run() {
    IRModule result = VisitFunctions();
    Map<GlobalVar, BaseFunc> functions = result->functions;
    for (const auto& [name, wrapper] : wrapped_) functions.erase(result->GetGlobalVar(name));
    return IRModule(functions, result->attrs, result->global_infos);
  }
  Function VisitFunction(const GlobalVar& var, const Function& func) final {
    bool is_part = func->attrs.Has("Composite") || func->attrs.Has("Codegen");
    return is_part ? func : ExprMutator::VisitFunction(var, func);
  }
  Expr VisitExpr_(const CallObj* op) final {
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* call = visited.as<CallObj>();
    auto* callee = call->op.as<GlobalVarObj>();
    if (!callee) return visited;
    auto it = wrapped_.find(callee->name_hint);
    if (it == wrapped_.end()) {
      GlobalVar known = mod_->FindGlobalVar(callee->name_hint);
      if (!known.defined()) return visited;
      auto* func = mod_->Lookup(known).as<FunctionObj>();
      if (!func || !func->attrs.Has("Composite")) return visited;
      it = wrapped_.emplace(callee->name_hint, Wrap(callee->name_hint, ffi::GetRef<Function>(func)))
               .first;
    }
    return Call(it->second, call->args, call->attrs, {}, call->span);
  }

 private:
  GlobalVar Wrap(const String& name, const Function& composite) {
    std::string backend = BackendOf(composite->GetAttr<String>("Composite").value());
    Function outer = CopyWithNewVars(composite), inner = CopyWithNewVars(composite);
    BlockBuilder builder = BlockBuilder::Create(mod_);
    builder->BeginScope(outer->params);
    builder->BeginSequence();
    Var local = builder->Emit(WithoutAttr(inner, tvm::attr::kGlobalSymbol));
    Array<Expr> args(outer->params.begin(), outer->params.end());
    Var result = builder->Emit(Call(local, args));
    SeqExpr body = MakeSeq(SeqExpr::Of(result), builder->EndSequence(), result);
    builder->EndScope();
    std::string symbol = std::string(View(name)) + "_" + backend;
    Map<String, Any> attrs = {{"Codegen", String(backend)},
                              {tvm::attr::kGlobalSymbol, String(symbol)}};
    for (const auto& [key, value] : composite->attrs->dict) {
      bool is_own = key == "Composite" || key == "Primitive" || key == tvm::attr::kGlobalSymbol;
      if (!is_own) attrs.Set(key, value);
    }
    Function func(outer->params, body, outer->ret_struct_info, composite->is_pure,
                  DictAttrs(attrs));
    GlobalVar var = builder_->AddFunction(func, symbol);
    if (var->name_hint != symbol) {
      builder_->UpdateFunction(var, WithAttr(func, tvm::attr::kGlobalSymbol, var->name_hint));
    }
    return var;
  }
  IRModule mod_;
  std::unordered_map<std::string, GlobalVar> wrapped_;  // by the names of the composite functions
};

IRModule FuseOpsByPattern(IRModule mod, Array<FusionPattern> patterns, bool bind_constants,
                          bool annotate_codegen, Optional<Array<String>> entry_functions) {
  std::unordered_set<const Object*> blocks;  // those of the entry functions
  struct BlockFinder : ExprVisitor {
    std::unordered_set<const Object*>* blocks;
    void VisitBindingBlock(const BindingBlock& block) final {
      blocks->insert(block.get());
      ExprVisitor::VisitBindingBlock(block);
    }
  } finder;
  finder.blocks = &blocks;
  Array<String> entries = entry_functions.value_or({});
  for (const String& name : entries) finder.VisitExpr(mod->Lookup(mod->GetGlobalVar(name)));
  IRModule fused = ExtractGroups(mod, [&](const DataflowBlock& block) {
    if (!entries.empty() && !blocks.count(block.get())) return Grouping();
    PatternGroups groups(block, bind_constants);
    for (const FusionPattern& pattern : patterns) groups.Take(pattern);
    return groups.Finish();
  });
  return annotate_codegen ? CodegenAnnotator(fused).Run() : fused;
}
TVM_REGISTER() {
  RegisterNode<PatternCheckContextObj>("What the check of a pattern sees of a match.");
  RegisterNode<FusionPatternObj>("A pattern with a name, for a backend.");
}
}  // namespace
TVM_RELAX_PASS(
    FuseOpsByPattern, 0,
    R"(Operators that match a pattern become private functions with the attribute Composite, the
name of the pattern. Patterns that come first win; with bind_constants constants stay inside; with
annotate_codegen each is called through a function {"Codegen": the first word of the name}.

lv = R.matmul(x, w)
gv = R.nn.relu(lv)
->
gv = cls.fused_relax_matmul_relax_nn_relu(x, w))",
    Arg("patterns"), Arg("bind_constants", true), Arg("annotate_codegen", false),
    Arg("entry_functions", nullptr));
}  // namespace tvm::relax
