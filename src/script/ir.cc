// SPDX-License-Identifier: Apache-2.0
// How modules, functions in them, types and other nodes of the IR core print.
#include <algorithm>
#include <climits>

#include "tvm/ir/op.h"
#include "tvm/script/language.h"

namespace tvm::script {
namespace {
const Language kIr{"ir", "I", "ir.", 0, &PrinterConfigObj::ir_prefix};

TypeTable<const FunctionForm*>& FunctionForms() {
  static auto* table = new TypeTable<const FunctionForm*>();
  return *table;
}
}  // namespace

void RegisterFunctionForm(int32_t type_index, const FunctionForm* form) {
  FunctionForms().Set(type_index, form);
  InPlaceHandlers().Set(type_index, &PrintAsMetadata);
  WholeHandlers().Set(type_index, [](Printer& p, const Object* node) {
    auto* func = static_cast<const BaseFuncObj*>(node);
    String name = func->GetAttr<String>(attr::kGlobalSymbol, "main");
    if (!p.config->binding_names.empty()) name = p.config->binding_names[0];
    FunctionForms().Find(node->type_index())->print(p, func, name);
  });
}

// ---- names of the module ------------------------------------------------------------------------
Printer& Printer::Ir(std::string_view name) { return In(kIr, name); }
const BaseFuncObj* Printer::FunctionOf(const GlobalVarObj* var) const {
  if (!module) return nullptr;
  auto it = module->functions.find(ffi::GetRef<GlobalVar>(var));
  return it == module->functions.end() ? nullptr : (*it).second.get();
}
Printer& Printer::Member(const GlobalVarObj* var) {
  const String& alias = config->module_alias;
  return *this << (alias == "" ? module_name : View(alias)) << "." << View(var->name_hint);
}
void Printer::NameModule() {
  if (config->module_alias == "") return;
  Begin();
  *this << View(config->module_alias) << " = " << module_name;
  End();
}

namespace {
/// Functions by the rank of their kind, then by name; `main` is the last.
std::vector<std::pair<GlobalVar, BaseFunc>> InOrder(const IRModuleObj* m) {
  auto functions = m->Sorted();
  auto rank = [](const auto& item) {
    const FunctionForm* form = FunctionForms().Find(item.second->type_index());
    return std::pair(item.first->name_hint == "main", form ? form->rank : INT_MAX);
  };
  std::stable_sort(functions.begin(), functions.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return functions;
}
void PrintModule(Printer& p, const IRModuleObj* m) {
  p << "@";
  p.Ir("ir_module");
  p.End();
  if (!p.config->binding_names.empty()) p.module_name = p.config->binding_names[0];
  p << "class " << p.module_name << ":";
  p.End();
  {
    Printer::Indent indent(p);
    p.module = m;
    size_t begin = p.Position();
    auto call = [&](const char* function, const Any& value) {
      p.Begin();
      p.Ir(function) << "(";
      p.Value(value);
      p << ")";
      p.End();
    };
    if (!m->attrs->dict.empty()) call("module_attrs", m->attrs->dict);
    if (!m->global_infos.empty()) call("module_global_infos", m->global_infos);
    for (const auto& [var, func] : InOrder(m)) {
      if (p.Position() != begin) p.End();
      if (const FunctionForm* form = FunctionForms().Find(func->type_index())) {
        form->print(p, func.get(), var->name_hint);
      } else {
        p.Begin();
        p << View(var->name_hint) << " = ";
        p.Metadata(func);
        p.End();
      }
    }
    if (p.Position() == begin) {
      p.Begin();
      p << "pass";
      p.End();
    }
  }
  p.AddMark(m, nullptr, 0, p.Position());
}
void PrintModuleInPlace(Printer& p, const IRModuleObj* m) { PrintAsMetadata(p, m); }
void PrintGlobalVar(Printer& p, const GlobalVarObj* n) {
  if (p.FunctionOf(n))
    p.Member(n);
  else
    p.Ir("GlobalVar(").Quote(View(n->name_hint)) << ")";
}
void PrintOp(Printer& p, const OpObj* n) { p.Ir("Op.get(").Quote(View(n->name)) << ")"; }
void PrintDummyGlobalInfo(Printer& p, const DummyGlobalInfoObj*) { p.Ir("dummy_global_info()"); }
void PrintType(Printer& p, const TypeObj* n) { p.Construct(n); }

TVM_REGISTER() {
  RegisterLanguage(&kIr);
  DefPrint<IRModuleObj, &PrintModuleInPlace>();
  DefPrintWhole<IRModuleObj, &PrintModule>();
  DefPrint<GlobalVarObj, &PrintGlobalVar>();
  DefPrint<OpObj, &PrintOp>();
  DefPrint<DummyGlobalInfoObj, &PrintDummyGlobalInfo>();
  DefPrint<TypeObj, &PrintType>();
}
}  // namespace
}  // namespace tvm::script
