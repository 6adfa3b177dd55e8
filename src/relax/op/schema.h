// SPDX-License-Identifier: Apache-2.0
// Reading the schema of an operator: "x: Tensor, axis=None, mode='fast'".
#pragma once
#include "tvm/relax/operator.h"

namespace tvm::relax {

/// Fills `args`, `params` and what follows from them. ValueError with the place for a bad schema.
void ParseSchema(const std::string& schema, OperatorInfo* info);

/// The kind as schemas write it.
const char* KindName(ParamKind kind);

}  // namespace tvm::relax
