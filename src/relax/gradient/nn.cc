// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax, normalisation, losses and attention.
#include <cmath>

#include "relax/gradient/gradient.h"
#include "tvm/expr/op.h"

namespace tvm::relax {
namespace {
Value Sum(Grad& r, const Value& value, const std::vector<int64_t>& axes, bool keepdims) {
  return r.F("sum", value, AsArray(axes), keepdims);
}
Value Mean(Grad& r, const Value& value, const std::vector<int64_t>& axes) {
  return r.F("mean", value, AsArray(axes), true);
}
std::vector<int64_t> OtherAxes(const std::vector<int64_t>& axes, int64_t ndim) {
  std::vector<int64_t> others;
  for (int64_t i = 0; i < ndim; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) others.push_back(i);
  }
  return others;
}
Value SoftmaxGradient(Grad& r, const Value& g, const Value& y, int64_t axis) {
  return (g - r.F("sum", g * y, Array<int64_t>{axis}, true)) * y;
}
Values OfSoftmax(Grad& r) {
  return {SoftmaxGradient(r, r.g(), r.y(), r.attrs<SoftmaxAttrsObj>()->axis)};
}
Values OfLogSoftmax(Grad& r) {
  Array<int64_t> axis = {r.attrs<SoftmaxAttrsObj>()->axis};
  return {r.g() - r.F("sum", r.g(), axis, true) * r.F("exp", r.y())};
}

// ---- losses -------------------------------------------------------------------------------------
Values OfCrossEntropy(Grad& r) {
  Value g = -r.g();
  if (r.x(0).ndim() > 1) g = r.Scaled(g, Dim(1), r.DimsOf(r.x(0))[0]);
  return {g * r.x(1), g * r.x(0)};
}
Values OfNLLLoss(Grad& r) {
  auto* attrs = r.attrs<NLLLossAttrsObj>();
  Value of_predictions = r.Has(2) ? r.F("grad.nll_loss_backward", r.g(), r.x(0), r.x(1), r.x(2),
                                        attrs->reduction, attrs->ignore_index)
                                  : r.F("grad.nll_loss_backward", r.g(), r.x(0), r.x(1), nullptr,
                                        attrs->reduction, attrs->ignore_index);
  return {of_predictions};
}

// ---- normalisation ------------------------------------------------------------------------------
/// Of x in (x - mean) / sqrt(variance + epsilon) over some axes, given the gradient of that.
struct Normalised {
  Value x, scale, of_x;
};
Normalised Normalise(Grad& r, const Value& x, const Value& g, const std::vector<int64_t>& axes,
                     double epsilon, bool centre) {
  Value centred = centre ? x - Mean(r, x, axes) : x;
  Value scale = r.F("rsqrt", Mean(r, centred * centred, axes) + epsilon);
  Value normal = centred * scale;
  Value rest = normal * Mean(r, g * normal, axes);
  Value of_x = scale * (centre ? g - Mean(r, g, axes) - rest : g - rest);
  return {normal, scale, of_x};
}
/// A parameter with the dimensions `axes` of x, so that it broadcasts.
Value Along(Grad& r, const Value& param, const Value& x, const std::vector<int64_t>& axes) {
  Dims dims = r.DimsOf(x), shape;
  for (int64_t i = 0; i < x.ndim(); ++i)
    shape.push_back(std::find(axes.begin(), axes.end(), i) == axes.end() ? Dim(1) : dims[i]);
  return r.Reshaped(param, shape);
}
/// Gradients of data, gamma and beta: normalised over `axes`, the parameters along `params`.
/// Without `scale` gamma is not used, without `center` beta is not.
template <class Attrs>
Values OfNorm(Grad& r, const Attrs* attrs, const Value& x, const Value& g,
              const std::vector<int64_t>& axes, const std::vector<int64_t>& params) {
  Value of_normal = attrs->scale ? g * Along(r, r.x(1), x, params) : g;
  Normalised normal = Normalise(r, x, of_normal, axes, attrs->epsilon, true);
  std::vector<int64_t> summed = OtherAxes(params, x.ndim());
  Values values = {normal.of_x, {}, {}};
  if (attrs->scale) values[1] = r.ReshapeLike(Sum(r, g * normal.x, summed, false), r.x(1));
  if (attrs->center) values[2] = r.ReshapeLike(Sum(r, g, summed, false), r.x(2));
  return values;
}
Values OfLayerNorm(Grad& r) {
  auto* attrs = r.attrs<LayerNormAttrsObj>();
  auto axes = AxesOf(attrs->axes, r.x(0).ndim());
  return OfNorm(r, attrs, r.x(0), r.g(), axes, axes);
}
Values OfInstanceNorm(Grad& r) {
  auto* attrs = r.attrs<InstanceNormAttrsObj>();
  int64_t ndim = r.x(0).ndim();
  int64_t channel = attrs->channel_axis < 0 ? attrs->channel_axis + ndim : attrs->channel_axis;
  return OfNorm(r, attrs, r.x(0), r.g(), AxesOf(attrs->axes, ndim), {channel});
}
/// The channels as (groups, channels of a group).
Values OfGroupNorm(Grad& r) {
  auto* attrs = r.attrs<GroupNormAttrsObj>();
  Value x = r.x(0);
  int64_t ndim = x.ndim();
  int64_t channel = attrs->channel_axis < 0 ? attrs->channel_axis + ndim : attrs->channel_axis;
  Dims dims = r.DimsOf(x), split;
  for (int64_t i = 0; i < ndim; ++i) {
    if (i == channel) split.push_back(Dim(attrs->num_groups));
    split.push_back(i == channel ? floordiv(dims[i], Dim(attrs->num_groups)) : dims[i]);
  }
  std::vector<int64_t> axes = {channel + 1};
  for (int64_t axis : AxesOf(attrs->axes, ndim)) axes.push_back(axis + (axis > channel));
  Values values = OfNorm(r, attrs, r.Reshaped(x, split), r.Reshaped(r.g(), split), axes,
                         {channel, channel + 1});
  values[0] = r.ReshapeLike(values[0], x);
  return values;
}
Values OfRMSNorm(Grad& r) {
  auto* attrs = r.attrs<RMSNormAttrsObj>();
  Value x = r.x(0), g = r.g();
  auto axes = AxesOf(attrs->axes, x.ndim());
  Normalised normal = Normalise(r, x, g * Along(r, r.x(1), x, axes), axes, attrs->epsilon, false);
  Value of_weight = Sum(r, g * normal.x, OtherAxes(axes, x.ndim()), false);
  return {normal.of_x, r.ReshapeLike(of_weight, r.x(1))};
}
Values OfBatchNorm(Grad& r) {
  auto* attrs = r.attrs<BatchNormAttrsObj>();
  Value x = r.x(0), g = r.Item(r.g(), 0);
  int64_t channel = attrs->axis < 0 ? attrs->axis + x.ndim() : attrs->axis;
  std::vector<int64_t> axes = OtherAxes({channel}, x.ndim());
  if (attrs->training) return OfNorm(r, attrs, x, g, axes, {channel});
  Value scale = r.F("rsqrt", r.x(4) + attrs->epsilon);
  Value normal = (x - Along(r, r.x(3), x, {channel})) * Along(r, scale, x, {channel});
  Values values = {g * Along(r, attrs->scale ? r.x(1) * scale : scale, x, {channel}), {}, {}};
  if (attrs->scale) values[1] = Sum(r, g * normal, axes, false);
  if (attrs->center) values[2] = Sum(r, g, axes, false);
  return values;
}

// ---- attention ----------------------------------------------------------------------------------
/// Keys that several heads share, for each of them.
Value ForHeads(Grad& r, const Value& value, int64_t heads) {
  return heads == 1 ? value : r.F("repeat", value, heads, 1);
}
/// The sum over the heads that share a key.
Value OverHeads(Grad& r, const Value& value, int64_t heads) {
  if (heads == 1) return value;
  Dims d = r.DimsOf(value);
  Value split = r.Reshaped(value, {d[0], floordiv(d[1], Dim(heads)), Dim(heads), d[2], d[3]});
  return r.F("sum", split, 2, false);
}
Values OfAttention(Grad& r) {
  auto* attrs = r.attrs<AttentionAttrsObj>();
  if (attrs->window_size) r.Refuse("a window");
  // (batch, sequence, heads, depth) to (batch, heads, sequence, depth) and back
  const std::vector<int64_t> swap = {0, 2, 1, 3};
  Value q = r.Permuted(r.x(0), swap), k = r.Permuted(r.x(1), swap), v = r.Permuted(r.x(2), swap);
  int64_t heads = r.ConstDim(q, 1) / r.ConstDim(k, 1);
  k = ForHeads(r, k, heads);
  v = ForHeads(r, v, heads);
  double scale = attrs->scale ? attrs->scale.value()->value
                              : 1 / std::sqrt(static_cast<double>(r.ConstDim(q, 3)));
  Value scores = r.F("matmul", q, r.Transposed(k)) * scale;
  if (r.Has(3)) scores = scores + r.x(3);
  if (attrs->causal_mask) {
    // A query sees the keys up to its own; from the bottom right, the last sees all.
    PrimExpr ahead =
        attrs->causal_mask.value() == "BottomRight" ? r.DimsOf(k)[2] - r.DimsOf(q)[2] : Dim(0);
    Value seen = r.F("tril", r.F("ones_like", scores), PrimValue(ahead));
    scores = r.F("where", seen == 1.0, scores, r.F("full_like", scores, -INFINITY));
  }
  Value p = r.F("nn.softmax", scores, -1), g = r.Permuted(r.g(), swap);
  if (attrs->zero_nan) p = r.F("where", r.F("isnan", p), r.F("zeros_like", p), p);
  Value of_scores = SoftmaxGradient(r, r.F("matmul", g, r.Transposed(v)), p, -1);
  Value scaled = of_scores * scale;
  Values values = {r.Permuted(r.F("matmul", scaled, k), swap),
                   r.Permuted(OverHeads(r, r.F("matmul", r.Transposed(scaled), q), heads), swap),
                   r.Permuted(OverHeads(r, r.F("matmul", r.Transposed(p), g), heads), swap)};
  if (r.Has(3)) values.push_back(r.CollapseTo(of_scores, r.x(3)));
  return values;
}

TVM_REGISTER() {
  for (const GradientRow& row : {GradientRow{"relax.nn.softmax", &OfSoftmax},
                                 {"relax.nn.log_softmax", &OfLogSoftmax},
                                 {"relax.nn.cross_entropy_with_logits", &OfCrossEntropy},
                                 {"relax.nn.nll_loss", &OfNLLLoss},
                                 {"relax.nn.layer_norm", &OfLayerNorm},
                                 {"relax.nn.instance_norm", &OfInstanceNorm},
                                 {"relax.nn.group_norm", &OfGroupNorm},
                                 {"relax.nn.rms_norm", &OfRMSNorm},
                                 {"relax.nn.batch_norm", &OfBatchNorm},
                                 {"relax.nn.attention", &OfAttention},
                                 {"relax.nn.attention_bias", &OfAttention}})
    RegisterGradient(row);
}
}  // namespace
}  // namespace tvm::relax
