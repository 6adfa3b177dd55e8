// SPDX-License-Identifier: Apache-2.0
// What converters of functions on elements share.
#pragma once
#include "converter.h"

namespace tvm::frontend::torch {

/// Whether the elements are not 0.
Expr ToBool(Conversion& c, const Expr& x);
/// The positions (rank, n) of the elements that are not 0; n is a new size.
Expr Positions(Conversion& c, const Expr& x);
/// A size as a tensor of int64 without dimensions.
Expr SizeTensor(Conversion& c, const PrimExpr& size);
/// The tensors in their common shape.
Array<Expr> Broadcast(Conversion& c, const Array<Expr>& operands);
/// A function that no operator computes, of tensors that broadcast: one kernel.
Expr Elementwise(Conversion& c, const char* name, const Array<Expr>& operands,
                 const std::function<PrimExpr(const std::vector<PrimExpr>&)>& value);

}  // namespace tvm::frontend::torch
