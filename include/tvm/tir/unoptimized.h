// SPDX-License-Identifier: Apache-2.0
// Attributes that say what a function is worth to a code generator.
#pragma once

namespace tvm::tir::attr {

/// Code generators spend no time on the function: it is long, and calls others all the way.
inline constexpr const char* kUnoptimized = "tir.unoptimized";
/// Checks an argument of many packed entries: a copy in each of them would be most of their code.
inline constexpr const char* kUnpacksArgument = "tir.unpacks_argument";

}  // namespace tvm::tir::attr
