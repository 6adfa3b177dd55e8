// SPDX-License-Identifier: Apache-2.0
// What converters of layers share.
#pragma once
#include "converter.h"

namespace tvm::frontend::torch {

/// The product of matrices; half precision is summed up in single precision.
Expr MatMul(Conversion& c, const Expr& a, const Expr& b);
/// A constant tensor of one number.
Expr Filled(const std::vector<int64_t>& shape, double value, DataType dtype);
struct ConvParams {
  std::vector<int64_t> stride, padding, dilation, output_padding;
  int64_t groups = 1;
};
/// A convolution of `dims` dimensions, with a kernel (O, I / groups, …).
Expr Convolve(Conversion& c, const Expr& x, const Expr& weight, const ConvParams& p, int64_t dims);
/// The transposed one, with a kernel (I, O / groups, …).
Expr ConvolveTransposed(Conversion& c, const Expr& x, const Expr& weight, const ConvParams& p,
                        int64_t dims);
/// An image in another size, by "nearest", "linear" or "cubic", where factors map its points.
Expr Resampled(Conversion& c, const Expr& x, const Dims& size, const std::string& method,
               const Any& factors);
/// Computes on a tensor of rank `rank`: one without its batch gets one for it.
Expr WithBatch(Conversion& c, const Expr& x, int64_t rank,
               const std::function<Expr(const Expr&)>& compute);

}  // namespace tvm::frontend::torch
