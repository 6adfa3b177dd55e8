// SPDX-License-Identifier: Apache-2.0
// Texts of symbolic dimensions: "batch", "2*n + 1", "n//2".
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "tvm/ir/expr.h"

namespace tvm::frontend::onnx {

bool IsName(std::string_view text);
/// The expression, or nothing when the text is none or has a name that `lookup` does not know.
std::optional<PrimExpr> ParseDimension(
    std::string_view text,
    const std::function<std::optional<PrimExpr>(const std::string&)>& lookup);

}  // namespace tvm::frontend::onnx
