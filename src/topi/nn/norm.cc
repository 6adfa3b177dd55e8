// SPDX-License-Identifier: Apache-2.0
// Normalisation: of layers, instances, groups, batches, by the root of mean squares.
#include <algorithm>

#include "topi/reduce.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/reduction.h"
#include "tvm/topi/transform.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {

/// How the variance is found: from the sums of x and of x * x in one reduction, or from the
/// distances to the mean in a second one, all relative to the first element of the row, which keeps
/// the digits when the mean is large.
enum class Variance { kOfSquares, kOfDistances };

/// What mean and variance along axes are computed from.
struct Moments {
  Reduction over;
  Tensor data, sum, squares;
  DataType type;
  Variance variance;

  Moments(const Tensor& data, const std::vector<size_t>& axes, Variance variance)
      : over(data, axes, false), data(data), type(SumType(data->dtype)), variance(variance) {
    if (variance == Variance::kOfSquares) {
      InOneReduction();
    } else {
      InTwoReductions();
    }
  }
  void InOneReduction() {
    Var a("x", type), b("x_square", type), c("y", type), d("y_square", type);
    PrimExpr zero = MakeZero(type);
    CommReducer both({a, b}, {c, d}, {a + c, b + d}, {zero, zero});
    Array<Tensor> sums = te::compute_tuple(
        over.shape,
        [&](const Array<Var>& i) {
          PrimExpr x = tvm::cast(type, At(data, over.Source(Index(i.begin(), i.end()))));
          Array<PrimExpr> source = {x, x * x};
          return Array<PrimExpr>{Reduce(both, source, over.iters, const_true(), 0, {}),
                                 Reduce(both, source, over.iters, const_true(), 1, {})};
        },
        std::string(data->op->name) + "_red_temp", kCommReduce, {}, AxisNames());
    sum = sums[0];
    squares = sums[1];
  }
  void InTwoReductions() {
    Var a("x", type), b("y", type);
    CommReducer plus({a}, {b}, {a + b}, {MakeZero(type)});
    auto reduce = [&](const char* suffix, auto&& element) {
      return te::compute(
          over.shape,
          [&](const Array<Var>& i) {
            Index row(i.begin(), i.end());
            PrimExpr x = tvm::cast(type, At(data, over.Source(row))) - First(row);
            return Reduce(plus, {element(x, row)}, over.iters, const_true(), 0, {});
          },
          std::string(data->op->name) + suffix, kCommReduce, {}, AxisNames());
    };
    sum = reduce("_sum", [](const PrimExpr& x, const Index&) { return x; });
    squares = reduce("_distances", [&](const PrimExpr& x, const Index& row) {
      PrimExpr distance = x - div(At(sum, row), CountAs(over.Count(), type));
      return distance * distance;
    });
  }
  /// The first element of a row: near the mean, compared with where zero is.
  PrimExpr First(const Index& row) const {
    Index first;
    size_t kept = 0;
    for (const IterVar& reduced : over.reduced) {
      bool is_reduced = reduced.defined();
      first.push_back(is_reduced ? MakeZero(reduced->var.dtype()) : row[kept]);
      kept += !is_reduced;
    }
    return tvm::cast(type, At(data, first));
  }
  Array<String> AxisNames() const {
    Array<String> names;
    for (size_t i = 0; i < over.shape.size(); ++i) names.push_back("ax" + std::to_string(i));
    return names;
  }
  /// (x - mean) * rsqrt(variance + epsilon) for an element of the data.
  PrimExpr Normalized(const PrimExpr& x, const Index& i, double epsilon) const {
    Index row;
    for (size_t d = 0; d < i.size(); ++d) {
      if (!over.reduced[d].defined()) row.push_back(i[d]);
    }
    PrimExpr count = CountAs(over.Count(), type), mean = div(At(sum, row), count);
    PrimExpr spread = div(At(squares, row), count), value = tvm::cast(type, x);
    if (variance == Variance::kOfSquares) {
      spread = spread - mean * mean;
    } else {
      value = value - First(row);
    }
    return (value - mean) * tvm::rsqrt(spread + MakeConst(type, epsilon));
  }
};
/// Parameters have the shape of the axes they belong to.
void CheckParameter(const char* op, const Optional<Tensor>& parameter, const Tensor& data,
                    const std::vector<size_t>& axes) {
  if (!parameter) return;
  const Shape& shape = parameter.value()->shape;
  bool fits = shape.size() == axes.size();
  Shape expected;
  for (size_t k = 0; k < axes.size(); ++k) {
    expected.push_back(data->shape[axes[k]]);
    fits = fits && !DifferentDim(shape[k], data->shape[axes[k]]);
  }
  if (!fits) Complain(op, "parameters shaped " + Text(expected), Text(shape));
}
Index Pick(const Index& i, const std::vector<size_t>& axes) {
  Index picked;
  for (size_t axis : axes) picked.push_back(i[axis]);
  return picked;
}
Tensor NormalizeOver(const char* op, const char* name, const Tensor& data,
                     const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                     const std::vector<size_t>& axes, const std::vector<size_t>& parameter_axes,
                     double epsilon, Variance variance) {
  CheckParameter(op, gamma, data, parameter_axes);
  CheckParameter(op, beta, data, parameter_axes);
  Moments moments(data, axes, variance);
  auto element = [&](const Index& i) {
    PrimExpr value = tvm::cast(data->dtype, moments.Normalized(At(data, i), i, epsilon));
    Index place = Pick(i, parameter_axes);
    if (gamma) value = value * At(*gamma, place);
    if (beta) value = value + At(*beta, place);
    return value;
  };
  return Compute(data->shape, element, name, kInjective);
}
/// The tensor with one more axis for the groups of channels.
Shape Grouped(const Shape& shape, size_t axis, int64_t groups) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == axis) {
      PrimExpr count = MakeConst(shape[d].dtype(), groups);
      result.push_back(count);
      result.push_back(Simplified(floordiv(shape[d], count)));
    } else {
      result.push_back(shape[d]);
    }
  }
  return result;
}
template <Variance variance>
Tensor LayerNorm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                 const Any& axis, double epsilon) {
  std::vector<size_t> axes = Axes("layer_norm", axis, data->shape.size());
  return NormalizeOver("layer_norm", "T_layer_norm", data, gamma, beta, axes, axes, epsilon,
                       variance);
}
template <Variance variance>
Tensor InstanceNorm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                    int64_t channel_axis, const Any& axis, double epsilon) {
  constexpr const char* kOp = "instance_norm";
  std::vector<size_t> axes = Axes(kOp, axis, data->shape.size());
  size_t channel = Axis(kOp, channel_axis, data->shape.size());
  if (std::find(axes.begin(), axes.end(), channel) != axes.end())
    Complain(kOp, "the channel not among the axes", std::to_string(channel_axis));
  return NormalizeOver(kOp, "T_instance_norm", data, gamma, beta, axes, {channel}, epsilon,
                       variance);
}
template <Variance variance>
Tensor GroupNorm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                 int64_t num_groups, int64_t channel_axis, const Any& axes, double epsilon) {
  constexpr const char* kOp = "group_norm";
  size_t channel = Axis(kOp, channel_axis, data->shape.size());
  auto channels = AsConstInt(data->shape[channel]);
  if (num_groups < 1 || (channels && *channels % num_groups != 0))
    Complain(kOp, "groups that divide " + Text(data->shape) + " along the channel",
             std::to_string(num_groups));
  CheckParameter(kOp, gamma, data, {channel});
  CheckParameter(kOp, beta, data, {channel});
  Shape shape = Grouped(data->shape, channel, num_groups);
  Tensor grouped = reshape(data, shape);
  DataType type = SumType(data->dtype);
  // The channel within its group is the axis behind the group.
  std::vector<size_t> over;
  for (size_t axis : Axes(kOp, axes, data->shape.size())) {
    if (axis == channel) Complain(kOp, "the channel not among the axes", std::to_string(axis));
    over.push_back(axis < channel ? axis : axis + 1);
  }
  over.push_back(channel + 1);
  std::sort(over.begin(), over.end());
  Tensor wide = cast(grouped, type);
  Moments moments(wide, over, variance);
  Shape parameter_shape = {shape[channel], shape[channel + 1]};
  auto in_groups = [&](const Optional<Tensor>& parameter) -> Optional<Tensor> {
    if (!parameter) return std::nullopt;
    return reshape(*parameter, parameter_shape);
  };
  Optional<Tensor> scale = in_groups(gamma), shift = in_groups(beta);
  auto element = [&](const Index& i) {
    PrimExpr value = tvm::cast(data->dtype, moments.Normalized(At(wide, i), i, epsilon));
    Index place = {i[channel], i[channel + 1]};
    if (scale) value = value * At(*scale, place);
    if (shift) value = value + At(*shift, place);
    return value;
  };
  return reshape(Compute(shape, element, "T_group_norm", kInjective), data->shape);
}
}  // namespace

