// SPDX-License-Identifier: Apache-2.0
// Whether a program obeys the rules of the graph language.
#include <unordered_map>
#include <unordered_set>

#include "ir/pointer_map.h"
#include "relax/analysis/symbolic_vars.h"
#include "tir/text.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/block_builder.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/op.h"
#include "tvm/tir/function.h"

namespace tvm::relax {
namespace {
class WellFormedChecker : public ExprVisitor {
 public:
  WellFormedChecker(const Optional<IRModule>& mod, bool check_struct_info, bool check_normal_form)
      : mod_(mod),
        builder_(BlockBuilder::Create(mod)),
        check_struct_info_(check_struct_info),
        check_normal_form_(check_normal_form) {}

  /// The first complaint, or "".
  std::string complaint;

  void CheckFunction(const std::string& name, const Function& func) {
    function_ = name;
    ++function_number_;
    binding_ = Binding();
    symbolic_.clear();
    if (auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
        symbol && mod_ && View(symbol.value()) != name) {
      Complain() << "expected the attribute global_symbol to be the function's name in the module, "
                    "got '"
                 << symbol.value() << "'";
    }
    VisitExpr(func);
  }

 private:
  // ---- complaints -----------------------------------------------------------------------------
  /// Collects a message; only the first one of a program is kept.
  struct Message {
    WellFormedChecker* checker;
    std::ostringstream text;
    explicit Message(WellFormedChecker* checker) : checker(checker) {}
    template <class T>
    Message& operator<<(const T& value) {
      text << value;
      return *this;
    }
    ~Message() {
      if (!checker->complaint.empty()) return;
      checker->complaint = "function '" + checker->function_ + "': " + text.str();
      if (checker->binding_.defined())
        checker->complaint += "\nin the binding\n  " + tir::TextOf(checker->binding_);
    }
  };
  Message Complain() { return Message(this); }

  // ---- variables ------------------------------------------------------------------------------
  struct Definition {
    int function = 0;
    bool is_visible = false, is_output = false;
  };
  void Define(const Var& var) {
    const Object* id = var->vid.get();
    auto [definition, is_new] = definitions_.Insert(id, {});
    if (!is_new)
      Complain() << "expected each variable to be defined once, got '" << var->name_hint()
                 << "' twice";
    if (var.as<DataflowVarObj>() && !in_dataflow_)
      Complain() << "expected dataflow variables in dataflow blocks only, got '" << var->name_hint()
                 << "' outside";
    bool is_output = in_dataflow_ && !var.as<DataflowVarObj>();
    *definition = {function_number_, true, is_output};
    scope_.push_back(id);
    owned_.push_back(var->vid);
  }
  void LeaveTo(size_t depth) {
    for (size_t i = depth; i < scope_.size(); ++i) definitions_[scope_[i]].is_visible = false;
    scope_.resize(depth);
  }
  void DefineSymbolic(const StructInfo& info) {
    for (const tir::Var& var : DefinableTIRVarsInStructInfo(info)) {
      auto [owner, is_new] = symbolic_owner_.try_emplace(var.get(), function_);
      if (!is_new && owner->second != function_)
        Complain() << "expected symbolic variables of its own, got '" << var->name_hint
                   << "', which '" << owner->second << "' defines";
      symbolic_.insert(var.get());
    }
  }
  void VisitStructInfo(const StructInfo& info) final {
    if (static_.Find(info.get())) return;
    bool is_static = true;
    VisitSymbolicExprs(info, [&](const PrimExpr& e, SymbolicExpr place) {
      is_static = is_static && e.as<IntImmObj>();
      if (place == SymbolicExpr::kDim && e.dtype() != DataType::Int(64))
        Complain() << "expected dimensions of type int64, got " << tir::TextOf(e) << " of type "
                   << e.dtype();
      VisitVars(e, [&](const tir::VarObj* var) { UseSymbolic(var); });
    });
    if (auto* tensor = info.as<TensorStructInfoObj>();
        tensor && tensor->shape && tensor->shape.value().as<VarObj>()) {
      VisitExpr(tensor->shape.value());
      is_static = false;
    }
    if (!is_static) return;
    static_.Insert(info.get(), true);
    owned_infos_.push_back(info);
  }
  void UseSymbolic(const tir::VarObj* var) {
    if (!symbolic_.count(var))
      Complain() << "expected symbolic variables to be defined, by a dimension of a parameter or a "
                    "match_cast, before they are used, got '"
                 << var->name_hint << "'";
  }

