// SPDX-License-Identifier: Apache-2.0
// IRModule: lookup, update, equality by function name.
#include "tvm/ir/module.h"

#include <algorithm>
#include <charconv>

#include "ir/global_vars.h"
#include "ir/structural_equal.h"

namespace tvm {

IRModule::IRModule(Map<GlobalVar, BaseFunc> functions, DictAttrs attrs,
                   Map<String, Array<GlobalInfo>> global_infos) {
  *this = New<IRModule>([&](IRModuleObj* n) {
    n->functions = std::move(functions);
    n->attrs = attrs.defined() ? std::move(attrs) : DictAttrs(Map<String, Any>());
    n->global_infos = std::move(global_infos);
  });
}
IRModule IRModule::FromFunc(const BaseFunc& func) {
  String name = func->GetAttr<String>(attr::kGlobalSymbol, "main");
  return IRModule({{GlobalVar(name), func}});
}
VDevice::VDevice(Target target, int64_t vdevice_id, String memory_scope) {
  *this = New<VDevice>([&](VDeviceObj* n) {
    n->target = std::move(target);
    n->vdevice_id = vdevice_id;
    n->memory_scope = std::move(memory_scope);
  });
}
void IRModuleObj::Init() {
  vars_by_name = {};
  for (const auto& [var, func] : functions) {
    if (vars_by_name.count(var->name_hint)) {
      TVM_FFI_THROW(ValueError) << "IRModule: expected unique function names, got '"
                                << var->name_hint << "' twice";
    }
    vars_by_name.Set(var->name_hint, var);
  }
}
GlobalVar IRModuleObj::FindGlobalVar(const String& name) const {
  auto it = vars_by_name.find(name);
  return it == vars_by_name.end() ? GlobalVar() : (*it).second;
}
GlobalVar IRModuleObj::GetGlobalVar(const String& name) const {
  if (GlobalVar var = FindGlobalVar(name); var.defined()) return var;
  std::vector<std::string_view> names;
  std::string list;
  for (const auto& [var, func] : Sorted()) {
    names.push_back(View(var->name_hint));
    list += (list.empty() ? "" : ", ") + std::string(var->name_hint);
  }
  TVM_FFI_THROW(ValueError) << "IRModule: expected the name of a function of the module ("
                            << (list.empty() ? "it has none" : list) << "), got '" << name << "'"
                            << DidYouMean(View(name), names);
  TVM_FFI_UNREACHABLE();
}
BaseFunc IRModuleObj::Lookup(const GlobalVar& var) const {
  auto it = functions.find(var);
  return it != functions.end() ? (*it).second : functions.at(GetGlobalVar(var->name_hint));
}
void IRModuleObj::Update(const GlobalVar& var, const BaseFunc& func) {
  GlobalVar known = FindGlobalVar(var->name_hint);
  if (known.defined() && !known.same_as(var)) functions.erase(known);
  functions.Set(var, func);
  vars_by_name.Set(var->name_hint, var);
}
void IRModuleObj::Remove(const GlobalVar& var) {
  functions.erase(functions.count(var) ? var : GetGlobalVar(var->name_hint));
  vars_by_name.erase(var->name_hint);
}
VDevice IRModuleObj::LookupVDevice(const String& text) const {
  std::string kind(View(text)), index, scope;
  for (std::string* rest : {&index, &scope}) {
    std::string& before = rest == &index ? kind : index;
    if (size_t colon = before.find(':'); colon != std::string::npos) {
      *rest = before.substr(colon + 1);
      before.resize(colon);
    }
  }
  std::string known;
  int64_t number = index.empty() ? 0 : -1, count = 0;
  std::from_chars(index.data(), index.data() + index.size(), number);
  auto devices = global_infos.find("vdevice");
  for (const GlobalInfo& info :
       devices == global_infos.end() ? Array<GlobalInfo>() : (*devices).second) {
    auto* device = info.as<VDeviceObj>();
    if (!device) continue;
    bool fits = View(device->target->kind->name) == kind;
    fits = fits && (scope.empty() || View(device->memory_scope) == scope);
    if (fits && count++ == number) return ffi::GetRef<VDevice>(device);
    known += (known.empty() ? "" : ", ") + std::string(device->target->kind->name) + ":" +
             std::to_string(device->vdevice_id) + ":" + std::string(device->memory_scope);
  }
  TVM_FFI_THROW(ValueError) << "LookupVDevice: expected a device that the module declares ("
                            << (known.empty() ? "it declares none" : known) << "), got '" << text
                            << "'";
  TVM_FFI_UNREACHABLE();
}
std::vector<std::pair<GlobalVar, BaseFunc>> IRModuleObj::Sorted() const {
  std::vector<std::pair<GlobalVar, BaseFunc>> sorted;
  for (const auto& [var, func] : functions) sorted.emplace_back(var, func);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return View(a.first->name_hint) < View(b.first->name_hint);
  });
  return sorted;
}

