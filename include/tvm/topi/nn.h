// SPDX-License-Identifier: Apache-2.0
// Operators of neural networks: activations, normalisation, padding, convolution, pooling.
#pragma once
#include "tvm/te/te.h"

namespace tvm::topi::nn {
using te::Tensor;

// ---- activations --------------------------------------------------------------------------------
Tensor relu(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double alpha);
Tensor prelu(const Tensor& x, const Tensor& slope, int64_t axis = 1);
Tensor softplus(const Tensor& x, double beta = 1, double threshold = 20);
Tensor gelu(const Tensor& x);
Tensor gelu_tanh(const Tensor& x);
Tensor silu(const Tensor& x);
Tensor selu(const Tensor& x);
Tensor softmax(const Tensor& x, int64_t axis = -1);
Tensor log_softmax(const Tensor& x, int64_t axis = -1);

// ---- normalisation: axis is a number or a list; scale and shift may be absent -------------------
Tensor layer_norm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                  const Any& axis, double epsilon = 1e-5);
Tensor instance_norm(const Tensor& data, const Optional<Tensor>& gamma,
                     const Optional<Tensor>& beta, int64_t channel_axis, const Any& axis,
                     double epsilon = 1e-5);
Tensor group_norm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                  int64_t num_groups, int64_t channel_axis, const Any& axes, double epsilon = 1e-5);
Tensor rms_norm(const Tensor& data, const Tensor& weight, const Any& axis, double epsilon = 1e-5);
/// The result, the new mean and the new variance.
Array<Tensor> batch_norm(const Tensor& data, const Tensor& gamma, const Tensor& beta,
                         const Tensor& moving_mean, const Tensor& moving_var,
                         Optional<int64_t> axis, Optional<double> epsilon, Optional<bool> center,
                         Optional<bool> scale, Optional<bool> training, Optional<double> momentum);

// ---- padding: numbers per axis; negative ones cut off -------------------------------------------
Tensor pad(const Tensor& data, const Array<PrimExpr>& pad_before, const Array<PrimExpr>& pad_after,
           const PrimExpr& pad_value, String name = "PadInput", Map<String, Any> attrs = {});
/// Zeros between the elements.
Tensor dilate(const Tensor& data, const Array<PrimExpr>& strides, double dilation_value = 0,
              String name = "DilatedInput");

// ---- convolution: layouts are letters, N and C with D, H, W; kernels O and I with them ----------
struct ConvOptions {
  Any strides = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  String data_layout = "NCHW", kernel_layout = "OIHW";
  Optional<DataType> out_dtype = std::nullopt;
  Any output_padding = 0;  // of transposed ones
};
Tensor conv(const Tensor& data, const Tensor& kernel, const ConvOptions& options);
/// A convolution whose results are in blocks of channels, "NCHW8c": data are in blocks or not, and
/// the blocks of the kernel ("OIHW4i8o", or "OIHW8o") are those of data and results. Groups are
/// one, or one per channel.
Tensor conv_blocked(const Tensor& data, const Tensor& kernel, const ConvOptions& options);
Tensor conv_transpose(const Tensor& data, const Tensor& kernel, const ConvOptions& options);
/// Kernels "OIHW" with windows of 3 x 3 as winograd_conv2d multiplies tiles by them: (4, 4, O /
/// width, I, width).
Tensor winograd_weights(const Tensor& kernel, int64_t width);
/// A convolution with windows of 3 x 3 that move by one element, of data in "NCHW4c"; the result is
/// in `block` channels, "NCHW8c".
Tensor winograd_conv2d(const Tensor& data, const Tensor& weights, const Any& padding,
                       int64_t block);

// ---- pooling: pool_type "max" or "avg" ----------------------------------------------------------
Tensor pool(const Tensor& data, const Any& kernel, const Any& stride, const Any& dilation,
            const Any& padding, String pool_type, bool ceil_mode, String layout,
            bool count_include_pad);
/// An empty output_size keeps the sizes.
Tensor adaptive_pool(const Tensor& data, const Any& output_size, String pool_type, String layout);

}  // namespace tvm::topi::nn