  // ---- expressions ----------------------------------------------------------------------------
  void VisitExpr(const Expr& expr) final {
    if (!complaint.empty()) return;
    if (expr.as<tir::PrimFuncObj>()) {
      Complain() << "expected PrimFuncs to be functions of the module, got one inside";
      return;
    }
    if (!expr->struct_info_ && !expr.as<OpObj>() && !expr.as<GlobalVarObj>())
      Complain() << "expected struct info of every expression, got none for " << tir::TextOf(expr);
    ExprVisitor::VisitExpr(expr);
  }
  void VisitExpr_(const VarObj* op) final {
    const Definition* known = definitions_.Find(op->vid.get());
    if (known && known->is_visible) return;
    const char* reason = "before its definition";
    if (known && known->function == function_number_) {
      reason = op->IsInstance<DataflowVarObj>() ? "outside of its dataflow block"
                                                : "outside of the branch that defines it";
    }
    Complain() << "expected variables to be used where they are seen, got '" << op->name_hint()
               << "' " << reason;
  }
  void VisitExpr_(const GlobalVarObj* op) final {
    if (mod_ && !mod_.value()->FindGlobalVar(op->name_hint).defined())
      Complain() << "expected a function of the module, got '" << op->name_hint << "'";
    if (!op->struct_info_)
      Complain() << "expected struct info of every expression, got none for '" << op->name_hint
                 << "'";
  }
  void VisitExpr_(const ShapeExprObj* op) final {
    VisitStructInfo(GetStructInfo(ffi::GetRef<Expr>(op)));
  }
  void VisitExpr_(const PrimValueObj* op) final {
    VisitStructInfo(GetStructInfo(ffi::GetRef<Expr>(op)));
  }
  void VisitExpr_(const TupleObj* op) final {
    for (const Expr& field : op->fields) ExpectLeaf(field, "a field of a tuple");
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const TupleGetItemObj* op) final {
    ExpectLeaf(op->tuple_value, "a tuple to take an item of");
    ExprVisitor::VisitExpr_(op);
  }
  void VisitExpr_(const CallObj* op) final {
    ExpectLeaf(op->op, "a callee");
    for (const Expr& arg : op->args) ExpectLeaf(arg, "an argument");
    ExprVisitor::VisitExpr_(op);
    if (!complaint.empty()) return;
    auto call = ffi::GetRef<Call>(op);
    if ((in_dataflow_ || is_pure_) && IsImpureCall(op))
      Complain() << "expected no call with side effects in "
                 << (in_dataflow_ ? "a dataflow block"
                                  : "a pure function (R.function(pure=False) has them)")
                 << ", got one of " << tir::TextOf(call->op);
    if (const RewriteCallFn* normalize = FNormalize.Find(op->op);
        check_normal_form_ && normalize && !(*normalize)(builder_, call).same_as(call)) {
      Complain() << "expected calls of " << op->op.as<OpObj>()->name
                 << " in the operator's normal form, got " << tir::TextOf(call);
    }
    if (const ValidateFn* validate = FValidate.Find(op->op)) {
      Guard("expected a valid call", [&] { (*validate)(call); });
    }
    if (check_struct_info_ && complaint.empty()) CheckInference(call);
  }
  void CheckInference(const Call& call) {
    Guard("expected a call whose struct info can be inferred", [&] {
      StructInfo known = GetStructInfo(call), inferred = InferCall(call, builder_);
      if (known.same_as(inferred)) return;
      if (StructInfoBaseCheck(known, inferred) == BaseCheckResult::kFailL0)
        Complain() << "expected what is recorded of a call to agree with what is inferred, "
                   << tir::TextOf(inferred) << ", got " << tir::TextOf(known);
    });
  }
  template <class F>
  void Guard(const char* expected, F&& run) {
    try {
      run();
    } catch (const ffi::Error& e) {
      Complain() << expected << ", got " << e.kind() << ": " << e.message();
    }
  }
  void VisitExpr_(const IfObj* op) final {
    if (in_dataflow_)
      Complain() << "expected no control flow in a dataflow block, got " << tir::TextOf(op->cond);
    ExpectLeaf(op->cond, "a condition");
    VisitExpr(op->cond);
    for (const SeqExpr& branch : {op->true_branch, op->false_branch}) {
      size_t depth = scope_.size();
      auto symbolic = symbolic_;
      VisitExpr(branch);
      symbolic_ = std::move(symbolic);
      LeaveTo(depth);
    }
  }
  void VisitExpr_(const SeqExprObj* op) final {
    for (const BindingBlock& block : op->blocks) VisitBindingBlock(block);
    binding_ = Binding();
    ExpectLeaf(op->body, "the body of a sequence");
    VisitExpr(op->body);
  }
  void VisitExpr_(const FunctionObj* op) final {
    bool force_pure = op->HasNonzeroAttr("relax.force_pure");
    if (force_pure && !op->is_pure)
      Complain() << "expected a function with relax.force_pure to be pure, got an impure one";
    size_t depth = scope_.size();
    auto symbolic = symbolic_;
    bool outer_pure = std::exchange(is_pure_, op->is_pure && !force_pure);
    bool outer_dataflow = std::exchange(in_dataflow_, false);
    for (const Var& param : op->params) {
      if (param.as<DataflowVarObj>())
        Complain() << "expected parameters that are plain variables, got the dataflow variable '"
                   << param->name_hint() << "'";
      if (param->struct_info_) DefineSymbolic(param->struct_info_.value());
    }
    for (const Var& param : op->params) {
      Define(param);
      ExprVisitor::VisitVarDef(param);
    }
    // Whoever built the function knew that sizes are not negative, too.
    size_t outer_scopes = std::exchange(scopes_, 1);
    builder_->BeginScope(op->params);
    VisitExpr(op->body);
    for (; scopes_ > 0; --scopes_) builder_->EndScope();
    scopes_ = outer_scopes;
    VisitStructInfo(op->ret_struct_info);
    symbolic_ = std::move(symbolic);
    LeaveTo(depth);
    is_pure_ = outer_pure;
    in_dataflow_ = outer_dataflow;
  }
  void ExpectLeaf(const Expr& expr, const char* place) {
    // The fields of a tuple are looked at when it is visited.
    if (!IsLeaf(expr) && !expr.as<TupleObj>() && !expr.as<tir::PrimFuncObj>())
      Complain() << "expected the normal form, where " << place << " is a variable or a constant, "
                 << "got " << tir::TextOf(expr);
  }

