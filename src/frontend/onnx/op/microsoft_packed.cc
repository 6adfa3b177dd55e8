// SPDX-License-Identifier: Apache-2.0
// Products with weights of a few bits of the domain com.microsoft. They stay packed.
#include "frontend/onnx/op/learning.h"
#include "frontend/onnx/op/packed.h"

namespace tvm::frontend::onnx {
namespace {
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
  DataType t = DataType::Float(32);
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
      return BitsAt(packed(i[0], floordiv(i[1], Num(per_byte))), floormod(i[1], Num(per_byte)),
                    bits);
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
    PrimExpr q = BitsAt(weight({panel, in_row->var, in_block->var, column}), in_byte->var, bits);
    PrimExpr value =
        q * scales({panel, in_row->var, column}) - offsets({panel, in_row->var, column});
    return te::sum(tvm::cast(t, x(Array<PrimExpr>(left.begin(), left.end()))) * value,
                   {in_row, in_block, in_byte});
  });
  y = n.Cast(y, Node::TypeOf(a));
  return n.Has(5) ? n("add", y, n.In(5)) : y;
}
/// The numbers that 4 bits stand for, by their code: fractions of the largest in a block.
// clang-format off
const std::vector<double> kFloat4 = {
    0.0, 0.0052083333, 0.6666666667, 1.0, 0.3333333333, 0.5, 0.1666666667, 0.25,
    0.0, -0.0052083333, -0.6666666667, -1.0, -0.3333333333, -0.5, -0.1666666667, -0.25};
// Equally many numbers of a normal distribution are nearest to each (Dettmers et al., QLoRA, 2023).
const std::vector<double> kNormal4 = {
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
    0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
    0.7229568362236023, 1.0};
// clang-format on

/// x · weightᵀ, or x · weight. The weight (N, K) is flat: two codes in a byte, the first in the
/// high bits, and the largest number of each block.
Outputs ConvertMatMulBnb4(Node& n) {
  Expr a = n.In(0);
  int64_t rows = n.Int("N"), columns = n.Int("K"), block = n.Int("block_size");
  int64_t kind = n.Int("quant_type");
  bool turned = n.Int("transB", 1) != 0;
  n.Ignore("training_mode");
  if (rows <= 0 || columns <= 0 || block <= 0 || (kind != 0 && kind != 1) ||
      rows > INT64_MAX / 2 / columns) {
    n.Fail("positive sizes and quant_type 0 or 1", std::to_string(rows) + " × " +
                                                       std::to_string(columns) + " in blocks of " +
                                                       std::to_string(block));
  }
  PrimExpr bytes = Num((rows * columns + 1) / 2);
  PrimExpr blocks = Num((rows * columns + block - 1) / block);
  Te te(n);
  te::Tensor packed = te(n.Reshape(n.In(1), {bytes})), most = te(n.Reshape(n.In(2), {blocks}));
  te::Tensor codes = te(FloatVector(n, kind == 0 ? kFloat4 : kNormal4)), x = te(a);
  int64_t inner = turned ? columns : rows;
  if (!n.importer.builder()->analyzer()->CanProveEqual(x->shape.back(), Num(inner)))
    n.Fail("rows of " + std::to_string(inner), "others");
  tir::IterVar along = te::reduce_axis(Range::FromMinExtent(Num(0), Num(inner)), "k");
  Dims shape = x->shape;
  shape.Set(shape.size() - 1, Num(turned ? rows : columns));
  Expr y = ComputeElements(n, "matmul_bnb4", te, shape, [&](const Index& i) {
    PrimExpr flat =
        turned ? i.back() * Num(columns) + along->var : along->var * Num(columns) + i.back();
    PrimExpr code = BitsAt(packed(floordiv(flat, Num(2))), Num(1) - floormod(flat, Num(2)), 4,
                           DataType::Int(64));
    PrimExpr w = codes(code) * tvm::cast(kSingle, most(floordiv(flat, Num(block))));
    Index left = i;
    left.back() = along->var;
    return te::sum(tvm::cast(kSingle, topi::At(x, left)) * w, {along});
  });
  return n.Cast(y, Node::TypeOf(a));
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({
      {"MatMulBnb4", &ConvertMatMulBnb4, kDomain},
      {"MatMulNBits", &ConvertMatMulNBits, kDomain},
  });
}

}  // namespace tvm::frontend::onnx
