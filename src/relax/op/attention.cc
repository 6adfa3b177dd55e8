// SPDX-License-Identifier: Apache-2.0
// Attention.
#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

void CheckMask(Infer& in) {
  auto* attrs = in.attrs<AttentionAttrsObj>();
  if (attrs->causal_mask.has_value())
    in.ExpectOneOf(*attrs->causal_mask, {"TopLeft", "BottomRight"}, "causal_mask");
}
DataType OneType(Infer& in) {
  DataType dtype = in.Tensor(0)->dtype;
  for (size_t i : {1, 2}) dtype = in.SameType(dtype, in.Tensor(i)->dtype);
  return dtype;
}
/// A multiple of the other: several queries' heads share one of the keys.
void CheckHeads(Infer& in, const PrimExpr& queries, const PrimExpr& keys) {
  auto q = AsConstInt(queries), k = AsConstInt(keys);
  if (q && k && (*k == 0 || *q % *k != 0)) {
    TVM_RAISE(in) << "expected heads of the query that are a multiple of those of the key, got "
                  << *q << " and " << *k;
  }
}
/// bias: (b or 1, h or 1, s or 1, s').
void CheckBias(Infer& in, const Dims& q, const Dims& k) {
  const TensorStructInfoObj* bias = in.Tensor(3);
  in.ExpectRank(bias, 4, "bias");
  if (!DimsOf(bias)) return;
  const Dims want{q[0], q[2], q[1], k[1]};
  for (size_t i = 0; i < 4; ++i) {
    const PrimExpr dim = (*DimsOf(bias))[i];
    if ((i == 3 || !IsOne(dim)) && in.Different(want[i], dim)) {
      TVM_RAISE(in) << "expected a bias that broadcasts to " << Show(want) << ", got "
                    << ShowShape(bias) << ": dimension " << i << " is " << TextOf(dim);
    }
  }
}
StructInfo InferAttention(Infer& in) {
  const TensorStructInfoObj *q = in.Tensor(0), *k = in.Tensor(1), *v = in.Tensor(2);
  size_t count = in.info->op->name == "relax.nn.attention_bias" ? 4 : 3;
  if (in.size() != count) TVM_RAISE(in) << "expected " << count << " arguments, got " << in.size();
  DataType dtype = OneType(in);
  CheckMask(in);
  for (size_t i = 0; i < 3; ++i) in.ExpectRank(in.Tensor(i), 4, in.info->Param(i));
  if (!DimsOf(q) || !DimsOf(k) || !DimsOf(v)) return in.Result(Shape::Rank(4), dtype);
  const Dims &a = *DimsOf(q), &b = *DimsOf(k), &c = *DimsOf(v);
  in.ExpectSame(a[0], b[0], "the batches of query and key");
  in.ExpectSame(a[0], c[0], "the batches of query and value");
  in.ExpectSame(b[1], c[1], "the sequences of key and value");
  in.ExpectSame(b[2], c[2], "the heads of key and value");
  in.ExpectSame(a[3], b[3], "the head dimensions of query and key");
  CheckHeads(in, a[2], b[2]);
  if (in.size() > 3) CheckBias(in, a, b);
  return in.Result(Dims{a[0], a[1], a[2], c[3]}, dtype);
}
StructInfo InferAttentionVarLen(Infer& in) {
  const TensorStructInfoObj *q = in.Tensor(0), *v = in.Tensor(2);
  DataType dtype = OneType(in);
  CheckMask(in);
  for (size_t i = 0; i < 3; ++i) in.ExpectRank(in.Tensor(i), 4, in.info->Param(i));
  for (size_t i = 3; i < 7; ++i) {
    const TensorStructInfoObj* x = in.Tensor(i);
    if (!x->dtype.is_void() && x->dtype != DataType::Int(32)) {
      TVM_RAISE_TYPE(in) << "expected " << in.info->Param(i) << " of type int32, got " << x->dtype;
    }
  }
  if (!DimsOf(q) || !DimsOf(v)) return in.Result(Shape::Rank(4), dtype);
  const Dims& a = *DimsOf(q);
  CheckHeads(in, a[2], (*DimsOf(v))[2]);
  return in.Result(Dims{a[0], a[1], a[2], (*DimsOf(v))[3]}, dtype);
}
/// With a bias it is attention_bias, without one it is attention.
Expr FinishAttention(Call call) {
  static const Op plain = Op::Get("relax.nn.attention"),
                  biased = Op::Get("relax.nn.attention_bias");
  return Call(call->args.size() > 3 ? biased : plain, call->args, call->attrs);
}

TVM_REGISTER() {
  const char* schema =
      "query: Tensor, key: Tensor, value: Tensor, bias: Tensor = None, scale=None, "
      "causal_mask=None, window_size=None, zero_nan=False";
  for (const char* name : {"relax.nn.attention", "relax.nn.attention_bias"}) {
    Operator(name, schema, &InferAttention,
             "softmax(query keyᵀ scale + bias) value, of tensors (batch, sequence, heads, size). "
             "Queries that see no key give 0; with zero_nan so do those whose weights are NaN.")
        .Attrs<AttentionAttrsObj>()
        .Pattern(kOpaque)
        .Precision(kAlways)
        .Finish(&FinishAttention);
  }
  Operator("relax.nn.attention_var_len",
           "queries: Tensor, keys: Tensor, values: Tensor, seqstart_q: Tensor, "
           "max_seqlen_q: Tensor, seqstart_k: Tensor = seqstart_q, "
           "max_seqlen_k: Tensor = max_seqlen_q, scale=None, causal_mask=None, window_size=None",
           &InferAttentionVarLen,
           "attention over sequences of different lengths, packed one behind the other.")
      .Attrs<AttentionAttrsObj>()
      .Pattern(kOpaque)
      .Precision(kAlways);
}

}  // namespace
}  // namespace tvm::relax
