// SPDX-License-Identifier: Apache-2.0
// Normalisation.
#include <cstring>

#include "converter.h"
#include "network.h"
#include "relax/op/convert.h"
#include "tvm/runtime/tensor.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::torch {

Expr Filled(const std::vector<int64_t>& shape, double value, DataType dtype) {
  ffi::Tensor tensor =
      runtime::Empty(ffi::ShapeView(shape.data(), shape.size()), dtype, DLDevice{kDLCPU, 0});
  ffi::Tensor one = relax::ScalarConstant(value, dtype)->data;
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  auto* out = static_cast<char*>(tensor.data_ptr());
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(out + i * dtype.bytes(), one.data_ptr(), dtype.bytes());
  }
  return Constant(tensor);
}

namespace {

/// A scale or shift that may be absent.
Expr Channelwise(Conversion& c, size_t i, const Dims& shape, double otherwise, DataType t) {
  if (c.Given(i)) return c.Cast(c.Tensor(i), t);
  std::vector<int64_t> sizes;
  for (const PrimExpr& dim : shape) {
    auto size = AsConstInt(dim);
    if (!size) return c.Emit("full", ShapeExpr(shape), c.Const(otherwise, t), t);
    sizes.push_back(*size);
  }
  return Filled(sizes, otherwise, t);
}
std::vector<int64_t> AllBut(int64_t rank, int64_t axis) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}
/// 1 / sqrt(var + eps)
Expr InverseDeviation(Conversion& c, const Expr& var, double eps) {
  return c.Emit("rsqrt", c.Emit("add", var, c.Const(eps, TypeOf(var))));
}
/// Statistics of small floats are computed and kept in float32 before they are rounded.
Expr Wide(Conversion& c, const Expr& x) { return c.Cast(x, topi::SumType(TypeOf(x))); }
/// The type to normalise in: that of x, or of parameters that are wider, as under autocast.
DataType NormType(Conversion& c, std::initializer_list<size_t> params) {
  DataType t = TypeOf(c.Tensor(0));
  for (size_t i : params) {
    if (c.Given(i) && TypeOf(c.Tensor(i)).bits() > t.bits()) t = TypeOf(c.Tensor(i));
  }
  return t;
}

