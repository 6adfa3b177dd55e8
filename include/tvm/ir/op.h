// SPDX-License-Identifier: Apache-2.0
// Operators and the attributes registered for them.
#pragma once
#include <atomic>

#include "tvm/ir/callback.h"
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

/// More operators than this are refused.
constexpr uint32_t kMaxOps = 1 << 13;

/// A named operator, one object per name in the process. What is known of it (effect, lowering,
/// printed name) are attributes that any part may add.
struct OpObj : RelaxExprObj {
  uint32_t index = kMaxOps - 1;  // in the columns of attributes; the last place stays empty
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

// ---- typed attributes -------------------------------------------------------------------------
/// A function that an operator brings: one written in C++ is called directly, one written in Python
/// through tvm-ffi.
template <class Signature>
class OpHook;
template <class R, class... A>
class OpHook<R(A...)> {
 public:
  OpHook(R (*native)(A...)) : native_(native) {}  // NOLINT(*)
  explicit OpHook(Function packed) : packed_(std::move(packed)) {}
  R operator()(A... args) const {
    if (native_) return native_(args...);
    Any result = CallBack(packed_.value(), args...);
    if constexpr (!std::is_void_v<R>) {
      auto typed = result.try_cast<R>();
      if (!typed) ThrowWrongType(result, &ffi::detail::TypeSchema<R>::v);
      return *std::move(typed);
    }
  }
  Function packed() const { return packed_ ? packed_.value() : Function::FromTyped(native_); }

 private:
  R (*native_)(A...) = nullptr;
  Optional<Function> packed_;
};

/// How the values of a column go to tvm-ffi and come back.
template <class T>
struct OpValue {
  static Any ToAny(const T& value) { return Any(value); }
  static std::optional<T> FromAny(const Any& value) { return value.try_cast<T>(); }
  static constexpr TypeSchemaFn schema = &ffi::detail::TypeSchema<T>::v;
};
template <class Signature>
struct OpValue<OpHook<Signature>> {
  static Any ToAny(const OpHook<Signature>& hook) { return hook.packed(); }
  static std::optional<OpHook<Signature>> FromAny(const Any& value) {
    auto packed = value.try_cast<Function>();
    return packed ? std::optional(OpHook<Signature>(*packed)) : std::nullopt;
  }
  static constexpr TypeSchemaFn schema = &ffi::detail::TypeSchema<Function>::v;
};

/// What one operator has in one column. It never changes: a new value is a new cell, and old ones
/// stay, since somebody may be reading them.
struct OpCell {
  Any value;
  int64_t level;
  const void* typed;  // the value as the column's type
};
/// An attribute of all operators. Its type is not known before C++ names it.
struct OpColumn {
  std::string key;
  std::atomic<const OpCell*>* cells;             // by OpObj::index
  const void* (*convert)(const Any&) = nullptr;  // null: the value is not of the column's type
  TypeSchemaFn schema = nullptr;
};
/// The column of a name, from now on of this type.
OpColumn* TypedOpColumn(const char* key, const void* (*convert)(const Any&), TypeSchemaFn schema);
void SetOpCell(OpColumn* column, const Op& op, OpCell cell);

/// An attribute whose values are of type T, read without a lock:
///   const OpAttr<bool> FPurity("FPurity");
///   if (const bool* pure = FPurity.Find(op)) ...
/// Op::SetAttr and Python set it by name; a value that is no T is refused.
template <class T>
class OpAttr {
 public:
  explicit OpAttr(const char* key) : column_(TypedOpColumn(key, &Convert, OpValue<T>::schema)) {}
  /// The operator's value, or null.
  const T* Find(const OpObj* op) const {
    const OpCell* cell = column_->cells[op->index].load(std::memory_order_acquire);
    return cell ? static_cast<const T*>(cell->typed) : nullptr;
  }
  /// The same for an expression that may be no operator.
  const T* Find(const RelaxExpr& op) const {
    auto* node = op.as<OpObj>();
    return node ? Find(node) : nullptr;
  }
  T Get(const RelaxExpr& op, T fallback) const {
    const T* value = Find(op);
    return value ? *value : fallback;
  }
  void Set(const Op& op, const T& value, int64_t level = 10) const {
    SetOpCell(column_, op, {OpValue<T>::ToAny(value), level, new T(value)});
  }

 private:
  static const void* Convert(const Any& value) {
    auto typed = OpValue<T>::FromAny(value);
    return typed ? new T(*std::move(typed)) : nullptr;
  }
  OpColumn* column_;
};

}  // namespace tvm
