// SPDX-License-Identifier: Apache-2.0
// What an operator of the graph language brings: typed columns of the operator table. C++ sets them
// with FPurity.Set(op, true), Python with register_op_attr("relax.add", "FPurity", True).
#pragma once
#include "tvm/ir/op.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {
struct BlockBuilder;

/// What a call returns. It raises OpValueError or OpTypeError when the arguments do not fit.
using InferStructInfoFn = OpHook<StructInfo(const Call&, const BlockBuilder&)>;
/// A call as another expression: of its own normal form, lowered, or as a builtin.
using RewriteCallFn = OpHook<Expr(const BlockBuilder&, const Call&)>;
/// Checks more than inference can, when a program shall be well formed.
using ValidateFn = OpHook<void(const Call&)>;
/// The gradients of a call's arguments: (its variable, the call, the gradient of the variable,
/// builder).
using GradientFn = OpHook<Array<Expr>(const Var&, const Call&, const Var&, const BlockBuilder&)>;
/// The layouts of arguments and results: (call, layouts wanted by operator, layouts of variables).
using InferLayoutFn =
    OpHook<ObjectRef(const Call&, const Map<String, Array<String>>&, const ObjectRef&)>;
/// The call with another dtype of its result.
using MixedPrecisionFn = OpHook<Call(const Call&, const DataType&)>;

/// How a call takes part in mixed precision. The values are part of the interface.
enum MixedPrecisionPolicy : int64_t { kAlways = 0, kFollow = 1, kNever = 2 };
/// How results depend on operands. The values are part of the interface.
enum OpPatternKind : int64_t {
  kElemWise = 0,
  kBroadcast = 1,
  kInjective = 2,
  kCommReduce = 3,
  kOutEWiseFusable = 4,
  kTuple = 7,
  kOpaque = 8,
};

extern const OpAttr<InferStructInfoFn> FInferStructInfo;
extern const OpAttr<RewriteCallFn> FNormalize, FLegalize, FLowerBuiltin;
extern const OpAttr<ValidateFn> FValidate;
extern const OpAttr<GradientFn> FPrimalGradient;
extern const OpAttr<InferLayoutFn> FRelaxInferLayout;
extern const OpAttr<MixedPrecisionFn> FInferMixedPrecision;
extern const OpAttr<bool> FPurity;                 ///< Whether calls have no side effect.
extern const OpAttr<String> FCallPacked;           ///< The packed function a call becomes.
extern const OpAttr<bool> TAllocator;              ///< Whether calls allocate.
extern const OpAttr<bool> FDataDependent;          ///< Whether shapes depend on data.
extern const OpAttr<bool> RequiresArgumentShapes;  ///< Whether lowering needs known shapes.
extern const OpAttr<int64_t> TMixedPrecisionPolicy;
extern const OpAttr<int64_t> TOpPattern;

}  // namespace tvm::relax
