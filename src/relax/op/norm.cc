// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisation, and what is applied per channel.
#include <algorithm>

#include "tvm/relax/infer.h"

namespace tvm::relax {
namespace {

StructInfo InferSoftmax(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  in.ExpectFloat(x, "data");
  if (x->ndim >= 0) in.Axis(in.attrs<SoftmaxAttrsObj>()->axis, x->ndim);
  return in.Of(0);
}
StructInfo InferPRelu(Infer& in) {
  const TensorStructInfoObj *x = in.Tensor(0), *alpha = in.Tensor(1);
  in.ExpectFloat(x, "data");
  in.ExpectRank(alpha, 1, "alpha");
  if (x->ndim >= 0) {
    // A vector has one channel axis, whatever the default says.
    int64_t axis = x->ndim == 1 ? 0 : in.Axis(in.attrs<PReluAttrsObj>()->axis, x->ndim);
    if (DimsOf(x) && DimsOf(alpha) && !IsOne((*DimsOf(alpha))[0]))
      in.ExpectSame((*DimsOf(x))[axis], (*DimsOf(alpha))[0], "the channels of data and alpha");
  }
  return in.Of(0);
}

/// Parameters `first`, … of a normalisation have the dimensions of `data` at the axes; all have
/// one type.
void CheckParameters(Infer& in, size_t first, const std::vector<int64_t>& axes) {
  const TensorStructInfoObj* x = in.Tensor(0);
  for (size_t i = first; i < in.size(); ++i) {
    const TensorStructInfoObj* p = in.Tensor(i);
    in.ExpectRank(p, static_cast<int64_t>(axes.size()), in.info->Param(i));
    for (size_t k = 0; DimsOf(x) && DimsOf(p) && k < axes.size(); ++k) {
      const PrimExpr want = (*DimsOf(x))[axes[k]], got = (*DimsOf(p))[k];
      if (in.Different(want, got)) {
        TVM_RAISE(in) << "expected " << in.info->Param(i) << " of dimension " << TextOf(want)
                      << " for axis " << axes[k] << " of " << ShowShape(x) << ", got "
                      << ShowShape(p);
      }
    }
  }
}
/// All operands are floating-point numbers of one type, or some types are not known.
void ExpectFloats(Infer& in, bool same) {
  const TensorStructInfoObj* x = in.Tensor(0);
  in.ExpectFloat(x, "data");
  for (size_t i = 1; same && i < in.size(); ++i) {
    DataType dtype = in.Tensor(i)->dtype;
    if (!x->dtype.is_void() && !dtype.is_void() && dtype != x->dtype) {
      TVM_RAISE_TYPE(in) << "expected operands of one type, got " << x->dtype << " and " << dtype;
    }
  }
}

StructInfo InferBatchNorm(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  ExpectFloats(in, false);
  if (x->ndim >= 0) {
    CheckParameters(in, 1, {in.Axis(in.attrs<BatchNormAttrsObj>()->axis, x->ndim)});
  } else {
    for (size_t i = 1; i < in.size(); ++i) in.ExpectRank(in.Tensor(i), 1, in.info->Param(i));
  }
  return TupleStructInfo({in.Of(0), in.Of(3), in.Of(4)});
}
template <class A>
StructInfo InferAxesNorm(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  ExpectFloats(in, true);
  const Ints& axes = in.attrs<A>()->axes;
  if (x->ndim >= 0) CheckParameters(in, 1, in.Axes(axes, x->ndim));
  return in.Of(0);
}
/// The channel's axis; it is none of those that are normalised.
template <class A>
int64_t CheckChannel(Infer& in, const A* attrs, int64_t ndim) {
  int64_t channel = in.Axis(attrs->channel_axis, ndim);
  std::vector<int64_t> axes = in.Axes(attrs->axes, ndim);
  if (std::find(axes.begin(), axes.end(), channel) != axes.end()) {
    TVM_RAISE(in) << "expected axes without the channel_axis " << channel << ", got it among them";
  }
  CheckParameters(in, 1, {channel});
  return channel;
}
StructInfo InferGroupNorm(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  auto* attrs = in.attrs<GroupNormAttrsObj>();
  ExpectFloats(in, true);
  if (attrs->num_groups <= 0)
    TVM_RAISE(in) << "expected positive num_groups, got " << attrs->num_groups;
  if (x->ndim < 0) return in.Of(0);
  int64_t channel = CheckChannel(in, attrs, x->ndim);
  auto channels = DimsOf(x) ? AsConstInt((*DimsOf(x))[channel]) : std::nullopt;
  if (channels && *channels % attrs->num_groups != 0) {
    TVM_RAISE(in) << "expected channels that num_groups = " << attrs->num_groups << " divides, got "
                  << *channels;
  }
  return in.Of(0);
}
StructInfo InferInstanceNorm(Infer& in) {
  const TensorStructInfoObj* x = in.Tensor(0);
  ExpectFloats(in, true);
  if (x->ndim >= 0) CheckChannel(in, in.attrs<InstanceNormAttrsObj>(), x->ndim);
  return in.Of(0);
}
StructInfo InferDropout(Infer& in) {
  double rate = in.attrs<DropoutAttrsObj>()->rate;
  if (!(rate >= 0 && rate <= 1)) TVM_RAISE(in) << "expected a rate in [0, 1], got " << rate;
  return TupleStructInfo({in.Of(0), in.Of(0)});
}

TVM_REGISTER() {
  auto def = [](const char* name, const char* schema, InferFn infer, MixedPrecisionPolicy policy,
                const char* doc) {
    return Operator(name, schema, infer, doc).Pattern(kOpaque).Precision(policy);
  };
  def("relax.nn.softmax", "data: Tensor, axis=-1", &InferSoftmax, kNever,
      "exp(x) / sum(exp(x)) along the axis.")
      .Attrs<SoftmaxAttrsObj>();
  def("relax.nn.log_softmax", "data: Tensor, axis=-1", &InferSoftmax, kNever,
      "The logarithm of softmax.")
      .Attrs<SoftmaxAttrsObj>();
  Operator("relax.nn.prelu", "data: Tensor, alpha: Tensor, axis=1", &InferPRelu,
           "x where it is positive, else x times the alpha of its channel.")
      .Attrs<PReluAttrsObj>()
      .Pattern(kBroadcast)
      .Precision(kFollow);
  def("relax.nn.batch_norm",
      "data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor, axis, "
      "epsilon=1e-05, center=True, scale=True, momentum=0.1, training=True",
      &InferBatchNorm, kNever,
      "Normalises each channel; gives the result, the new mean and the new variance.")
      .Attrs<BatchNormAttrsObj>();
  def("relax.nn.layer_norm",
      "data: Tensor, gamma: Tensor, beta: Tensor, axes, epsilon=1e-05, center=True, scale=True",
      &InferAxesNorm<LayerNormAttrsObj>, kFollow, "Normalises over the axes.")
      .Attrs<LayerNormAttrsObj>();
  def("relax.nn.rms_norm", "data: Tensor, weight: Tensor, axes=-1, epsilon=1e-05",
      &InferAxesNorm<RMSNormAttrsObj>, kFollow, "x / sqrt(mean(x * x) + epsilon) * weight")
      .Attrs<RMSNormAttrsObj>();
  def("relax.nn.group_norm",
      "data: Tensor, gamma: Tensor, beta: Tensor, num_groups, channel_axis, axes, epsilon=1e-05, "
      "center=True, scale=True",
      &InferGroupNorm, kFollow, "Normalises each group of channels.")
      .Attrs<GroupNormAttrsObj>();
  def("relax.nn.instance_norm",
      "data: Tensor, gamma: Tensor, beta: Tensor, channel_axis, axes, epsilon=1e-05, center=True, "
      "scale=True",
      &InferInstanceNorm, kFollow, "Normalises each channel of each element of the batch.")
      .Attrs<InstanceNormAttrsObj>();
  def("relax.nn.dropout", "data: Tensor, rate=0.5", &InferDropout, kFollow,
      "Zeroes elements at random; gives the result and the mask.")
      .Attrs<DropoutAttrsObj>();
}

}  // namespace
}  // namespace tvm::relax
