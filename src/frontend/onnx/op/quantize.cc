// SPDX-License-Identifier: Apache-2.0
// Quantised numbers: to and from them, and operators on them.
#include "frontend/onnx/op/quantize.h"

#include "frontend/onnx/op/window.h"

namespace tvm::frontend::onnx {
namespace {
// ---- scales per tensor, per element of an axis, or per block of one -----------------------------
struct Blocks {
  int64_t axis = 0, block = 0;  // block: elements of the axis that share a scale; 0: none do
  bool is_plain = true;         // one scale, or one per element of the axis
};
Blocks ReadBlocks(Node& n, const Expr& x, const Expr& scale) {
  Blocks b;
  int64_t rank = Node::Rank(x), axis = n.Int("axis", 1);
  b.block = n.Int("block_size", 0);
  bool single = Node::Rank(scale) == 0 || (Node::Rank(scale) == 1 && IsOne(Node::Shape(scale)[0]));
  b.axis = single ? std::max<int64_t>(0, std::min(axis < 0 ? axis + rank : axis, rank - 1))
                  : n.Axis(axis, rank);
  b.is_plain = Node::Rank(scale) <= 1 && b.block == 0;
  if (!b.is_plain && Node::Rank(scale) != rank)
    n.Fail("a scale of the data's rank", "rank " + std::to_string(Node::Rank(scale)));
  return b;
}
/// The scale (or zero point) of the element at `i`.
PrimExpr Parameter(const te::Tensor& p, const Blocks& b, const te::Tensor& x, const Index& i) {
  if (p->shape.empty()) return p(Array<PrimExpr>());
  if (p->shape.size() == 1) return p(IsOne(p->shape[0]) ? Num(0) : i[b.axis]);
  Index at = i;
  PrimExpr block =
      b.block ? Num(b.block) : topi::Simplified(floordiv(x->shape[b.axis], p->shape[b.axis]));
  at[b.axis] = floordiv(i[b.axis], block);
  return topi::At(p, at);
}
bool IsHalf(DataType t) { return t == DataType::Float(16) || t == DataType::Float(32); }
bool IsSmall(DataType t) { return t.is_integer() && (t.bits() == 8 || t.bits() == 16); }

/// round(x / scale) + zero, saturated.
Expr Quantized(Node& n, const Expr& x, const Expr& scale, const Expr& zero, const Blocks& b,
               DataType to) {
  bool same_scale =
      Node::TypeOf(scale) == DataType::Float(32) || Node::TypeOf(scale) == Node::TypeOf(x);
  if (b.is_plain && IsHalf(Node::TypeOf(x)) && IsHalf(Node::TypeOf(scale)) && same_scale &&
      IsSmall(to) && Node::Rank(x) > 0)
    return n("quantize", x, scale, zero, b.axis, to);
  Te te(n);
  te::Tensor data = te(x), scales = te(scale), zeros = te(zero);
  DataType wide = data->dtype == DataType::Float(64) ? data->dtype : DataType::Float(32);
  return ComputeElements(n, "quantize", te, data->shape, [&](const Index& i) {
    PrimExpr v =
        div(tvm::cast(wide, topi::At(data, i)), tvm::cast(wide, Parameter(scales, b, data, i)));
    if (to.is_float()) {
      PrimExpr most = tvm::cast(wide, max_value(to));
      return tvm::cast(to, max(min(v, most), neg(most)));
    }
    v = tvm::round(v) + tvm::cast(wide, Parameter(zeros, b, data, i));
    return tvm::cast(to,
                     max(min(v, tvm::cast(wide, max_value(to))), tvm::cast(wide, min_value(to))));
  });
}
/// (x - zero) * scale
Expr Dequantized(Node& n, const Expr& x, const Expr& scale, const Expr& zero, const Blocks& b,
                 DataType to) {
  DataType from = Node::TypeOf(x);
  if (b.is_plain && (IsSmall(from) || from == DataType::Int(32)) && IsHalf(Node::TypeOf(scale)) &&
      IsHalf(to) && Node::Rank(x) > 0)
    return n("dequantize", x, scale, zero, b.axis, to);
  Te te(n);
  te::Tensor data = te(x), scales = te(scale), zeros = te(zero);
  DataType wide = from.is_float() ? DataType::Float(32) : DataType::Int(32);
  return ComputeElements(n, "dequantize", te, data->shape, [&](const Index& i) {
    PrimExpr v = tvm::cast(wide, topi::At(data, i)) - tvm::cast(wide, Parameter(zeros, b, data, i));
    PrimExpr s = tvm::cast(DataType::Float(32), Parameter(scales, b, data, i));
    return tvm::cast(to, tvm::cast(DataType::Float(32), v) * s);
  });
}
/// The zero point of an input, or zeros like the scale.
Expr ZeroPoint(Node& n, size_t i, const Expr& scale, DataType type) {
  if (n.Has(i)) return n.In(i);
  bool as_number = type.is_float() || type.bits() < 8;
  DataType zero = as_number ? DataType::Int(8) : type;
  Dims shape = Node::Shape(scale);
  if (shape.empty()) return n.Scalar(0, zero);
  return n("zeros", relax::ShapeExpr(shape), zero);
}
Outputs ConvertQuantizeLinear(Node& n) {
  Expr x = n.In(0), scale = n.In(1);
  Blocks b = ReadBlocks(n, x, scale);
  if (n.Int("saturate", 1) != 1) n.Unsupported("saturate=0");
  if (int64_t precision = n.Int("precision", 0); precision != 0 && precision != 1)
    n.Unsupported("precision " + std::to_string(precision));
  int64_t wanted = n.Int("output_dtype", 0);
  DataType to = n.Has(2) ? Node::TypeOf(n.In(2))
                : wanted ? n.Type("output_dtype")
                         : DataType::UInt(8);
  return Quantized(n, x, scale, ZeroPoint(n, 2, scale, to), b, to);
}
Outputs ConvertDequantizeLinear(Node& n) {
  Expr x = n.In(0), scale = n.In(1);
  Blocks b = ReadBlocks(n, x, scale);
  DataType to = n.Int("output_dtype", 0) ? n.Type("output_dtype") : Node::TypeOf(scale);
  return Dequantized(n, x, scale, ZeroPoint(n, 2, scale, Node::TypeOf(x)), b, to);
}
/// uint8 over the range of the data, which is made to include 0.
Outputs ConvertDynamicQuantizeLinear(Node& n) {
  Expr x = n.In(0), zero = n.Scalar(0, DataType::Float(32));
  Expr high = n("maximum", n("max", x), zero), low = n("minimum", n("min", x), zero);
  Expr range = n("subtract", high, low);
  Expr scale = n("divide", range, n.Scalar(255, DataType::Float(32)));
  Expr start = n("divide", n("subtract", zero, low), scale);
  Expr place = n("round", n("clip", start, 0.0, 255.0));
  Expr point = n.Cast(place, DataType::UInt(8));
  return std::vector<Expr>{Quantized(n, x, scale, point, {}, DataType::UInt(8)), scale, point};
}

// ---- operators on quantised numbers -------------------------------------------------------------
/// x - zero in int32; a vector of zeros belongs to the rows (or columns) of a matrix.
Expr Centred(Node& n, const Expr& x, size_t zero, bool is_left) {
  Expr wide = n.Cast(x, DataType::Int(32));
  if (!n.Has(zero)) return wide;
  Expr z = n.Cast(n.In(zero), DataType::Int(32));
  if (Node::Rank(z) == 1 && !IsOne(Node::Shape(z)[0]) && is_left)
    z = n.Reshape(z, {Node::Shape(z)[0], Num(1)});
  return n("subtract", wide, z);
}
Outputs ConvertMatMulInteger(Node& n) {
  return n("matmul", Centred(n, n.In(0), 2, true), Centred(n, n.In(1), 3, false));
}
Outputs ConvertConvInteger(Node& n) {
  Expr w = n.Cast(n.In(1), DataType::Int(32));
  if (n.Has(3)) {
    Expr zero = n.Cast(n.In(3), DataType::Int(32));
    if (Node::Rank(zero) == 1) {
      Dims shape(Node::Rank(w), Num(1));
      shape.Set(0, Node::Shape(zero)[0]);
      zero = n.Reshape(zero, shape);
    }
    w = n("subtract", w, zero);
  }
  // Padding is the zero point: 0 once that has been subtracted.
  return Convolve(n, Centred(n, n.In(0), 2, false), w, nullptr);
}
/// Sums in int32, scaled to the quantised type of the result.
Expr Requantized(Node& n, const Expr& sum, const Expr& factor, size_t scale, size_t zero,
                 int64_t axis) {
  DataType real = DataType::Float(32), to = Node::TypeOf(n.In(zero));
  Expr f = n("divide", factor, n.Cast(n.In(scale), real));
  if (Node::Rank(f) == 1 && !IsOne(Node::Shape(f)[0])) {
    Dims shape(Node::Rank(sum), Num(1));
    shape.Set(axis, Node::Shape(f)[0]);
    f = n.Reshape(f, shape);
  }
  Expr scaled = n("round", n("multiply", n.Cast(sum, real), f));
  Expr moved = n("add", scaled, n.Cast(n.In(zero), real));
  double low = to.is_uint() ? 0 : -128, high = to.is_uint() ? 255 : 127;
  return n.Cast(n("clip", moved, low, high), to);
}
Outputs ConvertQLinearMatMul(Node& n) {
  DataType real = DataType::Float(32);
  Expr sum = n("matmul", Centred(n, n.In(0), 2, true), Centred(n, n.In(3), 5, false));
  Expr sa = n.Cast(n.In(1), real), sb = n.Cast(n.In(4), real);
  return Requantized(n, sum, n("multiply", sa, sb), 6, 7, Node::Rank(sum) - 1);
}
Outputs ConvertQLinearConv(Node& n) {
  Expr w = n.Cast(n.In(3), DataType::Int(32)), zero = n.Cast(n.In(5), DataType::Int(32));
  if (Node::Rank(zero) == 1) {
    Dims shape(Node::Rank(w), Num(1));
    shape.Set(0, Node::Shape(zero)[0]);
    zero = n.Reshape(zero, shape);
  }
  Expr sum = Convolve(n, Centred(n, n.In(0), 2, false), n("subtract", w, zero), nullptr);
  if (n.Has(8)) {
    Dims shape(Node::Rank(sum), Num(1));
    shape.Set(1, Node::Shape(n.In(8))[0]);
    sum = n("add", sum, n.Reshape(n.In(8), shape));
  }
  return Requantized(n, sum, n("multiply", n.In(1), n.In(4)), 6, 7, 1);
}
}  // namespace

Expr DequantizedInput(Node& n, size_t i, int64_t axis) {
  Expr x = n.In(i), scale = n.In(i + 1);
  return Dequantized(n, x, scale, ZeroPoint(n, i + 2, scale, Node::TypeOf(x)), {axis, 0, true},
                     Node::TypeOf(scale));
}
Expr QuantizedOutput(Node& n, const Expr& y, size_t i, DataType fallback) {
  Expr scale = n.In(i);
  DataType to = n.Has(i + 1) ? Node::TypeOf(n.In(i + 1)) : fallback;
  return Quantized(n, y, scale, ZeroPoint(n, i + 1, scale, to), {}, to);
}

TVM_REGISTER() {
  AddConverters({
      {"ConvInteger", &ConvertConvInteger},
      {"DequantizeLinear", &ConvertDequantizeLinear},
      {"DynamicQuantizeLinear", &ConvertDynamicQuantizeLinear},
      {"MatMulInteger", &ConvertMatMulInteger},
      {"QLinearConv", &ConvertQLinearConv},
      {"QLinearMatMul", &ConvertQLinearMatMul},
      {"QuantizeLinear", &ConvertQuantizeLinear},
  });
}

}  // namespace tvm::frontend::onnx
