// SPDX-License-Identifier: Apache-2.0
// Functions registered once, with parameter names, defaults and documentation.
#pragma once
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tvm {
using ffi::Any, ffi::AnyView, ffi::Array, ffi::Function, ffi::Map, ffi::Object, ffi::ObjectPtr,
    ffi::ObjectRef, ffi::Optional, ffi::String, ffi::Variant;

inline std::string_view View(const String& s) { return {s.data(), s.size()}; }

// ---- registration -----------------------------------------------------------------------------
/// TVM_REGISTER() { Def(...); } runs when the library is initialized, not when it is loaded: an
/// error there (another library owns a name) is an ImportError, where a static initializer would
/// end the process.
int AddRegistration(void (*fn)());
/// Runs what is queued. Python calls it on import; a C++ program calls it first in main().
void Initialize();
#define TVM_REGISTER() TVM_REGISTER_NUMBER(__COUNTER__)  // __LINE__ is not unique in a batch
#define TVM_REGISTER_NUMBER(n) TVM_REGISTER_AS(n)
#define TVM_REGISTER_AS(n) TVM_REGISTER_NAMED(Register##n, registered##n)
#define TVM_REGISTER_NAMED(function, queued)                                    \
  static void function();                                                       \
  [[maybe_unused]] static const int queued = ::tvm::AddRegistration(&function); \
  static void function()

// ---- functions --------------------------------------------------------------------------------
/// A parameter: its name and, optionally, its default.
struct Arg {
  const char* name;
  bool has_default = false;
  Any value = nullptr;
  explicit Arg(const char* name) : name(name) {}
  Arg(const char* name, Any value) : name(name), has_default(true), value(std::move(value)) {}
};

using TypeSchemaFn = std::string (*)();

struct FnInfo {
  const char *name, *doc;
  void (*fn)();
  std::vector<Arg> args;
  std::vector<TypeSchemaFn> schemas;  // of the parameters, then of the result
};
void RegisterFunction(FnInfo* info, TVMFFISafeCallType call);
const FnInfo* FindFunction(std::string_view name);
/// All registered names that begin with `prefix`, sorted.
std::vector<std::string_view> ListFunctions(std::string_view prefix);
/// [doc, parameter names, defaults of the last ones, types of parameters and result].
Array<Any> Describe(const char* doc, const std::vector<Arg>&, const std::vector<TypeSchemaFn>&);

// ---- errors -----------------------------------------------------------------------------------
/// In a catch (...) block of a C function: keeps the exception for the caller and returns -1.
int ReportException() noexcept;
/// {"type":"Array","args":[..]} -> Array[..]
std::string PrettyType(std::string_view schema);
[[noreturn]] void ThrowWrongType(const AnyView& got, TypeSchemaFn expected);
[[noreturn]] void ThrowBadArg(const FnInfo*, int i, const AnyView&, TypeSchemaFn expected);
void CheckCount(const FnInfo*, int expected, int got);
/// Raises KeyboardInterrupt (or what a Python signal handler raised) if one is pending. Long loops
/// call it.
void CheckSignals();
/// The nearest of `names` for "did you mean", as ", did you mean 'x'?", or "" when none is near.
std::string DidYouMean(std::string_view got, const std::vector<std::string_view>& names);

/// Whether `value`, which holds a T, has None where T is not Optional: itself, or among its
/// elements.
template <class T>
struct NoneIn {
  static bool Any(const AnyView& value) {
    return std::is_base_of_v<ObjectRef, T> && value.type_index() == ffi::TypeIndex::kTVMFFINone;
  }
};
template <class... T>
struct NoneIn<Variant<T...>> : NoneIn<ObjectRef> {};
template <class T>
struct NoneIn<Optional<T>> {
  static bool Any(const AnyView& value) {
    return value.type_index() != ffi::TypeIndex::kTVMFFINone && NoneIn<T>::Any(value);
  }
};
template <class T>
struct NoneIn<Array<T>> {
  static bool Any(const AnyView& value) {
    auto* array = value.template as<ffi::ArrayObj>();
    return !array || std::any_of(array->begin(), array->end(), &NoneIn<T>::Any);
  }
};
template <class K, class V>
struct NoneIn<Map<K, V>> {
  static bool Any(const AnyView& value) {
    auto* map = value.template as<ffi::MapObj>();
    return !map || std::any_of(map->begin(), map->end(),
                               [](const auto& item) { return NoneIn<V>::Any(item.second); });
  }
};
/// None for a parameter or field that is not Optional, or in it.
template <class T>
bool IsMissing(const T& value) {
  return NoneIn<T>::Any(AnyView(value));
}
template <class T>
decltype(auto) Unpack(const FnInfo* info, const TVMFFIAny* args, int i) {
  auto view = AnyView::CopyFromTVMFFIAny(args[i]);
  if constexpr (std::is_same_v<T, Any>) {
    return Any(view);
  } else {
    auto value = view.template try_cast<T>();
    if (!value.has_value() || IsMissing<T>(*value)) [[unlikely]]
      ThrowBadArg(info, i, view, &ffi::detail::TypeSchema<T>::v);
    return T(*std::move(value));
  }
}
/// One wrapper per signature, not per function: the function itself is data.
template <class R, class... A>
int CallTyped(void* self, const TVMFFIAny* args, int32_t n, TVMFFIAny* ret) {
  auto* info = static_cast<const FnInfo*>(self);
  try {
    CheckCount(info, sizeof...(A), n);
    auto* fn = reinterpret_cast<R (*)(A...)>(info->fn);
    [&]<size_t... I>(std::index_sequence<I...>) {
      if constexpr (std::is_void_v<R>) {
        fn(Unpack<std::remove_cvref_t<A>>(info, args, I)...);
      } else {
        *ret = ffi::detail::AnyUnsafe::MoveAnyToTVMFFIAny(
            Any(fn(Unpack<std::remove_cvref_t<A>>(info, args, I)...)));
      }
    }(std::index_sequence_for<A...>{});
    return 0;
  } catch (...) {
    return ReportException();
  }
}
template <class... T>
std::vector<TypeSchemaFn> Schemas() {
  return {&ffi::detail::TypeSchema<T>::v...};
}
template <class R, class... A>
FnInfo* MakeFnInfo(const char* name, R (*fn)(A...), const char* doc, std::vector<Arg> args) {
  return new FnInfo{name, doc, reinterpret_cast<void (*)()>(fn), std::move(args),
                    Schemas<std::remove_cvref_t<A>..., std::remove_cvref_t<R>>()};
}
template <class R, class... A>
void DefTyped(const char* name, R (*fn)(A...), const char* doc, std::vector<Arg> args) {
  RegisterFunction(MakeFnInfo(name, fn, doc, std::move(args)), &CallTyped<R, A...>);
}

/// Def("tir.exp", &exp, "e to the power x.", Arg("x")); a name is the Python path below `tvm`.
template <class R, class... A, class... P>
void Def(const char* name, R (*fn)(A...), const char* doc, P... args) {
  static_assert(sizeof...(A) == sizeof...(P), "one Arg per parameter");
  DefTyped(name, fn, doc, {std::move(args)...});
}
/// The same for a lambda without captures.
template <class F, class... P>
  requires requires(F f) { +f; } && std::is_class_v<F>
void Def(const char* name, F fn, const char* doc, P... args) {
  Def(name, +fn, doc, std::move(args)...);
}

}  // namespace tvm
