// SPDX-License-Identifier: Apache-2.0
// IRModule: the functions of a program, by name.
#pragma once
#include <string>

#include "tvm/ir/function.h"

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

struct IRModule;

/// Functions by name; names are unique. Equality pairs functions by name.
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

  /// The variable of a name, or an undefined one.
  GlobalVar FindGlobalVar(const String& name) const;
  /// The same, raising ValueError with the names there are.
  GlobalVar GetGlobalVar(const String& name) const;
  BaseFunc Lookup(const GlobalVar& var) const;
  BaseFunc Lookup(const String& name) const { return Lookup(GetGlobalVar(name)); }
  /// Adds or replaces a function.
  void Update(const GlobalVar& var, const BaseFunc& func);
  void Remove(const GlobalVar& var);
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
