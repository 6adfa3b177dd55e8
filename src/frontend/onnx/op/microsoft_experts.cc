// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of the domain com.microsoft: each token goes through the few layers that a
// router chose for it. Only what those weights say is computed, from the weights as they are
// stored.
#include "frontend/onnx/op/op.h"
#include "frontend/onnx/op/packed.h"

namespace tvm::frontend::onnx {
namespace {
/// The experts of each token, (tokens, k), and how much each of them counts.
struct Routes {
  Expr experts, shares;
};
/// One of the products of an expert: its inputs, and how its weights (experts, rows, columns) are
/// stored. Bits of 0: as numbers.
struct Layer {
  size_t weight, scale, bias, zero;
  int64_t bits = 0, block = 0;
};

/// The rows of the weights that were chosen times the tokens: x is (tokens, columns), or (tokens,
/// k, columns) where the choices have different ones. The result is (tokens, k, rows).
Expr ChosenProduct(Node& n, const Expr& x, const Expr& experts, const Layer& layer) {
  Te te(n);
  te::Tensor data = te(x), chosen = te(experts), weight = te(n.In(layer.weight));
  std::optional<te::Tensor> scale, bias, zero;
  if (weight->shape.size() != 3)
    n.Fail("weights of three axes", std::to_string(weight->shape.size()));
  int64_t per_byte = layer.bits ? 8 / layer.bits : 1;
  if (layer.bits) {
    if (!n.Has(layer.scale)) n.Fail("scales of quantised weights", "none");
    scale = te(n.In(layer.scale));
    if (n.Has(layer.zero)) zero = te(n.In(layer.zero));
  }
  if (n.Has(layer.bias)) bias = te(n.In(layer.bias));
  PrimExpr columns = n.Simplify(weight->shape[2] * Num(per_byte));
  if (!n.importer.builder()->analyzer()->CanProveEqual(columns, data->shape.back()))
    n.Fail("weights for as many numbers as a token has", "others");
  tir::IterVar byte = te::reduce_axis(Range::FromMinExtent(Num(0), weight->shape[2]), "byte"),
               place = te::reduce_axis(Range::FromMinExtent(Num(0), Num(per_byte)), "place");
  bool by_choice = data->shape.size() == 3;
  Dims shape{chosen->shape[0], chosen->shape[1], weight->shape[1]};
  Expr sum = ComputeElements(n, "chosen_product", te, shape, [&](const Index& i) {
    PrimExpr expert = chosen(i[0], i[1]), at = byte->var * Num(per_byte) + place->var;
    PrimExpr w = weight(expert, i[2], byte->var);
    if (layer.bits) {
      Index group{expert, i[2]};
      if (layer.block) group.push_back(floordiv(at, Num(layer.block)));
      Index in_bytes = group;
      in_bytes.back() = floordiv(group.back(), Num(per_byte));
      PrimExpr offset = Num(kSingle, static_cast<double>(int64_t{1} << (layer.bits - 1)));
      if (zero)
        offset =
            BitsAt(topi::At(*zero, in_bytes), floormod(group.back(), Num(per_byte)), layer.bits);
      w = (BitsAt(w, place->var, layer.bits) - offset) *
          tvm::cast(kSingle, topi::At(*scale, group));
    }
    PrimExpr x = by_choice ? data(i[0], i[1], at) : data(i[0], at);
    return te::sum(tvm::cast(kSingle, x) * tvm::cast(kSingle, w), {byte, place});
  });
  if (!bias) return sum;
  return n("add", sum, n.Cast(n("take", n.In(layer.bias), experts, 0), kSingle));
}
/// What becomes of the first product, maybe with the third.
Expr ExpertActivation(Node& n, const Expr& h, const std::optional<Expr>& third) {
  std::string kind = n.Str("activation_type", "relu");
  double alpha = n.Float("activation_alpha", 1), beta = n.Float("activation_beta", 0);
  int64_t fusion = n.Int("swiglu_fusion", 0);
  std::optional<double> limit;
  if (n.HasAttr("swiglu_limit")) limit = n.Float("swiglu_limit");
  if (kind != "swiglu") {
    Expr y = kind == "relu"   ? n("nn.relu", h)
             : kind == "gelu" ? n("nn.gelu_tanh", h)
             : kind == "silu" ? n("nn.silu", h)
                              : h;
    if (y.same_as(h) && kind != "identity")
      n.Fail("activation_type to be relu, gelu, silu, swiglu or identity", kind);
    return third ? n("multiply", y, *third) : y;
  }
  if (fusion < 0 || fusion > 2) n.Fail("swiglu_fusion in [0, 2]", std::to_string(fusion));
  if (third.has_value() != (fusion == 0))
    n.Fail("FC3 beside swiglu_fusion = 0 alone", third ? "FC3 beside another" : "none");
  Expr gate = h, linear = third.value_or(h);
  if (fusion) {
    int64_t size = n.StaticDim(h, 2) / 2, step = fusion == 1 ? 2 : 1;
    auto part = [&](int64_t begin) {
      return n("strided_slice", h, List({2}), Dims{Num(begin)}, Dims{Num(begin + size * step)},
               Dims{Num(step)}, false);
    };
    gate = part(0);
    linear = part(fusion == 1 ? 1 : size);
  }
  Te te(n);
  te::Tensor g = te(gate), l = te(linear);
  return ComputeElements(n, "swiglu", te, g->shape, [&](const Index& i) {
    PrimExpr a = topi::At(g, i), b = topi::At(l, i);
    if (limit) {
      a = min(a, Num(kSingle, *limit));
      b = max(min(b, Num(kSingle, *limit)), Num(kSingle, -*limit));
    }
    return a * sigmoid(Num(kSingle, alpha) * a) * (b + Num(kSingle, beta));
  });
}
/// The tokens through the layers of their experts, in the shape of the input.
Outputs MixExperts(Node& n, const Expr& tokens, const Routes& routes, const Layer (&layers)[3]) {
  Expr h = ChosenProduct(n, tokens, routes.experts, layers[0]);
  std::optional<Expr> third;
  if (n.Has(layers[2].weight)) third = ChosenProduct(n, tokens, routes.experts, layers[2]);
  Expr y = ChosenProduct(n, ExpertActivation(n, h, third), routes.experts, layers[1]);
  y = n("sum", n("multiply", y, n("expand_dims", routes.shares, List({2}))), List({1}), false);
  return n.Cast(n.Reshape(y, Node::Shape(n.In(0))), Node::TypeOf(n.In(0)));
}
Expr TokensOf(Node& n) {
  Dims s = Node::Shape(n.In(0));
  if (s.size() != 2 && s.size() != 3)
    n.Fail("an input of two or three axes", std::to_string(s.size()));
  return s.size() == 2 ? n.In(0) : n.Reshape(n.In(0), {n.Simplify(s[0] * s[1]), s[2]});
}
/// The k experts of the highest scores.
Routes ChosenBy(Node& n, const Expr& scores, const Expr& tokens) {
  int64_t k = n.Int("k", 1), experts = n.StaticDim(scores, 1);
  if (k < 1 || k > experts) n.Fail("k in [1, " + std::to_string(experts) + "]", std::to_string(k));
  if (n.Int("use_sparse_mixer", 0)) n.Unsupported("the sparse mixer");
  Expr fitted = n.Fitted(scores, {Node::Shape(tokens)[0], Num(experts)});
  Expr both = n("topk", n.Cast(fitted, kSingle), k, 1, "both", true, DataType::Int(64));
  return {n.Item(both, 1), n.Item(both, 0)};
}
Expr Normalized(Node& n, const Expr& shares) {
  return n("divide", shares, n("sum", shares, List({1}), true));
}
Outputs ConvertMoE(Node& n) {
  Expr tokens = TokensOf(n);
  Routes routes = ChosenBy(n, n("nn.softmax", n.Cast(n.In(1), kSingle), -1), tokens);
  if (n.Int("normalize_routing_weights", 0)) routes.shares = Normalized(n, routes.shares);
  const size_t none = SIZE_MAX;
  return MixExperts(n, tokens, routes,
                    {{2, none, 3, none}, {4, none, 5, none}, {6, none, 7, none}});
}
/// Without weights of their own for mixing, the scores of those that were chosen are made to sum 1.
Outputs ConvertQMoE(Node& n) {
  if (std::string kind = n.Str("quant_type", "int"); kind != "int")
    n.Unsupported("quant_type " + kind);
  if (n.Int("weights_prepacked", -1) == 1) n.Unsupported("weights in the order of one machine");
  n.Ignore("accuracy_level");
  int64_t bits = n.Int("expert_weight_bits", 4), block = n.Int("block_size", 0);
  Layer layers[] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};
  const char* names[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                         "fc3_expert_weight_bits"};
  for (size_t i = 0; i < 3; ++i) {
    layers[i].bits = n.Int(names[i], bits);
    layers[i].block = std::max<int64_t>(block, 0);
    if (int64_t b = layers[i].bits; b != 2 && b != 4 && b != 8)
      n.Fail("weights of 2, 4 or 8 bits", std::to_string(b));
  }
  Expr tokens = TokensOf(n);
  Routes routes = ChosenBy(n, n.In(1), tokens);
  bool normalizes = n.Int("normalize_routing_weights", 0) != 0;
  if (n.Has(14)) {
    routes.shares = n("gather_elements", n.Cast(n.In(14), kSingle), routes.experts, 1);
    if (normalizes) routes.shares = Normalized(n, routes.shares);
  } else {
    routes.shares = n("nn.softmax", routes.shares, -1);
  }
  return MixExperts(n, tokens, routes, layers);
}
}  // namespace

TVM_REGISTER() {
  constexpr const char* kDomain = "com.microsoft";
  AddConverters({{"MoE", &ConvertMoE, kDomain}, {"QMoE", &ConvertQMoE, kDomain}});
}

}  // namespace tvm::frontend::onnx
