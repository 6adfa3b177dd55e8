// SPDX-License-Identifier: Apache-2.0
// Targets: what code is generated for.
#pragma once
#include "tvm/ir/node.h"

namespace tvm {

/// A kind of target, from the table in src/ir/target/kinds.cc: its name, device and default keys.
struct TargetKindObj : NodeObj {
  String name;
  int64_t default_device_type = kDLCPU;
  Array<String> default_keys;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUniqueInstance;
  static void Fields(auto&& def) {
    def("name", &TargetKindObj::name);
    def("default_device_type", &TargetKindObj::default_device_type);
    def("default_keys", &TargetKindObj::default_keys);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("target.TargetKind", TargetKindObj, NodeObj);
};
struct TargetKind : ObjectRef {
  /// ValueError with the nearest name when there is none.
  static TargetKind Get(const String& name);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TargetKind, ObjectRef, TargetKindObj);
};

struct Target;

/// What code is generated for: a kind and its attributes (mcpu, mattr, num-cores, …), checked
/// against the kind's option table. `Target("llvm")` is this machine.
struct TargetObj : NodeObj {
  TargetKind kind;
  Optional<ObjectRef> host;  // a Target
  String tag;
  Array<String> keys;
  Map<String, Any> attrs;
  static void Fields(auto&& def) {
    def("kind", &TargetObj::kind);
    def("host", &TargetObj::host, Default(nullptr));
    def("tag", &TargetObj::tag, Default(String()));
    def("keys", &TargetObj::keys, Default(Array<String>()));
    def("attrs", &TargetObj::attrs, Default(Map<String, Any>()));
  }
  template <class T>
  Optional<T> GetAttr(const String& key) const {
    auto it = attrs.find(key);
    if (it == attrs.end()) return std::nullopt;
    return (*it).second.template cast<T>();
  }
  template <class T>
  T GetAttr(const String& key, T fallback) const {
    return GetAttr<T>(key).value_or(std::move(fallback));
  }
  bool HasKey(const String& key) const;
  /// Whether an instruction-set feature such as "avx512f" is on: from mattr, and from mcpu's table.
  bool HasFeature(const String& feature) const;
  int64_t DeviceType() const;
  /// The string form without the host: `llvm -mcpu=znver4 -num-cores=2`.
  String str() const;
  /// The JSON form.
  Map<String, Any> Export() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("target.Target", TargetObj, NodeObj);
};
struct Target : ObjectRef {
  /// From a string, a tag ("nvidia/nvidia-h100") or JSON text.
  explicit Target(const String& text);
  explicit Target(const Map<String, Any>& config);
  Target WithHost(const Target& host) const;
  Optional<Target> Host() const;
  /// The innermost `with target:`, or an undefined target.
  static Target Current();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Target, ObjectRef, TargetObj);
};

}  // namespace tvm