namespace {
IRModuleObj* Mutable(const IRModule& module) { return const_cast<IRModuleObj*>(module.get()); }
struct GlobalVarReplacer : Mutator<GlobalVarReplacer, GlobalVarObj> {
  const Map<GlobalVar, GlobalVar>& map;
  explicit GlobalVarReplacer(const Map<GlobalVar, GlobalVar>& map) : map(map) {}
  ObjectRef Rewrite(const GlobalVarObj* var) {
    auto ref = ffi::GetRef<GlobalVar>(var);
    return map.Get(ref).value_or(ref);
  }
};
}  // namespace

IRModule ReplaceGlobalVars(const IRModule& mod, const Map<GlobalVar, GlobalVar>& replacements) {
  if (replacements.empty()) return mod;
  return OnDeepStack([&] {
    GlobalVarReplacer replacer(replacements);
    Map<GlobalVar, BaseFunc> functions;
    for (const auto& [var, func] : mod->functions) {
      BaseFunc renamed = replacer.Mutate(func);
      GlobalVar now = replacer.Mutate(var);
      auto symbol = func->GetAttr<String>(attr::kGlobalSymbol);
      if (symbol && symbol.value() == var->name_hint && now->name_hint != var->name_hint)
        renamed = WithAttr(renamed, attr::kGlobalSymbol, now->name_hint);
      functions.Set(now, renamed);
    }
    return IRModule(functions, mod->attrs, mod->global_infos);
  });
}

IRModule WithFunctions(const IRModule& mod, const Map<GlobalVar, BaseFunc>& functions) {
  if (functions.same_as(mod->functions)) return mod;
  auto result = Any(CopyNode(mod.get())).cast<IRModule>();  // with its table of names
  Mutable(result)->functions = functions;
  return result;
}