Tensor layer_norm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                  const Any& axis, double epsilon) {
  return LayerNorm<Variance::kOfSquares>(data, gamma, beta, axis, epsilon);
}
Tensor instance_norm(const Tensor& data, const Optional<Tensor>& gamma,
                     const Optional<Tensor>& beta, int64_t channel_axis, const Any& axis,
                     double epsilon) {
  return InstanceNorm<Variance::kOfSquares>(data, gamma, beta, channel_axis, axis, epsilon);
}
Tensor group_norm(const Tensor& data, const Optional<Tensor>& gamma, const Optional<Tensor>& beta,
                  int64_t num_groups, int64_t channel_axis, const Any& axes, double epsilon) {
  return GroupNorm<Variance::kOfSquares>(data, gamma, beta, num_groups, channel_axis, axes,
                                         epsilon);
}
Tensor rms_norm(const Tensor& data, const Tensor& weight, const Any& axis, double epsilon) {
  std::vector<size_t> axes = Axes("rms_norm", axis, data->shape.size());
  CheckParameter("rms_norm", weight, data, axes);
  DataType type = SumType(data->dtype);
  Tensor x = cast(data, type), squares = Of(multiply, x, x);
  Array<Any> list;
  for (size_t a : axes) list.push_back(static_cast<int64_t>(a));
  Tensor total = sum(squares, Any(list));
  Reduction over(data, axes, false);
  PrimExpr count = CountAs(over.Count(), type);
  Tensor root = Compute(
      total->shape,
      [&](const Index& i) {
        return tvm::rsqrt(div(At(total, i), count) + MakeConst(type, epsilon));
      },
      "rsqrt", kElementWise);
  Tensor scale = cast(weight, type);
  auto element = [&](const Index& i) {
    Index row;
    for (size_t d = 0; d < i.size(); ++d) {
      if (!over.reduced[d].defined()) row.push_back(i[d]);
    }
    return At(root, row) * At(x, i) * At(scale, Pick(i, axes));
  };
  return cast(Compute(data->shape, element, "T_rms_norm", kInjective), data->dtype);
}

