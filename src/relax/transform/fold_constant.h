// SPDX-License-Identifier: Apache-2.0
// What FoldConstant says of its time.
#pragma once

namespace tvm::relax {

/// The attribute of a module in which FoldConstant left something because its time was over: folded
/// again, it may be another one.
constexpr const char* kFoldingEndedEarly = "relax.folding_ended_early";

}  // namespace tvm::relax
