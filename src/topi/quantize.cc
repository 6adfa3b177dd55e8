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

// ---- simulated: floats that a type of small integers could hold ---------------------------------
struct Simulated {
  const char* name;
  int64_t code;  // that says at run time which type it is
  DataType dtype;
};
const Simulated kSimulated[] = {{"int8", 1, DataType::Int(8)},
                                {"uint8", 2, DataType::UInt(8)},
                                {"int32", 3, DataType::Int(32)}};
/// The elements as if they were of a type, which is a name, or a code that is data; by names that
/// are none of these, and codes, "disable" (0) they stay what they are.
template <class F>
Tensor Simulate(const char* op, const Tensor& data, const Any& type, const std::string& block,
                F&& of) {
  if (auto name = type.try_cast<String>()) {
    const Simulated* found = nullptr;
    for (const Simulated& row : kSimulated) found = *name == row.name ? &row : found;
    if (!found && *name != "disable")
      Complain(op, "disable, int8, uint8, int32 or a code", std::string(*name));
    return Compute(
        data->shape, [&](const Index& i) { return found ? of(i, found->dtype) : At(data, i); },
        block, kElementWise);
  }
  PrimExpr code;
  auto tensor = type == nullptr ? std::nullopt : type.try_cast<Tensor>();
  auto expr = type == nullptr ? std::nullopt : type.try_cast<PrimExpr>();
  if (!tensor && !expr) Complain(op, "disable, int8, uint8, int32 or a code", type.GetTypeKey());
  if (tensor) {
    if ((*tensor)->shape.size() > 1 || (*tensor)->dtype.is_float())
      Complain(op, "one integer as the code of a type", Text((*tensor)->shape));
    code = (*tensor)->shape.empty() ? (*tensor)() : (*tensor)(PrimExpr(0));
  } else {
    code = *expr;
  }
  auto element = [&](const Index& i) {
    PrimExpr value = At(data, i);
    for (const Simulated& row : kSimulated) {
      value = if_then_else(equal(code, MakeConst(code.dtype(), row.code)), of(i, row.dtype), value);
    }
    return value;
  };
  return Compute(data->shape, element, block, kElementWise);
}
using Parameter = Optional<Operand>;
Tensor SimulatedQuantize(const Tensor& data, const Any& out_dtype, const Parameter& output_scale,
                         const Parameter& output_zero_point, int64_t axis) {
  constexpr const char* kOp = "simulated_quantize";
  Operand scale = output_scale.value_or(Operand(PrimExpr(1.0f))),
          zero = output_zero_point.value_or(Operand(PrimExpr(0)));
  PerAxis scales(kOp, scale, data, axis), zeros(kOp, zero, data, axis);
  auto of = [&](const Index& i, DataType t) {
    DataType f = data->dtype;
    PrimExpr at =
        tvm::round(div(At(data, i), tvm::cast(f, scales.At(i)))) + tvm::cast(f, zeros.At(i));
    return tvm::max(tvm::min(at, tvm::cast(f, max_value(t))), tvm::cast(f, min_value(t)));
  };
  return Simulate(kOp, data, out_dtype, "simulated_quantize", of);
}
Tensor SimulatedDequantize(const Tensor& data, const Any& in_dtype, const Parameter& input_scale,
                           const Parameter& input_zero_point, int64_t axis) {
  constexpr const char* kOp = "simulated_dequantize";
  Operand scale = input_scale.value_or(Operand(PrimExpr(1.0f))),
          zero = input_zero_point.value_or(Operand(PrimExpr(0)));
  PerAxis scales(kOp, scale, data, axis), zeros(kOp, zero, data, axis);
  auto of = [&](const Index& i, DataType) -> PrimExpr {
    DataType f = data->dtype;
    return (At(data, i) - tvm::cast(f, zeros.At(i))) * tvm::cast(f, scales.At(i));
  };
  return Simulate(kOp, data, in_dtype, "simulated_dequantize", of);
}

TVM_REGISTER() {
  Def("topi.nn.simulated_quantize", &SimulatedQuantize,
      "round(data / scale) + zero_point in the range of out_dtype, as floats. out_dtype is int8, "
      "uint8, int32, disable, or a tensor with its code (SQNN_DTYPE_TO_CODE).",
      Arg("data"), Arg("out_dtype"), Arg("output_scale", nullptr),
      Arg("output_zero_point", nullptr), Arg("axis", -1));
  Def("topi.nn.simulated_dequantize", &SimulatedDequantize,
      "(data - zero_point) * scale of what simulated_quantize gave.", Arg("data"), Arg("in_dtype"),
      Arg("input_scale", nullptr), Arg("input_zero_point", nullptr), Arg("axis", -1));
  Def("topi.quantize", &Quantize, "round(data / scale) + zero_point, in the range of the type.",
      Arg("data"), Arg("scale"), Arg("zero_point"), Arg("axis", -1), Arg("out_dtype", "int8"));
  Def("topi.dequantize", &Dequantize, "(data - zero_point) * scale", Arg("data"), Arg("scale"),
      Arg("zero_point"), Arg("axis", -1), Arg("out_dtype", "float32"));
}
}  // namespace
}  // namespace tvm::topi
