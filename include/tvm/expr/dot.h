// SPDX-License-Identifier: Apache-2.0
// Dot products of small numbers packed in 32-bit words: which instructions a target has for them.
#pragma once
#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"

namespace tvm {

/// Whether `op` is dot_bytes, dot_shorts or dot_bfloat16. Bytes are signed where their word is.
bool IsDot(const RelaxExpr& op);
/// Whether the machine has an instruction for `op` on words of these types.
bool HasDot(const Machine& machine, const Op& op, DataType a, DataType b);
/// `sum` and a dot product, by the widest instructions of the target that fill up, or as plain
/// arithmetic where it has none. Without a sum it is 0.
PrimExpr ExpandDot(const tir::CallObj* call, Optional<PrimExpr> sum, const Target& target);

}  // namespace tvm