// ---- batches ------------------------------------------------------------------------------------
/// nn.batch_norm: (result, mean, variance).
Expr BatchNormOf(Conversion& c, bool training, double momentum, double eps) {
  DataType t = NormType(c, {1, 2, 3, 4});
  Expr x = c.Cast(c.Tensor(0), t);
  Dims channels = {ShapeOf(x)[1]};
  Expr gamma = Channelwise(c, 1, channels, 1, t), beta = Channelwise(c, 2, channels, 0, t);
  Expr mean = Channelwise(c, 3, channels, 0, t), var = Channelwise(c, 4, channels, 1, t);
  return c.Emit("nn.batch_norm", x, gamma, beta, mean, var, 1, eps, c.Given(2), c.Given(1),
                momentum, training);
}
Expr BatchNormResult(Conversion& c, const Expr& norm) {
  return c.Cast(c.Bind(TupleGetItem(norm, 0)), TypeOf(c.Tensor(0)));
}
/// No statistics of the batch are saved.
Any BatchNormInference(Conversion& c) {
  Expr norm = BatchNormOf(c, false, c.Number(5), c.Number(6));
  bool is_wide = NormType(c, {1, 2, 3, 4}) != TypeOf(c.Tensor(0));
  if (!c.Used(1) && !c.Used(2) && !is_wide) return norm;
  Expr none = c.Emit("zeros", Array<Any>{0}, TypeOf(c.Tensor(0)));
  return Array<Any>{BatchNormResult(c, norm), none, none};
}
/// The statistics of the batch, in the type of sums.
struct BatchStatistics {
  Expr mean, var, unbiased;
};
BatchStatistics StatisticsOf(Conversion& c, const Expr& given) {
  Expr x = Wide(c, given);
  std::vector<int64_t> axes = AllBut(RankOf(x), 1);
  Expr mean = c.Emit("mean", x, AnyArray(axes));
  Expr var = c.Emit("variance", x, AnyArray(axes));
  Dims reduced;
  for (int64_t axis : axes) reduced.push_back(ShapeOf(x)[axis]);
  PrimExpr n = cast(TypeOf(x), c.Simplify(Count(reduced)));
  PrimExpr factor = div(n, n - MakeConst(TypeOf(x), 1));
  return {mean, var, c.Emit("multiply", var, PrimValue(factor))};
}
/// What a gradient takes of them, in the type of the batch.
Expr SavedMean(Conversion& c, const BatchStatistics& batch) {
  return c.Cast(batch.mean, TypeOf(c.Tensor(0)));
}
Expr SavedDeviation(Conversion& c, const BatchStatistics& batch, double eps) {
  return c.Cast(InverseDeviation(c, batch.var, eps), TypeOf(c.Tensor(0)));
}
Expr Running(Conversion& c, const Expr& old, const Expr& batch, double momentum) {
  DataType t = TypeOf(old);
  Expr kept = c.Emit("multiply", old, c.Const(1 - momentum, t));
  return c.Emit("add", kept, c.Emit("multiply", c.Cast(batch, t), c.Const(momentum, t)));
}
void ChangeRunning(Conversion& c, const BatchStatistics& batch, double momentum) {
  c.Change(3, Running(c, c.Tensor(3), batch.mean, momentum));
  c.Change(4, Running(c, c.Tensor(4), batch.unbiased, momentum));
}
/// In training the running statistics are changed, too.
Any BatchNorm(Conversion& c) {
  bool training = c.Flag(5) || !c.Given(3);
  double momentum = c.Number(6, 0.1);
  Expr norm = BatchNormOf(c, training, momentum, c.Number(7));
  if (training && c.Given(3)) ChangeRunning(c, StatisticsOf(c, c.Tensor(0)), momentum);
  return BatchNormResult(c, norm);
}
/// (result, mean, 1 / deviation, new running mean, new running variance)
Any BatchNormFunctionalOf(Conversion& c, bool training, double momentum, double eps) {
  Expr x = c.Tensor(0);
  Expr norm = BatchNormOf(c, training, momentum, eps);
  Array<Any> results = {BatchNormResult(c, norm)};
  if (!training) {
    Expr none = c.Emit("zeros", Array<Any>{0}, TypeOf(x));
    return Array<Any>{results[0], none, none, c[3], c[4]};
  }
  BatchStatistics batch = StatisticsOf(c, x);
  results.push_back(SavedMean(c, batch));
  results.push_back(c.Used(2) ? Any(SavedDeviation(c, batch, eps)) : Any(nullptr));
  results.push_back(Running(c, c.Tensor(3), batch.mean, momentum));
  results.push_back(Running(c, c.Tensor(4), batch.unbiased, momentum));
  return results;
}
Any BatchNormFunctional(Conversion& c) {
  return BatchNormFunctionalOf(c, c.Flag(5), c.Number(6), c.Number(7));
}
/// The same, with a tensor that only a GPU's library would fill.
Any BatchNormWithUpdate(Conversion& c) {
  Array<Any> r = BatchNormFunctionalOf(c, true, c.Number(5), c.Number(6)).cast<Array<Any>>();
  Expr reserve = c.Emit("zeros", Array<Any>{0}, DataType::UInt(8));
  return Array<Any>{r[0], r[1], r[2], reserve, r[3], r[4]};
}
Any NativeBatchNorm(Conversion& c) {
  bool training = c.Flag(5);
  Expr norm = BatchNormOf(c, training, c.Number(6), c.Number(7));
  Array<Any> results = {BatchNormResult(c, norm), nullptr, nullptr};
  if (training && (c.Used(1) || c.Used(2) || c.Given(3))) {
    BatchStatistics batch = StatisticsOf(c, c.Tensor(0));
    if (c.Given(3)) ChangeRunning(c, batch, c.Number(6));
    results.Set(1, SavedMean(c, batch));
    results.Set(2, SavedDeviation(c, batch, c.Number(7)));
  } else if (c.Used(1) || c.Used(2)) {
    Expr none = c.Emit("zeros", Array<Any>{0}, TypeOf(c.Tensor(0)));
    results.Set(1, none);
    results.Set(2, none);
  }
  return results;
}
/// Each channel over the whole batch, without running statistics.
Any BatchNormNoStats(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  Dims channels = {ShapeOf(x)[1]};
  double eps = c.Number(5);
  Expr gamma = Channelwise(c, 1, channels, 1, t), beta = Channelwise(c, 2, channels, 0, t);
  Expr out = c.Emit("nn.instance_norm", x, gamma, beta, 1, AnyArray(AllBut(RankOf(x), 1)), eps);
  Array<Any> results = {out, nullptr, nullptr};
  if (c.Used(1) || c.Used(2)) {
    BatchStatistics batch = StatisticsOf(c, x);
    results.Set(1, SavedMean(c, batch));
    results.Set(2, SavedDeviation(c, batch, eps));
  }
  return results;
}
Any InstanceNorm(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  if (!c.Flag(5)) {
    return BatchNormResult(c, BatchNormOf(c, false, c.Number(6), c.Number(7)));
  }
  Dims shape = ShapeOf(x), channels = {shape[1]};
  std::vector<int64_t> axes = Axes(RankOf(x));
  axes.erase(axes.begin(), axes.begin() + 2);
  if (c.Given(3)) {  // the running statistics follow the means of those of all instances
    PrimExpr n = cast(topi::SumType(t), c.Simplify(Count(Dims(shape.begin() + 2, shape.end()))));
    Expr wide = Wide(c, x);
    Expr var = c.Emit("mean", c.Emit("variance", wide, AnyArray(axes)), Array<Any>{0});
    Expr unbiased = c.Emit("multiply", var, PrimValue(div(n, n - MakeConst(TypeOf(wide), 1))));
    Expr mean = c.Emit("mean", wide, AnyArray(AllBut(RankOf(x), 1)));
    ChangeRunning(c, {mean, var, unbiased}, c.Number(6));
  }
  Expr gamma = Channelwise(c, 1, channels, 1, t), beta = Channelwise(c, 2, channels, 0, t);
  return c.Emit("nn.instance_norm", x, gamma, beta, 1, AnyArray(axes), c.Number(7));
}

