// SPDX-License-Identifier: Apache-2.0
// What calls whose results overwrite arguments share.
#pragma once
#include "tvm/relax/infer.h"

namespace tvm::relax {

/// Raises unless there is one index for each result: that of the argument it overwrites, each at
/// most once, or -1 for a new one, but not for all.
void CheckInplace(Infer& in, const Ints& indices, size_t results, size_t arguments);

}  // namespace tvm::relax
