// SPDX-License-Identifier: Apache-2.0
// Attributes of functions, modules and calls.
#pragma once
#include "tvm/ir/node.h"

namespace tvm {

struct AttrsObj : NodeObj {
  static constexpr uint32_t _type_child_slots = 90;
  TVM_FFI_DECLARE_OBJECT_INFO("ir.Attrs", AttrsObj, NodeObj);
};
TVM_NODE_REF(Attrs, ObjectRef, AttrsObj);

/// Attributes by name.
struct DictAttrsObj : AttrsObj {
  Map<String, Any> dict;
  static void Fields(auto&& def) { def("dict", &DictAttrsObj::dict, Default(Map<String, Any>())); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.DictAttrs", DictAttrsObj, AttrsObj);
};
struct DictAttrs : Attrs {
  explicit DictAttrs(Map<String, Any> dict);
  /// The attribute as a T, or nothing.
  template <class T>
  Optional<T> Get(const String& key) const {
    if (!defined()) return std::nullopt;
    auto it = get()->dict.find(key);
    if (it == get()->dict.end() || (*it).second == nullptr) return std::nullopt;
    return (*it).second.template cast<T>();
  }
  bool Has(const String& key) const { return defined() && get()->dict.count(key); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(DictAttrs, Attrs, DictAttrsObj);
};

}  // namespace tvm
