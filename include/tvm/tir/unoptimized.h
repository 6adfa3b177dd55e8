// SPDX-License-Identifier: Apache-2.0
// An attribute of functions whose time is that of what they call.
#pragma once

namespace tvm::tir::attr {

/// Code generators spend no time on the function: it is long, and calls others all the way.
inline constexpr const char* kUnoptimized = "tir.unoptimized";

}  // namespace tvm::tir::attr
