// SPDX-License-Identifier: Apache-2.0
// The columns that operators of the graph language fill.
#include "tvm/relax/op.h"

namespace tvm::relax {

const OpAttr<InferStructInfoFn> FInferStructInfo("FInferStructInfo");
const OpAttr<RewriteCallFn> FNormalize("FNormalize"), FLegalize("FLegalize"),
    FLowerBuiltin("FLowerBuiltin");
const OpAttr<ValidateFn> FValidate("FValidate");
const OpAttr<GradientFn> FPrimalGradient("FPrimalGradient");
const OpAttr<InferLayoutFn> FRelaxInferLayout("FRelaxInferLayout");
const OpAttr<MixedPrecisionFn> FInferMixedPrecision("FInferMixedPrecision");
const OpAttr<bool> FPurity("FPurity");
const OpAttr<String> FCallPacked("FCallPacked");
const OpAttr<bool> TAllocator("TAllocator");
const OpAttr<bool> FDataDependent("FDataDependent");
const OpAttr<bool> RequiresArgumentShapes("RequiresArgumentShapes");
const OpAttr<int64_t> TMixedPrecisionPolicy("TMixedPrecisionPolicy");
const OpAttr<int64_t> TOpPattern("TOpPattern");

}  // namespace tvm::relax
