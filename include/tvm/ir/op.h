// SPDX-License-Identifier: Apache-2.0
// Operators and the attributes registered for them.
#pragma once
#include "tvm/ir/expr.h"

namespace tvm {

struct ArgumentInfoObj : NodeObj {
  String name, type_info, description;
  static void Fields(auto&& def) {
    def("name", &ArgumentInfoObj::name);
    def("type_info", &ArgumentInfoObj::type_info, Default(String()));
    def("description", &ArgumentInfoObj::description, Default(String()));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.ArgumentInfo", ArgumentInfoObj, NodeObj);
};
TVM_NODE_REF(ArgumentInfo, ObjectRef, ArgumentInfoObj);

/// A named operator, one object per name in the process. What is known of it (effect, lowering,
/// printed name) are attributes that any part may add.
struct OpObj : RelaxExprObj {
  String name, description;
  Array<ArgumentInfo> arguments;
  int64_t num_inputs = -1;
  String attrs_type_key;
  int64_t support_level = 10;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static void Fields(auto&& def) {
    def("name", &OpObj::name);
    def("description", &OpObj::description, Default(String()), Ignored());
    def("arguments", &OpObj::arguments, Default(Array<ArgumentInfo>()), Ignored());
    def("num_inputs", &OpObj::num_inputs, Default(-1), Ignored());
    def("attrs_type_key", &OpObj::attrs_type_key, Default(String()), Ignored());
    def("support_level", &OpObj::support_level, Default(10), Ignored());
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.Op", OpObj, RelaxExprObj);
};
struct Op : RelaxExpr {
  /// The operator of that name; AttributeError with the nearest name when there is none.
  static Op Get(const String& name);
  /// The operator of that name, made when it does not exist yet.
  static Op Register(const String& name, const String& description = "");
  static bool Exists(const String& name);
  /// An attribute, or None.
  Any GetAttr(const String& key) const;
  /// Sets an attribute; of two values the one with the higher level stays.
  void SetAttr(const String& key, Any value, int64_t level = 10) const;
  void ResetAttr(const String& key) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Op, RelaxExpr, OpObj);
};

}  // namespace tvm
