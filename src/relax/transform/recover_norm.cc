// SPDX-License-Identifier: Apache-2.0
// Normalisation re-formed step by step: the core, its scale, its offset.
#include "relax/transform/spelled.h"
#include "runtime/host_tensor.h"

namespace tvm::relax {
namespace {
DataType TypeOf(const Expr& expr) { return GetStructInfoAs<TensorStructInfoObj>(expr)->dtype; }
Ints LastAxes(int64_t count) {
  Ints axes;
  for (int64_t i = -count; i < 0; ++i) axes.push_back(IntImm::Int32(i));
  return axes;
}
/// Ones or zeros for the parameters that a norm does not have yet.
Expr Filled(const char* op, Array<PrimExpr> dims, DataType type) {
  return CallOperator(op, {ShapeExpr(dims), type});
}

/// The deviation that a value is divided by: sqrt(mean of squares + epsilon).
struct Deviation {
  Expr centered;             // what is squared
  std::optional<Expr> data;  // x where `centered` is x - mean(x)
  int64_t axes = 0;
  double epsilon = 0;
};
/// x of x - mean(x) along the last axes.
std::optional<Expr> UncenteredOf(const Spelled& s, const Expr& expr, int64_t axes) {
  auto difference = s.CallOf(expr, s.ops.subtract);
  auto mean = difference ? s.ReductionOf((*difference)->args[1], s.ops.mean) : std::nullopt;
  if (!mean || mean->axes != axes || !s.Same(mean->operand, (*difference)->args[0]))
    return std::nullopt;
  return (*difference)->args[0];
}
std::optional<Deviation> DeviationOf(const Spelled& s, const Expr& root, bool is_inverse) {
  std::optional<Expr> inside = s.OperandOf(root, is_inverse ? s.ops.rsqrt : s.ops.sqrt);
  if (!inside) {
    auto call = s.CallOf(root, s.ops.power);
    if (call && s.IsNumber((*call)->args[1], is_inverse ? -0.5 : 0.5)) inside = (*call)->args[0];
  }
  auto sum = inside ? s.PlusNumber(*inside) : std::nullopt;
  if (!sum) return std::nullopt;
  Deviation result;
  result.epsilon = sum->second;
  if (auto variance = s.ReductionOf(sum->first, s.ops.variance)) {
    result.data = variance->operand;
    result.axes = variance->axes;
    return result;
  }
  auto mean = s.ReductionOf(sum->first, s.ops.mean);
  auto base = mean ? s.SquareOf(mean->operand) : std::nullopt;
  if (!base) return std::nullopt;
  result.axes = mean->axes;
  result.centered = *base;
  result.data = UncenteredOf(s, *base, mean->axes);
  return result;
}
/// (x - mean) / deviation or x / deviation, maybe times a scale.
Optional<Expr> RecoverCore(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.multiply) && !call->Is(s.ops.divide)) return std::nullopt;
  Spelled::Product p = s.ProductOf(call);
  if (!Spelled::IsNear(p.scale, 1) || p.denominators.size() > 1) return std::nullopt;
  std::optional<Deviation> deviation;
  if (p.denominators.size() == 1) deviation = DeviationOf(s, p.denominators[0], false);
  for (size_t i = 0; p.denominators.empty() && !deviation && i < p.factors.size(); ++i) {
    deviation = DeviationOf(s, p.factors[i], true);
    if (deviation) p.factors.erase(p.factors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!deviation) return std::nullopt;
  if (!deviation->data) {
    // The value itself may be a product.
    Spelled::Product again = s.ProductOf(call, deviation->centered);
    std::erase_if(again.factors,
                  [&](const Expr& e) { return DeviationOf(s, e, true).has_value(); });
    p.factors = again.factors;
  }
  for (size_t i = 0; i < p.factors.size(); ++i) {
    const Expr factor = p.factors[i];
    std::optional<Expr> x = UncenteredOf(s, factor, deviation->axes);
    bool is_layer = deviation->data && x && s.Same(*x, *deviation->data);
    bool is_rms = !deviation->data && s.Same(factor, deviation->centered);
    if (!is_layer && !is_rms) continue;
    Expr data = is_layer ? *x : factor;
    auto dims = DimsOfTensor(data);
    if (!dims) return std::nullopt;
    Array<PrimExpr> last(dims.value().end() - deviation->axes, dims.value().end());
    Ints axes = LastAxes(deviation->axes);
    Expr ones = Filled("relax.ones", last, TypeOf(data));
    Expr core = is_rms ? CallOperator("relax.nn.rms_norm", {data, ones, axes, deviation->epsilon})
                       : CallOperator("relax.nn.layer_norm",
                                      {data, ones, Filled("relax.zeros", last, TypeOf(data)), axes,
                                       deviation->epsilon, false, false});
    p.factors.erase(p.factors.begin() + static_cast<std::ptrdiff_t>(i));
    for (const Expr& rest : p.factors) core = CallOperator("relax.multiply", {core, rest});
    return core;
  }
  return std::nullopt;
}

/// The channels of (C, 1, 1) or (1, C, 1, 1) for an input (N, C, …).
std::optional<Expr> ChannelsOf(const Expr& expr, const Expr& data) {
  auto dims = DimsOfTensor(expr), all = DimsOfTensor(data);
  if (!dims || !all) return std::nullopt;
  size_t ndim = all.value().size(), own = dims.value().size();
  if (own + 1 < ndim || own > ndim) return std::nullopt;
  for (size_t i = 0; i < own; ++i) {
    PrimExpr dim = dims.value()[i];
    bool is_channel = i + ndim - own == 1;
    auto* number = dim.as<IntImmObj>();
    bool fits = is_channel ? DimProver(nullptr).Compare(dim, all.value()[1]) == DimsAre::kEqual
                           : number && number->value == 1;
    if (!fits) return std::nullopt;
  }
  return CallOperator("relax.reshape", {expr, ShapeExpr(Array<PrimExpr>{all.value()[1]})});
}
/// The norm with one more parameter: the scale, or the offset.
Optional<Expr> AddParameter(const Spelled& s, const Call& call, bool is_scale) {
  for (int i = 0; i < 2; ++i) {
    const Expr &side = call->args[i], &parameter = call->args[1 - i];
    if (auto norm = s.CallOf(side, s.ops.layer_norm)) {
      auto* attrs = Spelled::AttrsOf<LayerNormAttrsObj>(*norm);
      bool is_open = is_scale ? !attrs->scale && !attrs->center : !attrs->center;
      auto count = static_cast<int64_t>(attrs->axes.size());
      if (!is_open || !Spelled::HasLastDims(parameter, (*norm)->args[0], count)) continue;
      return CallOperator("relax.nn.layer_norm",
                          {(*norm)->args[0], is_scale ? parameter : (*norm)->args[1],
                           is_scale ? (*norm)->args[2] : parameter, attrs->axes, attrs->epsilon,
                           !is_scale, is_scale || attrs->scale});
    }
    if (auto norm = s.CallOf(side, s.ops.group_norm)) {
      auto* attrs = Spelled::AttrsOf<GroupNormAttrsObj>(*norm);
      bool is_open = is_scale ? !attrs->scale && !attrs->center : !attrs->center;
      auto channels = is_open ? ChannelsOf(parameter, (*norm)->args[0]) : std::nullopt;
      if (!channels) continue;
      return CallOperator(
          "relax.nn.group_norm",
          {(*norm)->args[0], is_scale ? *channels : (*norm)->args[1],
           is_scale ? (*norm)->args[2] : *channels, attrs->num_groups, attrs->channel_axis,
           attrs->axes, attrs->epsilon, !is_scale, is_scale || attrs->scale});
    }
    auto norm = is_scale ? s.CallOf(side, s.ops.rms_norm) : std::nullopt;
    if (!norm || !s.CallOf((*norm)->args[1], s.ops.ones)) continue;
    auto* attrs = Spelled::AttrsOf<RMSNormAttrsObj>(*norm);
    if (!Spelled::HasLastDims(parameter, (*norm)->args[0],
                              static_cast<int64_t>(attrs->axes.size())))
      continue;
    return CallOperator("relax.nn.rms_norm",
                        {(*norm)->args[0], parameter, attrs->axes, attrs->epsilon});
  }
  return std::nullopt;
}
/// Computed in f32 and cast back: so the operator does it.
Optional<Expr> DropCasts(const Spelled& s, const Call& call) {
  auto norm = s.CallOf(call->args[0], s.ops.rms_norm);
  auto widened = norm ? s.CallOf((*norm)->args[0], s.ops.astype) : std::nullopt;
  if (!widened || !s.CallOf((*norm)->args[1], s.ops.ones)) return std::nullopt;
  Expr data = (*widened)->args[0];
  DataType type = Spelled::AttrsOf<AstypeAttrsObj>(call)->dtype;
  bool is_narrow = type == DataType::Float(16) || type.is_bfloat16();
  if (!is_narrow || TypeOf(data) != type || TypeOf((*norm)->args[0]) != DataType::Float(32))
    return std::nullopt;
  auto* attrs = Spelled::AttrsOf<RMSNormAttrsObj>(*norm);
  auto dims = DimsOfTensor((*norm)->args[1]);
  return CallOperator("relax.nn.rms_norm", {data, Filled("relax.ones", dims.value(), type),
                                            attrs->axes, attrs->epsilon});
}
bool IsFilledWith(const Spelled& s, const Expr& expr, double number) {
  if (s.CallOf(expr, number == 1 ? s.ops.ones : s.ops.zeros)) return true;
  Expr value = s.Value(expr);
  auto* constant = value.as<ConstantObj>();
  if (!constant || DataType(constant->data.dtype()) != DataType::Float(32)) return false;
  runtime::Tensor host = runtime::HostTensor(constant->data);
  auto* data = static_cast<const float*>(host.data_ptr());
  return std::all_of(data, data + host.numel(),
                     [&](float x) { return x == static_cast<float>(number); });
}
/// reshape(norm of reshape(x, (N, G, …)), shape of x): groups of channels.
Optional<Expr> RecoverGroups(const Spelled& s, const Call& call) {
  Expr inside = call->args[0];
  std::optional<Expr> flat;
  double epsilon = 0;
  if (auto norm = s.CallOf(inside, s.ops.layer_norm)) {
    auto* attrs = Spelled::AttrsOf<LayerNormAttrsObj>(*norm);
    if (attrs->scale || attrs->center || attrs->axes.size() != 1) return std::nullopt;
    flat = (*norm)->args[0];
    epsilon = attrs->epsilon;
  } else if (auto norm = s.CallOf(inside, s.ops.instance_norm)) {
    bool plain = IsFilledWith(s, (*norm)->args[1], 1) && IsFilledWith(s, (*norm)->args[2], 0);
    if (!plain) return std::nullopt;
    flat = (*norm)->args[0];
    epsilon = Spelled::AttrsOf<InstanceNormAttrsObj>(*norm)->epsilon;
  }
  auto shaped = flat ? s.CallOf(*flat, s.ops.reshape) : std::nullopt;
  if (!shaped || RankOf(*flat) != 3) return std::nullopt;
  Expr data = (*shaped)->args[0];
  auto dims = DimsOfTensor(data), after = DimsOfTensor(call), groups = DimsOfTensor(*flat);
  DimProver prover(nullptr);
  if (!dims || !after || !groups || dims.value().size() < 3 ||
      prover.Compare(dims.value(), after.value()) != DimsAre::kEqual ||
      prover.Compare(dims.value()[0], groups.value()[0]) != DimsAre::kEqual)
    return std::nullopt;
  auto *count = groups.value()[1].as<IntImmObj>(), *channels = dims.value()[1].as<IntImmObj>();
  if (!count || !channels || count->value < 1 || channels->value % count->value != 0)
    return std::nullopt;
  Ints axes;
  for (size_t i = 2; i < dims.value().size(); ++i) axes.push_back(IntImm::Int32(i));
  Array<PrimExpr> per_channel{dims.value()[1]};
  DataType type = TypeOf(data);
  return CallOperator("relax.nn.group_norm", {data, Filled("relax.ones", per_channel, type),
                                              Filled("relax.zeros", per_channel, type),
                                              count->value, 1, axes, epsilon, false, false});
}
}  // namespace

Optional<Expr> RecoverNorm(const Spelled& s, const Call& call) {
  if (call->Is(s.ops.reshape)) return RecoverGroups(s, call);
  if (call->Is(s.ops.astype)) return DropCasts(s, call);
  if (call->Is(s.ops.add)) return AddParameter(s, call, false);
  if (call->Is(s.ops.multiply)) {
    if (Optional<Expr> scaled = AddParameter(s, call, true)) return scaled;
  }
  return RecoverCore(s, call);
}

}  // namespace tvm::relax