  // ---- bindings -------------------------------------------------------------------------------
  void VisitBindingBlock_(const DataflowBlockObj* block) final {
    size_t depth = scope_.size();
    bool outer = std::exchange(in_dataflow_, true);
    ExprVisitor::VisitBindingBlock_(static_cast<const BindingBlockObj*>(block));
    in_dataflow_ = outer;
    std::vector<const Object*> outputs;
    for (size_t i = depth; i < scope_.size(); ++i) {
      if (definitions_[scope_[i]].is_output) outputs.push_back(scope_[i]);
    }
    LeaveTo(depth);
    for (const Object* id : outputs) {
      definitions_[id].is_visible = true;
      scope_.push_back(id);
    }
  }
  void VisitBinding_(const VarBindingObj* binding) final {
    binding_ = ffi::GetRef<Binding>(binding);
    const Expr& value = binding->value;
    if (value.as<SeqExprObj>())
      Complain() << "expected the normal form, where sequences are bodies and branches, got one "
                    "bound to '"
                 << binding->var->name_hint() << "'";
    bool is_function = value.as<FunctionObj>();
    if (is_function) DefineBound(binding->var);  // it may call itself
    VisitExpr(value);
    binding_ = ffi::GetRef<Binding>(binding);
    if (!is_function) DefineBound(binding->var);
    if (!check_struct_info_ || !complaint.empty() || !value->struct_info_) return;
    StructInfo known = GetStructInfo(binding->var), actual = GetStructInfo(value);
    if (known.same_as(actual)) return;
    if (StructInfoBaseCheck(known, actual) == BaseCheckResult::kFailL0)
      Complain() << "expected a variable to be what its value is, " << tir::TextOf(actual)
                 << ", got " << tir::TextOf(known);
  }
  void VisitBinding_(const MatchCastObj* binding) final {
    binding_ = ffi::GetRef<Binding>(binding);
    ExpectLeaf(binding->value, "the value of a match_cast");
    VisitExpr(binding->value);
    DefineSymbolic(binding->struct_info);
    VisitStructInfo(binding->struct_info);
    builder_->BeginScope(Array<Var>{Var("cast", binding->struct_info)});
    ++scopes_;
    DefineBound(binding->var);
  }
  void DefineBound(const Var& var) {
    if (!var->struct_info_)
      Complain() << "expected struct info of every variable, got none for '" << var->name_hint()
                 << "'";
    Define(var);
    ExprVisitor::VisitVarDef(var);
  }

