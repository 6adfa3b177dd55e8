// SPDX-License-Identifier: Apache-2.0
// Parts of the tuner that a user wrote in Python: a node that holds the instance and its methods.
#pragma once
#include "tvm/ir/node.h"

namespace tvm::tune {

/// The fields of such a node: the name of the user's class, the Python object, its methods. Python
/// sees the object's attributes beside them, hence the underscores.
#define TVM_USER_DEFINED(Self)                              \
  String name;                                              \
  Any instance;                                             \
  Map<String, Function> methods;                            \
  static void Fields(auto&& def) {                          \
    def("_name", &Self::name, Ignored());                   \
    def("_inst", &Self::instance, Ignored());               \
    def("_methods", &Self::methods, Ignored());             \
  }                                                         \
  template <class R, class... A>                            \
  R CallUser(const char* method, const A&... args) const {  \
    auto it = methods.find(method);                         \
    if (it == methods.end()) ThrowNoMethod(name, method);   \
    Any result = (*it).second(args...);                     \
    if constexpr (!std::is_void_v<R>) {                     \
      auto value = result.try_cast<R>();                    \
      if (!value.has_value()) ThrowBadResult(name, method); \
      return *std::move(value);                             \
    }                                                       \
  }                                                         \
  bool Defines(const char* method) const { return methods.count(method) > 0; }

/// The same for a family of parts that are told the task and can be cloned: `Ref` is its reference.
#define TVM_USER_DEFINED_PART(Self, Ref)                                             \
  TVM_USER_DEFINED(Self)                                                             \
  void Initialize(const TuneContext& context) final {                                \
    Ref##Obj::Initialize(context);                                                   \
    if (Defines("_initialize_with_tune_context"))                                    \
      CallUser<void>("_initialize_with_tune_context", context);                      \
  }                                                                                  \
  ObjectRef Clone() const final {                                                    \
    return Defines("clone") ? CallUser<Ref>("clone") : ffi::GetRef<ObjectRef>(this); \
  }

[[noreturn]] inline void ThrowNoMethod(const String& name, const char* method) {
  TVM_FFI_THROW(NotImplementedError) << name << ": expected a method '" << method << "'";
  TVM_FFI_UNREACHABLE();
}
[[noreturn]] inline void ThrowBadResult(const String& name, const char* method) {
  TVM_FFI_THROW(TypeError) << name << "." << method << ": returned a value of the wrong type";
  TVM_FFI_UNREACHABLE();
}

}  // namespace tvm::tune
