// SPDX-License-Identifier: Apache-2.0
// What attention is computed from.
#pragma once
#include "topi/shape.h"

namespace tvm::topi::nn {

/// Queries attend to keys up to their own place, counted from the first or from the last ones; and
/// not to those further back than a window.
struct Mask {
  bool from_end = false, causal = false;
  std::optional<int64_t> window;
  /// The last key that a query attends to, were it causal.
  PrimExpr Last(const PrimExpr& query, const PrimExpr& queries, const PrimExpr& keys) const {
    return from_end ? query + (keys - queries) : query;
  }
  PrimExpr Allows(const PrimExpr& query, const PrimExpr& key, const PrimExpr& queries,
                  const PrimExpr& keys) const {
    PrimExpr last = Last(query, queries, keys), allowed = const_true();
    if (causal) allowed = key <= last;
    if (window) allowed = allowed && last - MakeConst(query.dtype(), *window - 1) <= key;
    return allowed;
  }
};
/// Tensors (batch, sequence, heads, size); keys and values may have fewer heads, which several
/// heads of queries share.
struct AttentionInputs {
  Tensor query, key, value;
  Optional<Tensor> bias;  // (batch or 1, heads or 1, queries or 1, keys)
  Optional<double> scale;
  Mask mask;
  bool zero_nan = false;  // weights that are NaN are 0
};
/// The result in one kernel, which keeps scores in the caches: for float32 on processors whose code
/// is written in vectors. None for others, and for a few queries, which are no products.
std::optional<Tensor> AttentionInOneKernel(const AttentionInputs& inputs);

}  // namespace tvm::topi::nn
