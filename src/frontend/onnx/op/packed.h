// SPDX-License-Identifier: Apache-2.0
// Several small numbers in a byte.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// The number of `bits` bits at a place of a byte, the first in the low ones, as `type`.
inline PrimExpr BitsAt(const PrimExpr& byte, const PrimExpr& place, int64_t bits,
                       DataType type = DataType::Float(32)) {
  DataType wide = DataType::Int(32);
  PrimExpr shift = tvm::cast(wide, place) * IntImm::Int32(bits);
  PrimExpr mask = IntImm::Int32((1 << bits) - 1);
  return tvm::cast(type, bitwise_and(shift_right(tvm::cast(wide, byte), shift), mask));
}

}  // namespace tvm::frontend::onnx
