// SPDX-License-Identifier: Apache-2.0
// How Relax functions, blocks and bindings print.
#include <algorithm>

#include "script/relax/relax.h"
#include "tvm/ir/structural.h"

namespace tvm::script {
using namespace relax;

const Language kRelax{"relax", "R", "relax.", 20, &PrinterConfigObj::relax_prefix};

namespace {
/// What a program uses and defines, in the order of first use.
struct Scan : Visitor<Scan, tir::VarObj, relax::VarObj, GlobalVarObj, VarBindingObj, MatchCastObj,
                      FunctionObj> {
  std::vector<const tir::VarObj*> symbolic;
  std::vector<const relax::VarObj*> vars;
  std::unordered_set<const Object*> seen, defined;
  bool has_global = false;

  void Visit(const tir::VarObj* n) {
    if (seen.insert(n).second) symbolic.push_back(n);
  }
  void Visit(const relax::VarObj* n) {
    if (seen.insert(n).second) vars.push_back(n);
  }
  void Visit(const GlobalVarObj*) { has_global = true; }
  void Visit(const VarBindingObj* n) {
    // A local function may name itself.
    Defines(n->var);
    (*this)(n->value);
  }
  void Visit(const MatchCastObj* n) {
    Defines(n->var);
    (*this)(n->value);
    (*this)(n->struct_info);
  }
  void Visit(const FunctionObj* n) {
    for (const relax::Var& param : n->params) Defines(param);
    (*this)(n->ret_struct_info);
    (*this)(n->body);
  }
  void Defines(const relax::Var& var) {
    defined.insert(var.get());
    if (var->struct_info_.has_value()) (*this)(var->struct_info_.value());
  }
};

void PrintInfo(Printer& p, const Optional<StructInfo>& info) {
  if (!info.has_value()) return;
  p << ": ";
  p.Node(info.value().get());
}
/// Operators that say themselves what they return.
bool SaysItsInfo(Printer& p, const Expr& value) {
  auto* call = value.as<relax::CallObj>();
  auto* op = call ? call->op.as<OpObj>() : nullptr;
  return op && FormOf(p, op).says_info;
}
bool NeedsInfo(Printer& p, const relax::VarObj* var, const Expr& value) {
  if (p.config->show_all_struct_info && !SaysItsInfo(p, value)) return true;
  return !var->struct_info_.has_value() || !value->struct_info_.has_value() ||
         !StructuralEqual(var->struct_info_.value(), value->struct_info_.value());
}
/// name: info =
void PrintTarget(Printer& p, const relax::VarObj* var, bool info) {
  p << p.Define(var, var->name_hint());
  if (info) PrintInfo(p, var->struct_info_);
  p << " = ";
}
void PrintBranch(Printer& p, const relax::VarObj* var, const SeqExpr& branch) {
  Printer::Scope scope(p);
  Printer::Indent indent(p);
  PrintBlocks(p, branch.get());
  p.Begin();
  PrintTarget(p, var, true);
  PrintRelax(p, branch->body);
  p.End();
}
void PrintIfBinding(Printer& p, const relax::VarObj* var, const IfObj* n) {
  p.Begin();
  p << "if ";
  PrintRelax(p, n->cond);
  p << ":";
  p.End();
  p.Define(var, var->name_hint());
  PrintBranch(p, var, n->true_branch);
  p.Begin();
  p << "else:";
  p.End();
  PrintBranch(p, var, n->false_branch);
}

void PrintSignature(Printer& p, const FunctionObj* f, const std::string& name, bool local) {
  p.Begin();
  p << "@";
  Relax(p, "function");
  bool is_private = !local && !f->GetAttr<String>(tvm::attr::kGlobalSymbol).has_value();
  if (is_private || !f->is_pure) {
    Printer::List list(p, "(", ")");
    if (is_private) list.Keyword("private") << "True";
    if (!f->is_pure) list.Keyword("pure") << "False";
  }
  p.End();
  size_t begin = p.Position();
  p.Begin();
  p << "def " << name;
  {
    Printer::List params(p, "(", ")");
    for (const relax::Var& param : f->params) {
      params.Item() << p.Define(param.get(), param->name_hint());
      PrintInfo(p, param->struct_info_);
    }
  }
  p << " -> ";
  p.Node(f->ret_struct_info.get());
  p << ":";
  p.End();
  p.MarkLine(f, nullptr, begin);
}
void PrintBody(Printer& p, const SeqExprObj* seq) {
  PrintBlocks(p, seq);
  p.Begin();
  p << "return ";
  PrintRelax(p, seq->body);
  p.End();
}
void PrintAttrs(Printer& p, const FunctionObj* f, std::string_view name) {
  Map<String, Any> attrs;
  for (const auto& [key, value] : f->attrs->dict) {
    if (key == tvm::attr::kGlobalSymbol && value.as<String>() == String(std::string(name)))
      continue;
    attrs.Set(key, value);
  }
  if (attrs.empty()) return;
  p.Begin();
  Relax(p, "func_attr(");
  p.Value(attrs);
  p << ")";
  p.End();
}
void PrintLocalFunction(Printer& p, const relax::VarObj* var, const FunctionObj* f) {
  std::string name = p.Define(var, var->name_hint());
  Printer::Scope scope(p);
  PrintSignature(p, f, name, true);
  Printer::Indent indent(p);
  PrintAttrs(p, f, "");
  PrintBody(p, f->body.get());
}
void PrintVarBinding(Printer& p, const VarBindingObj* n) {
  const relax::VarObj* var = n->var.get();
  if (auto* branches = n->value.as<IfObj>()) return PrintIfBinding(p, var, branches);
  if (auto* function = n->value.as<FunctionObj>()) return PrintLocalFunction(p, var, function);
  p.Begin();
  auto info = var->struct_info_;
  // A call for its effect alone is a statement.
  bool unused = n->value.as<relax::CallObj>() && info.has_value() &&
                IsVoidStructInfo(info.value()) && !p.State<RelaxState>().used.count(var);
  if (!unused) PrintTarget(p, var, NeedsInfo(p, var, n->value));
  PrintRelax(p, n->value);
  p.End();
}
void PrintMatchCast(Printer& p, const MatchCastObj* n) {
  p.Begin();
  PrintTarget(p, n->var.get(), true);
  Relax(p, "match_cast(");
  PrintRelax(p, n->value);
  p << ", ";
  p.Node(n->struct_info.get());
  p << ")";
  p.End();
}
void PrintBinding(Printer& p, const Binding& binding) {
  size_t begin = p.Position();
  if (auto* cast = binding.as<MatchCastObj>())
    PrintMatchCast(p, cast);
  else
    PrintVarBinding(p, binding.as<VarBindingObj>());
  p.MarkLine(binding.get(), nullptr, begin);
}
void PrintBlock(Printer& p, const BindingBlockObj* block) {
  if (!block->IsInstance<DataflowBlockObj>()) {
    for (const Binding& binding : block->bindings) PrintBinding(p, binding);
    return;
  }
  p.Begin();
  p << "with ";
  Relax(p, "dataflow():");
  p.End();
  Printer::Indent indent(p);
  std::vector<const relax::VarObj*> outputs;
  for (const Binding& binding : block->bindings) {
    const relax::VarObj* var = binding->var.get();
    if (!var->IsInstance<DataflowVarObj>()) {
      outputs.push_back(var);
      p.State<RelaxState>().used.insert(var);
    }
    PrintBinding(p, binding);
  }
  p.Begin();
  Relax(p, "output");
  {
    Printer::List list(p, "(", ")");
    for (const relax::VarObj* var : outputs) list.Item() << p.Name(var, var->name_hint());
  }
  p.End();
}
}  // namespace

void PrintBlocks(Printer& p, const SeqExprObj* seq) {
  if (StackIsLow()) [[unlikely]]
    return Recurse([&] { PrintBlocks(p, seq); });
  for (const BindingBlock& block : seq->blocks) PrintBlock(p, block.get());
}
void DeclareFreeRelax(Printer& p, const ObjectRef& fragment) {
  Scan scan;
  scan(fragment);
  for (size_t i = 0; i < scan.vars.size(); ++i) {
    const auto& info = scan.vars[i]->struct_info_;
    if (info.has_value()) scan(info.value());
  }
  for (const tir::VarObj* var : scan.symbolic) {
    if (!p.Known(var)) DefineVar(p, var);
  }
  for (const relax::VarObj* var : scan.vars) {
    if (scan.defined.count(var) || p.Known(var)) continue;
    p.Begin();
    p << p.Define(var, var->name_hint());
    PrintInfo(p, var->struct_info_);
    p.End();
  }
  p.State<RelaxState>().used.insert(scan.vars.begin(), scan.vars.end());
}

namespace {
void PrintFunction(Printer& p, const FunctionObj* f, const String& name) {
  Scan scan;
  scan(ffi::GetRef<relax::Function>(f));
  auto& state = p.State<RelaxState>();
  state.used.insert(scan.vars.begin(), scan.vars.end());
  Printer::Scope scope(p);
  for (const tir::VarObj* var : scan.symbolic) p.Define(var, var->name_hint);
  state.signature = true;
  PrintSignature(p, f, name, false);
  state.signature = false;
  Printer::Indent indent(p);
  for (const tir::VarObj* var : scan.symbolic) DefineVar(p, var);
  PrintAttrs(p, f, View(name));
  if (p.module && scan.has_global) p.NameModule();
  PrintBody(p, f->body.get());
}
void PrintExternMember(Printer& p, const ExternFuncObj* f, const String& name) {
  p.Begin();
  if (p.module) p << View(name) << " = ";
  PrintExtern(p, f);
  p.End();
}

// ---- fragments ----------------------------------------------------------------------------------
void PrintWholeRelax(Printer& p, const RelaxExprObj* n) {
  auto expr = ffi::GetRef<Expr>(n);
  DeclareFreeRelax(p, expr);
  if (auto* seq = expr.as<SeqExprObj>()) {
    PrintBlocks(p, seq);
    return PrintRelax(p, seq->body);
  }
  PrintRelax(p, expr);
}
void PrintWholeIf(Printer& p, const IfObj* n) {
  DeclareFreeRelax(p, ffi::GetRef<If>(n));
  PrintIfBinding(p, relax::Var("ret", n->struct_info_).get(), n);
}
void PrintWholeBinding(Printer& p, const BindingObj* n) {
  DeclareFreeRelax(p, ffi::GetRef<Binding>(n));
  PrintBinding(p, ffi::GetRef<Binding>(n));
}
void PrintWholeBlock(Printer& p, const BindingBlockObj* n) {
  DeclareFreeRelax(p, ffi::GetRef<BindingBlock>(n));
  PrintBlock(p, n);
}
TVM_REGISTER() {
  RegisterLanguage(&kRelax);
  DefPrintFunction<ExternFuncObj, &PrintExternMember, 20>();
  DefPrintFunction<FunctionObj, &PrintFunction, 30>();
  DefPrint<ExternFuncObj, &PrintExtern>();
  for (int32_t index : {relax::VarObj::RuntimeTypeIndex(), relax::CallObj::RuntimeTypeIndex(),
                        TupleObj::RuntimeTypeIndex(), TupleGetItemObj::RuntimeTypeIndex(),
                        ShapeExprObj::RuntimeTypeIndex(), PrimValueObj::RuntimeTypeIndex(),
                        SeqExprObj::RuntimeTypeIndex()}) {
    WholeHandlers().Set(index, kHandler<RelaxExprObj, &PrintWholeRelax>);
  }
  DefPrintWhole<IfObj, &PrintWholeIf>();
  DefPrintWhole<BindingObj, &PrintWholeBinding>();
  DefPrintWhole<BindingBlockObj, &PrintWholeBlock>();
}
}  // namespace
}  // namespace tvm::script
