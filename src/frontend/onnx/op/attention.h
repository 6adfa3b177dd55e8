// SPDX-License-Identifier: Apache-2.0
// What all kinds of attention share. Tensors are (batch, heads, sequence, size).
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// (b, s, h·d) as (b, h, s, d); tensors of four axes stay.
Expr ByHeads(Node& n, const Expr& x, int64_t heads);
/// Back to (b, s, h·d).
Expr JoinedHeads(Node& n, const Expr& x);

/// What a query may see, and how scores become weights.
struct AttentionOptions {
  bool causal = false;
  int64_t left = -1, right = -1;  // keys around a query's own that it sees; -1: all
  PrimExpr past = Num(0);         // keys before the first query's own
  std::optional<Expr> starts;     // the same for each batch
  std::optional<Expr> lengths;    // keys of each batch that count
  std::optional<Expr> mask;       // bool, or numbers that are added
  std::optional<Expr> sink;       // a score for each head beside those of keys: weight for nothing
  double scale = 0, softcap = 0;  // scale 0: one by the root of the size of a head
  DataType precise;               // in which weights are computed
  bool Hides() const { return causal || lengths || mask || left >= 0 || right >= 0; }
};
struct AttentionStages {
  Expr raw, capped, masked, weights, result;
};
AttentionStages Attend(Node& n, const Expr& q, Expr k, Expr v, const AttentionOptions& options);
/// A power of the scale of scores, a scalar; 0 is one by the root of the size of a head.
Expr PowerOfScale(Node& n, const Expr& q, double scale, double power, DataType t);
/// Keys or values behind those of the past.
Expr Behind(Node& n, const Expr& past, const Expr& fresh);

/// The mask of com.microsoft's operators as numbers that are added to scores: of which keys count,
/// (b, t) or (b, s, t), how many count in each batch, (b), or up to where and from where, (2b).
/// With nothing but masked keys a query sees them all, as other numbers are as low.
Expr KeyMask(Node& n, const Expr& mask, const Expr& q, const PrimExpr& keys);

/// Pairs of the first `width` elements (all for 0) turned by an angle that depends on the position:
/// `positions` are (b, s); without them the caches have an axis for each.
Expr Rotated(Node& n, const Expr& x, const Expr& cosine, const Expr& sine,
             const std::optional<Expr>& positions, bool interleaved, int64_t width);

}  // namespace tvm::frontend::onnx
