// SPDX-License-Identifier: Apache-2.0
// Attention of the domain com.microsoft.
#include "frontend/onnx/op/attention.h"

namespace tvm::frontend::onnx {
namespace {
/// Heads side by side, a bias for all three, padding as a mask of keys.
Outputs ConvertMultiHeadAttention(Node& n) {
  int64_t heads = n.Int("num_heads");
  std::vector<Expr> parts{n.In(0)};
  for (size_t i = 1; i < 3 && n.Has(i); ++i) parts.push_back(n.In(i));
  // Queries, keys and values, or keys and values, side by side in each head: (b, s, h, 2 or 3, d)
  if (Expr packed = parts.back(); Node::Rank(packed) == 5) {
    parts.pop_back();
    for (int64_t i = 0; parts.size() < 3; ++i) {
      Expr place = n.Scalar(static_cast<double>(i), DataType::Int(64));
      parts.push_back(Transposed(n, n("take", packed, place, 3), {0, 2, 1, 3}));
    }
  }
  if (parts.size() != 3) n.Fail("queries, keys and values", std::to_string(parts.size()));
  if (n.Has(3)) {
    PrimExpr begin = Num(0);
    for (Expr& part : parts) {
      Dims s = Node::Shape(part);
      bool is_apart = s.size() == 4;
      PrimExpr end = n.Simplify(begin + (is_apart ? s[1] * s[3] : s[2]));
      Expr own = n("strided_slice", n.In(3), List({0}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
      if (is_apart) own = n.Reshape(own, {s[1], Num(1), s[3]});
      part = n("add", part, own);
      begin = end;
    }
  }
  Expr q = ByHeads(n, parts[0], heads), k = ByHeads(n, parts[1], heads),
       v = ByHeads(n, parts[2], heads);
  AttentionOptions o;
  o.causal = n.Int("unidirectional", 0) != 0;
  o.scale = n.Float("scale", 0);
  if (n.Has(6) != n.Has(7)) n.Fail("past_key and past_value together", "one of them");
  if (n.Has(6)) {
    o.past = Node::Shape(n.In(6))[2];
    k = Behind(n, n.In(6), k);
    v = Behind(n, n.In(7), v);
  }
  n.Ignore("mask_filter_value");
  if (n.Has(4)) o.mask = KeyMask(n, n.In(4), q, Node::Shape(k)[2]);
  if (n.Has(5)) o.mask = o.mask ? n("add", n.In(5), *o.mask) : n.In(5);
  return std::vector<Expr>{JoinedHeads(n, Attend(n, q, k, v, o).result), k, v};
}
/// A cache with new entries written at a place of each batch; it grows to `length` where it is
/// shorter.
Expr Written(Node& n, const Expr& fresh, const std::optional<Expr>& past, const Expr& starts,
             const PrimExpr& length) {
  Te te(n);
  te::Tensor now = te(fresh), first = te(starts);
  std::optional<te::Tensor> old;
  if (past) old = te(*past);
  Dims shape = now->shape;
  shape.Set(2, te(length));
  return ComputeElements(n, "cache", te, shape, [&](const Index& i) {
    PrimExpr at = i[2] - first(i[0]);
    Index from = i;
    from[2] = at;
    PrimExpr rest = MakeZero(now->dtype);
    // Behind what is valid may be anything, also NaN, which a weight of 0 does not hide.
    if (old)
      rest = if_then_else(i[2] < min((*old)->shape[2], first(i[0])), topi::At(*old, i), rest);
    return if_then_else(at >= Num(0) && at < now->shape[2], topi::At(now, from), rest);
  });
}
/// Fewer heads of keys than of queries, a cache that may be longer than what is valid of it, and
/// rotary positions behind it.
Outputs ConvertGroupQueryAttention(Node& n) {
  int64_t heads = n.Int("num_heads"), kv_heads = n.Int("kv_num_heads");
  bool rotary = n.Int("do_rotary", 0) != 0, interleaved = n.Int("rotary_interleaved", 0) != 0;
  AttentionOptions o;
  o.causal = true;
  o.softcap = n.Float("softcap", 0);
  o.scale = n.Float("scale", 0);
  bool is_smooth = n.Int("smooth_softmax", 0) > 0;
  if (n.Has(11)) {
    o.sink = n.In(11);
  } else if (is_smooth) {
    o.sink = n("zeros", relax::ShapeExpr({Num(heads)}), kSingle);
  }
  int64_t window = n.Int("local_window_size", -1);
  if (window >= 0) o.left = window - 1;
  Expr parts[] = {n.In(0), {}, {}};
  if (n.Has(1)) {
    parts[1] = n.In(1);
    parts[2] = n.In(2);
  } else {
    PrimExpr size = floordiv(Node::Shape(parts[0])[2], Num(heads + 2 * kv_heads));
    PrimExpr begin = Num(0);
    Expr all = parts[0];
    for (int64_t p = 0; p < 3; ++p) {
      PrimExpr end = n.Simplify(begin + size * Num(p == 0 ? heads : kv_heads));
      parts[p] = n("strided_slice", all, List({2}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
      begin = end;
    }
  }
  Expr q = ByHeads(n, parts[0], heads), k = ByHeads(n, parts[1], kv_heads),
       v = ByHeads(n, parts[2], kv_heads);
  PrimExpr fresh = Node::Shape(k)[2], total = n.Integer(6);
  Expr ends = n.Reshape(n.Cast(n.In(5), DataType::Int(64)), {Node::Shape(q)[0]});
  o.lengths = n("add", ends, n.Scalar(1, DataType::Int(64)));
  // The first tokens begin at 0, later ones behind what is valid.
  {
    Te te(n);
    te::Tensor t = te(*o.lengths);
    PrimExpr is_first = equal(te(total), te(fresh)), count = te(fresh);
    o.starts = ComputeElements(n, "starts", te, t->shape, [&](const Index& i) -> PrimExpr {
      return tir::Select(is_first, Num(0), topi::At(t, i) - count);
    });
  }
  if (rotary) {
    Te te(n);
    te::Tensor t = te(*o.starts);
    Expr positions = n.Has(9) ? n.In(9)
                              : ComputeElements(n, "positions", te, {t->shape[0], te(fresh)},
                                                [&](const Index& i) { return t(i[0]) + i[1]; });
    q = Rotated(n, q, n.In(7), n.In(8), positions, interleaved, 2 * n.StaticDim(n.In(7), 1));
    k = Rotated(n, k, n.In(7), n.In(8), positions, interleaved, 2 * n.StaticDim(n.In(7), 1));
  }
  if (n.Has(10)) o.mask = n.In(10);
  std::optional<Expr> past_k, past_v;
  PrimExpr length = total;
  if (n.Has(3)) {
    past_k = n.In(3);
    past_v = n.In(4);
    length = n.Simplify(max(total, Node::Shape(*past_k)[2]));
  }
  k = Written(n, k, past_k, *o.starts, length);
  v = Written(n, v, past_v, *o.starts, length);
  return std::vector<Expr>{JoinedHeads(n, Attend(n, q, k, v, o).result), k, v};
}
Outputs ConvertMicrosoftRotaryEmbedding(Node& n) {
  Expr x = n.In(0), positions = n.In(1);
  bool joined = Node::Rank(x) == 3, interleaved = n.Int("interleaved", 0) != 0;
  int64_t heads = n.Int("num_heads", 0), width = n.Int("rotary_embedding_dim", 0);
  if (n.Int("is_packed_batching", 0) || n.Float("scale", 1) != 1)
    n.Unsupported("packed batches, a scale");
  if (joined && heads == 0) {
    int64_t size = width ? width : 2 * n.StaticDim(n.In(2), 1);
    heads = n.StaticDim(x, 2) / size;
  }
  Expr by_head = ByHeads(n, x, heads);
  Dims s = Node::Shape(by_head);
  if (Node::Rank(positions) == 1) {  // where the first token is
    Te te(n);
    te::Tensor t = te(n.Cast(positions, DataType::Int(64)));
    positions = ComputeElements(n, "positions", te, {te(s[0]), te(s[2])},
                                [&](const Index& i) { return t(Num(0)) + i[1]; });
  }
  Expr y = Rotated(n, by_head, n.In(2), n.In(3), positions, interleaved, width);
  return joined ? JoinedHeads(n, y) : y;
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({
      {"GroupQueryAttention", &ConvertGroupQueryAttention, kDomain},
      {"MultiHeadAttention", &ConvertMultiHeadAttention, kDomain},
      {"RotaryEmbedding", &ConvertMicrosoftRotaryEmbedding, kDomain},
  });
}

}  // namespace tvm::frontend::onnx
