// SPDX-License-Identifier: Apache-2.0
// How modules, types, targets and other nodes of the IR core print.
#include "printer.h"
#include "tvm/ir/op.h"
#include "tvm/ir/target.h"

namespace tvm::script {
namespace {

void PrintModule(Printer& p, const IRModuleObj* m) {
  if (p.Position() != 0) return p.Metadata(ffi::GetRef<IRModule>(m));
  p << "@";
  p.Ir("ir_module");
  p.End();
  if (!p.config->binding_names.empty()) p.module_name = p.config->binding_names[0];
  p << "class " << p.module_name << ":";
  p.End();
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
  for (const auto& [var, func] : m->Sorted()) {
    if (p.Position() != begin) p.End();
    if (auto* prim = func.as<tir::PrimFuncObj>()) {
      p.Function(prim, var->name_hint);
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
void PrintGlobalVar(Printer& p, const GlobalVarObj* n) {
  bool member = p.module && p.module->functions.count(ffi::GetRef<GlobalVar>(n));
  if (member)
    p << View(p.config->module_alias) << "." << View(n->name_hint);
  else
    p.Ir("GlobalVar(").Quote(View(n->name_hint)) << ")";
}
void PrintOp(Printer& p, const OpObj* n) { p.Ir("Op.get(").Quote(View(n->name)) << ")"; }
void PrintTarget(Printer& p, const TargetObj* n) {
  p.Tir("target(");
  p.Value(n->Export());
  p << ")";
}
void PrintDummyGlobalInfo(Printer& p, const DummyGlobalInfoObj*) { p.Ir("dummy_global_info()"); }
void PrintType(Printer& p, const TypeObj* n) { p.Construct(n); }

TVM_REGISTER() {
  DefPrint<IRModuleObj, &PrintModule>();
  DefPrint<GlobalVarObj, &PrintGlobalVar>();
  DefPrint<OpObj, &PrintOp>();
  DefPrint<TargetObj, &PrintTarget>();
  DefPrint<DummyGlobalInfoObj, &PrintDummyGlobalInfo>();
  DefPrint<TypeObj, &PrintType>();
}
}  // namespace
}  // namespace tvm::script
