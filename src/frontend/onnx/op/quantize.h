// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of operators on quantised numbers.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// The numbers that input `i` means, whose scale and zero point are the next two inputs; they may
/// be along an axis.
Expr DequantizedInput(Node& n, size_t i, int64_t axis = 0);
/// `y` quantised by the scale that is input `i` and the zero point behind it, of type `fallback`
/// where there is none.
Expr QuantizedOutput(Node& n, const Expr& y, size_t i, DataType fallback);

}  // namespace tvm::frontend::onnx
