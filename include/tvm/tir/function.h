// SPDX-License-Identifier: Apache-2.0
// PrimFunc: a function over buffers and scalars.
#pragma once
#include "tvm/ir/module.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {

/// A function. `buffer_map` gives the handles among the parameters the buffers they point to;
/// shapes, strides and offsets that are variables there are defined by the caller's tensor.
struct PrimFuncObj : BaseFuncObj {
  Array<Var> params;
  Map<Var, Buffer> buffer_map;
  Type ret_type;
  Stmt body;
  bool scheduled_by_hand = false;  // left by Schedule: the default rules keep away
  static constexpr std::string_view kParamOrder = "params,body,ret_type,buffer_map,attrs,span";
  static void Fields(auto&& def) {
    def("params", &PrimFuncObj::params, Binds());
    def("buffer_map", &PrimFuncObj::buffer_map, Binds(), Default(Map<Var, Buffer>()));
    def("ret_type", &PrimFuncObj::ret_type, Default(TupleType::Void()));
    def("body", &PrimFuncObj::body);
    def("scheduled_by_hand", &PrimFuncObj::scheduled_by_hand, Default(false), Ignored());
  }
  void Init();
  /// The parameters' types; a parameter with a buffer is a handle.
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.PrimFunc", PrimFuncObj, BaseFuncObj);
};
struct PrimFunc : BaseFunc {
  PrimFunc(Array<Var> params, Stmt body, Type ret_type = TupleType::Void(),
           Map<Var, Buffer> buffer_map = {}, DictAttrs attrs = {}, Optional<Span> span = {});
  /// The buffer of a parameter, or an undefined one.
  Buffer BufferOf(const Var& param) const {
    auto it = get()->buffer_map.find(param);
    return it == get()->buffer_map.end() ? Buffer() : (*it).second;
  }
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(PrimFunc, BaseFunc, PrimFuncObj);
};

/// The function with some parameters fixed: a scalar to a constant, a buffer to one of known shape.
PrimFunc Specialize(PrimFunc func, const Map<Var, Variant<Buffer, PrimExpr>>& param_map);

/// A computation and the hardware instruction that does it.
struct TensorIntrinObj : NodeObj {
  PrimFunc desc, impl;
  static void Fields(auto&& def) {
    def("desc", &TensorIntrinObj::desc);
    def("impl", &TensorIntrinObj::impl);
  }
  void Init();
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("tir.TensorIntrin", TensorIntrinObj, NodeObj);
};
TVM_NODE_REF(TensorIntrin, ObjectRef, TensorIntrinObj);

}  // namespace tvm::tir
