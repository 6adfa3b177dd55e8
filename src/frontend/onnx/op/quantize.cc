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
}  // namespace

DynamicNumbers DynamicallyQuantized(Node& n, const Expr& x) {
  Expr zero = n.Scalar(0, DataType::Float(32));
  Expr high = n("maximum", n("max", x), zero), low = n("minimum", n("min", x), zero);
  Expr range = n("divide", n("subtract", high, low), n.Scalar(255, DataType::Float(32)));
  // Of nothing but zeros any scale is right; 0 would make NaN of them.
  Expr scale = n("where", n("equal", range, zero), n.Scalar(1, DataType::Float(32)), range);
  Expr start = n("divide", n("subtract", zero, low), scale);
  Expr place = n("round", n("clip", start, 0.0, 255.0));
  Expr point = n.Cast(place, DataType::UInt(8));
  return {Quantized(n, x, scale, point, {}, DataType::UInt(8)), scale, point};
}

namespace {
Outputs ConvertDynamicQuantizeLinear(Node& n) {
  DynamicNumbers q = DynamicallyQuantized(n, n.In(0));
  return std::vector<Expr>{q.data, q.scale, q.zero};
}

// ---- operators on quantised numbers -------------------------------------------------------------
// Sums of products of 8-bit numbers as they are, in int32; zero points are corrected behind them,
// so that the products stay those of small numbers. All of it wraps alike, so results are exact.
const DataType kSum = DataType::Int(32);

/// A zero point or scale per row of a matrix as one that broadcasts, others as they are.
Expr PerRow(Node& n, const Expr& e) {
  if (Node::Rank(e) != 1 || IsOne(Node::Shape(e)[0])) return e;
  return n.Reshape(e, {Node::Shape(e)[0], Num(1)});
}
/// One per output channel along axis `axis` of a tensor.
Expr PerChannel(Node& n, const Expr& e, int64_t rank, int64_t axis) {
  if (Node::Rank(e) != 1 || IsOne(Node::Shape(e)[0])) return n.Reshape(e, {});
  Dims shape(rank, Num(1));
  shape.Set(axis, Node::Shape(e)[0]);
  return n.Reshape(e, shape);
}
}  // namespace

std::optional<Expr> ZeroOffset(Node& n, size_t i) {
  if (!n.Has(i)) return std::nullopt;
  const Value& value = n.Input(i);
  if (value.constant && !value.is_kept) {
    const runtime::Tensor& t = *value.constant;
    auto* data = static_cast<const char*>(t.data_ptr());
    uint64_t size = runtime::DataSize(t.shape(), t.dtype());
    if (std::all_of(data, data + size, [](char c) { return c == 0; })) return std::nullopt;
  }
  return n.Cast(n.In(i), kSum);
}
Expr IntegerProduct(Node& n, const Expr& a, const Expr& b, const std::optional<Expr>& zero_a,
                    const std::optional<Expr>& zero_b) {
  if (!Node::TypeOf(a).is_integer() || !Node::TypeOf(b).is_integer())
    n.Unsupported("a product of " + Node::TypeOf(a).str() + " and " + Node::TypeOf(b).str());
  Expr sum = n("matmul", a, b, kSum), centred = n.Cast(a, kSum);
  bool is_vector = Node::Rank(b) == 1;
  if (zero_a) {
    Expr rows = PerRow(n, *zero_a), columns = n.Cast(b, kSum);
    columns = n("sum", columns, List({is_vector ? 0 : -2}), !is_vector);
    sum = n("subtract", sum, n("multiply", rows, columns));
    centred = n("subtract", centred, rows);
  }
  if (zero_b) {
    Expr rows = n("sum", centred, List({-1}), !is_vector);
    sum = n("subtract", sum, n("multiply", rows, *zero_b));
  }
  return sum;
}
Expr Requantized(Node& n, const Expr& sum, const Expr& factor, size_t scale, size_t zero,
                 DataType to) {
  DataType real = DataType::Float(32);
  Expr f = n("divide", factor, n.Cast(n.In(scale), real));
  Expr scaled = n("round", n("multiply", n.Cast(sum, real), f));
  if (n.Has(zero)) scaled = n("add", scaled, n.Cast(n.In(zero), real));
  double low = to.is_uint() ? 0 : -128, high = to.is_uint() ? 255 : 127;
  return n.Cast(n("clip", scaled, low, high), to);
}

namespace {
Outputs ConvertMatMulInteger(Node& n) {
  return IntegerProduct(n, n.In(0), n.In(1), ZeroOffset(n, 2), ZeroOffset(n, 3));
}
/// The sums of a convolution, in int32; zero points are inputs.
Expr IntegerConvolution(Node& n, const Expr& x, const Expr& w, size_t zero_x, size_t zero_w) {
  int64_t rank = Node::Rank(w);
  auto of_x = ZeroOffset(n, zero_x), of_w = ZeroOffset(n, zero_w);
  if (of_x) of_x = n.Reshape(*of_x, {});
  if (of_w) {
    // Its correction would be another convolution.
    Expr data = n.Cast(x, kSum), centre = PerChannel(n, *of_w, rank, 0);
    if (of_x) data = n("subtract", data, *of_x);
    return Convolve(n, data, n("subtract", n.Cast(w, kSum), centre), nullptr);
  }
  if (!of_x) return Convolve(n, x, w, kSum);
  // Padding means 0, which is the zero point here.
  Expr sum = Convolve(n, x, w, kSum, n.In(zero_x));
  std::vector<int64_t> inner;
  for (int64_t i = 1; i < rank; ++i) inner.push_back(i);
  Expr weights = n("sum", n.Cast(w, kSum), List(inner), false);
  return n("subtract", sum, PerChannel(n, n("multiply", *of_x, weights), rank, 1));
}
Outputs ConvertConvInteger(Node& n) { return IntegerConvolution(n, n.In(0), n.In(1), 2, 3); }
Outputs ConvertQLinearMatMul(Node& n) {
  DataType real = DataType::Float(32);
  Expr sum = IntegerProduct(n, n.In(0), n.In(3), ZeroOffset(n, 2), ZeroOffset(n, 5));
  Expr factor = n("multiply", PerRow(n, n.Cast(n.In(1), real)), n.Cast(n.In(4), real));
  return Requantized(n, sum, factor, 6, 7, Node::TypeOf(n.In(7)));
}
Outputs ConvertQLinearConv(Node& n) {
  Expr sum = IntegerConvolution(n, n.In(0), n.In(3), 2, 5);
  int64_t rank = Node::Rank(sum);
  if (n.Has(8)) sum = n("add", sum, PerChannel(n, n.In(8), rank, 1));
  Expr factor = n("multiply", n.Reshape(n.In(1), {}), PerChannel(n, n.In(4), rank, 1));
  return Requantized(n, sum, factor, 6, 7, Node::TypeOf(n.In(7)));
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
