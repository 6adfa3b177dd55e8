// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(q · kᵀ · scale + bias) · v, of heads side by side; 0 for queries that see no
// key.
#include "topi/nn/attention.h"

#include <cmath>

#include "topi/reduce.h"
#include "tvm/topi/create.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/product.h"
#include "tvm/topi/reduction.h"
#include "tvm/topi/transform.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
/// (b, s, h, d) as (b·h, s, d).
Tensor ByHead(const Tensor& t) {
  Tensor turned = transpose(t, Any(Array<Any>{0, 2, 1, 3}));
  return reshape(turned, {Simplified(t->shape[0] * t->shape[2]), t->shape[1], t->shape[3]});
}
/// What scores are shifted by before exp: the largest one, also where that is -inf.
PrimExpr Shift(const PrimExpr& top) { return tvm::max(top, min_value(top.dtype())); }
/// Weights by their sum, which is 0 for a query that sees no key: then they stay 0.
Tensor Normalized(const Tensor& e, const Tensor& total, DataType dtype) {
  return Compute(
      e->shape,
      [&](const Index& i) {
        PrimExpr sum = At(total, {i[0], i[1], MakeZero(i[2].dtype())});
        PrimExpr by = Select(equal(sum, MakeZero(sum.dtype())), MakeConst(sum.dtype(), 1), sum);
        return cast(dtype, div(At(e, i), by));
      },
      "weights");
}
/// The softmax of what the mask leaves of the scores; zeros where that is nothing, or all -inf.
Tensor WeightsOf(const Tensor& p, const Mask& mask) {
  const PrimExpr &queries = p->shape[1], &keys = p->shape[2];
  // Sums of many numbers below 32 bits would stand still.
  DataType t = p->dtype.bits() < 32 ? DataType::Float(32) : p->dtype;
  bool is_masked = mask.causal || mask.window;
  auto kept = [&](const Index& i, const PrimExpr& value, const PrimExpr& otherwise) -> PrimExpr {
    return is_masked ? Select(mask.Allows(i[1], i[2], queries, keys), value, otherwise) : value;
  };
  Tensor counted = p;
  if (is_masked || p->dtype != t) {
    counted = Compute(
        p->shape, [&](const Index& i) { return kept(i, cast(t, At(p, i)), min_value(t)); },
        "counted");
  }
  Tensor top = max(counted, Any(2), true);
  Tensor e = Compute(
      p->shape,
      [&](const Index& i) {
        PrimExpr most = Shift(At(top, {i[0], i[1], MakeZero(i[2].dtype())}));
        return kept(i, tvm::exp(cast(t, At(p, i)) - most), MakeZero(t));
      },
      "powers");
  return Normalized(e, sum(e, Any(2), true), p->dtype);
}
Tensor AttentionOf(const char* op, const Tensor& query, const Tensor& key, const Tensor& value,
                   const Optional<Tensor>& bias, Optional<double> scale,
                   const Optional<String>& causal_mask, Optional<int64_t> window_size,
                   bool zero_nan) {
  for (const Tensor& t : {query, key, value}) CheckRank(op, "(batch, sequence, heads, size)", t, 4);
  const PrimExpr &b = query->shape[0], &s = query->shape[1], &h = query->shape[2],
                 &d = query->shape[3], &keys = key->shape[1], &out = value->shape[3];
  for (const Tensor& t : {key, value}) {
    auto have = AsConstInt(t->shape[2]), want = AsConstInt(h);
    if (have && want && (*have == 0 || *want % *have != 0))
      Complain(op, "heads of queries that are a multiple of those of keys", Text(t->shape));
  }
  Mask mask;
  if (causal_mask) {
    if (*causal_mask != "TopLeft" && *causal_mask != "BottomRight")
      Complain(op, "causal_mask \"TopLeft\" or \"BottomRight\"",
               '"' + std::string(*causal_mask) + '"');
    mask.causal = true;
    mask.from_end = *causal_mask == "BottomRight";
  }
  if (window_size) mask.window = window_size.value();
  if (auto one = AttentionInOneKernel({query, key, value, bias, scale, mask, zero_nan}))
    return *one;
  auto same_heads = [&](const Tensor& t) {  // heads of keys that several heads of queries share
    const PrimExpr& heads = t->shape[2];
    if (SameDim(heads, h)) return t;
    Shape shape = t->shape;
    shape.Set(2, h);
    auto element = [&](const Index& i) {
      return t(i[0], i[1], floordiv(i[2], floordiv(h, heads)), i[3]);
    };
    return Compute(shape, element, "T_repeat", kBroadcast);
  };
  Tensor q = ByHead(query), k = ByHead(same_heads(key)), v = ByHead(same_heads(value));
  Tensor p = batch_matmul(q, k, std::nullopt, false, true);
  DataType t = p->dtype;
  if (scale) {
    p = Of(multiply, p, Operand(MakeConst(t, scale.value())));
  } else {
    auto size = AsConstInt(d);
    PrimExpr root =
        size ? MakeConst(t, std::sqrt(static_cast<double>(*size))) : tvm::sqrt(tvm::cast(t, d));
    p = Of(divide, p, Operand(root));
  }
  if (bias) {
    Shape apart = {b, h, s, keys}, together = p->shape;
    p = reshape(Of(add, reshape(p, apart), Operand(*bias)), together);
  }
  // Without a mask each query sees all keys.
  Tensor weights = bias || mask.causal || mask.window ? WeightsOf(p, mask) : softmax(p, -1);
  if (zero_nan) {
    auto element = [&](const Index& i) {
      PrimExpr weight = At(weights, i);
      return Select(tvm::isnan(weight), MakeZero(weight.dtype()), weight);
    };
    weights = Compute(weights->shape, element, "zero_nan");
  }
  Tensor result = batch_matmul(weights, v, std::nullopt, false, false);
  return transpose(reshape(result, {b, h, s, out}), Any(Array<Any>{0, 2, 1, 3}));
}
Tensor Attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const Optional<Tensor>& bias, Optional<double> scale, Optional<String> causal_mask,
                 Optional<int64_t> window_size, bool zero_nan) {
  return AttentionOf("attention", query, key, value, bias, scale, causal_mask, window_size,
                     zero_nan);
}
/// Sequences packed one after another: sequence i is rows seqstart[i] to seqstart[i + 1].
Tensor AttentionVarLen(const Tensor& queries, const Tensor& keys, const Tensor& values,
                       const Tensor& seqstart_q, const Tensor& seqstart_k, Optional<double> scale,
                       Optional<String> causal_mask) {
  constexpr const char* kOp = "attention_var_len";
  for (const Tensor& t : {queries, keys, values}) CheckRank(kOp, "(1, rows, heads, size)", t, 4);
  const PrimExpr &rows = queries->shape[1], &h = queries->shape[2];
  if (DifferentDim(h, keys->shape[2])) Complain(kOp, "as many heads of keys", Text(keys->shape));
  DataType t = DataType::Int(32);
  // For every row of queries: where its sequence begins, and where its keys do and end. Starts only
  // grow: the last sequence that has begun is the one with the largest.
  auto bound = [&](const Tensor& starts, int64_t after, const char* name) {
    const PrimExpr& ends = seqstart_q->shape[0];
    IterVar n = Along(Simplified(ends - MakeConst(ends.dtype(), 1)), "n");
    auto element = [&](const Index& i) {
      PrimExpr begins = tvm::cast(i[0].dtype(), seqstart_q(n->var)) <= i[0];
      PrimExpr start = tvm::cast(t, starts(n->var + MakeConst(ends.dtype(), after)));
      return te::max(Select(begins, start, MakeZero(t)), {n});
    };
    return Compute({rows}, element, name, kCommReduce);
  };
  Tensor query_begin = bound(seqstart_q, 0, "query_begin"),
         query_end = bound(seqstart_q, 1, "query_end");
  Tensor key_begin = bound(seqstart_k, 0, "key_begin"), key_end = bound(seqstart_k, 1, "key_end");
  Tensor q = ByHead(queries), k = ByHead(keys), v = ByHead(values);
  Tensor p = batch_matmul(q, k, std::nullopt, false, true);
  auto size = AsConstInt(queries->shape[3]);
  PrimExpr factor = scale  ? MakeConst(p->dtype, scale.value())
                    : size ? MakeConst(p->dtype, 1 / std::sqrt(static_cast<double>(*size)))
                           : tvm::rsqrt(tvm::cast(p->dtype, queries->shape[3]));
  bool causal = causal_mask.has_value();
  bool from_end = causal && *causal_mask == "BottomRight";
  auto allowed = [&](const Index& i) {
    PrimExpr row = tvm::cast(t, i[1]), key = tvm::cast(t, i[2]);
    PrimExpr inside = key_begin(i[1]) <= key && key < key_end(i[1]);
    if (!causal) return inside;
    PrimExpr place = row - query_begin(i[1]) + key_begin(i[1]);
    if (from_end)
      place = place + (key_end(i[1]) - key_begin(i[1])) - (query_end(i[1]) - query_begin(i[1]));
    return inside && key <= place;
  };
  Tensor scores = Compute(
      p->shape,
      [&](const Index& i) { return Select(allowed(i), At(p, i) * factor, min_value(p->dtype)); },
      "masked_scores");
  Tensor top = max(scores, Any(2), true);
  Tensor e = Compute(
      p->shape,
      [&](const Index& i) {
        PrimExpr zero = MakeZero(i[2].dtype());
        PrimExpr value = tvm::exp(At(scores, i) - top(i[0], i[1], zero));
        return Select(allowed(i), value, MakeZero(p->dtype));
      },
      "masked_exp");
  Tensor total = sum(e, Any(2), true);
  Tensor weights = Normalized(e, total, p->dtype);
  Tensor result = batch_matmul(weights, v, std::nullopt, false, false);
  Shape apart = {queries->shape[0], h, rows, values->shape[3]};
  return transpose(reshape(result, apart), Any(Array<Any>{0, 2, 1, 3}));
}

TVM_REGISTER() {
  Def("topi.nn.attention", &Attention,
      "softmax(query · keyᵀ · scale + bias) · value, of (batch, sequence, heads, size); 0 for a "
      "query that sees no key, with zero_nan also for one whose weights are NaN.",
      Arg("query"), Arg("key"), Arg("value"), Arg("bias", nullptr), Arg("scale", nullptr),
      Arg("causal_mask", nullptr), Arg("window_size", nullptr), Arg("zero_nan", false));
  Def("topi.nn.attention_var_len", &AttentionVarLen,
      "Attention within sequences that are packed one after another.", Arg("queries"), Arg("keys"),
      Arg("values"), Arg("seqstart_q"), Arg("seqstart_k"), Arg("scale", nullptr),
      Arg("causal_mask", nullptr));
}
}  // namespace
}  // namespace tvm::topi::nn