Array<Tensor> batch_norm(const Tensor& data, const Tensor& gamma, const Tensor& beta,
                         const Tensor& moving_mean, const Tensor& moving_var,
                         Optional<int64_t> axis, Optional<double> epsilon, Optional<bool> center,
                         Optional<bool> scale, Optional<bool> training, Optional<double> momentum) {
  constexpr const char* kOp = "batch_norm";
  size_t channel = Axis(kOp, axis.value_or(1), data->shape.size());
  for (const Tensor& parameter : {gamma, beta, moving_mean, moving_var})
    CheckParameter(kOp, parameter, data, {channel});
  DataType t = data->dtype;
  auto number = [&](double value) -> Operand { return MakeConst(t, value); };
  Shape along;  // 1 everywhere but at the channel
  Array<Any> others;
  for (size_t d = 0; d < data->shape.size(); ++d) {
    along.push_back(d == channel ? data->shape[d] : MakeConst(data->shape[d].dtype(), 1));
    if (d != channel) others.push_back(static_cast<int64_t>(d));
  }
  Tensor mean = moving_mean, variance = moving_var;
  if (training.value_or(false)) {
    mean = topi::mean(data, Any(others));
    Tensor apart = Of(subtract, data, reshape(mean, along));
    variance = topi::mean(Of(multiply, apart, apart), Any(others));
  }
  Tensor centered = Of(subtract, data, reshape(mean, along));
  Tensor spread = Of(add, reshape(variance, along), number(epsilon.value_or(1e-5)));
  Tensor result = Of(divide, centered, sqrt(spread));
  if (scale.value_or(true)) result = Of(multiply, result, reshape(gamma, along));
  if (center.value_or(true)) result = Of(add, result, reshape(beta, along));
  if (!training.value_or(false))
    return {result, Of(multiply, moving_mean, number(1)), Of(multiply, moving_var, number(1))};
  double rate = momentum.value_or(0.1);
  auto updated = [&](const Tensor& old, const Tensor& batch) {
    return Of(add, Of(multiply, number(1 - rate), old), Of(multiply, number(rate), batch));
  };
  return {result, updated(moving_mean, mean), updated(moving_var, variance)};
}

