// SPDX-License-Identifier: Apache-2.0
// Struct info: what is known about the values of an expression, and the static types.
#pragma once
#include "tvm/expr/var.h"
#include "tvm/ir/env_func.h"
#include "tvm/ir/module.h"

namespace tvm::relax {
/// An expression of the graph.
using Expr = RelaxExpr;

// ---- static types -----------------------------------------------------------------------------
struct ShapeTypeObj : TypeObj {
  int64_t ndim = -1;  // -1: unknown
  static void Fields(auto&& def) { def("ndim", &ShapeTypeObj::ndim, Default(-1)); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.ShapeType", ShapeTypeObj, TypeObj);
};
TVM_NODE_REF(ShapeType, Type, ShapeTypeObj);

struct TensorTypeObj : TypeObj {
  int64_t ndim = -1;  // -1: unknown
  DataType dtype = DataType::Void();
  static void Fields(auto&& def) {
    def("ndim", &TensorTypeObj::ndim, Default(-1));
    def("dtype", &TensorTypeObj::dtype, Default(DataType::Float(32)));
  }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.DynTensorType", TensorTypeObj, TypeObj);
};
TVM_NODE_REF(TensorType, Type, TensorTypeObj);

struct ObjectTypeObj : TypeObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.ObjectType", ObjectTypeObj, TypeObj);
};
TVM_NODE_REF(ObjectType, Type, ObjectTypeObj);

struct PackedFuncTypeObj : TypeObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.PackedFuncType", PackedFuncTypeObj, TypeObj);
};
TVM_NODE_REF(PackedFuncType, Type, PackedFuncTypeObj);

// ---- struct info ------------------------------------------------------------------------------
/// Any value.
struct ObjectStructInfoObj : StructInfoObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.ObjectStructInfo", ObjectStructInfoObj, StructInfoObj);
};
struct ObjectStructInfo : StructInfo {
  explicit ObjectStructInfo(Optional<Span> span);
  /// One object for all.
  static ObjectStructInfo Get();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ObjectStructInfo, StructInfo, ObjectStructInfoObj);
};

/// A scalar, maybe of a known value.
struct PrimStructInfoObj : StructInfoObj {
  DataType dtype = DataType::Void();
  Optional<PrimExpr> value;
  static void Fields(auto&& def) {
    def("dtype", &PrimStructInfoObj::dtype);
    def("value", &PrimStructInfoObj::value, Default(nullptr));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.PrimStructInfo", PrimStructInfoObj, StructInfoObj);
};
struct PrimStructInfo : StructInfo {
  explicit PrimStructInfo(DataType dtype, Optional<Span> span = {});
  explicit PrimStructInfo(PrimExpr value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimStructInfo, StructInfo, PrimStructInfoObj);
};

/// A shape; its dimensions are int64.
struct ShapeStructInfoObj : StructInfoObj {
  Optional<Array<PrimExpr>> values;
  int64_t ndim = -1;  // -1: unknown; otherwise the number of values when they are known
  static void Fields(auto&& def) {
    def("values", &ShapeStructInfoObj::values, Default(nullptr));
    def("ndim", &ShapeStructInfoObj::ndim, Default(-1));
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.ShapeStructInfo", ShapeStructInfoObj, StructInfoObj);
};
struct ShapeStructInfo : StructInfo {
  explicit ShapeStructInfo(Array<PrimExpr> values, Optional<Span> span = {});
  explicit ShapeStructInfo(int64_t ndim, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(ShapeStructInfo, StructInfo, ShapeStructInfoObj);
};

/// A tensor. Its shape is a ShapeExpr, or a Var that is a shape.
struct TensorStructInfoObj : StructInfoObj {
  Optional<Expr> shape;
  DataType dtype = DataType::Void();  // void: unknown
  Optional<VDevice> vdevice;
  int64_t ndim = -1;  // -1: unknown; that of the shape when it is known
  static void Fields(auto&& def) {
    def("shape", &TensorStructInfoObj::shape, Default(nullptr));
    def("dtype", &TensorStructInfoObj::dtype, Default(DataType::Float(32)));
    def("vdevice", &TensorStructInfoObj::vdevice, Default(nullptr));
    def("ndim", &TensorStructInfoObj::ndim, Default(-1));
  }
  void Init();
  bool IsUnknownNdim() const { return ndim < 0; }
  bool IsUnknownDtype() const { return dtype.is_void(); }
  /// The dimensions when they are known: a ShapeExpr's values, or what is known of a shape
  /// variable.
  Optional<Array<PrimExpr>> Dims() const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.TensorStructInfo", TensorStructInfoObj, StructInfoObj);
};
struct TensorStructInfo : StructInfo {
  TensorStructInfo(Expr shape, DataType dtype, Optional<VDevice> vdevice = {},
                   Optional<Span> span = {});
  TensorStructInfo(Array<PrimExpr> dims, DataType dtype, Optional<VDevice> vdevice = {},
                   Optional<Span> span = {});
  TensorStructInfo(DataType dtype, int64_t ndim, Optional<VDevice> vdevice = {},
                   Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TensorStructInfo, StructInfo, TensorStructInfoObj);
};

/// A tuple; the empty one is void.
struct TupleStructInfoObj : StructInfoObj {
  Array<StructInfo> fields;
  static void Fields(auto&& def) { def("fields", &TupleStructInfoObj::fields); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.TupleStructInfo", TupleStructInfoObj, StructInfoObj);
};
struct TupleStructInfo : StructInfo {
  explicit TupleStructInfo(Array<StructInfo> fields, Optional<Span> span = {});
  /// One object for all empty tuples.
  static TupleStructInfo Void();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TupleStructInfo, StructInfo, TupleStructInfoObj);
};
inline bool IsVoidStructInfo(const StructInfo& info) {
  auto* tuple = info.as<TupleStructInfoObj>();
  return tuple && tuple->fields.empty();
}

/// A function. Without `params` it is opaque: it takes anything, and `derive_func(call, builder)`
/// says what a call returns, or it is `ret`.
struct FuncStructInfoObj : StructInfoObj {
  Optional<Array<StructInfo>> params;
  StructInfo ret;
  bool purity = true;
  Optional<EnvFunc> derive_func;
  static void Fields(auto&& def) {
    def("params", &FuncStructInfoObj::params, Binds());
    def("ret", &FuncStructInfoObj::ret);
    def("purity", &FuncStructInfoObj::purity, Default(true));
    def("derive_func", &FuncStructInfoObj::derive_func, Default(nullptr));
  }
  void Init();
  bool IsOpaque() const { return !params.has_value(); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.FuncStructInfo", FuncStructInfoObj, StructInfoObj);
};
struct FuncStructInfo : StructInfo {
  FuncStructInfo(Array<StructInfo> params, StructInfo ret, bool purity = true,
                 Optional<Span> span = {});
  static FuncStructInfo Opaque(StructInfo ret = ObjectStructInfo::Get(), bool purity = false,
                               Optional<EnvFunc> derive_func = {}, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(FuncStructInfo, StructInfo, FuncStructInfoObj);
};

/// Dimensions as they are kept: constants of any integer type become int64, other values must be
/// int64. Errors begin with `what`.
Array<PrimExpr> AsDims(Array<PrimExpr> values, const char* what);

}  // namespace tvm::relax
