// SPDX-License-Identifier: Apache-2.0
// Attention in its parts, for programs that differentiate it.
#pragma once
#include "converter.h"

namespace tvm::frontend::torch {

/// The factor of the scores: as given, or one over the root of the size.
double AttentionScale(const Expr& q, const Any& scale);
/// q kᵀ · scale, with what a mask or the order of positions forbids at -inf.
Expr AttentionScores(Conversion& c, const Expr& q, const Expr& k, const Optional<Expr>& mask,
                     bool is_causal, const Any& scale);

}  // namespace tvm::frontend::torch
