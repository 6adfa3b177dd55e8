// SPDX-License-Identifier: Apache-2.0
// IRModule: the functions of a program, by name.
#pragma once
#include <string>

#include "tvm/ir/function.h"
#include "tvm/ir/target.h"

namespace tvm {

/// Something a module declares once for all its functions.
struct GlobalInfoObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 8;
  TVM_FFI_DECLARE_OBJECT_INFO("ir.GlobalInfo", GlobalInfoObj, NodeObj);
};
TVM_NODE_REF(GlobalInfo, ObjectRef, GlobalInfoObj);

struct DummyGlobalInfoObj : GlobalInfoObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.DummyGlobalInfo", DummyGlobalInfoObj, GlobalInfoObj);
};
TVM_NODE_REF(DummyGlobalInfo, GlobalInfo, DummyGlobalInfoObj);

/// A device that tensors of the module may live on: the `vdevice_id`-th of its kind.
struct VDeviceObj : GlobalInfoObj {
  Target target;
  int64_t vdevice_id = 0;
  String memory_scope = "global";
  static void Fields(auto&& def) {
    def("target", &VDeviceObj::target);
    def("vdevice_id", &VDeviceObj::vdevice_id, Default(0));
    def("memory_scope", &VDeviceObj::memory_scope, Default(String("global")));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.VDevice", VDeviceObj, GlobalInfoObj);
};
struct VDevice : GlobalInfo {
  VDevice(Target target, int64_t vdevice_id = 0, String memory_scope = "global");
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(VDevice, GlobalInfo, VDeviceObj);
};

struct IRModule;

/// Functions by name; names are unique. Equality pairs functions by name. Who adds or removes
/// functions of a finished module does so with Update and Remove.
struct IRModuleObj : NodeObj {
  Map<GlobalVar, BaseFunc> functions;
  DictAttrs attrs;
  Map<String, Array<GlobalInfo>> global_infos;
  static void Fields(auto&& def) {
    def("functions", &IRModuleObj::functions, Default(Map<GlobalVar, BaseFunc>()));
    def("attrs", &IRModuleObj::attrs, Default(DictAttrs(Map<String, Any>())));
    def("global_infos", &IRModuleObj::global_infos, Default(Map<String, Array<GlobalInfo>>()));
  }
  void Init();

  Map<String, GlobalVar> vars_by_name;  // of `functions`; no field of its own

  /// The variable of a name, or an undefined one.
  GlobalVar FindGlobalVar(const String& name) const;
  /// The same, raising ValueError with the names there are.
  GlobalVar GetGlobalVar(const String& name) const;
  BaseFunc Lookup(const GlobalVar& var) const;
  BaseFunc Lookup(const String& name) const { return Lookup(GetGlobalVar(name)); }
  /// Adds or replaces a function.
  void Update(const GlobalVar& var, const BaseFunc& func);
  void Remove(const GlobalVar& var);
  /// The device "kind[:index[:scope]]", where the index counts the devices of that kind that the
  /// module declares; ValueError when it declares none such.
  VDevice LookupVDevice(const String& text) const;
  /// Functions in the order of their names.
  std::vector<std::pair<GlobalVar, BaseFunc>> Sorted() const;

  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.IRModule", IRModuleObj, NodeObj);
};
struct IRModule : ObjectRef {
  explicit IRModule(Map<GlobalVar, BaseFunc> functions, DictAttrs attrs = {},
                    Map<String, Array<GlobalInfo>> global_infos = {});
  /// A module with one function, named by its global symbol, else "main".
  static IRModule FromFunc(const BaseFunc& func);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IRModule, ObjectRef, IRModuleObj);
};

}  // namespace tvm