// ---- layers and groups --------------------------------------------------------------------------
Expr LayerNormOf(Conversion& c, const std::vector<int64_t>& axes, double eps) {
  Dims shape = c.Sizes(1);
  DataType t = NormType(c, {2, 3});
  Expr x = c.Cast(c.Tensor(0), t);
  Expr gamma = Channelwise(c, 2, shape, 1, t), beta = Channelwise(c, 3, shape, 0, t);
  return c.Cast(c.Emit("nn.layer_norm", x, gamma, beta, AnyArray(axes), eps), TypeOf(c.Tensor(0)));
}
std::vector<int64_t> LastAxes(int64_t n) {
  std::vector<int64_t> axes;
  for (int64_t i = -n; i < 0; ++i) axes.push_back(i);
  return axes;
}
Any LayerNorm(Conversion& c) { return LayerNormOf(c, LastAxes(c.Sizes(1).size()), c.Number(4)); }
Any NativeLayerNorm(Conversion& c) {
  std::vector<int64_t> axes = LastAxes(c.Sizes(1).size());
  Array<Any> results = {LayerNormOf(c, axes, c.Number(4)), nullptr, nullptr};
  Expr x = Wide(c, c.Tensor(0));
  DataType t = TypeOf(c.Tensor(0));
  if (c.Used(1)) results.Set(1, c.Cast(c.Emit("mean", x, AnyArray(axes), true), t));
  if (c.Used(2)) {
    Expr var = c.Emit("variance", x, AnyArray(axes), true);
    results.Set(2, c.Cast(InverseDeviation(c, var, c.Number(4)), t));
  }
  return results;
}
Expr GroupNormOf(Conversion& c, size_t weight, size_t bias, int64_t groups, double eps) {
  DataType t = NormType(c, {weight, bias});
  Expr x = c.Cast(c.Tensor(0), t);
  Dims channels = {ShapeOf(x)[1]};
  std::vector<int64_t> axes = Axes(RankOf(x));
  axes.erase(axes.begin(), axes.begin() + 2);
  Expr gamma = Channelwise(c, weight, channels, 1, t);
  Expr beta = Channelwise(c, bias, channels, 0, t);
  Expr norm = c.Emit("nn.group_norm", x, gamma, beta, groups, 1, AnyArray(axes), eps);
  return c.Cast(norm, TypeOf(c.Tensor(0)));
}
Any GroupNorm(Conversion& c) { return GroupNormOf(c, 2, 3, c.Int(1), c.Number(4)); }
Any NativeGroupNorm(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t groups = c.Int(6);
  double eps = c.Number(7);
  Expr out = GroupNormOf(c, 1, 2, groups, eps);
  Array<Any> results = {out, nullptr, nullptr};
  if (!c.Used(1) && !c.Used(2)) return results;
  Dims dims = ShapeOf(x);
  PrimExpr inner = floordiv(Count(Dims(dims.begin() + 1, dims.end())), IntImm::Int64(groups));
  Expr grouped = c.Reshape(Wide(c, x), Dims{dims[0], IntImm::Int64(groups), c.Simplify(inner)});
  Expr var = c.Emit("variance", grouped, Array<Any>{2});
  results.Set(1, c.Cast(c.Emit("mean", grouped, Array<Any>{2}), TypeOf(x)));
  results.Set(2, c.Cast(InverseDeviation(c, var, eps), TypeOf(x)));
  return results;
}
Expr RmsNormOf(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  Dims shape = c.Sizes(1);
  double epsilon = t.bits() == 64    ? 2.220446049250313e-16
                   : t.bits() == 32  ? 1.1920928955078125e-07
                   : t.is_bfloat16() ? 0.0078125
                                     : 0.0009765625;
  Expr weight = Channelwise(c, 2, shape, 1, t);
  return c.Emit("nn.rms_norm", x, weight, AnyArray(LastAxes(shape.size())), c.Number(3, epsilon));
}
Any RmsNorm(Conversion& c) { return RmsNormOf(c); }
Any FusedRmsNorm(Conversion& c) {
  Array<Any> results = {RmsNormOf(c), nullptr};
  if (c.Used(1)) {
    Expr x = Wide(c, c.Tensor(0));
    std::vector<int64_t> axes = LastAxes(c.Sizes(1).size());
    Expr mean = c.Emit("mean", c.Emit("multiply", x, x), AnyArray(axes), true);
    results.Set(1, InverseDeviation(c, mean, c.Number(3, 1.1920928955078125e-07)));
  }
  return results;
}

