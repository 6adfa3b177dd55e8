// SPDX-License-Identifier: Apache-2.0
// Types of variables and functions.
#pragma once
#include "tvm/ir/source.h"

namespace tvm {

struct TypeObj : NodeObj {
  Optional<Span> span;
  static constexpr uint32_t _type_child_slots = 14;
  static void Fields(auto&& def) { def("span", &TypeObj::span, Default(nullptr), Ignored()); }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.Type", TypeObj, NodeObj);
};
TVM_NODE_REF(Type, ObjectRef, TypeObj);

/// A value of a DataType.
struct PrimTypeObj : TypeObj {
  DataType dtype;
  static void Fields(auto&& def) { def("dtype", &PrimTypeObj::dtype); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.PrimType", PrimTypeObj, TypeObj);
};
struct PrimType : Type {
  explicit PrimType(DataType dtype);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimType, Type, PrimTypeObj);
};

/// A pointer to elements of a type in a memory scope ("" and "global" are the same).
struct PointerTypeObj : TypeObj {
  Type element_type;
  String storage_scope;
  static void Fields(auto&& def) {
    def("element_type", &PointerTypeObj::element_type);
    def("storage_scope", &PointerTypeObj::storage_scope, Default(String()));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.PointerType", PointerTypeObj, TypeObj);
};
struct PointerType : Type {
  explicit PointerType(Type element_type, String storage_scope = "");
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PointerType, Type, PointerTypeObj);
};

/// A tuple; the empty one is void.
struct TupleTypeObj : TypeObj {
  Array<Type> fields;
  static void Fields(auto&& def) { def("fields", &TupleTypeObj::fields); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.TupleType", TupleTypeObj, TypeObj);
};
struct TupleType : Type {
  explicit TupleType(Array<Type> fields);
  static TupleType Void() { return TupleType(Array<Type>()); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TupleType, Type, TupleTypeObj);
};

struct FuncTypeObj : TypeObj {
  Array<Type> arg_types;
  Type ret_type;
  static void Fields(auto&& def) {
    def("arg_types", &FuncTypeObj::arg_types);
    def("ret_type", &FuncTypeObj::ret_type);
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.FuncType", FuncTypeObj, TypeObj);
};
TVM_NODE_REF(FuncType, Type, FuncTypeObj);

/// A descriptor of a tensor in the form CUDA's copy engine takes.
struct TensorMapTypeObj : TypeObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.TensorMapType", TensorMapTypeObj, TypeObj);
};
TVM_NODE_REF(TensorMapType, Type, TensorMapTypeObj);

/// The DataType of values of `type`: handle for pointers, void for the empty tuple.
DataType DataTypeOf(const Type& type);
inline bool IsVoidType(const Type& type) {
  auto* tuple = type.as<TupleTypeObj>();
  return tuple && tuple->fields.empty();
}

}  // namespace tvm