namespace {
/// What equality and hashing see of a module: names, then the variables (as definitions), then the
/// functions, in the order of the names.
struct Parts {
  Array<String> names;
  Array<GlobalVar> vars;
  Array<BaseFunc> functions;
  explicit Parts(const IRModuleObj* module) {
    for (const auto& [var, func] : module->Sorted()) {
      names.push_back(var->name_hint);
      vars.push_back(var);
      functions.push_back(func);
    }
  }
};
constexpr auto kModuleEqual = [](const IRModuleObj* lhs, const IRModuleObj* rhs, auto equal) {
  Parts a(lhs), b(rhs);
  constexpr int kUse = kTVMFFIDefRegionKindNone, kDefine = kTVMFFIDefRegionKindPattern;
  return equal(lhs->attrs, rhs->attrs, kUse, "attrs") &&
         equal(lhs->global_infos, rhs->global_infos, kUse, "global_infos") &&
         equal(a.names, b.names, kUse, "names") && equal(a.vars, b.vars, kDefine, "functions") &&
         equal(a.functions, b.functions, kUse, "functions");
};
int64_t ModuleHash(IRModule module, int64_t seed, Function hash) {
  Parts parts(module.get());
  seed = hash(module->attrs, seed, static_cast<int>(kTVMFFIDefRegionKindNone)).cast<int64_t>();
  seed =
      hash(module->global_infos, seed, static_cast<int>(kTVMFFIDefRegionKindNone)).cast<int64_t>();
  seed = hash(parts.names, seed, static_cast<int>(kTVMFFIDefRegionKindNone)).cast<int64_t>();
  seed = hash(parts.vars, seed, static_cast<int>(kTVMFFIDefRegionKindPattern)).cast<int64_t>();
  return hash(parts.functions, seed, static_cast<int>(kTVMFFIDefRegionKindNone)).cast<int64_t>();
}

/// A name or a variable of the module.
GlobalVar Resolve(const IRModule& module, const Variant<String, GlobalVar>& var) {
  if (auto name = var.as<String>()) return module->GetGlobalVar(*name);
  GlobalVar v = *var.as<GlobalVar>();
  return module->functions.count(v) ? v : module->GetGlobalVar(v->name_hint);
}
TVM_REGISTER() {
  RegisterBase<GlobalInfoObj>("Something a module declares once for all its functions.");
  RegisterNode<DummyGlobalInfoObj>("A global info without content.");
  RegisterNode<VDeviceObj>("A device that tensors of the module may live on.");
  RegisterNode<IRModuleObj>("The functions of a program, by name.");
  int32_t index = IRModuleObj::RuntimeTypeIndex();
  SetStructuralEqual<IRModuleObj>(kModuleEqual);
  SetTypeAttr(index, "__s_hash__", Function::FromTyped(&ModuleHash));

  Def(
      "ir.IRModule.get_global_var", [](IRModule m, String name) { return m->GetGlobalVar(name); },
      "The variable of a function; ValueError when there is none.", Arg("self"), Arg("name"));
  Def(
      "ir.IRModule.get_global_vars",
      [](IRModule m) {
        Array<GlobalVar> vars;
        for (const auto& [var, func] : m->Sorted()) vars.push_back(var);
        return vars;
      },
      "The variables of all functions, in the order of their names.", Arg("self"));
  Def(
      "ir.IRModule._lookup",
      [](IRModule m, Variant<String, GlobalVar> v) { return m->Lookup(Resolve(m, v)); },
      "The function of a name or variable.", Arg("self"), Arg("var"));
  Def(
      "ir.IRModule._contains",
      [](IRModule m, Variant<String, GlobalVar> v) {
        auto name = v.as<String>() ? *v.as<String>() : (*v.as<GlobalVar>())->name_hint;
        return m->FindGlobalVar(name).defined();
      },
      "Whether the module has a function of that name.", Arg("self"), Arg("var"));
  Def(
      "ir.IRModule._remove",
      [](IRModule m, Variant<String, GlobalVar> v) { Mutable(m)->Remove(Resolve(m, v)); },
      "Removes a function.", Arg("self"), Arg("var"));
  Def(
      "ir.IRModule._update",
      [](IRModule m, GlobalVar var, BaseFunc f) { Mutable(m)->Update(var, f); },
      "Adds or replaces a function.", Arg("self"), Arg("var"), Arg("func"));
  Def(
      "ir.IRModule.update_global_info",
      [](IRModule m, String name, Array<GlobalInfo> infos) {
        Mutable(m)->global_infos.Set(name, infos);
      },
      "Sets the global infos of a name.", Arg("self"), Arg("name"), Arg("global_info"));
  Def(
      "ir.IRModule.lookup_vdevice", [](IRModule m, String text) { return m->LookupVDevice(text); },
      "The device \"kind[:index[:scope]]\" that the module declares.", Arg("self"), Arg("device"));
  Def("ir.IRModule._replace_global_vars", &ReplaceGlobalVars, "", Arg("self"), Arg("replacements"));
  Def(
      "ir.IRModule.clone",
      [](IRModule m) { return IRModule(m->functions, m->attrs, m->global_infos); },
      "A copy that can be changed independently.", Arg("self"));
  Def(
      "ir.IRModule.with_attr",
      [](IRModule m, String key, Any value) { return WithAttr(m, key, value); },
      "A copy with an attribute set.", Arg("self"), Arg("attr_key"), Arg("attr_value"));
  Def(
      "ir.IRModule.without_attr", [](IRModule m, String key) { return WithoutAttr(m, key); },
      "A copy without an attribute.", Arg("self"), Arg("attr_key"));
}
}  // namespace
}  // namespace tvm