TVM_REGISTER() {
  Converter("_native_batch_norm_legit_no_training.default",
            "input, weight, bias, running_mean, running_var, momentum, eps", &BatchNormInference);
  const char* batch =
      "input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=True";
  Converter("batch_norm.default", batch, &BatchNorm);
  Converter("_native_batch_norm_legit_functional.default",
            "input, weight, bias, running_mean, running_var, training, momentum, eps",
            &BatchNormFunctional);
  Converter("_batch_norm_with_update_functional.default",
            "input, weight, bias, running_mean, running_var, momentum, eps", &BatchNormWithUpdate);
  Converter("native_batch_norm.default _native_batch_norm_legit.default",
            "input, weight, bias, running_mean, running_var, training, momentum, eps",
            &NativeBatchNorm);
  Converter("_native_batch_norm_legit.no_stats", "input, weight, bias, training, momentum, eps",
            &BatchNormNoStats);
  Converter("instance_norm.default",
            "input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, "
            "cudnn_enabled",
            &InstanceNorm);
  Converter("layer_norm.default",
            "input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True",
            &LayerNorm);
  Converter("native_layer_norm.default", "input, normalized_shape, weight, bias, eps",
            &NativeLayerNorm);
  Converter("group_norm.default",
            "input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True", &GroupNorm);
  Converter("native_group_norm.default", "input, weight, bias, N, C, HxW, group, eps",
            &NativeGroupNorm);
  Converter("rms_norm.default", "input, normalized_shape, weight=None, eps=None", &RmsNorm);
  Converter("_fused_rms_norm.default", "input, normalized_shape, weight, eps", &FusedRmsNorm);
}

}  // namespace
}  // namespace tvm::frontend::torch
