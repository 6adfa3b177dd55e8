// SPDX-License-Identifier: Apache-2.0
// Layouts of tensors by letters, "NCHW16c", and the maps between them.
#pragma once
#include "tvm/expr/expr.h"

namespace tvm::tir {

/// Which dimension is what. An upper-case letter is an axis; a number and a lower-case letter
/// behind it a block split off that axis: "NCHW16c" has C in blocks of 16, whose elements are the
/// last dimension. Further blocks of one axis split its blocks again.
struct LayoutObj : NodeObj {
  String name;
  Array<IterVar> axes;  // named by their letter; the extent of an upper-case axis is a variable
  static void Fields(auto&& def) {
    def("name", &LayoutObj::name);
    // The name says it all; the axes have variables of their own.
    def("axes", &LayoutObj::axes, Default(Array<IterVar>()), Ignored());
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.Layout", LayoutObj, NodeObj);
};
struct Layout : ObjectRef {
  /// ValueError for a name that is none.
  explicit Layout(String name, DataType dtype = DataType::Int(32));
  size_t ndim() const { return get()->axes.size(); }
  /// The letter of dimension `i`.
  char letter(size_t i) const { return get()->axes[i]->var->name_hint.data()[0]; }
  /// The first dimension with the letter, or -1.
  int64_t IndexOf(char axis) const;
  /// The product of the blocks of the axis (in either case), or -1 when it has none.
  int64_t FactorOf(char axis) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Layout, ObjectRef, LayoutObj);
};

/// Two layouts of the same axes and how indices and shapes go from one to the other and back.
struct BijectiveLayoutObj : NodeObj {
  Layout src_layout, dst_layout;
  static void Fields(auto&& def) {
    def("src_layout", &BijectiveLayoutObj::src_layout);
    def("dst_layout", &BijectiveLayoutObj::dst_layout);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.BijectiveLayout", BijectiveLayoutObj, NodeObj);
};
struct BijectiveLayout : ObjectRef {
  BijectiveLayout(Layout src_layout, Layout dst_layout);
  Array<PrimExpr> ForwardIndex(const Array<PrimExpr>& index) const;
  Array<PrimExpr> BackwardIndex(const Array<PrimExpr>& index) const;
  /// An axis that its blocks do not divide is padded.
  Array<PrimExpr> ForwardShape(const Array<PrimExpr>& shape) const;
  Array<PrimExpr> BackwardShape(const Array<PrimExpr>& shape) const;
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(BijectiveLayout, ObjectRef, BijectiveLayoutObj);
};

}  // namespace tvm::tir
