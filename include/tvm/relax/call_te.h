// SPDX-License-Identifier: Apache-2.0
// Calls of tensor expressions: what an operator is lowered to.
//
//   TEArguments args = TEArguments::Create();
//   te::Tensor x = args->Tensor(call->args[0]);
//   return args->CallTIR(builder, "relu", {topi::relu(x)});
#pragma once
#include <unordered_map>

#include "tvm/relax/block_builder.h"
#include "tvm/te/te.h"

namespace tvm::relax {

/// A PrimFunc and the arguments with which call_tir calls it.
struct CallTIRInputs {
  tir::PrimFunc func;
  Array<Expr> args;
  Array<TensorStructInfo> outputs;
  Optional<ShapeExpr> tir_vars;
};

/// Arguments of a graph's operator as the arguments of a tensor expression. The PrimFunc has
/// symbolic variables of its own, since it may be shared between functions.
struct TEArgumentsObj : NodeObj {
  static constexpr bool _type_mutable = true;
  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindUnsupported;
  static void Fields(auto&&) {}

  /// A placeholder for a tensor whose shape is known, named like the variable. Raises OpValueError
  /// for one whose shape is unknown.
  te::Tensor Tensor(const Expr& expr);
  /// The dimensions of a shape.
  Array<PrimExpr> Shape(const Expr& expr);
  /// The value of a scalar; one that is not known becomes a parameter.
  PrimExpr Scalar(const Expr& expr);
  /// An expression of symbolic variables as the PrimFunc sees it.
  PrimExpr Inside(const PrimExpr& e);

  /// The function that computes the outputs from all that was asked for.
  CallTIRInputs Finish(const Array<te::Tensor>& outputs, const Map<String, Any>& attrs = {}) const;
  /// The function is added to the module, and this is the call of it.
  Call CallTIR(const BlockBuilder& builder, const String& name,
               const Array<te::Tensor>& outputs) const;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("relax.TEArguments", TEArgumentsObj, NodeObj);

 private:
  PrimExpr Outside(const PrimExpr& e) const;
  Array<Expr> args_;
  Array<Variant<te::Tensor, tir::Var>> params_;
  Map<tir::Var, PrimExpr> inside_, outside_;
  Optional<VDevice> vdevice_;
  int unnamed_ = 0;
};
struct TEArguments : ObjectRef {
  static TEArguments Create();
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(TEArguments, ObjectRef, TEArgumentsObj);
};

}  // namespace tvm::relax
