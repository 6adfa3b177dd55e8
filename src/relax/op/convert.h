// SPDX-License-Identifier: Apache-2.0
// What people write where an expression, a shape, a scalar or an attribute is meant.
#pragma once
#include "tvm/relax/operator.h"

namespace tvm::relax {

/// A scalar constant; of a void dtype: int32, float32 or bool, as the number is.
Constant ScalarConstant(const Any& number, DataType dtype);
/// The argument of the call; TypeError for what cannot stand for its kind.
Expr ConvertArgument(const OperatorInfo& info, int param, const AnyView& value, DataType neighbour);
/// The struct info of OutInfo and InfoArgs parameters.
Array<StructInfo> ConvertInfo(const OperatorInfo& info, int param, const AnyView& value);
/// The attributes from the parameters that are none of the arguments.
Attrs MakeAttrs(const OperatorInfo& info, const std::vector<AnyView>& params);

}  // namespace tvm::relax
