// SPDX-License-Identifier: Apache-2.0
// Windows over the spatial axes of convolutions and pools.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// Attributes of a window; an entry per spatial axis.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<PrimExpr> before, after;  // padding
  bool ceil_mode = false;
  size_t size() const { return kernel.size(); }
  /// Padding as numbers: begins, then ends; nothing when a size is symbolic.
  std::optional<std::vector<int64_t>> ConstPads() const;
};
/// Reads kernel_shape (or takes `kernel`), strides, dilations, pads and auto_pad for data (N, C,
/// …).
Window ReadWindow(Node& n, const Expr& x, std::vector<int64_t> kernel = {});
/// The size of the result along spatial axis `i`.
PrimExpr WindowCount(Node& n, const Window& w, size_t i, const PrimExpr& dim);
/// The convolution of (N, C, …) that the node's attributes describe, without bias. What the data is
/// padded with is 0, or the scalar `padding`.
Expr Convolve(Node& n, Expr x, Expr weight, const Any& out_dtype,
              const std::optional<Expr>& padding = {});

}  // namespace tvm::frontend::onnx
