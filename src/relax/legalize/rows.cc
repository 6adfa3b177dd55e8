// SPDX-License-Identifier: Apache-2.0
// Operators that a function of topi computes as it is: a row each.
#include "relax/legalize/lowering.h"

namespace tvm::relax {
namespace {
// clang-format off
constexpr LoweringRow kRows[] = {
    // ---- elementwise
    {"relax.where", "where", "topi.where", "0 1 2"},
    {"relax.ewise_fma", "ewise_fma", "topi.ewise_fma", "0 1 2"},
    {"relax.clip", "tir_clip", "topi.clip", "0 1 2"},
    {"relax.nn.relu", "relu", "topi.nn.relu", "0"},
    {"relax.nn.leakyrelu", "leaky_relu", "topi.nn.leaky_relu", "0 alpha"},
    {"relax.nn.prelu", "prelu", "topi.nn.prelu", "0 1 axis"},
    {"relax.nn.softplus", "softplus", "topi.nn.softplus", "0 beta threshold"},
    {"relax.nn.gelu", "gelu", "topi.nn.gelu", "0"},
    {"relax.nn.gelu_tanh", "gelu_tanh", "topi.nn.gelu_tanh", "0"},
    {"relax.nn.silu", "silu", "topi.nn.silu", "0"},
    {"relax.nn.selu", "selu", "topi.nn.selu", "0"},
    {"relax.quantize", "quantize", "topi.quantize", "0 1 2 axis out_dtype"},
    {"relax.dequantize", "dequantize", "topi.dequantize", "0 1 2 axis out_dtype"},
    // ---- reductions, scans, order
    {"relax.sum", "sum", "topi.sum", "0 axis keepdims"},
    {"relax.prod", "prod", "topi.prod", "0 axis keepdims"},
    {"relax.max", "max", "topi.max", "0 axis keepdims"},
    {"relax.min", "min", "topi.min", "0 axis keepdims"},
    {"relax.mean", "mean", "topi.mean", "0 axis keepdims"},
    {"relax.variance", "variance", "topi.variance", "0 axis keepdims"},
    {"relax.std", "std", "topi.std", "0 axis keepdims"},
    {"relax.argmax", "argmax", "topi.argmax", "0 axis keepdims false 'int64'"},
    {"relax.argmin", "argmin", "topi.argmin", "0 axis keepdims false 'int64'"},
    {"relax.cumsum", "cumsum", "topi.cumsum", "0 axis dtype exclusive"},
    {"relax.cumprod", "cumprod", "topi.cumprod", "0 axis dtype exclusive"},
    {"relax.sort", "sort", "topi.sort", "0 axis !descending"},
    {"relax.argsort", "argsort", "topi.argsort", "0 None axis !descending dtype"},
    {"relax.topk", "topk", "topi.topk", "0 k axis ret_type !largest dtype"},
    {"relax.bucketize", "searchsorted", "topi.searchsorted", "1 0 right $dtype"},
    {"relax.multinomial_from_uniform", "multinomial_from_uniform", "topi.multinomial_from_uniform", "0 1 2 dtype"},
    // ---- shapes
    {"relax.reshape", "reshape", "topi.reshape", "0 1"},
    {"relax.flatten", "reshape", "topi.reshape", "0 $shape"},
    {"relax.broadcast_to", "broadcast_to", "topi.broadcast_to", "0 1"},
    {"relax.collapse_sum_to", "collapse_sum", "topi.collapse_sum", "0 1"},
    {"relax.collapse_sum_like", "collapse_sum", "topi.collapse_sum", "0 $shape"},
    {"relax.permute_dims", "transpose", "topi.transpose", "0 axes"},
    {"relax.expand_dims", "expand_dims", "topi.expand_dims", "0 axis #1"},
    {"relax.repeat", "repeat", "topi.repeat", "0 repeats axis"},
    {"relax.tile", "tile", "topi.tile", "0 repeats"},
    {"relax.flip", "flip", "topi.flip", "0 axis"},
    {"relax.concat", "concatenate", "topi.concatenate", "0 axis=#0"},
    {"relax.stack", "stack", "topi.stack", "0 axis=#0"},
    {"relax.meshgrid", "meshgrid", "topi.meshgrid", "0 indexing='ij'"},
    {"relax.size", "size", "topi.tensor_size", "0 $dtype"},
    // ---- indices
    {"relax.take", "take", "topi.take", "0 1 axis #0 mode"},
    {"relax.gather_elements", "gather", "topi.gather", "0 axis 1"},
    {"relax.index_tensor", "index_tensor", "topi.index_tensor", "0 1"},
    {"relax.index_put", "index_put", "topi.index_put", "0 1 2 accumulate"},
    {"relax.scatter_elements", "scatter_elements", "topi.scatter_elements", "0 1 2 axis reduction"},
    {"relax.slice_scatter", "slice_scatter", "topi.slice_scatter", "0 1 2 3 4 axis"},
    {"relax.strided_slice", "strided_slice", "topi.strided_slice", "0 2 3 4 1 'end' assume_inbound"},
    {"relax.one_hot", "one_hot", "topi.one_hot", "0 1 2 depth axis $dtype"},
    {"relax.grad.take_backward", "take_backward", "topi.take_backward", "0 1 2 axis"},
    // ---- creation
    {"relax.ones", "ones", "topi.full", "0 dtype #1"},
    {"relax.zeros", "zeros", "topi.full", "0 dtype #0"},
    {"relax.ones_like", "ones", "topi.full", "$shape $dtype #1"},
    {"relax.zeros_like", "zeros", "topi.full", "$shape $dtype #0"},
    {"relax.eye", "eye", "topi.eye", "0 1 2 dtype"},
    {"relax.tril", "tril", "topi.trilu", "0 1 false"},
    {"relax.triu", "triu", "topi.trilu", "0 1 true"},
    // ---- products
    {"relax.matmul", "matmul", "topi.broadcast_matmul", "0 1 out_dtype"},
    {"relax.outer", "outer", "topi.outer", "0 1"},
    {"relax.einsum", "einsum", "topi.einsum", "subscripts 0"},
    // ---- neural networks
    {"relax.nn.softmax", "softmax", "topi.nn.softmax", "0 axis"},
    {"relax.nn.log_softmax", "log_softmax", "topi.nn.log_softmax", "0 axis"},
    {"relax.nn.layer_norm", "layer_norm", "topi.nn.layer_norm", "0 1?scale 2?center axes epsilon"},
    {"relax.nn.instance_norm", "instance_norm", "topi.nn.instance_norm", "0 1?scale 2?center channel_axis axes epsilon"},
    {"relax.nn.group_norm", "group_norm", "topi.nn.group_norm", "0 1?scale 2?center num_groups channel_axis axes epsilon"},
    {"relax.nn.rms_norm", "rms_norm", "topi.nn.rms_norm", "0 1 axes epsilon"},
    {"relax.nn.batch_norm", "batch_norm", "topi.nn.batch_norm", "0 1 2 3 4 axis epsilon center scale training momentum"},
    {"relax.nn.cross_entropy_with_logits", "cross_entropy_with_logits", "topi.nn.cross_entropy_with_logits", "0 1"},
    {"relax.nn.pixel_shuffle", "pixel_shuffle", "topi.nn.pixel_shuffle", "0 upscale_factor"},
    {"relax.nn.attention", "attention", "topi.nn.attention", "0 1 2 3 scale causal_mask window_size zero_nan"},
    {"relax.nn.attention_bias", "attention_bias", "topi.nn.attention", "0 1 2 3 scale causal_mask window_size zero_nan"},
    {"relax.nn.attention_var_len", "attention_var_len", "topi.nn.attention_var_len", "0 1 2 3 5 scale causal_mask"},
    {"relax.grad.max_pool2d_backward", "max_pool2d_backward", "topi.nn.pool_grad", "0 1 pool_size strides padding 'max' ceil_mode count_include_pad layout dilation"},
    {"relax.grad.avg_pool2d_backward", "avg_pool2d_backward", "topi.nn.pool_grad", "0 1 pool_size strides padding 'avg' ceil_mode count_include_pad layout dilation"},
    // ---- images
    {"relax.image.resize2d", "resize2d", "topi.image.resize2d", "0 roi 1 layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude extrapolation_value out_dtype None"},
    {"relax.vision.all_class_non_max_suppression", "all_class_non_max_suppression", "topi.vision.all_class_non_max_suppression", "0 1 2 3 4 output_format None"},
};
/// Functions of one tensor, which keep the name of the function of TIR.
#define UNARY(name) {"relax." #name, "tir_" #name, "topi." #name, "0"}
constexpr LoweringRow kUnary[] = {
    UNARY(abs), UNARY(acos), UNARY(acosh), UNARY(asin), UNARY(asinh), UNARY(atan), UNARY(atanh),
    UNARY(bitwise_not), UNARY(ceil), UNARY(cos), UNARY(cosh), UNARY(exp), UNARY(floor),
    UNARY(isfinite), UNARY(isinf), UNARY(isnan), UNARY(log), UNARY(logical_not), UNARY(negative),
    UNARY(round), UNARY(rsqrt), UNARY(sigmoid), UNARY(sign), UNARY(sin), UNARY(sinh), UNARY(sqrt),
    UNARY(square), UNARY(tan), UNARY(tanh), UNARY(trunc),
    {"relax.erf", "erf", "topi.erf", "0"},
};
#undef UNARY
// clang-format on

TVM_REGISTER() {
  for (const LoweringRow& row : kRows) RegisterLowering(row);
  for (const LoweringRow& row : kUnary) RegisterLowering(row);
}
}  // namespace
}  // namespace tvm::relax
