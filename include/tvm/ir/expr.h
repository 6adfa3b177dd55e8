// SPDX-License-Identifier: Apache-2.0
// Bases of expressions, constants, ranges and names of functions in a module.
#pragma once
#include <optional>

#include "tvm/ir/type.h"

namespace tvm {

struct BaseExprObj : NodeObj {
  Optional<Span> span;
  static constexpr uint32_t _type_child_slots = 64;
  static void Fields(auto&& def) { def("span", &BaseExprObj::span, Default(nullptr), Ignored()); }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.BaseExpr", BaseExprObj, NodeObj);
};
TVM_NODE_REF(BaseExpr, ObjectRef, BaseExprObj);

/// A scalar or vector value.
struct PrimExprObj : BaseExprObj {
  DataType dtype;
  static constexpr uint32_t _type_child_slots = 40;
  static void Fields(auto&& def) { def("dtype", &PrimExprObj::dtype, Computed()); }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.PrimExpr", PrimExprObj, BaseExprObj);
};
/// Python (and C++) numbers and strings convert: int32 for what fits, int64 beyond, float32, bool.
struct PrimExpr : BaseExpr {
  PrimExpr(int32_t value);  // NOLINT(*)
  DataType dtype() const { return get()->dtype; }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimExpr, BaseExpr, PrimExprObj);
};

/// An integer constant of an integer or bool type. Types up to 64 bits hold any value of theirs:
/// uint64 beyond the range of int64 is stored as its two's complement.
struct IntImmObj : PrimExprObj {
  int64_t value = 0;
  static void Fields(auto&& def) {
    def("dtype", &PrimExprObj::dtype);
    def("value", &IntImmObj::value);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.IntImm", IntImmObj, PrimExprObj);
};
struct IntImm : PrimExpr {
  IntImm(DataType dtype, int64_t value, Optional<Span> span = {});
  static IntImm Bool(bool value) { return IntImm(DataType::Bool(), value); }
  static IntImm Int32(int64_t value) { return IntImm(DataType::Int(32), value); }
  static IntImm Int64(int64_t value) { return IntImm(DataType::Int(64), value); }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IntImm, PrimExpr, IntImmObj);
};

/// A floating-point constant; `value` is always one the type can hold (rounded to nearest even).
struct FloatImmObj : PrimExprObj {
  double value = 0;
  static void Fields(auto&& def) {
    def("dtype", &PrimExprObj::dtype);
    def("value", &FloatImmObj::value);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.FloatImm", FloatImmObj, PrimExprObj);
};
struct FloatImm : PrimExpr {
  FloatImm(DataType dtype, double value, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(FloatImm, PrimExpr, FloatImmObj);
};
/// `value` rounded to nearest even in a floating-point `type` (overflow to what the format has for
/// it: infinity, NaN or its largest value).
double RoundToFloatType(double value, DataType type);
/// The largest finite number of a floating-point type.
double LargestFinite(DataType type);
/// A floating-point format: precision (with the hidden bit), the least exponent of normal numbers,
/// the largest finite value and what lies beyond it.
struct FloatFormat {
  int precision, min_exponent;
  double max;
  enum { kInfinity, kNaN, kSaturate } overflow;
  bool negative_zero = true, is_signed = true;
};
FloatFormat FormatOf(DataType type);

/// [min, min + extent)
struct RangeObj : NodeObj {
  PrimExpr min, extent;
  Optional<Span> span;
  static void Fields(auto&& def);
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.Range", RangeObj, NodeObj);
};
struct Range : ObjectRef {
  static Range FromMinExtent(PrimExpr min, PrimExpr extent, Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Range, ObjectRef, RangeObj);
};

/// What is known about the values of an expression of the graph level: its kind, and the kind's own
/// facts (shape and dtype of a tensor).
struct StructInfoObj : NodeObj {
  Optional<Span> span;
  static constexpr uint32_t _type_child_slots = 10;
  static void Fields(auto&& def) { def("span", &StructInfoObj::span, Default(nullptr), Ignored()); }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.StructInfo", StructInfoObj, NodeObj);
};
TVM_NODE_REF(StructInfo, ObjectRef, StructInfoObj);

/// An expression of the graph level: also functions and operators. Building a program in normal
/// form fills `struct_info_`.
struct RelaxExprObj : BaseExprObj {
  Optional<StructInfo> struct_info_;
  static constexpr uint32_t _type_child_slots = 22;
  static void Fields(auto&& def) { def("struct_info_", &RelaxExprObj::struct_info_, Derived()); }
  TVM_FFI_DECLARE_OBJECT_INFO("ir.RelaxExpr", RelaxExprObj, BaseExprObj);
};
TVM_NODE_REF(RelaxExpr, BaseExpr, RelaxExprObj);

/// The name of a function in a module. Two modules compare by the names, not by the objects.
struct GlobalVarObj : RelaxExprObj {
  String name_hint;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  static void Fields(auto&& def) { def("name_hint", &GlobalVarObj::name_hint); }
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("ir.GlobalVar", GlobalVarObj, RelaxExprObj);
};
struct GlobalVar : RelaxExpr {
  explicit GlobalVar(String name_hint);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(GlobalVar, RelaxExpr, GlobalVarObj);
};

}  // namespace tvm

namespace tvm {
/// The expression that a number, a string or an object with an ExprConversion stands for.
std::optional<PrimExpr> ConvertToPrimExpr(const TVMFFIAny* value);
}  // namespace tvm

namespace tvm::ffi {
template <>
inline constexpr bool use_default_type_traits_v<PrimExpr> = false;
template <>
struct TypeTraits<PrimExpr> : ObjectRefTypeTraitsBase<PrimExpr> {
  static std::optional<PrimExpr> TryCastFromAnyView(const TVMFFIAny* src) {
    if (auto e = ObjectRefTypeTraitsBase<PrimExpr>::TryCastFromAnyView(src)) return e;
    return ConvertToPrimExpr(src);
  }
};
}  // namespace tvm::ffi

namespace tvm {
void RangeObj::Fields(auto&& def) {
  def("min", &RangeObj::min);
  def("extent", &RangeObj::extent);
  def("span", &RangeObj::span, Default(nullptr), Ignored());
}
/// Lets a part further down say how objects of a type convert to an expression (an IterVar is its
/// variable, a string a StringImm).
using ExprConversion = PrimExpr (*)(const AnyView&);
void SetExprConversion(int32_t type_index, ExprConversion convert);
}  // namespace tvm
