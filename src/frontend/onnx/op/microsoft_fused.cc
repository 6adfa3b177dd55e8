// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that optimisers join others to: with an activation, embeddings with
// their norm, whole attention layers.
#include "frontend/onnx/op/attention.h"
#include "frontend/onnx/op/packed.h"
#include "frontend/onnx/op/quantize.h"
#include "frontend/onnx/op/window.h"

namespace tvm::frontend::onnx {
namespace {
/// The activation that a name says, with its parameters in the order of that operator's attributes.
Expr Activated(Node& n, const Expr& x, const std::string& name, std::vector<double> p) {
  auto parameter = [&](size_t i, double fallback) { return i < p.size() ? p[i] : fallback; };
  if (name.empty()) return x;
  if (name == "Relu") return n("nn.relu", x);
  if (name == "Tanh") return n("tanh", x);
  if (name == "Sigmoid") return n("sigmoid", x);
  if (name == "LeakyRelu") return n("nn.leakyrelu", x, parameter(0, 0.01F));
  if (name == "Clip")
    return n("clip", x, parameter(0, -3.402823466e38), parameter(1, 3.402823466e38));
  if (name == "HardSigmoid") {
    DataType t = Node::TypeOf(x);
    Expr line = n("multiply", x, n.Scalar(parameter(0, 0.2F), t));
    return n("clip", n("add", line, n.Scalar(parameter(1, 0.5F), t)), 0.0, 1.0);
  }
  n.Unsupported("activation " + name);
}
Outputs ConvertFusedConv(Node& n) {
  std::string activation = n.Str("activation", "");
  auto parameters = n.Floats("activation_params");
  Expr y = Convolve(n, n.In(0), n.In(1), nullptr);
  if (n.Has(2)) {
    Dims shape(Node::Rank(y), Num(1));
    shape.Set(1, Node::Shape(n.In(2))[0]);
    y = n("add", y, n.Reshape(n.In(2), shape));
  }
  if (n.Has(3)) y = n("add", y, n.In(3));
  return Activated(n, y, activation, parameters);
}
Outputs ConvertFusedGemm(Node& n) {
  std::string activation = n.Str("activation", "");
  std::vector<double> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (n.HasAttr(name)) parameters.push_back(n.Float(name));
  }
  return Activated(n, FindConverter("", "Gemm")(n)[0].expr, activation, parameters);
}
/// The sum of the embeddings of words, places and segments, normalised.
Outputs ConvertEmbedLayerNormalization(Node& n) {
  Expr ids = n.In(0), words = n.In(2), places = n.In(3);
  double epsilon = n.Float("epsilon", 1e-12F);
  n.Ignore("mask_index_type");
  Dims shape = Node::Shape(ids);
  Expr sum = n("take", words, ids, 0);
  sum = n("add", sum,
          n.Has(8) ? n("take", places, n.In(8), 0)
                   : n("strided_slice", places, List({0}), Dims{Num(0)}, Dims{shape[1]},
                       Dims{Num(1)}, true));
  if (n.Has(1)) sum = n("add", sum, n("take", n.In(4), n.In(1), 0));
  Expr y = n("nn.layer_norm", sum, n.In(5), n.In(6), List({-1}), epsilon);
  Expr counts = n.Has(7) ? n("sum", n.Cast(n.In(7), DataType::Int(32)), List({1}), false)
                         : n("zeros", relax::ShapeExpr({shape[0]}), DataType::Int(32));
  return std::vector<Expr>{y, counts, sum};
}
/// Queries, keys and values side by side, as one product made them; keys and values of the past lie
/// in one tensor. `mask`, `past` and `bias` (of scores) are inputs.
Outputs AttendJoined(Node& n, const Expr& all, size_t mask_at, size_t past_at, size_t bias_at) {
  int64_t heads = n.Int("num_heads");
  if (n.Int("do_rotary", 0) || n.Int("past_present_share_buffer", 0))
    n.Unsupported("rotary positions, a shared buffer");
  PrimExpr third = n.Simplify(floordiv(Node::Shape(all)[2], Num(3)));
  std::vector<int64_t> sizes = n.Ints("qkv_hidden_sizes");
  if (!sizes.empty() && sizes.size() != 3)
    n.Fail("three qkv_hidden_sizes", std::to_string(sizes.size()));
  Expr parts[3];
  PrimExpr begin = Num(0);
  for (size_t p = 0; p < 3; ++p) {
    PrimExpr end = n.Simplify(begin + (sizes.empty() ? third : Num(sizes[p])));
    Expr part = n("strided_slice", all, List({2}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
    parts[p] = ByHeads(n, part, heads);
    begin = end;
  }
  auto [q, k, v] = parts;
  AttentionOptions o;
  o.causal = n.Int("unidirectional", 0) != 0;
  o.scale = n.Float("scale", 0);
  if (n.Has(past_at)) {
    Expr past = n.In(past_at);
    o.past = Node::Shape(past)[3];
    Expr old[2];
    for (int64_t i = 0; i < 2; ++i)
      old[i] = n("take", past, n.Scalar(static_cast<double>(i), DataType::Int(64)), 0);
    k = Behind(n, old[0], k);
    v = Behind(n, old[1], v);
  }
  n.Ignore("mask_filter_value");
  if (n.Has(mask_at)) o.mask = KeyMask(n, n.In(mask_at), q, Node::Shape(k)[2]);
  if (n.Has(bias_at)) o.mask = o.mask ? n("add", n.In(bias_at), *o.mask) : n.In(bias_at);
  Expr y = JoinedHeads(n, Attend(n, q, k, v, o).result);
  if (!n.Wants(1)) return y;
  return std::vector<Expr>{y, n("stack", relax::Tuple({k, v}), 0)};
}
Outputs ConvertMicrosoftAttention(Node& n) {
  Expr all = n("matmul", n.In(0), n.In(1));
  if (n.Has(2)) all = n("add", all, n.In(2));
  return AttendJoined(n, all, 3, 4, 5);
}
/// The first product is one of 8-bit numbers.
Outputs ConvertQAttention(Node& n) {
  Expr sum = IntegerProduct(n, n.In(0), n.In(1), ZeroOffset(n, 6), ZeroOffset(n, 7));
  Expr scale = n("multiply", n.In(3), n.In(4));
  Expr all = n("multiply", n.Cast(sum, Node::TypeOf(scale)), scale);
  if (n.Has(2)) all = n("add", all, n.In(2));
  return AttendJoined(n, all, 5, 8, SIZE_MAX);
}
/// Rows of a table of small numbers, dequantised by block. Two elements of 4 bits share a byte of
/// uint8, along the last axis.
Outputs ConvertGatherBlockQuantized(Node& n) {
  Expr data = n.In(0), indices = n.In(1), scale = n.In(2);
  int64_t rank = Node::Rank(data), bits = n.Int("bits", 4), block = n.Int("block_size", 128);
  int64_t axis = n.Axis(n.Int("gather_axis", 0), rank, "gather_axis");
  int64_t along = n.Axis(n.Int("quantize_axis", 1), rank, "quantize_axis");
  bool is_byte = Node::TypeOf(data) == DataType::UInt(8), packed = is_byte && bits == 4;
  if ((bits != 4 && bits != 8) || block < 1 || (packed && along != rank - 1))
    n.Unsupported("bits " + std::to_string(bits) + " along axis " + std::to_string(along));
  Te te(n);
  te::Tensor t = te(data), at = te(indices), scales = te(scale);
  std::optional<te::Tensor> zeros;
  if (n.Has(3)) zeros = te(n.In(3));
  size_t places = at->shape.size();
  Dims shape;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == axis) {
      shape.insert(shape.end(), at->shape.begin(), at->shape.end());
    } else {
      bool is_pair = packed && d == rank - 1;
      shape.push_back(is_pair ? n.Simplify(t->shape[d] * Num(2)) : t->shape[d]);
    }
  }
  DataType wide = DataType::Int(32);
  auto value = [&](const te::Tensor& of, Index i) {
    if (!packed) return tvm::cast(wide, topi::At(of, i));
    PrimExpr place = floormod(i.back(), Num(2));
    i.back() = floordiv(i.back(), Num(2));
    return BitsAt(topi::At(of, i), place, 4, wide);
  };
  return ComputeElements(n, "gather_blocks", te, shape, [&](const Index& i) {
    Index from(i.begin(), i.begin() + axis);
    PrimExpr row = topi::At(at, Index(i.begin() + axis, i.begin() + axis + places));
    row = tvm::cast(DataType::Int(64), row);
    from.push_back(tir::Select(row < Num(0), row + t->shape[axis], row));
    from.insert(from.end(), i.begin() + axis + places, i.end());
    Index group = from;
    group[along] = floordiv(from[along], Num(block));
    PrimExpr zero = IntImm::Int32(is_byte ? 1 << (bits - 1) : 0);
    if (zeros) zero = value(*zeros, group);
    PrimExpr s = topi::At(scales, group);
    return tvm::cast(s.dtype(), value(t, from) - zero) * s;
  });
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({
      {"Attention", &ConvertMicrosoftAttention, kDomain},
      {"EmbedLayerNormalization", &ConvertEmbedLayerNormalization, kDomain},
      {"FusedConv", &ConvertFusedConv, kDomain},
      {"FusedGemm", &ConvertFusedGemm, kDomain},
      {"GatherBlockQuantized", &ConvertGatherBlockQuantized, kDomain},
      {"QAttention", &ConvertQAttention, kDomain},
  });
}

}  // namespace tvm::frontend::onnx