namespace {
/// x / (bias + alpha * mean of squares in a window along an axis) ** beta
Tensor Lrn(const Tensor& data, int64_t size, int64_t axis, double alpha, double beta, double bias) {
  size_t at = Axis("lrn", axis, data->shape.size());
  if (size < 1 || size % 2 == 0) Complain("lrn", "an odd size", std::to_string(size));
  DataType t = data->dtype, index = data->shape[at].dtype();
  Array<PrimExpr> before, after;
  for (size_t d = 0; d < data->shape.size(); ++d) {
    before.push_back(MakeConst(data->shape[d].dtype(), d == at ? size / 2 : 0));
  }
  Tensor padded = pad(data, before, before, MakeZero(t), "pad_data");
  IterVar k = Along(MakeConst(index, size), "rxk");
  Tensor squares = Compute(
      data->shape,
      [&](const Index& i) {
        Index source = i;
        source[at] = i[at] + k->var;
        PrimExpr x = At(padded, source);
        return te::sum(x * x, {k});
      },
      "tensor", kCommReduce);
  Tensor root = Compute(
      data->shape,
      [&](const Index& i) {
        PrimExpr mean =
            div(MakeConst(t, alpha) * At(squares, i), MakeConst(t, static_cast<double>(size)));
        return pow(MakeConst(t, bias) + mean, MakeConst(t, beta));
      },
      "tensor", kElementWise);
  return divide(data, root).get<Tensor>();
}
/// Input * Scale + Shift per channel.
Tensor ScaleShift(const char* op, const Tensor& input, const Tensor& scale, const Tensor& shift,
                  const std::vector<size_t>& axes) {
  CheckParameter(op, scale, input, axes);
  CheckParameter(op, shift, input, axes);
  return Compute(
      input->shape,
      [&](const Index& i) {
        Index place = Pick(i, axes);
        return At(input, i) * At(scale, place) + At(shift, place);
      },
      "ScaleShift", kBroadcast);
}

TVM_REGISTER() {
  Def("topi.nn.layer_norm", &layer_norm, "Normalised along axes, then scaled and shifted.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("axis"), Arg("epsilon", 1e-5));
  Def("topi.nn.instance_norm", &instance_norm,
      "Normalised along axes, then scaled and shifted by channel.", Arg("data"), Arg("gamma"),
      Arg("beta"), Arg("channel_axis"), Arg("axis"), Arg("epsilon", 1e-5));
  Def("topi.nn.group_norm", &group_norm,
      "Normalised along axes and groups of channels, then scaled and shifted by channel.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("num_groups"), Arg("channel_axis"), Arg("axes"),
      Arg("epsilon", 1e-5));
  Def("topi.nn.stable_layer_norm", &LayerNorm<Variance::kOfDistances>,
      "layer_norm that keeps its digits when the mean is far larger than the deviation.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("axis"), Arg("epsilon", 1e-5));
  Def("topi.nn.stable_instance_norm", &InstanceNorm<Variance::kOfDistances>,
      "instance_norm that keeps its digits when the mean is far larger than the deviation.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("channel_axis"), Arg("axis"),
      Arg("epsilon", 1e-5));
  Def("topi.nn.stable_group_norm", &GroupNorm<Variance::kOfDistances>,
      "group_norm that keeps its digits when the mean is far larger than the deviation.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("num_groups"), Arg("channel_axis"), Arg("axes"),
      Arg("epsilon", 1e-5));
  Def("topi.nn.rms_norm", &rms_norm, "Divided by the root of the mean square, then scaled.",
      Arg("data"), Arg("weight"), Arg("axis"), Arg("epsilon", 1e-5));
  Def("topi.nn.batch_norm", &batch_norm,
      "Normalised by mean and variance of each channel: the result, new mean, new variance.",
      Arg("data"), Arg("gamma"), Arg("beta"), Arg("moving_mean"), Arg("moving_var"),
      Arg("axis", nullptr), Arg("epsilon", nullptr), Arg("center", nullptr), Arg("scale", nullptr),
      Arg("training", nullptr), Arg("momentum", nullptr));
  Def("topi.nn.lrn", &Lrn, "Normalised by the squares of neighbouring channels.", Arg("data"),
      Arg("size"), Arg("axis", 1), Arg("alpha", 0.0001), Arg("beta", 0.75), Arg("bias", 2.0));
  Def(
      "topi.nn.scale_shift_nchw",
      [](Tensor x, Tensor scale, Tensor shift) {
        return ScaleShift("scale_shift_nchw", x, scale, shift, {1});
      },
      "Input * Scale + Shift by channel.", Arg("Input"), Arg("Scale"), Arg("Shift"));
  Def(
      "topi.nn.scale_shift_nhwc",
      [](Tensor x, Tensor scale, Tensor shift) {
        return ScaleShift("scale_shift_nhwc", x, scale, shift, {3});
      },
      "Input * Scale + Shift by channel.", Arg("Input"), Arg("Scale"), Arg("Shift"));
  Def(
      "topi.nn.scale_shift_nchwc",
      [](Tensor x, Tensor scale, Tensor shift) {
        return ScaleShift("scale_shift_nchwc", x, scale, shift, {1, 4});
      },
      "Input * Scale + Shift by channel.", Arg("Input"), Arg("Scale"), Arg("Shift"));
}
}  // namespace
}  // namespace tvm::topi::nn
