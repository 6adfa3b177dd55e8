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
/// uint8 over the range of the data, which is made to include 0.
struct DynamicNumbers {
  Expr data, scale, zero;
};
DynamicNumbers DynamicallyQuantized(Node& n, const Expr& x);
/// The zero point that is input `i` in int32; nothing when it is absent or a constant 0.
std::optional<Expr> ZeroOffset(Node& n, size_t i);
/// a · b in int32, of 8-bit numbers from which zero points are subtracted.
Expr IntegerProduct(Node& n, const Expr& a, const Expr& b, const std::optional<Expr>& zero_a,
                    const std::optional<Expr>& zero_b);
/// round(sum * factor / scale) + zero, saturated; scale and zero are inputs.
Expr Requantized(Node& n, const Expr& sum, const Expr& factor, size_t scale, size_t zero,
                 DataType to);

}  // namespace tvm::frontend::onnx
