// SPDX-License-Identifier: Apache-2.0
// Products of matrices, attention, embeddings, losses.
#include <cmath>

#include "attention.h"
#include "converter.h"
#include "network.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::torch {

Expr MatMul(Conversion& c, const Expr& a, const Expr& b) {
  DataType t = TypeOf(a);
  // Half precision is summed up in single precision.
  DataType sum = topi::SumType(t);
  return c.Cast(c.Emit("matmul", a, b, sum), t);
}

namespace {

/// Of bytes, added up as int32.
Any ProductOfBytes(Conversion& c) {
  return c.Emit("matmul", c.Tensor(0), c.Tensor(1), DataType::Int(32));
}
Any Product(Conversion& c) { return MatMul(c, c.Tensor(0), c.Tensor(1)); }

/// beta * bias + alpha * product; a factor of 0 drops its side, whatever is in it.
Expr Combine(Conversion& c, const Expr& bias, const Any& beta, const Any& alpha,
             const std::function<Expr()>& product) {
  DataType t = TypeOf(bias);
  auto number = [](const Any& value) {
    auto real = value.try_cast<double>();
    return real ? *real : std::nan("");
  };
  auto scaled = [&](const Expr& x, const Any& factor) {
    return number(factor) == 1 ? x : c.Emit("multiply", x, c.As(factor, t));
  };
  if (number(alpha) == 0 && number(beta) == 0) {
    return c.Emit("multiply", c.Emit("zeros_like", product()), c.Const(0.0, t));
  }
  if (number(beta) == 0) return scaled(product(), alpha);
  Expr result = scaled(product(), alpha);
  if (number(alpha) == 0) return c.BroadcastTo(scaled(bias, beta), ShapeOf(result));
  Expr scaled_bias = scaled(bias, beta);
  return c.Emit("add", scaled_bias, result);
}
Any AddMM(Conversion& c) {
  Expr a = c.Tensor(1), b = c.Tensor(2);
  return Combine(c, c.Tensor(0), c[3], c[4], [&] { return MatMul(c, a, b); });
}
/// The sum over a batch of products.
Any AddBMM(Conversion& c) {
  Expr a = c.Tensor(1), b = c.Tensor(2);
  return Combine(c, c.Tensor(0), c[3], c[4],
                 [&] { return c.Emit("sum", MatMul(c, a, b), Array<Any>{0}); });
}
Any AddOuter(Conversion& c) {
  Expr a = c.Tensor(1), b = c.Tensor(2);
  return Combine(c, c.Tensor(0), c[3], c[4], [&] { return c.Emit("outer", a, b); });
}
Any Linear(Conversion& c) {
  Expr x = c.Tensor(0), weight = c.Tensor(1);
  if (RankOf(weight) > 1) weight = c.Emit("permute_dims", weight, nullptr);
  Expr product = MatMul(c, x, weight);
  return c.Given(2) ? c.Emit("add", product, c.Tensor(2)) : product;
}
Any Outer(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  Expr a = c.As(c[0], t);
  return c.Emit("outer", a, c.As(c[1], t));
}
Any Einsum(Conversion& c) {
  std::string equation = c.Text(0);
  std::erase(equation, ' ');
  return c.Emit("einsum", relax::Tuple(c.Tensors(1)), String(equation));
}

// ---- attention ----------------------------------------------------------------------------------
/// A mask as what is added to the scores, of rank 4.
Expr MaskToBias(Conversion& c, Expr mask, DataType t) {
  if (TypeOf(mask).is_bool()) {
    mask = c.Emit("where", mask, c.Const(0.0, t),
                  c.Const(-std::numeric_limits<double>::infinity(), t));
  }
  mask = c.Cast(mask, t);
  Dims dims = ShapeOf(mask);
  while (dims.size() < 4) dims.insert(dims.begin(), IntImm::Int64(1));
  return c.Reshape(mask, dims);
}
/// softmax(q kᵀ · scale + mask) v of (…, heads, length, size).
Expr Attention(Conversion& c, Expr q, Expr k, Expr v, const Optional<Expr>& mask, bool is_causal,
               const Any& scale) {
  int64_t rank = RankOf(q);
  Any causal = is_causal ? Any(String("TopLeft")) : Any(nullptr);
  Any factor = scale == nullptr ? Any(nullptr) : Any(scale.cast<double>());
  Any bias = nullptr;
  if (rank == 2 || rank == 3) {
    // (length, size), or a batch of them: one head.
    Array<Any> front = rank == 2 ? Array<Any>{0} : Array<Any>{};
    std::vector<Expr> spread = {q, k, v};
    if (rank == 2) {
      for (Expr& x : spread) x = c.Emit("expand_dims", x, 0);
      for (Expr& x : spread) x = c.Emit("expand_dims", x, 1);
      for (Expr& x : spread) x = c.Permute(x, {0, 2, 1, 3});
    } else {
      for (Expr& x : spread) x = c.Emit("expand_dims", x, 2);
    }
    if (mask.has_value()) {
      Expr given = *mask;
      if (RankOf(given) == 3) given = c.Emit("expand_dims", given, 1);
      bias = MaskToBias(c, given, TypeOf(q));
    }
    Expr out = c.Emit("nn.attention", spread[0], spread[1], spread[2], bias, factor, causal);
    return c.Emit("squeeze", out, rank == 2 ? Array<Any>{0, 2} : Array<Any>{2});
  }
  if (rank != 4) {
    TVM_REFUSE(c, ValueError) << "expected tensors of rank 2, 3 or 4, got rank " << rank;
  }
  q = c.Permute(q, {0, 2, 1, 3});
  k = c.Permute(k, {0, 2, 1, 3});
  v = c.Permute(v, {0, 2, 1, 3});
  if (mask.has_value()) bias = MaskToBias(c, *mask, TypeOf(q));
  Expr out = c.Emit("nn.attention", q, k, v, bias, factor, causal);
  return c.Permute(out, {0, 2, 1, 3});
}
}  // namespace
double AttentionScale(const Expr& q, const Any& scale) {
  if (scale != nullptr) return scale.cast<double>();
  auto size = AsConstInt(ShapeOf(q)[RankOf(q) - 1]);
  if (!size) TVM_FFI_THROW(NotImplementedError) << "attention: expected a constant size of heads";
  return 1 / std::sqrt(static_cast<double>(*size));
}
Expr AttentionScores(Conversion& c, const Expr& q, const Expr& k, const Optional<Expr>& mask,
                     bool is_causal, const Any& scale) {
  DataType t = TypeOf(q);
  Expr scores = MatMul(c, q, c.Permute(k, {0, 1, 3, 2}));
  scores = c.Emit("multiply", scores, c.Const(AttentionScale(q, scale), t));
  if (mask.has_value()) scores = c.Emit("add", scores, MaskToBias(c, *mask, t));
  if (!is_causal) return scores;
  Dims dims = ShapeOf(scores);
  Expr row = c.Emit("expand_dims", c.Arange(dims[2]), 1), column = c.Arange(dims[3]);
  Expr none = c.Const(-std::numeric_limits<double>::infinity(), t);
  return c.Emit("where", c.Emit("less_equal", column, row), scores, none);
}
namespace {
Any ScaledDotProductAttention(Conversion& c) {
  if (c.Number(4) != 0) {
    TVM_REFUSE(c, AssertionError) << "dropout_p: expected 0, got " << c.Number(4);
  }
  return Attention(c, c.Tensor(0), c.Tensor(1), c.Tensor(2), c.OptionalTensor(3), c.Flag(5), c[6]);
}
/// The kernel of PyTorch's CPU: also the logarithm of the softmax's denominator.
Any FlashAttention(Conversion& c) {
  if (c.Used(1)) {
    DataType t = TypeOf(c.Tensor(0));
    Expr scores =
        AttentionScores(c, c.Tensor(0), c.Tensor(1), c.OptionalTensor(5), c.Flag(4), c[6]);
    Expr top = c.Emit("max", scores, Array<Any>{-1}, true);
    Expr powers = c.Emit("exp", c.Emit("subtract", scores, top));
    Expr sum = c.Emit("sum", powers, Array<Any>{-1}, true);
    Expr out = MatMul(c, c.Emit("divide", powers, sum), c.Tensor(2));
    Expr logs = c.Emit("squeeze", c.Emit("add", top, c.Emit("log", sum)), Array<Any>{-1});
    return Array<Any>{out, t.bits() < 32 ? c.Cast(logs, DataType::Float(32)) : logs};
  }
  Expr out =
      Attention(c, c.Tensor(0), c.Tensor(1), c.Tensor(2), c.OptionalTensor(5), c.Flag(4), c[6]);
  return Array<Any>{out, nullptr};
}

// ---- embeddings ---------------------------------------------------------------------------------
Any Embedding(Conversion& c) {
  Expr weight = c.Tensor(0);
  Expr indices = c.Emit("astype", c.Tensor(1), DataType::Int(32));
  if (RankOf(indices) == 1) return c.Emit("take", weight, indices, 0);
  Dims dims = ShapeOf(indices);
  Expr flat = c.Emit("reshape", indices, Array<Any>{-1});
  Expr rows = c.Emit("take", weight, flat, 0);
  dims.push_back(ShapeOf(weight)[1]);
  return c.Emit("reshape", rows, dims);
}

// ---- losses -------------------------------------------------------------------------------------
constexpr const char* kReductions[] = {"none", "mean", "sum"};
const char* Reduction(const Conversion& c, size_t i) {
  int64_t kind = c.Int(i);
  if (kind < 0 || kind > 2) {
    TVM_REFUSE(c, ValueError) << "reduction: expected 0, 1 or 2, got " << kind;
  }
  return kReductions[kind];
}
Expr NllLoss(Conversion& c, const Expr& log_probs, size_t target, size_t weight, size_t reduction,
             size_t ignore_index) {
  Any weights = c.Given(weight) ? c[weight] : Any(nullptr);
  return c.Emit("nn.nll_loss", log_probs, c.Tensor(target), weights,
                String(Reduction(c, reduction)), c.Int(ignore_index));
}
Any CrossEntropy(Conversion& c) {
  Expr x = c.Tensor(0);
  if (!IsIntegral(TypeOf(c.Tensor(1))) || c.Number(5) != 0) {
    TVM_REFUSE(c, NotImplementedError)
        << "expected targets that are classes, and no label smoothing; use the decomposed program";
  }
  return NllLoss(c, c.Emit("nn.log_softmax", x, RankOf(x) > 2 ? 1 : -1), 1, 2, 3, 4);
}
Any NegativeLogLikelihood(Conversion& c) { return NllLoss(c, c.Tensor(0), 1, 2, 3, 4); }
/// The loss and the weight that was summed up.
Any NllLossForward(Conversion& c) {
  Expr loss = NllLoss(c, c.Tensor(0), 1, 2, 3, 4);
  if (!c.Used(1)) return Array<Any>{loss, nullptr};
  DataType t = TypeOf(loss);
  Expr target = c.Tensor(1);
  Expr counted = c.Emit("not_equal", target, c.As(c.Int(4), TypeOf(target)));
  Expr weights = c.Cast(counted, t);
  if (c.Given(2)) {
    Expr inside = c.Emit("where", counted, target, c.As(0, TypeOf(target)));
    weights = c.Emit("multiply", weights, c.Emit("take", c.Tensor(2), inside, 0));
  }
  return Array<Any>{loss, c.Emit("sum", weights)};
}

TVM_REGISTER() {
  Converter("matmul.default mv.default dot.default inner.default", "self, other", &Product);
  Converter("mm.default bmm.default _sparse_mm.default", "self, mat2", &Product);
  Converter("_int_mm.default", "self, mat2", &ProductOfBytes);
  Converter("addmm.default _sparse_addmm.default", "self, mat1, mat2, beta=1, alpha=1", &AddMM);
  Converter("baddbmm.default", "self, batch1, batch2, beta=1, alpha=1", &AddMM);
  Converter("addbmm.default", "self, batch1, batch2, beta=1, alpha=1", &AddBMM);
  Converter("addmv.default", "self, mat, vec, beta=1, alpha=1", &AddMM);
  Converter("addr.default", "self, vec1, vec2, beta=1, alpha=1", &AddOuter);
  Converter("linear.default", "input, weight, bias=None", &Linear);
  Converter("outer.default ger.default", "self, vec2", &Outer);
  Converter("einsum.default", "equation, tensors, path=None", &Einsum);
  Converter("scaled_dot_product_attention.default",
            "query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, "
            "enable_gqa=False",
            &ScaledDotProductAttention);
  Converter("_scaled_dot_product_flash_attention_for_cpu.default",
            "query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None",
            &FlashAttention);
  Converter("embedding.default",
            "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False", &Embedding);
  Converter("cross_entropy_loss.default",
            "self, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0",
            &CrossEntropy);
  Converter("nll_loss.default nll_loss2d.default nll_loss_nd.default",
            "self, target, weight=None, reduction=1, ignore_index=-100", &NegativeLogLikelihood);
  Converter("nll_loss_forward.default nll_loss2d_forward.default",
            "self, target, weight, reduction, ignore_index", &NllLossForward);
}

}  // namespace
}  // namespace tvm::frontend::torch
