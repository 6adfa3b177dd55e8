// SPDX-License-Identifier: Apache-2.0
// Variables and iterators.
#pragma once
#include "tvm/ir/expr.h"

namespace tvm::tir {

/// A variable; two are the same only if they are one object, or bound alike. Its type annotation
/// says more than the dtype for pointers.
struct VarObj : PrimExprObj {
  String name_hint;
  Type type_annotation;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindFreeVar;
  static constexpr uint32_t _type_child_slots = 1;
  static void Fields(auto&& def) {
    def("name_hint", &VarObj::name_hint, NameOnly());
    def("type_annotation", &VarObj::type_annotation);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO("tir.Var", VarObj, PrimExprObj);
};
struct Var : PrimExpr {
  explicit Var(String name_hint, DataType dtype = DataType::Int(32), Optional<Span> span = {});
  Var(String name_hint, Type type_annotation, Optional<Span> span = {});
  /// A new variable of the same type, its name with `suffix`.
  Var CopyWithSuffix(const String& suffix) const;
  Var CopyWithDType(DataType dtype) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Var, PrimExpr, VarObj);
};

/// A variable that is known not to be negative: the size of a dimension.
struct SizeVarObj : VarObj {
  static void Fields(auto&&) {}
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.SizeVar", SizeVarObj, VarObj);
};
struct SizeVar : Var {
  explicit SizeVar(String name_hint, DataType dtype = DataType::Int(32), Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(SizeVar, Var, SizeVarObj);
};

/// What iterating over a variable means. The values are part of the interface.
enum class IterVarType : int {
  kDataPar = 0,      ///< Iterations are independent.
  kThreadIndex = 1,  ///< The index of a thread; thread_tag says which.
  kCommReduce = 2,   ///< A reduction that may be reordered.
  kOrdered = 3,
  kOpaque = 4,
  kUnrolled = 5,
  kVectorized = 6,
  kParallelized = 7,
  kTensorized = 8,
};

/// A variable with the range it runs over and what the iteration means.
struct IterVarObj : NodeObj {
  Optional<Range> dom;  // none for a thread index whose extent is not known here
  Var var;
  IterVarType iter_type = IterVarType::kDataPar;
  String thread_tag;
  Optional<Span> span;
  static constexpr bool _is_shared = true;
  static void Fields(auto&& def) {
    def("dom", &IterVarObj::dom);
    def("var", &IterVarObj::var, Binds());
    def("iter_type", &IterVarObj::iter_type);
    def("thread_tag", &IterVarObj::thread_tag, Default(String()));
    def("span", &IterVarObj::span, Default(nullptr), Ignored());
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.IterVar", IterVarObj, NodeObj);
};
struct IterVar : ObjectRef {
  IterVar(Optional<Range> dom, Var var, IterVarType iter_type, String thread_tag = "",
          Optional<Span> span = {});
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(IterVar, ObjectRef, IterVarObj);
};

}  // namespace tvm::tir
