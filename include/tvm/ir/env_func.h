// SPDX-License-Identifier: Apache-2.0
// Functions of the global registry as parts of a program.
#pragma once
#include "tvm/ir/node.h"

namespace tvm {

/// A function of the global registry, by name: what is saved and compared is the name.
struct EnvFuncObj : NodeObj {
  String name;
  Optional<Function> func;  // no field: looked up when the node is made
  static void Fields(auto&& def) { def("name", &EnvFuncObj::name); }
  /// ValueError when no function has the name.
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.EnvFunc", EnvFuncObj, NodeObj);
};
struct EnvFunc : ObjectRef {
  static EnvFunc Get(const String& name);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(EnvFunc, ObjectRef, EnvFuncObj);
};

}  // namespace tvm
