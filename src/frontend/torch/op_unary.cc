// SPDX-License-Identifier: Apache-2.0
// Functions of one element.
#include <cmath>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {

Expr ToBool(Conversion& c, const Expr& x) {
  if (TypeOf(x).is_bool()) return x;
  return c.Emit("not_equal", x, c.Const(0.0, TypeOf(x)));
}
Array<Expr> Broadcast(Conversion& c, const Array<Expr>& operands) {
  Dims shape = ShapeOf(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    Dims other = ShapeOf(operands[i]), all;
    size_t n = std::max(shape.size(), other.size());
    for (size_t k = 0; k < n; ++k) {
      // Missing dimensions in front count as 1.
      auto at = [&](const Dims& dims) {
        return k + dims.size() < n ? IntImm::Int64(1) : dims[k + dims.size() - n];
      };
      all.push_back(IsOne(at(shape)) ? at(other) : at(shape));
    }
    shape = all;
  }
  Array<Expr> spread;
  for (const Expr& operand : operands) spread.push_back(c.BroadcastTo(operand, shape));
  return spread;
}
Expr Elementwise(Conversion& c, const char* name, const Array<Expr>& operands,
                 const std::function<PrimExpr(const std::vector<PrimExpr>&)>& value) {
  return c.Compute(name, Broadcast(c, operands),
                   [&](const Array<te::Tensor>& in) -> Array<te::Tensor> {
                     return {te::compute(
                         in[0]->shape,
                         [&](const Array<tir::Var>& i) {
                           std::vector<PrimExpr> elements;
                           for (const te::Tensor& x : in) elements.push_back(x(i));
                           return value(elements);
                         },
                         name)};
                   });
}

