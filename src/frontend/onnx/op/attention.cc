// SPDX-License-Identifier: Apache-2.0
// Attention and what belongs to it.
#include "frontend/onnx/op/attention.h"

#include <cmath>
#include <limits>

namespace tvm::frontend::onnx {
namespace {
Expr RepeatedHeads(Node& n, const Expr& x, const Expr& like) {
  PrimExpr have = Node::Shape(x)[1], want = Node::Shape(like)[1];
  if (n.importer.builder()->analyzer()->CanProveEqual(have, want)) return x;
  auto few = AsConstInt(have), many = AsConstInt(want);
  if (few && many) {
    if (*few == 0 || *many % *few) n.Fail("query heads to be a multiple of key heads", "others");
    return n("repeat", x, *many / *few, 1);
  }
  Te te(n);
  te::Tensor t = te(x);
  PrimExpr group = n.Simplify(floordiv(te(want), max(te(have), Num(1))));
  Dims shape = t->shape;
  shape.Set(1, te(want));
  return ComputeElements(n, "repeat", te, shape, [&](Index i) {
    i[1] = floordiv(i[1], group);
    return topi::At(t, i);
  });
}
/// What is added to scores: -inf where a query does not see a key. It has an axis of batches or
/// heads where they differ.
Expr MaskOf(Node& n, const Expr& scores, const AttentionOptions& o) {
  Te te(n);
  Dims shape;
  for (const PrimExpr& dim : Node::Shape(scores)) shape.push_back(te(dim));
  const PrimExpr queries = shape[2], keys = shape[3];
  DataType t = Node::TypeOf(scores);
  std::optional<te::Tensor> mask, lengths, starts;
  if (o.mask) mask = te(*o.mask);
  if (o.starts) starts = te(*o.starts);
  if (o.lengths) lengths = te(*o.lengths);
  for (size_t axis = 0; axis < 2; ++axis) {
    size_t missing = mask ? 4 - (*mask)->shape.size() : 4;
    bool differs = axis >= missing && !IsOne((*mask)->shape[axis - missing]);
    if (!differs && (axis == 1 || (!lengths && !starts))) shape.Set(axis, Num(1));
  }
  PrimExpr past = te(o.past), lowest = neg(infinity(t));
  return ComputeElements(n, "mask", te, shape, [&](const Index& i) -> PrimExpr {
    PrimExpr e = MakeZero(t), seen = const_true();
    // With lengths the queries are the last of those keys.
    PrimExpr own = i[2] + (starts ? (*starts)(i[0]) : lengths ? (*lengths)(i[0]) - queries : past);
    if (o.causal) seen = seen && i[3] <= own;
    if (o.left >= 0) seen = seen && i[3] >= own - Num(o.left);
    if (o.right >= 0) seen = seen && i[3] <= own + Num(o.right);
    if (lengths) seen = seen && i[3] < (*lengths)(i[0]);
    if (mask) {
      Index at = topi::BroadcastIndex((*mask)->shape, shape, i);
      // A mask for fewer keys than there are hides the rest.
      PrimExpr last = (*mask)->shape.back(), known = const_true();
      if (!IsOne(last) && !topi::SameDim(last, keys)) known = i[3] < last;
      if ((*mask)->dtype.is_bool()) {
        seen = seen && if_then_else(known, topi::At(*mask, at), const_false());
      } else {
        e = if_then_else(known, tvm::cast(t, topi::At(*mask, at)), lowest);
      }
    }
    return tir::Select(seen, e, lowest);
  });
}
}  // namespace

Expr KeyMask(Node& n, const Expr& mask, const Expr& q, const PrimExpr& keys) {
  const int64_t rank = Node::Rank(mask);
  if (rank < 1 || rank > 3) n.Unsupported("a mask of rank " + std::to_string(rank));
  Te te(n);
  te::Tensor t = te(mask), queries = te(q);
  const PrimExpr batch = queries->shape[0];
  const bool has_starts =
      rank == 1 && n.importer.builder()->analyzer()->CanProveEqual(t->shape[0], batch * Num(2));
  PrimExpr zero = MakeZero(queries->dtype),
           low = MakeConst(queries->dtype, n.Float("mask_filter_value", -10000.0));
  Dims shape{batch, Num(1), rank == 3 ? queries->shape[2] : Num(1), te(keys)};
  return ComputeElements(n, "key_mask", te, shape, [&](const Index& i) -> PrimExpr {
    if (rank > 1) {
      Index at = rank == 2 ? Index{i[0], i[3]} : Index{i[0], i[2], i[3]};
      return tir::Select(topi::At(t, at) > MakeZero(t->dtype), zero, low);
    }
    PrimExpr counts = i[3] < tvm::cast(DataType::Int(64), t(i[0]));
    if (has_starts) counts = counts && i[3] >= tvm::cast(DataType::Int(64), t(batch + i[0]));
    return tir::Select(counts, zero, low);
  });
}
Expr ByHeads(Node& n, const Expr& x, int64_t heads) {
  if (Node::Rank(x) == 4) return x;
  Dims s = Node::Shape(x);
  Expr split = Shaped(n, x, {s[0], s[1], Num(heads), n.Simplify(floordiv(s[2], Num(heads)))});
  return Transposed(n, split, {0, 2, 1, 3});
}
Expr JoinedHeads(Node& n, const Expr& x) {
  Dims s = Node::Shape(x);
  return Shaped(n, Transposed(n, x, {0, 2, 1, 3}), {s[0], s[2], n.Simplify(s[1] * s[3])});
}
AttentionStages Attend(Node& n, const Expr& q, Expr k, Expr v, const AttentionOptions& o) {
  DataType t = Node::TypeOf(q), precise = o.precise.is_void() ? t : o.precise;
  if (t.bits() == 16 && precise == t) precise = DataType::Float(32);
  k = RepeatedHeads(n, k, q);
  v = RepeatedHeads(n, v, q);
  // Sizes that must agree.
  Dims of_q = Node::Shape(q);
  k = n.Fitted(k, {of_q[0], of_q[1], Node::Shape(k)[2], of_q[3]});
  v = n.Fitted(v, {of_q[0], of_q[1], Node::Shape(k)[2], Node::Shape(v)[3]});
  AttentionStages stages;
  // The root of the scale on both sides keeps products of half precision small.
  Expr root = PowerOfScale(n, q, o.scale, 0.5, t);
  stages.raw =
      n("matmul", n("multiply", q, root), Transposed(n, n("multiply", k, root), {0, 1, 3, 2}));
  stages.capped = stages.raw;
  if (o.softcap > 0) {
    Expr limit = n.Scalar(o.softcap, t);
    stages.capped = n("multiply", n("tanh", n("divide", stages.raw, limit)), limit);
  }
  stages.masked = stages.capped;
  std::optional<Expr> mask;
  if (o.Hides()) {
    mask = MaskOf(n, stages.capped, o);
    stages.masked = n("add", stages.capped, *mask);
  }
  Expr scores = n.Cast(stages.masked, precise);
  Dims dims = Node::Shape(scores), column{dims[0], dims[1], dims[2], Num(1)};
  if (o.sink) {
    Expr sink = n.Reshape(n.Cast(*o.sink, precise), {Num(1), dims[1], Num(1), Num(1)});
    scores = Concatenated(n, {scores, n("broadcast_to", sink, relax::ShapeExpr(column))}, 3);
  }
  Expr weights = n("nn.softmax", scores, -1);
  if (o.sink)
    weights =
        n("strided_slice", weights, List({3}), Dims{Num(0)}, Dims{dims[3]}, Dims{Num(1)}, true);
  if (mask) {
    // A query that sees nothing gives 0, not NaN.
    Expr lowest = n.Scalar(-std::numeric_limits<double>::infinity(), t);
    Expr sees_none = n("equal", n("max", *mask, -1, true), lowest);
    weights = n("where", sees_none, n.Scalar(0, precise), weights);
  }
  stages.weights = n.Cast(weights, t);
  stages.result = n("matmul", stages.weights, v);
  return stages;
}
Expr PowerOfScale(Node& n, const Expr& q, double scale, double power, DataType t) {
  PrimExpr size = Node::Shape(q)[3];
  auto known = AsConstInt(size);
  if (scale != 0) return n.Scalar(std::pow(scale, power), t);
  if (known) return n.Scalar(std::pow(static_cast<double>(*known), -power / 2), t);
  Te te(n);
  PrimExpr real = tvm::cast(DataType::Float(64), te(size));
  PrimExpr value = pow(real, Num(DataType::Float(64), -power / 2));
  return ComputeElements(n, "scale", te, {}, [&](const Index&) { return tvm::cast(t, value); });
}
Expr Behind(Node& n, const Expr& past, const Expr& fresh) {
  Dims like = Node::Shape(fresh);
  like.Set(2, Node::Shape(past)[2]);
  return n("concat", relax::Tuple({n.Fitted(past, like), fresh}), 2);
}
Expr Rotated(Node& n, const Expr& x, const Expr& cosine, const Expr& sine,
             const std::optional<Expr>& positions, bool interleaved, int64_t width) {
  Te te(n);
  te::Tensor t = te(x), cosines = te(cosine), sines = te(sine);
  std::optional<te::Tensor> places;
  if (positions) places = te(n.Cast(*positions, DataType::Int(64)));
  PrimExpr turned = width ? Num(width) : t->shape[3];
  PrimExpr half = topi::Simplified(floordiv(turned, Num(2)));
  return ComputeElements(n, "rotary_embedding", te, t->shape, [&](const Index& i) -> PrimExpr {
    PrimExpr d = i[3];
    PrimExpr pair = interleaved ? floordiv(d, Num(2)) : floormod(d, half);
    PrimExpr is_first = interleaved ? equal(floormod(d, Num(2)), Num(0)) : d < half;
    PrimExpr step = interleaved ? Num(1) : half;
    Index other = i;
    other[3] = tir::Select(is_first, d + step, d - step);
    auto angle = [&](const te::Tensor& cache) {
      return places ? cache((*places)(i[0], i[2]), pair) : cache(i[0], i[2], pair);
    };
    PrimExpr a = topi::At(t, i);
    auto rotated = [&] {
      PrimExpr b = topi::At(t, other), c = angle(cosines), s = angle(sines);
      return tir::Select(is_first, c * a - s * b, c * a + s * b);
    };
    return if_then_else(d < turned, rotated(), a);
  });
}

namespace {
Outputs ConvertAttention(Node& n) {
  bool joined = Node::Rank(n.In(0)) == 3;
  int64_t q_heads = n.Int("q_num_heads", 0), kv_heads = n.Int("kv_num_heads", 0);
  if (joined && (q_heads <= 0 || kv_heads <= 0))
    n.Fail("q_num_heads and kv_num_heads for three axes", "none");
  Expr q = ByHeads(n, n.In(0), q_heads), k = ByHeads(n, n.In(1), kv_heads),
       v = ByHeads(n, n.In(2), kv_heads);
  AttentionOptions o;
  o.causal = n.Int("is_causal", 0) != 0;
  o.left = n.Int("left_window_size", -1);
  o.right = n.Int("right_window_size", -1);
  if (n.Has(3)) o.mask = n.In(3);
  if (n.Has(4) != n.Has(5)) n.Fail("past_key and past_value together", "one of them");
  if (n.Has(4)) {
    o.past = Node::Shape(n.In(4))[2];
    k = Behind(n, n.In(4), k);
    v = Behind(n, n.In(5), v);
  }
  if (n.Has(6)) o.lengths = n.Cast(n.In(6), DataType::Int(64));
  o.scale = n.Float("scale", 0);
  o.softcap = n.Float("softcap", 0);
  if (n.Int("softmax_precision", 0)) o.precise = n.Type("softmax_precision");
  int64_t shown = n.Int("qk_matmul_output_mode", 0);
  AttentionStages stages = Attend(n, q, k, v, o);
  Expr y = joined ? JoinedHeads(n, stages.result) : stages.result;
  const Expr by_mode[] = {stages.raw, stages.capped, stages.masked, stages.weights};
  if (shown < 0 || shown > 3) n.Fail("qk_matmul_output_mode in [0, 3]", std::to_string(shown));
  return std::vector<Expr>{y, k, v, by_mode[shown]};
}
Outputs ConvertRotaryEmbedding(Node& n) {
  Expr x = n.In(0);
  bool joined = Node::Rank(x) == 3, interleaved = n.Int("interleaved", 0) != 0;
  int64_t heads = n.Int("num_heads", 0), width = n.Int("rotary_embedding_dim", 0);
  if (joined && heads <= 0) n.Fail("num_heads for three axes", std::to_string(heads));
  std::optional<Expr> positions;
  if (n.Has(3)) positions = n.In(3);
  Expr y = Rotated(n, ByHeads(n, x, heads), n.In(1), n.In(2), positions, interleaved, width);
  return joined ? JoinedHeads(n, y) : y;
}
/// Attention whose scores and weights graphs of the model change.
Outputs ConvertFlexAttention(Node& n) {
  Expr q = n.In(0), k = RepeatedHeads(n, n.In(1), q), v = RepeatedHeads(n, n.In(2), q);
  DataType t = Node::TypeOf(q);
  double scale = n.Float("scale", 0);
  DataType precise = t == DataType::Float(64) ? t : DataType::Float(32);
  if (n.Int("softmax_precision", 0)) precise = n.Type("softmax_precision");
  auto changed = [&](Name name, Expr e) {
    const Attribute* graph = n.Find(name, Attribute::kGraph);
    if (!graph) return e;
    auto results = n.importer.RunGraph(*graph->graph, {Value(e)}, n.context, n.scope);
    if (results.size() != 1) n.Fail("one output of " + std::string(name), "another number");
    return n.importer.TensorOf(&results[0]);
  };
  Expr scores = n("matmul", n.Cast(q, precise), Transposed(n, n.Cast(k, precise), {0, 1, 3, 2}));
  scores = changed("score_mod", n("multiply", scores, PowerOfScale(n, q, scale, 1, precise)));
  Expr weights = changed("prob_mod", n("nn.softmax", scores, -1));
  return n.Cast(n("matmul", weights, n.Cast(v, precise)), t);
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Attention", &ConvertAttention},
      {"FlexAttention", &ConvertFlexAttention, "ai.onnx.preview"},
      {"RotaryEmbedding", &ConvertRotaryEmbedding},
  });
}

}  // namespace tvm::frontend::onnx
