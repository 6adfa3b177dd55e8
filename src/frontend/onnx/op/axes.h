// SPDX-License-Identifier: Apache-2.0
// Axes that only running the program tells.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// For each axis of a tensor: whether it is named, and where it goes when the named ones become the
/// last, in their order.
struct RuntimeAxes {
  std::vector<PrimExpr> named, place;
};
/// Reads a vector of axes in [-rank, rank). A length that the model does not say is `count`, or
/// any.
RuntimeAxes ReadAxes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count = {});
/// The dimensions that are not named, of which there are `count`, in their order.
Dims DimsThatStay(Node& n, const Dims& shape, const RuntimeAxes& axes, int64_t count);
/// x with twice as many axes: first all with 1 for those that are named, then those, 1 for others.
Expr NamedAxesApart(Node& n, const Expr& x, const std::vector<PrimExpr>& named);
/// x with the named axes behind the others, and the way back.
Expr NamedAxesLast(Node& n, const Expr& x, const RuntimeAxes& axes);
Expr NamedAxesBack(Node& n, const Expr& x, const RuntimeAxes& axes, const Dims& shape);
/// The sum of `values[i]` over the axes for which `where[i]` holds.
PrimExpr SelectSum(const std::vector<PrimExpr>& where, const std::vector<PrimExpr>& values);
/// Whether axis `i` is `axes[k]`, for each k.
std::vector<PrimExpr> IsAxis(const std::vector<PrimExpr>& axes, int64_t i, int64_t rank);

}  // namespace tvm::frontend::onnx
