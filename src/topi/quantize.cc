// SPDX-License-Identifier: Apache-2.0
// Numbers as small integers with a scale and a zero point, per tensor or per element of an axis.
#include "topi/shape.h"

namespace tvm::topi {
using namespace tir;
namespace {
/// A scale or zero point of an element: a scalar, or along an axis.
struct PerAxis {
  const Operand& values;
  size_t axis;
  PerAxis(const char* op, const Operand& values, const Tensor& data, int64_t axis)
      : values(values), axis(data->shape.empty() ? 0 : Axis(op, axis, data->shape.size())) {
    auto tensor = values.as<Tensor>();
    if (!tensor || (*tensor)->shape.empty()) return;
    CheckRank(op, "scales and zero points", *tensor, 1);
    bool fits =
        IsOne((*tensor)->shape[0]) ||
        (!data->shape.empty() && !DifferentDim((*tensor)->shape[0], data->shape[this->axis]));
    if (!fits)
      Complain(op, "one per element of the axis of " + Text(data->shape), Text((*tensor)->shape));
  }
  PrimExpr At(const Index& i) const {
    auto tensor = values.as<Tensor>();
    if (!tensor) return values.get<PrimExpr>();
    if ((*tensor)->shape.empty()) return (*tensor)();
    return (*tensor)(IsOne((*tensor)->shape[0]) ? PrimExpr(0) : i[axis]);
  }
};
Tensor Quantize(const Tensor& data, const Operand& scale, const Operand& zero_point, int64_t axis,
                DataType out_dtype) {
  PerAxis scales("quantize", scale, data, axis), zeros("quantize", zero_point, data, axis);
  DataType wide = DataType::Float(32);
  bool to_float = out_dtype.is_float();
  PrimExpr low = tvm::cast(wide, min_value(out_dtype)),
           high = tvm::cast(wide, max_value(out_dtype));
  auto element = [&](const Index& i) {
    PrimExpr scaled = div(tvm::cast(wide, At(data, i)), tvm::cast(wide, scales.At(i)));
    PrimExpr moved = (to_float ? scaled : tvm::round(scaled)) + tvm::cast(wide, zeros.At(i));
    return tvm::cast(out_dtype, tvm::max(tvm::min(moved, high), low));
  };
  return Compute(data->shape, element, "quantized");
}
Tensor Dequantize(const Tensor& data, const Operand& scale, const Operand& zero_point, int64_t axis,
                  DataType out_dtype) {
  PerAxis scales("dequantize", scale, data, axis), zeros("dequantize", zero_point, data, axis);
  DataType wide = data->dtype.is_float() ? DataType::Float(32) : DataType::Int(32);
  auto element = [&](const Index& i) {
    PrimExpr moved = tvm::cast(wide, At(data, i)) - tvm::cast(wide, zeros.At(i));
    PrimExpr value =
        tvm::cast(DataType::Float(32), moved) * tvm::cast(DataType::Float(32), scales.At(i));
    return tvm::cast(out_dtype, value);
  };
  return Compute(data->shape, element, "dequantized");
}

TVM_REGISTER() {
  Def("topi.quantize", &Quantize, "round(data / scale) + zero_point, in the range of the type.",
      Arg("data"), Arg("scale"), Arg("zero_point"), Arg("axis", -1), Arg("out_dtype", "int8"));
  Def("topi.dequantize", &Dequantize, "(data - zero_point) * scale", Arg("data"), Arg("scale"),
      Arg("zero_point"), Arg("axis", -1), Arg("out_dtype", "float32"));
}
}  // namespace
}  // namespace tvm::topi