namespace {

/// Of a type that the function leaves as it is.
Any Same(Conversion& c) { return c.Emit(c.op, c.Tensor(0)); }
/// A function on real numbers: integers are taken as those.
Any RealFunction(Conversion& c) { return c.Emit(c.op, c.Real(c.Tensor(0))); }
Any Rounding(Conversion& c) {
  Expr x = c.Tensor(0);
  return IsIntegral(TypeOf(x)) ? x : c.Emit(c.op, x);
}
/// isnan and the like: integers are finite.
Any Predicate(Conversion& c) {
  Expr x = c.Tensor(0);
  if (!IsIntegral(TypeOf(x))) return c.Emit(c.op, x);
  bool holds = std::string(c.op) == "isfinite";
  return c.Emit("full", ShapeExpr(ShapeOf(x)), c.Const(holds, DataType::Bool()), DataType::Bool());
}
Any PassThrough(Conversion& c) { return c[0]; }
Any LogicalNot(Conversion& c) { return c.Emit("logical_not", ToBool(c, c.Tensor(0))); }
Any BitwiseNot(Conversion& c) {
  Expr x = c.Tensor(0);
  return TypeOf(x).is_bool() ? c.Emit("logical_not", x) : c.Emit("bitwise_not", x);
}
Any Reciprocal(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  return c.Emit("divide", c.Const(1.0, TypeOf(x)), x);
}
Any LogBase(Conversion& c, double base) {
  Expr x = c.Real(c.Tensor(0));
  return c.Emit("divide", c.Emit("log", x), c.Const(std::log(base), TypeOf(x)));
}
Any Log2(Conversion& c) { return LogBase(c, 2); }
Any Log10(Conversion& c) { return LogBase(c, 10); }
/// log(1 + x); near 0, where the sum loses x, 2 atanh(x / (x + 2)).
Any Log1p(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  DataType t = TypeOf(x);
  Expr ratio = c.Emit("divide", x, c.Emit("add", x, c.Const(2.0, t)));
  Expr near = c.Emit("multiply", c.Emit("atanh", ratio), c.Const(2.0, t));
  Expr far = c.Emit("log", c.Emit("add", x, c.Const(1.0, t)));
  return c.Emit("where", c.Emit("less", c.Emit("abs", x), c.Const(0.5, t)), near, far);
}
/// e^x - 1 = tanh(x / 2) (e^x + 1), which loses nothing near 0.
Any Expm1(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  DataType t = TypeOf(x);
  Expr half = c.Emit("tanh", c.Emit("multiply", x, c.Const(0.5, t)));
  return c.Emit("multiply", half, c.Emit("add", c.Emit("exp", x), c.Const(1.0, t)));
}
Any Exp2(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  return c.Emit("power", c.Const(2.0, TypeOf(x)), x);
}
Any Frac(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("subtract", x, c.Emit("trunc", x));
}
Any Round(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t decimals = c.Int(1);
  if (IsIntegral(TypeOf(x))) return x;
  if (decimals == 0) return c.Emit("round", x);
  Expr scale = c.Const(std::pow(10.0, decimals), TypeOf(x));
  return c.Emit("divide", c.Emit("round", c.Emit("multiply", x, scale)), scale);
}
Any SignBit(Conversion& c) {
  Expr x = c.Tensor(0);
  if (IsIntegral(TypeOf(x))) return c.Emit("less", x, c.Const(0.0, TypeOf(x)));
  return Elementwise(c, "signbit", {x}, [](const std::vector<PrimExpr>& v) {
    return copysign(MakeConst(v[0].dtype(), 1), v[0]) < MakeConst(v[0].dtype(), 0);
  });
}

// ---- activations --------------------------------------------------------------------------------
Any Clip(Conversion& c, const Expr& x, const Any& low, const Any& high) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (!IsIntegral(TypeOf(x))) {
    return c.Emit("clip", x, low == nullptr ? Any(-inf) : low, high == nullptr ? Any(inf) : high);
  }
  // Integers have no infinity: a missing bound is the type's own.
  DataType t = c.ResultType({x, low, high});
  Expr y = c.Cast(x, t);
  if (!IsIntegral(t)) return Clip(c, y, low, high);
  if (t.is_bool()) return y;
  return c.Emit("clip", y, low == nullptr ? Any(*AsConstInt(min_value(t))) : low,
                high == nullptr ? Any(*AsConstInt(max_value(t))) : high);
}
Any Clamp(Conversion& c) {
  Expr x = c.Tensor(0);
  if (!IsTensor(c[1]) && !IsTensor(c[2])) return Clip(c, x, c[1], c[2]);
  DataType t = c.ResultType({c[0], c[1], c[2]});
  Expr result = c.Cast(x, t);
  for (size_t i : {1, 2}) {
    if (!c.Given(i)) continue;
    Expr bound = c.As(c[i], t);
    result = c.Emit(i == 1 ? "maximum" : "minimum", result, bound);
  }
  return Clip(c, result, nullptr, nullptr);
}
Any ClampMin(Conversion& c) {
  Expr x = c.Tensor(0);
  if (IsTensor(c[1])) {
    DataType t = c.ResultType({c[0], c[1]});
    return c.Emit("maximum", c.As(c[0], t), c.As(c[1], t));
  }
  return Clip(c, x, c[1], nullptr);
}
Any ClampMax(Conversion& c) {
  Expr x = c.Tensor(0);
  if (IsTensor(c[1])) {
    DataType t = c.ResultType({c[0], c[1]});
    return c.Emit("minimum", c.As(c[0], t), c.As(c[1], t));
  }
  return Clip(c, x, nullptr, c[1]);
}
Any Hardtanh(Conversion& c) { return Clip(c, c.Tensor(0), c[1], c[2]); }
Any Relu6(Conversion& c) { return c.Emit("clip", c.Tensor(0), 0, 6); }

