// SPDX-License-Identifier: Apache-2.0
// The base of functions in a module, and its attributes.
#pragma once
#include "tvm/ir/attrs.h"
#include "tvm/ir/expr.h"

namespace tvm {

/// How a function is called after lowering.
enum class CallingConv : int { kDefault = 0, kCPackedFunc = 1, kDeviceKernelLaunch = 2 };

/// Names of attributes every kind of function may have.
namespace attr {
inline constexpr const char* kGlobalSymbol = "global_symbol";  ///< Name in the compiled library.
inline constexpr const char* kTarget = "target";
inline constexpr const char* kCallingConv = "calling_conv";
}  // namespace attr

struct BaseFuncObj : RelaxExprObj {
  DictAttrs attrs;
  static constexpr uint32_t _type_child_slots = 4;
  static void Fields(auto&& def) {
    def("attrs", &BaseFuncObj::attrs, Default(DictAttrs(Map<String, Any>())));
  }
  template <class T>
  Optional<T> GetAttr(const String& key) const {
    return attrs.Get<T>(key);
  }
  template <class T>
  T GetAttr(const String& key, T fallback) const {
    return attrs.Get<T>(key).value_or(std::move(fallback));
  }
  bool HasNonzeroAttr(const String& key) const { return GetAttr<int64_t>(key, 0) != 0; }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.BaseFunc", BaseFuncObj, RelaxExprObj);
};
TVM_NODE_REF(BaseFunc, RelaxExpr, BaseFuncObj);

/// A copy of `func` (or of a module) with one attribute set, or removed.
DictAttrs WithAttr(const DictAttrs& attrs, const String& key, Any value);
DictAttrs WithoutAttr(const DictAttrs& attrs, const String& key);
template <class Ref>
  requires requires(Ref r) { r->attrs; }
Ref WithAttr(Ref ref, const String& key, Any value) {
  auto* n = Edit(&ref);
  n->attrs = WithAttr(n->attrs, key, std::move(value));
  return ref;
}
template <class Ref>
  requires requires(Ref r) { r->attrs; }
Ref WithoutAttr(Ref ref, const String& key) {
  auto* n = Edit(&ref);
  n->attrs = WithoutAttr(n->attrs, key);
  return ref;
}

}  // namespace tvm
