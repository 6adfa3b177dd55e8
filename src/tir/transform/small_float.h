// SPDX-License-Identifier: Apache-2.0
// Small floating-point formats as integers: conversions by operations on bits.
#pragma once
#include "tvm/expr/op.h"
#include "tvm/ir/target.h"

namespace tvm::tir {

/// bfloat16, the 8-, 6- and 4-bit floats: types without arithmetic on the targets of this project.
inline bool IsSmallFloat(DataType t) { return t.is_float() && !t.is_ieee_float(); }
/// Whether the code generators for a target know only the IEEE types.
inline bool KeepsSmallFloatsAsBits(const Optional<Target>& target) {
  if (!target.has_value()) return true;
  int64_t device = target.value()->DeviceType();
  return device == kDLCPU || device == kDLCUDA;
}
/// The unsigned integer of the same width, which holds the bits.
inline DataType BitsType(DataType t) { return DataType::UInt(t.bits(), t.raw_lanes()); }

/// The number that the bits of type `from` stand for, as float32 (exact).
PrimExpr BitsToFloat(const PrimExpr& bits, DataType from);
/// The bits of `value` (float32 or float64) in type `to`, rounded to nearest even as
/// RoundToFloatType does.
PrimExpr FloatToBits(const PrimExpr& value, DataType to);
/// The bits of a constant.
int64_t ConstantBits(double value, DataType t);

}  // namespace tvm::tir
