// SPDX-License-Identifier: Apache-2.0
// Numbers as integers with a scale and a zero point: what quantised programs (PT2E) consist of.
#include "converter.h"

namespace tvm::frontend::torch {
namespace {

/// A scale or a zero point: a number, a tensor of one element, or one of each channel.
Expr QuantParameter(Conversion& c, const Any& value, DataType t, bool per_channel) {
  if (!IsTensor(value)) return c.As(value, t);
  Expr x = c.Cast(value.cast<Expr>(), t);
  return per_channel || RankOf(x) == 0 ? x : c.Reshape(x, {});
}
struct Quantization {
  Expr scale, zero;
  int64_t axis;
  size_t next;  // the place of quant_min in the schema
};
Quantization QuantizationOf(Conversion& c) {
  bool per_channel = std::string_view(c.op) == "channel";
  DataType single = DataType::Float(32), word = DataType::Int(32);
  Expr scale = QuantParameter(c, c[1], single, per_channel);
  Expr zero = c.Given(2) ? QuantParameter(c, c[2], word, per_channel) : c.As(Any(0), word);
  if (!per_channel) return {scale, zero, -1, 3};
  return {scale, zero, c.Axis(3, RankOf(c.Tensor(0))), 4};
}
/// round(x / scale) + zero_point, between the bounds.
Any Quantize(Conversion& c) {
  Expr x = c.Cast(c.Tensor(0), DataType::Float(32));
  Quantization q = QuantizationOf(c);
  DataType t = c.Type(q.next + 2, DataType::Int(8));
  if (t.bits() > 16) {
    TVM_REFUSE(c, NotImplementedError) << "expected integers of at most 16 bits, got " << t;
  }
  int64_t low = c.Int(q.next), high = c.Int(q.next + 1);
  Expr result = c.Emit("quantize", x, q.scale, q.zero, q.axis, t);
  int64_t least = t.is_uint() ? 0 : -(int64_t{1} << (t.bits() - 1));
  int64_t most = least + (int64_t{1} << t.bits()) - 1;
  return low <= least && high >= most ? result : c.Emit("clip", result, low, high);
}
/// (x - zero_point) * scale
Any Dequantize(Conversion& c) {
  Quantization q = QuantizationOf(c);
  DataType t = c.Type(q.next + 3, DataType::Float(32));
  Expr result = c.Emit("dequantize", c.Tensor(0), q.scale, q.zero, q.axis, DataType::Float(32));
  return c.Cast(result, t);
}
/// The scale and the zero point with which the elements fit between the bounds.
Any ChooseParameters(Conversion& c) {
  bool is_symmetric = std::string_view(c.op) == "symmetric";
  Expr x = c.Cast(c.Tensor(0), DataType::Float(32));
  DataType t = TypeOf(x), index = DataType::Int(64);
  double low = c.Number(1), high = c.Number(2);
  Expr zero = c.Const(0.0, t), eps = c.Const(c.Number(3), t);
  auto vector = [&](const Expr& e) { return c.Reshape(e, {IntImm::Int64(1)}); };
  Expr least = c.Emit("minimum", c.Emit("min", x), zero);
  Expr most = c.Emit("maximum", c.Emit("max", x), zero);
  if (is_symmetric) {
    Expr reach = c.Emit("maximum", c.Emit("negative", least), most);
    Expr scale = c.Emit("maximum", c.Emit("divide", reach, c.Const((high - low) / 2, t)), eps);
    int64_t middle = c.Type(4, DataType::Int(8)).is_uint() ? 128 : 0;
    Expr zeros = c.Emit("full", Array<Any>{1}, c.Const(middle), index);
    return Array<Any>{vector(c.Cast(scale, DataType::Float(64))), zeros};
  }
  Expr span = c.Emit("subtract", most, least);
  Expr scale = c.Emit("maximum", c.Emit("divide", span, c.Const(high - low, t)), eps);
  Expr place = c.Emit("subtract", c.Const(low, t), c.Emit("round", c.Emit("divide", least, scale)));
  place = c.Cast(c.Emit("clip", place, low, high), index);
  return Array<Any>{vector(c.Cast(scale, DataType::Float(64))), vector(place)};
}

TVM_REGISTER() {
  std::string tensor = "input, scale, zero_point, quant_min, quant_max, dtype";
  std::string channel = "input, scales, zero_points, axis, quant_min, quant_max, dtype";
  for (const char* kind : {"default", "tensor", "tensor2"}) {
    std::string q = std::string("quantized_decomposed.quantize_per_tensor.") + kind;
    std::string d = std::string("quantized_decomposed.dequantize_per_tensor.") + kind;
    Converter(q.c_str(), tensor.c_str(), &Quantize, "tensor");
    Converter(d.c_str(), (tensor + ", out_dtype=None").c_str(), &Dequantize, "tensor");
  }
  Converter("quantized_decomposed.quantize_per_channel.default", channel.c_str(), &Quantize,
            "channel");
  Converter("quantized_decomposed.dequantize_per_channel.default",
            (channel + ", out_dtype=None").c_str(), &Dequantize, "channel");
  const char* choose = "input, quant_min, quant_max, eps, dtype";
  Converter("quantized_decomposed.choose_qparams.tensor", choose, &ChooseParameters, "affine");
  Converter("quantized_decomposed.choose_qparams_symmetric.tensor", choose, &ChooseParameters,
            "symmetric");
}

}  // namespace
}  // namespace tvm::frontend::torch