  Optional<IRModule> mod_;
  BlockBuilder builder_;
  size_t scopes_ = 0;  // of it, in this function
  bool check_struct_info_, check_normal_form_;
  std::string function_;
  int function_number_ = 0;
  Binding binding_;                     // where we are
  PointerMap<Definition> definitions_;  // in the whole program, by Id
  std::vector<const Object*> scope_;    // visible variables, the newest last
  std::unordered_set<const Object*> symbolic_;
  PointerMap<bool> static_;              // struct info without symbolic expressions
  std::vector<Id> owned_;                // keeps the addresses unique
  std::vector<StructInfo> owned_infos_;  // likewise
  std::unordered_map<const Object*, std::string> symbolic_owner_;
  bool in_dataflow_ = false, is_pure_ = false;
};
}  // namespace

std::string FindIllFormed(const Variant<IRModule, Function>& program, bool check_struct_info,
                          bool check_normal_form) {
  return OnDeepStack([&]() -> std::string {
    if (auto func = program.as<Function>()) {
      WellFormedChecker checker(std::nullopt, check_struct_info, check_normal_form);
      checker.CheckFunction((*func)->GetAttr<String>(attr::kGlobalSymbol, "main"), *func);
      return checker.complaint;
    }
    IRModule mod = *program.as<IRModule>();
    WellFormedChecker checker(mod, check_struct_info, check_normal_form);
    for (const auto& [var, func] : mod->Sorted()) {
      auto* graph = func.as<FunctionObj>();
      if (graph && checker.complaint.empty())
        checker.CheckFunction(var->name_hint, ffi::GetRef<Function>(graph));
    }
    return checker.complaint;
  });
}

namespace {
TVM_REGISTER() {
  Def(
      "relax.analysis._find_ill_formed",
      [](Variant<IRModule, Function> program, bool check_struct_info, bool check_normal_form)
          -> String { return FindIllFormed(program, check_struct_info, check_normal_form); },
      "What is wrong with a program, or an empty text.", Arg("obj"), Arg("check_struct_info", true),
      Arg("check_normal_form", true));
}
}  // namespace
}  // namespace tvm::relax
