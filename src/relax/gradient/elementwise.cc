// SPDX-License-Identifier: Apache-2.0
// Gradients of operators on elements: a row each.
#include <cmath>

#include "relax/gradient/gradient.h"

namespace tvm::relax {
namespace {
constexpr double kTwoOverRootPi = 1.1283791670955126;

Values Zero(Grad& r) { return {r.ZerosLike(r.x(0))}; }
/// Where the condition holds, else 0.
Value Where(Grad& r, const Value& condition, const Value& value) {
  return r.F("where", condition, value, r.ZerosLike(value));
}

Values OfGeluTanh(Grad& r) {
  const double a = std::sqrt(2 / M_PI), b = 0.044715;
  Value x = r.x(0), t = r.F("tanh", (x + x * x * x * b) * a);
  Value inner = (x * x * (3 * b) + 1.0) * a;
  return {r.g() * ((t + 1.0) * 0.5 + x * 0.5 * (1.0 - t * t) * inner)};
}
Values OfGelu(Grad& r) {
  Value x = r.x(0);
  Value normal = (r.F("erf", x * std::sqrt(0.5)) + 1.0) * 0.5;
  Value density = r.F("exp", x * x * -0.5) * (1 / std::sqrt(2 * M_PI));
  return {r.g() * (normal + x * density)};
}
Values OfSelu(Grad& r) {
  const double alpha = 1.6732632423543772, scale = 1.0507009873554805;
  Value x = r.x(0), g = r.g() * scale;
  // exp of the positive ones is not used, and must not overflow.
  Value e = r.F("exp", r.F("minimum", x, r.ZerosLike(x)));
  return {r.F("where", x < 0.0, g * e * alpha, g)};
}
Values OfSoftplus(Grad& r) {
  auto* attrs = r.attrs<SoftplusAttrsObj>();
  Value scaled = r.x(0) * attrs->beta;
  return {r.F("where", attrs->threshold < scaled, r.g(), r.g() * r.F("sigmoid", scaled))};
}
Values OfPRelu(Grad& r) {
  Value x = r.x(0), alpha = r.x(1), g = r.g();
  int64_t axis = r.attrs<PReluAttrsObj>()->axis;
  if (axis < 0) axis += x.ndim();
  std::vector<int64_t> others;
  Dims dims;
  for (int64_t i = 0; i < x.ndim(); ++i) {
    if (i != axis) others.push_back(i);
    dims.push_back(i == axis ? r.DimsOf(alpha)[0] : Dim(1));
  }
  Value negative = x < 0.0;
  Value of_alpha = r.F("sum", Where(r, negative, g * x), AsArray(others), false);
  return {r.F("where", negative, g * r.Reshaped(alpha, dims), g), r.CollapseTo(of_alpha, alpha)};
}
/// The bound as a number, of whatever type it was written.
double Bound(Grad& r, size_t i) {
  auto* prim = r.call->args[i].as<PrimValueObj>();
  if (auto* value = prim ? prim->value.as<FloatImmObj>() : nullptr) return value->value;
  if (auto* value = prim ? prim->value.as<IntImmObj>() : nullptr)
    return static_cast<double>(value->value);
  r.Refuse("a bound that is no number");
}
Values OfClip(Grad& r) {
  Value x = r.x(0);
  Value inside = r.F("logical_and", x >= Bound(r, 1), r.F("less_equal", x, Bound(r, 2)));
  return {Where(r, inside, r.g())};
}
Values OfAstype(Grad& r) {
  if (!r.IsFloat(0)) return {};
  return {r.F("astype", r.g(), r.x(0).dtype())};
}
Values OfWhere(Grad& r) {
  Value zero = r.ZerosLike(r.g());
  return {{},
          r.CollapseTo(r.F("where", r.x(0), r.g(), zero), r.x(1)),
          r.CollapseTo(r.F("where", r.x(0), zero, r.g()), r.x(2))};
}

/// What fills a tensor is in every element of it.
Values OfFull(Grad& r) { return {{}, r.ReshapeLike(r.F("sum", r.g()), r.x(1))}; }

#define UNARY(op, expr)                          \
  {"relax." op, [](Grad& r) -> Values {          \
     Value x = r.x(0), y = r.y(), g = r.g();     \
     static_cast<void>(x), static_cast<void>(y); \
     return {expr};                              \
   }}
#define BINARY(op, of_a, of_b)                                         \
  {"relax." op, [](Grad& r) -> Values {                                \
     Value a = r.x(0), b = r.x(1), y = r.y(), g = r.g();               \
     static_cast<void>(a), static_cast<void>(b), static_cast<void>(y); \
     return {r.CollapseTo(of_a, a), r.CollapseTo(of_b, b)};            \
   }}
const GradientRow kRows[] = {
    UNARY("abs", r.F("where", x < 0.0, -g, g)),
    UNARY("acos", -(g / r.F("sqrt", 1.0 - x * x))),
    UNARY("acosh", g / r.F("sqrt", x* x - 1.0)),
    UNARY("asin", g / r.F("sqrt", 1.0 - x * x)),
    UNARY("asinh", g / r.F("sqrt", x* x + 1.0)),
    UNARY("atan", g / (x * x + 1.0)),
    UNARY("atanh", g / (1.0 - x * x)),
    UNARY("cos", -(g* r.F("sin", x))),
    UNARY("cosh", g* r.F("sinh", x)),
    UNARY("erf", g* r.F("exp", -(x* x)) * kTwoOverRootPi),
    UNARY("exp", g* y),
    UNARY("log", g / x),
    UNARY("negative", -g),
    UNARY("rsqrt", g* y / x * -0.5),
    UNARY("sigmoid", g*(y * (1.0 - y))),
    UNARY("sin", g* r.F("cos", x)),
    UNARY("sinh", g* r.F("cosh", x)),
    UNARY("sqrt", g * 0.5 / y),
    UNARY("square", g* x * 2.0),
    UNARY("tan", g*(y* y + 1.0)),
    UNARY("tanh", g * (1.0 - y * y)),
    UNARY("nn.relu", r.F("where", x < 0.0, r.ZerosLike(g), g)),
    UNARY("nn.silu", g*(r.F("sigmoid", x) + y * (1.0 - r.F("sigmoid", x)))),
    UNARY("nn.leakyrelu", r.F("where", x < 0.0, g* r.attrs<LeakyReluAttrsObj>()->alpha, g)),
    {"relax.nn.gelu", &OfGelu},
    {"relax.nn.gelu_tanh", &OfGeluTanh},
    {"relax.nn.selu", &OfSelu},
    {"relax.nn.softplus", &OfSoftplus},
    {"relax.nn.prelu", &OfPRelu},
    {"relax.clip", &OfClip},
    {"relax.astype", &OfAstype},
    {"relax.where", &OfWhere},
    {"relax.full", &OfFull},
    {"relax.full_like", &OfFull},
    BINARY("add", g, g),
    BINARY("subtract", g, -g),
    BINARY("multiply", g* b, g* a),
    BINARY("divide", g / b, -(g* y / b)),
    BINARY("power", g* b* r.F("power", a, b - 1.0), g* y* r.F("log", a)),
    BINARY("maximum", r.F("where", a < b, r.ZerosLike(g), g),
           r.F("where", a >= b, r.ZerosLike(g), g)),
    BINARY("minimum", r.F("where", a >= b, r.ZerosLike(g), g),
           r.F("where", a < b, r.ZerosLike(g), g)),
    BINARY("log_add_exp", g* r.F("exp", a - y), g* r.F("exp", b - y)),
    BINARY("mod", g, -(g* r.F("trunc", a / b))),
    BINARY("floor_mod", g, -(g* r.F("floor", a / b))),
    {"relax.ewise_fma", [](Grad& r) -> Values { return {r.g() * r.x(1), r.g() * r.x(0), r.g()}; }},
};
#undef UNARY
#undef BINARY

TVM_REGISTER() {
  for (const GradientRow& row : kRows) RegisterGradient(row);
  for (const char* op : {"relax.ceil", "relax.floor", "relax.round", "relax.sign", "relax.trunc"})
    RegisterGradient({op, &Zero});
  for (const char* op :
       {"relax.floor_divide",  "relax.equal",       "relax.greater",     "relax.greater_equal",
        "relax.less",          "relax.less_equal",  "relax.not_equal",   "relax.logical_and",
        "relax.logical_or",    "relax.logical_xor", "relax.logical_not", "relax.bitwise_and",
        "relax.bitwise_or",    "relax.bitwise_xor", "relax.bitwise_not", "relax.left_shift",
        "relax.right_shift",   "relax.isfinite",    "relax.isinf",       "relax.isnan",
        "relax.ones",          "relax.ones_like",   "relax.zeros",       "relax.zeros_like",
        "relax.eye",           "relax.eye_like",    "relax.arange",      "relax.argmax",
        "relax.argmin",        "relax.argsort",     "relax.one_hot",     "relax.shape_of",
        "relax.size",          "relax.bucketize",   "relax.nonzero",     "relax.unique",
        "relax.hamming_window"})
    RegisterGradient({op, &NoGradient});
}
}  // namespace
}  // namespace tvm::relax