Any Gelu(Conversion& c) {
  std::string approximate = c.Text(1);
  if (approximate != "none" && approximate != "tanh") {
    TVM_REFUSE(c, KeyError) << "approximate: expected 'none' or 'tanh', got '" << approximate
                            << "'";
  }
  return c.Emit(approximate == "tanh" ? "nn.gelu_tanh" : "nn.gelu", c.Tensor(0));
}
Any LeakyRelu(Conversion& c) { return c.Emit("nn.leakyrelu", c.Tensor(0), c.Number(1)); }
Any Softplus(Conversion& c) { return c.Emit("nn.softplus", c.Tensor(0), c.Number(1), c.Number(2)); }
Any Celu(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  Expr alpha = c.Const(c.Number(1), t);
  Expr powers = c.Number(1) == 1 ? c.Emit("divide", c.Emit("exp", x), alpha)
                                 : c.Emit("exp", c.Emit("divide", x, alpha));
  Expr below = c.Emit("minimum", c.Const(0.0, t), c.Emit("subtract", powers, c.Const(1.0, t)));
  Expr scaled = c.Emit("multiply", alpha, below);
  return c.Emit("add", scaled, c.Emit("nn.relu", x));
}
Any Elu(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  double alpha = c.Number(1), scale = c.Number(2), input_scale = c.Number(3);
  Expr power = c.Emit("exp", input_scale == 1 ? x : c.Emit("multiply", x, c.Const(input_scale, t)));
  Expr below = c.Emit("nn.relu", c.Emit("subtract", c.Const(1.0, t), power));
  Expr scaled = c.Emit("multiply", c.Const(-alpha, t), below);
  Expr result = c.Emit("add", scaled, c.Emit("nn.relu", x));
  return scale == 1 ? result : c.Emit("multiply", result, c.Const(scale, t));
}
Expr HardsigmoidOf(Conversion& c, const Expr& x) {
  DataType t = TypeOf(x);
  Expr shifted = c.Emit("add", x, c.Const(3.0, t));
  return c.Emit("divide", c.Emit("clip", shifted, 0, 6), c.Const(6.0, t));
}
Any Hardsigmoid(Conversion& c) { return HardsigmoidOf(c, c.Tensor(0)); }
Any Hardswish(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("multiply", x, HardsigmoidOf(c, x));
}
Any Softshrink(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  Expr lambda = c.Const(c.Number(1), t), negative = c.Const(-c.Number(1), t);
  auto side = [&](const char* shift, const char* compare, const Expr& bound) {
    Expr moved = c.Emit(shift, x, lambda);
    return c.Emit("multiply", moved, c.Cast(c.Emit(compare, x, bound), t));
  };
  Expr above = side("subtract", "greater", lambda);
  return c.Emit("add", above, side("add", "less", negative));
}
Any Hardshrink(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  Expr inside = c.Emit("less_equal", c.Emit("abs", x), c.Const(c.Number(1), t));
  return c.Emit("where", inside, c.Const(0.0, t), x);
}
Any Threshold(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  // NaN stays: it is not at or below the threshold.
  return c.Emit("where", c.Emit("less_equal", x, c.As(c[1], t)), c.As(c[2], t), x);
}
Any Prelu(Conversion& c) {
  Expr x = c.Tensor(0), weight = c.Tensor(1);
  DataType t = TypeOf(x);
  if (RankOf(weight) == 1) {
    if (IsOne(ShapeOf(weight)[0]) && RankOf(x) > 1 && !IsOne(ShapeOf(x)[1])) {
      weight = c.BroadcastTo(weight, {ShapeOf(x)[1]});
    }
    if (RankOf(x) > 0) return c.Emit("nn.prelu", x, weight, RankOf(x) > 1 ? 1 : 0);
  }
  Expr positive = c.Emit("greater", x, c.Const(0.0, t));
  return c.Emit("where", positive, x, c.Emit("multiply", weight, x));
}
Any LogSigmoid(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("negative", c.Emit("nn.softplus", c.Emit("negative", x)));
}
Any Mish(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("multiply", x, c.Emit("tanh", c.Emit("nn.softplus", x)));
}
Any Trilu(Conversion& c) { return c.Emit(c.op, c.Tensor(0), c.Int(1)); }

Any Softmax(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  // A third argument is a dtype, or whether half precision becomes single.
  if (c.Given(2)) {
    if (c[2].try_cast<String>()) {
      t = c.Type(2, t);
    } else if (c.Flag(2)) {
      t = DataType::Float(32);
    }
  }
  x = c.Cast(x, IsIntegral(t) ? c.default_dtype() : t);
  if (RankOf(x) == 0) {
    Expr one = c.Reshape(x, {IntImm::Int64(1)});
    return c.Reshape(c.Emit(c.op, one, 0), {});
  }
  return c.Emit(c.op, x, c.Int(1));
}
/// The softmax that gives 0 where all of a row is minus infinity.
Any SafeSoftmax(Conversion& c) {
  Expr x = c.Tensor(0);
  x = c.Cast(x, c.Type(2, TypeOf(x)));
  DataType t = TypeOf(x);
  int64_t axis = c.Axis(1, RankOf(x));
  Expr most = c.Emit("max", x, Array<Any>{axis}, true);
  Expr masked = c.Emit("equal", most, c.Const(-std::numeric_limits<double>::infinity(), t));
  return c.Emit("where", masked, c.Const(0.0, t), c.Emit("nn.softmax", x, axis));
}

