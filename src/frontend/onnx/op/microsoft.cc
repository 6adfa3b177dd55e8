// SPDX-License-Identifier: Apache-2.0
// Operators of the domain com.microsoft, which optimisers and quantisers write.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kMicrosoft = "com.microsoft";

Outputs ConvertFastGelu(Node& n) {
  Expr x = n.In(0);
  if (n.Has(1)) x = n("add", x, n.In(1));
  return n("nn.gelu_tanh", x);
}
Outputs ConvertBiasGelu(Node& n) { return n("nn.gelu", n("add", n.In(0), n.In(1))); }
Outputs ConvertQuickGelu(Node& n) {
  Expr x = n.In(0);
  double alpha = n.Float("alpha", 1.702F);
  return n("multiply", x, n("sigmoid", n("multiply", x, n.Scalar(alpha, Node::TypeOf(x)))));
}
Outputs ConvertFusedMatMul(Node& n) {
  Expr a = n.In(0), b = n.In(1);
  double alpha = n.Float("alpha", 1);
  if (n.Int("transBatchA", 0) || n.Int("transBatchB", 0)) n.Unsupported("transposed batches");
  auto turned = [&](const Expr& e) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < Node::Rank(e); ++i) axes.push_back(i);
    if (axes.size() > 1) std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return Transposed(n, e, axes);
  };
  if (n.Int("transA", 0)) a = turned(a);
  if (n.Int("transB", 0)) b = turned(b);
  Expr y = n("matmul", a, b);
  return alpha == 1 ? y : n("multiply", y, n.Scalar(alpha, Node::TypeOf(y)));
}
/// Normalises the sum of the input, what was skipped and a bias; the sum is the last output.
template <bool is_simple>
Outputs SkipNormalization(Node& n) {
  size_t bias = is_simple ? 3 : 4;
  Expr sum = n("add", n.In(0), n.In(1));
  if (n.Has(bias)) sum = n("add", sum, n.In(bias));
  double epsilon = n.Float("epsilon", 1e-12F);
  int64_t axis = Node::Rank(sum) - 1;
  Expr gamma = n.In(2), y;
  if (is_simple) {
    y = n("nn.rms_norm", sum, gamma, List({axis}), epsilon);
  } else {
    Expr beta =
        n.Has(3) ? n.In(3) : n("zeros", relax::ShapeExpr(Node::Shape(gamma)), Node::TypeOf(gamma));
    y = n("nn.layer_norm", sum, gamma, beta, List({axis}), epsilon);
  }
  std::vector<Value> outputs{y, Value(), Value(), sum};
  return outputs;
}
Outputs ConvertSimplifiedLayerNormalization(Node& n) {
  Expr x = n.In(0);
  n.Ignore("stash_type");
  double epsilon = n.Float("epsilon", 1e-5F);
  std::vector<int64_t> axes;
  for (int64_t i = n.Axis(n.Int("axis", -1), Node::Rank(x)); i < Node::Rank(x); ++i)
    axes.push_back(i);
  return n("nn.rms_norm", x, n.In(1), List(axes), epsilon);
}
/// x · dequantised weightᵀ. Weights are (N, blocks, bytes), the first element in the low bits;
/// scales and zero points belong to blocks of a row. They stay packed, in panels of columns of the
/// result, (N / width, blocks, bytes, width): few bytes are read, in one run, for results in
/// vectors.
Outputs ConvertMatMulNBits(Node& n) {
  Expr a = n.In(0), b = n.In(1), scale = n.In(2);
  int64_t k = n.Int("K"), rows = n.Int("N"), bits = n.Int("bits", 4), block = n.Int("block_size");
  n.Ignore("accuracy_level");
  if ((bits != 2 && bits != 4 && bits != 8) || block <= 0 || block * bits % 8 != 0 || k <= 0 ||
      rows <= 0) {
    n.Fail("bits to be 2, 4 or 8, blocks of whole bytes and positive sizes",
           std::to_string(bits) + " bits in blocks of " + std::to_string(block));
  }
  if (n.Has(4)) n.Unsupported("g_idx");
  int64_t blocks = (k + block - 1) / block, per_byte = 8 / bits;
  int64_t bytes = block * bits / 8, zero_bytes = (blocks * bits + 7) / 8;
  int64_t width = 64;  // columns of a panel: a line of a cache in bytes
  while (rows % width != 0) --width;
  DataType t = DataType::Float(32), wide = DataType::Int(32);
  auto bits_of = [&](const PrimExpr& byte, const PrimExpr& place) {
    PrimExpr shift = tvm::cast(wide, place) * IntImm::Int32(bits);
    return tvm::cast(
        t, bitwise_and(shift_right(tvm::cast(wide, byte), shift), IntImm::Int32((1 << bits) - 1)));
  };
  auto in_panels = [&](const Expr& e, const std::vector<int64_t>& inner) {
    std::vector<PrimExpr> shape = {Num(rows / width), Num(width)};
    std::vector<int64_t> order = {0};
    for (int64_t size : inner) {
      order.push_back(static_cast<int64_t>(shape.size()));
      shape.push_back(Num(size));
    }
    order.push_back(1);
    return Transposed(n, Shaped(n, e, shape), order);
  };
  scale = n.Cast(n.Reshape(scale, {Num(rows), Num(blocks)}), t);
  Expr zero = n.Scalar(static_cast<double>(int64_t{1} << (bits - 1)), t);
  if (n.Has(3) && Node::TypeOf(n.In(3)) == DataType::UInt(8)) {
    Te te(n);
    te::Tensor packed = te(n.Reshape(n.In(3), {Num(rows), Num(zero_bytes)}));
    zero = ComputeElements(n, "zero_points", te, {Num(rows), Num(blocks)}, [&](const Index& i) {
      return bits_of(packed(i[0], floordiv(i[1], Num(per_byte))), floormod(i[1], Num(per_byte)));
    });
  } else if (n.Has(3)) {
    zero = n.Cast(n.Reshape(n.In(3), {Num(rows), Num(blocks)}), t);
  }
  if (int64_t margin = blocks * block - k) {
    std::vector<int64_t> widths(2 * Node::Rank(a), 0);
    widths.back() = margin;
    a = n("nn.pad", a, List(widths), "constant", 0.0);
  }
  Te te(n);
  te::Tensor x = te(a), weight = te(in_panels(b, {blocks, bytes})),
             scales = te(in_panels(scale, {blocks})),
             offsets = te(in_panels(n("multiply", scale, zero), {blocks}));
  auto along = [](int64_t extent, const char* name) {
    return te::reduce_axis(Range::FromMinExtent(Num(0), Num(extent)), name);
  };
  tir::IterVar in_row = along(blocks, "block"), in_block = along(bytes, "byte"),
               in_byte = along(per_byte, "place");
  std::vector<PrimExpr> shape(x->shape.begin(), x->shape.end());
  shape.back() = Num(rows);
  Expr y = ComputeElements(n, "matmul_nbits", te, DimsOf(shape), [&](const Index& i) {
    PrimExpr panel = floordiv(i.back(), Num(width)), column = floormod(i.back(), Num(width));
    Index left(i.begin(), i.end() - 1);
    left.push_back(in_row->var * Num(block) + in_block->var * Num(per_byte) + in_byte->var);
    PrimExpr q = bits_of(weight({panel, in_row->var, in_block->var, column}), in_byte->var);
    PrimExpr value =
        q * scales({panel, in_row->var, column}) - offsets({panel, in_row->var, column});
    return te::sum(tvm::cast(t, x(Array<PrimExpr>(left.begin(), left.end()))) * value,
                   {in_row, in_block, in_byte});
  });
  y = n.Cast(y, Node::TypeOf(a));
  return n.Has(5) ? n("add", y, n.In(5)) : y;
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"BiasGelu", &ConvertBiasGelu, kMicrosoft},
      {"FastGelu", &ConvertFastGelu, kMicrosoft},
      {"FusedMatMul", &ConvertFusedMatMul, kMicrosoft},
      {"Gelu", &SameOp<"nn.gelu">, kMicrosoft},
      {"MatMulNBits", &ConvertMatMulNBits, kMicrosoft},
      {"QuickGelu", &ConvertQuickGelu, kMicrosoft},
      {"SimplifiedLayerNormalization", &ConvertSimplifiedLayerNormalization},
      {"SimplifiedLayerNormalization", &ConvertSimplifiedLayerNormalization, kMicrosoft},
      {"SkipLayerNormalization", &SkipNormalization<false>, kMicrosoft},
      {"SkipSimplifiedLayerNormalization", &SkipNormalization<true>, kMicrosoft},
  });
}

}  // namespace tvm::frontend::onnx
