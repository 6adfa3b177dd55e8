// SPDX-License-Identifier: Apache-2.0
// Attention by a state that every token changes, and the convolution that comes before it.
#include "frontend/onnx/op/attention.h"
#include "frontend/onnx/op/loop.h"

namespace tvm::frontend::onnx {
namespace {
/// What linear attention reads for every token, (b, h, token, …).
struct LinearTokens {
  Expr query, key, value;
  std::optional<Expr> decay, rate;
  template <class F>
  void Visit(F visit) {
    visit("query", query);
    visit("key", key);
    visit("value", value);
    if (decay) visit("decay", *decay);
    if (rate) visit("rate", *rate);
  }
};
/// Rates (b, s, heads) of which the model does not say whether there is one for all heads.
Expr PerHead(Node& n, const Expr& rates, int64_t heads) {
  Te te(n);
  te::Tensor t = te(rates);
  PrimExpr count = t->shape[2];
  return ComputeElements(
      n, "per_head", te, {t->shape[0], t->shape[1], Num(heads)}, [&](const Index& i) {
        return topi::At(t, {i[0], i[1], tir::Select(equal(count, Num(1)), Num(0), i[2])});
      });
}
/// A state (b, h, k, v) that every token changes and is read from.
Outputs ConvertLinearAttention(Node& n) {
  int64_t q_heads = n.Int("q_num_heads"), kv_heads = n.Int("kv_num_heads");
  std::string rule = n.Str("update_rule", "gated_delta");
  n.Ignore("chunk_size");
  bool gated = rule == "gated" || rule == "gated_delta",
       delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    n.Fail("update_rule to be linear, gated, delta or gated_delta", rule);
  if (kv_heads <= 0 || q_heads % kv_heads)
    n.Fail("q_num_heads a multiple of kv_num_heads", "others");
  DataType t = Node::TypeOf(n.In(0)), real = t == DataType::Float(64) ? t : DataType::Float(32);
  Expr q = n.Cast(ByHeads(n, n.In(0), q_heads), real),
       k = n.Cast(ByHeads(n, n.In(1), kv_heads), real),
       v = n.Cast(ByHeads(n, n.In(2), kv_heads), real);
  double scale = n.Float("scale", 0);
  Dims ks = Node::Shape(k);
  PrimExpr width = Node::Shape(v)[3];
  Expr state = n.Has(3) ? n.Cast(n.In(3), real)
                        : n("zeros", relax::ShapeExpr({ks[0], ks[1], ks[3], width}), real);
  DataType kept = n.Has(3) ? Node::TypeOf(n.In(3)) : t;
  std::optional<Expr> decay, rate;
  if (gated) decay = n("exp", n.Cast(ByHeads(n, n.In(4), kv_heads), real));
  if (!gated && n.Has(4)) n.Input(4);
  if (delta) {
    Expr beta = n.Cast(n.In(5), real);
    PrimExpr count = Node::Shape(beta)[2];
    bool single = IsOne(count);
    if (!AsConstInt(count)) beta = PerHead(n, beta, kv_heads);
    rate = ByHeads(n, beta, single ? 1 : kv_heads);
  }
  if (!delta && n.Has(5)) n.Input(5);
  // Sizes that must agree.
  Dims qs = Node::Shape(q);
  v = n.Fitted(v, {ks[0], ks[1], ks[2], width});
  q = n.Fitted(q, {ks[0], qs[1], ks[2], ks[3]});
  // With token `i`, an integer tensor: the state, and what is read from it, (b, h, v).
  auto turn = [&](const Expr& i, Expr state, const LinearTokens& all) {
    auto token = [&](const Expr& e) { return n("take", e, i, 2); };
    Dims inner = Node::Shape(all.key);
    state = n.Fitted(state, {inner[0], inner[1], inner[3], Node::Shape(all.value)[3]});
    Expr key = n("expand_dims", token(all.key), List({3})),
         value = n("expand_dims", token(all.value), List({2}));
    if (gated) state = n("multiply", state, n("expand_dims", token(*all.decay), List({3})));
    if (delta) {
      Expr guess = n("matmul", Transposed(n, key, {0, 1, 3, 2}), state);
      value =
          n("multiply", n("subtract", value, guess), n("expand_dims", token(*all.rate), List({3})));
    }
    state = n("add", state, n("multiply", key, value));
    Expr heads = q_heads == kv_heads ? state : n("repeat", state, q_heads / kv_heads, 1);
    Expr read = n("matmul", n("expand_dims", token(all.query), List({2})), heads);
    return std::pair(state, n("squeeze", read, List({2})));
  };
  LinearTokens all{q, k, v, decay, rate};
  Expr y;
  if (auto steps = AsConstInt(ks[2]); steps && *steps > 0 && *steps <= kFewTurns) {
    std::vector<Value> outputs;
    for (int64_t i = 0; i < *steps; ++i) {
      auto [next, read] = turn(n.Scalar(static_cast<double>(i), DataType::Int(64)), state, all);
      state = next;
      outputs.emplace_back(read);
    }
    y = StackOf(n, &outputs, 2);
  } else {
    Scope outside;
    outside.outer = n.scope;
    LoopSpec loop;
    all.Visit([&](Name name, const Expr& e) {
      outside.values[name] = Value(e);
      loop.names.insert(name);
    });
    loop.scope = &outside;
    Value count{Known{{}, DataType::Int(64), {ks[2]}}};
    loop.count = n.importer.TensorOf(&count);
    loop.carried = {Value(state)};
    loop.num_collected = 1;
    loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
      LinearTokens inside = all;
      inside.Visit([&](Name name, Expr& e) { e = scope.Find(name)->expr; });
      auto [next, read] = turn(i, values[0].expr, inside);
      return Turn{{}, {Value(next)}, {Value(read)}};
    };
    std::vector<Value> results = EmitLoop(n, loop);
    state = n.Fitted(results[0].expr, {ks[0], ks[1], ks[3], width});
    y = n.Fitted(Transposed(n, results[1].expr, {1, 2, 0, 3}), {ks[0], qs[1], ks[2], width});
  }
  y = n("multiply", y, PowerOfScale(n, q, scale, 1, real));
  return std::vector<Expr>{n.Cast(JoinedHeads(n, y), t), n.Cast(state, kept)};
}
/// A convolution along time of each channel, with what came before.
Outputs ConvertCausalConvWithState(Node& n) {
  Expr x = n.In(0), w = n.In(1);
  std::string activation = n.Str("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    n.Fail("activation to be none, silu or swish", activation);
  Dims s = Node::Shape(x);
  PrimExpr taps = Node::Shape(w)[2], before = n.Simplify(taps - Num(1));
  w = n.Fitted(w, {s[1], Num(1), taps});
  Expr past = n.Has(3) ? n.Fitted(n.In(3), {s[0], s[1], before})
                       : n("zeros", relax::ShapeExpr({s[0], s[1], before}), Node::TypeOf(x));
  Expr all = Concatenated(n, {past, x}, 2), y;
  if (auto channels = AsConstInt(s[1]); channels && AsConstInt(taps)) {
    y = n("nn.conv1d", all, w, 1, 0, 1, *channels);
  } else {
    Te te(n);
    te::Tensor t = te(all), weight = te(w);
    DataType exact = t->dtype.bits() == 16 ? DataType::Float(32) : t->dtype;
    auto element = [&](const Index& i) {
      te::IterVar k = topi::Along(weight->shape[2], "k");
      PrimExpr product = tvm::cast(exact, t(i[0], i[1], i[2] + k->var)) *
                         tvm::cast(exact, weight(i[1], Num(0), k->var));
      return te::sum(product, {k});
    };
    y = n.Cast(
        te.Done("causal_conv", topi::Compute(te(s), element, "causal_conv", topi::kCommReduce)),
        t->dtype);
  }
  if (n.Has(2)) y = n("add", y, n.Reshape(n.Fitted(n.In(2), {s[1]}), {s[1], Num(1)}));
  if (activation != "none") y = n("nn.silu", y);
  Expr present = n("strided_slice", all, List({2}), Dims{s[2]}, Dims{n.Simplify(s[2] + before)},
                   Dims{Num(1)}, true);
  return std::vector<Expr>{y, present};
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"CausalConvWithState", &ConvertCausalConvWithState},
      {"LinearAttention", &ConvertLinearAttention},
  });
}

}  // namespace tvm::frontend::onnx