struct UnaryRow {
  const char *overloads, *op;
  ConvertFn convert;
};
constexpr UnaryRow kUnary[] = {
    {"abs.default absolute.default", "abs", &Same},
    {"neg.default negative.default _neg_view.default", "negative", &Same},
    {"sign.default sgn.default", "sign", &Same},
    {"positive.default", nullptr, &PassThrough},
    {"square.default", "square", &Same},
    {"relu.default", "nn.relu", &Same},
    {"selu.default", "nn.selu", &Same},
    {"silu.default", "nn.silu", &Same},
    {"acos.default", "acos", &RealFunction},
    {"acosh.default", "acosh", &RealFunction},
    {"asin.default", "asin", &RealFunction},
    {"asinh.default", "asinh", &RealFunction},
    {"atan.default", "atan", &RealFunction},
    {"atanh.default", "atanh", &RealFunction},
    {"cos.default", "cos", &RealFunction},
    {"cosh.default", "cosh", &RealFunction},
    {"erf.default special_erf.default", "erf", &RealFunction},
    {"exp.default", "exp", &RealFunction},
    {"log.default", "log", &RealFunction},
    {"sigmoid.default", "sigmoid", &RealFunction},
    {"sin.default", "sin", &RealFunction},
    {"sinh.default", "sinh", &RealFunction},
    {"sqrt.default", "sqrt", &RealFunction},
    {"rsqrt.default", "rsqrt", &RealFunction},
    {"tan.default", "tan", &RealFunction},
    {"tanh.default", "tanh", &RealFunction},
    {"ceil.default", "ceil", &Rounding},
    {"floor.default", "floor", &Rounding},
    {"trunc.default fix.default", "trunc", &Rounding},
    {"isfinite.default", "isfinite", &Predicate},
    {"isinf.default", "isinf", &Predicate},
    {"isnan.default", "isnan", &Predicate},
    {"logical_not.default", nullptr, &LogicalNot},
    {"bitwise_not.default", nullptr, &BitwiseNot},
    {"reciprocal.default", nullptr, &Reciprocal},
    {"log2.default", nullptr, &Log2},
    {"log10.default", nullptr, &Log10},
    {"log1p.default special_log1p.default", nullptr, &Log1p},
    {"expm1.default special_expm1.default", nullptr, &Expm1},
    {"exp2.default special_exp2.default", nullptr, &Exp2},
    {"frac.default", nullptr, &Frac},
    {"signbit.default", nullptr, &SignBit},
    {"relu6.default", nullptr, &Relu6},
    {"hardsigmoid.default", nullptr, &Hardsigmoid},
    {"hardswish.default", nullptr, &Hardswish},
    {"log_sigmoid.default", nullptr, &LogSigmoid},
    {"mish.default", nullptr, &Mish},
    {"detach.default alias.default lift_fresh.default lift.default "
     "conj.default resolve_conj.default resolve_neg.default _conj.default conj_physical.default "
     "_conj_physical.default "
     "real.default",
     nullptr, &PassThrough},
};

TVM_REGISTER() {
  for (const UnaryRow& row : kUnary) Converter(row.overloads, "self", row.convert, row.op);
  Converter("round.default round.decimals", "self, decimals=0", &Round);
  Converter("clamp.default clamp.Tensor clip.default clip.Tensor", "self, min=None, max=None",
            &Clamp);
  Converter("clamp_min.default clamp_min.Tensor", "self, min", &ClampMin);
  Converter("clamp_max.default clamp_max.Tensor", "self, max", &ClampMax);
  Converter("hardtanh.default", "self, min_val=-1, max_val=1", &Hardtanh);
  Converter("gelu.default", "self, approximate='none'", &Gelu);
  Converter("leaky_relu.default", "self, negative_slope=0.01", &LeakyRelu);
  Converter("softplus.default", "self, beta=1, threshold=20", &Softplus);
  Converter("celu.default", "self, alpha=1.0", &Celu);
  Converter("elu.default", "self, alpha=1, scale=1, input_scale=1", &Elu);
  Converter("softshrink.default", "self, lambd=0.5", &Softshrink);
  Converter("hardshrink.default", "self, lambd=0.5", &Hardshrink);
  Converter("threshold.default", "self, threshold, value", &Threshold);
  Converter("prelu.default _prelu_kernel.default", "self, weight", &Prelu);
  Converter("tril.default", "self, diagonal=0", &Trilu, "tril");
  Converter("triu.default", "self, diagonal=0", &Trilu, "triu");
  Converter("_softmax.default", "self, dim, half_to_float", &Softmax, "nn.softmax");
  Converter("_log_softmax.default", "self, dim, half_to_float", &Softmax, "nn.log_softmax");
  Converter("softmax.int", "self, dim, dtype=None", &Softmax, "nn.softmax");
  Converter("log_softmax.int", "self, dim, dtype=None", &Softmax, "nn.log_softmax");
  Converter("_safe_softmax.default", "self, dim, dtype=None", &SafeSoftmax);
  // Inference: what they drop in training is kept.
  Converter(
      "dropout.default feature_dropout.default alpha_dropout.default "
      "feature_alpha_dropout.default",
      "input, p, train", &PassThrough);
  Converter("bernoulli.p", "self, p, generator=None", &PassThrough);
  Converter("clone.default contiguous.default", "self, memory_format=None", &PassThrough);
}

}  // namespace
}  // namespace tvm::frontend::torch
