// SPDX-License-Identifier: Apache-2.0
// Activations, softmax.
#include <cmath>
#include <numbers>

#include "topi/reduce.h"
#include "tvm/topi/elementwise.h"
#include "tvm/topi/nn.h"
#include "tvm/topi/reduction.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
Tensor Mapped(const Tensor& x, const std::function<PrimExpr(PrimExpr)>& f) {
  return Compute(x->shape, [&](const Index& i) { return f(At(x, i)); }, "compute", kElementWise);
}
PrimExpr Leaky(const PrimExpr& x, const PrimExpr& slope) {
  return Select(MakeZero(x.dtype()) < x, x, x * slope);
}
}  // namespace

Tensor relu(const Tensor& x) {
  return Mapped(x, [&](PrimExpr e) { return tvm::max(e, MakeZero(x->dtype)); });
}
Tensor leaky_relu(const Tensor& x, double alpha) {
  return Mapped(x, [&](PrimExpr e) { return Leaky(e, MakeConst(x->dtype, alpha)); });
}
Tensor prelu(const Tensor& x, const Tensor& slope, int64_t axis) {
  size_t at = Axis("prelu", axis, x->shape.size());
  CheckRank("prelu", "a slope", slope, 1);
  bool single = IsOne(slope->shape[0]);
  if (!single && DifferentDim(slope->shape[0], x->shape[at])) {
    Complain("prelu", "a slope per element of axis " + std::to_string(at) + " of " + Text(x->shape),
             Text(slope->shape));
  }
  Tensor spread = Compute(
      {x->shape[at]}, [&](const Index& i) { return slope(single ? MakeZero(i[0].dtype()) : i[0]); },
      "slope_broadcasted", kBroadcast);
  return Compute(
      x->shape, [&](const Index& i) { return Leaky(At(x, i), spread(i[at])); }, "compute",
      kBroadcast);
}
Tensor softplus(const Tensor& x, double beta, double threshold) {
  DataType t = x->dtype;
  return Mapped(x, [&](PrimExpr e) -> PrimExpr {
    PrimExpr steep = MakeConst(t, beta) * e;
    return Select(MakeConst(t, threshold) < steep, e,
                  div(log1p(tvm::exp(steep)), MakeConst(t, beta)));
  });
}
Tensor gelu(const Tensor& x) {
  auto number = [&](double value) -> Operand { return MakeConst(x->dtype, value); };
  Tensor scaled = Of(multiply, x, number(std::sqrt(0.5)));
  Tensor half = Of(multiply, erf(scaled), number(0.5));
  return Of(multiply, x, Of(add, number(0.5), half));
}
Tensor gelu_tanh(const Tensor& x) {
  auto number = [&](double value) -> Operand { return MakeConst(x->dtype, value); };
  Tensor half = Of(multiply, number(0.5), x);
  Tensor scaled = Of(multiply, number(std::sqrt(2 / std::numbers::pi)), x);
  Tensor squares = Of(multiply, Of(multiply, number(0.044715), x), x);
  Tensor inner = Of(multiply, scaled, Of(add, number(1), squares));
  return Of(multiply, half, Of(add, number(1), tanh(inner)));
}
Tensor silu(const Tensor& x) { return Of(multiply, x, sigmoid(x)); }
Tensor selu(const Tensor& x) {
  constexpr double kAlpha = 1.6732632423543772, kScale = 1.0507009873554805;
  DataType t = x->dtype;
  return Mapped(x, [&](PrimExpr e) -> PrimExpr {
    PrimExpr below = MakeConst(t, kAlpha) * (tvm::exp(e) - MakeConst(t, 1));
    return MakeConst(t, kScale) * Select(MakeZero(t) < e, e, below);
  });
}

// ---- softmax ------------------------------------------------------------------------------------
namespace {
/// What softmax and its logarithm begin with: the maxima of the rows along an axis.
struct Rows {
  Rows(const char* op, const Tensor& x, int64_t along, const char* tag)
      : axis(Axis(op, along, x->shape.size())), over_exp(x, {axis}, false) {
    Reduction over_x(x, {axis}, false);
    top = Compute(
        over_x.shape,
        [&](const Index& i) { return te::max(At(x, over_x.Source(i)), over_x.iters); },
        "T_softmax_maxelem", tag);
  }
  /// The row of an element.
  Index RowOf(Index i) const {
    i.erase(i.begin() + static_cast<std::ptrdiff_t>(axis));
    return i;
  }
  size_t axis;
  Reduction over_exp;
  Tensor top;
};
}  // namespace
namespace {
/// The elements in the type of sums.
Tensor Wide(const Tensor& x, const char* tag) {
  DataType t = SumType(x->dtype);
  if (x->dtype == t) return x;
  return Compute(
      x->shape, [&](const Index& i) { return tvm::cast(t, At(x, i)); }, "T_softmax_wide", tag);
}
}  // namespace
Tensor softmax(const Tensor& x, int64_t axis) {
  constexpr const char* kTag = "softmax_output";
  Tensor wide = Wide(x, kTag);
  bool is_small = wide->dtype != x->dtype;
  Rows rows("softmax", wide, axis, kTag);
  const Reduction& over = rows.over_exp;
  Tensor e = Compute(
      x->shape, [&](const Index& i) { return tvm::exp(At(wide, i) - At(rows.top, rows.RowOf(i))); },
      "T_softmax_exp", kTag);
  Tensor total = Compute(
      over.shape, [&](const Index& i) { return te::sum(At(e, over.Source(i)), over.iters); },
      "T_softmax_expsum", kTag);
  // One division per row is precise enough then.
  if (is_small) {
    total = Compute(
        over.shape, [&](const Index& i) { return div(MakeConst(wide->dtype, 1), At(total, i)); },
        "T_softmax_inverse", kTag);
  }
  return Compute(x->shape,
                 [&](const Index& i) {
                   PrimExpr row = At(total, rows.RowOf(i));
                   return is_small ? cast(x->dtype, At(e, i) * row) : div(At(e, i), row);
                 },
                 "T_softmax_norm", kTag, {{"axis", static_cast<int64_t>(rows.axis)}});
}
Tensor log_softmax(const Tensor& x, int64_t axis) {
  constexpr const char* kTag = "log_softmax_output";
  Tensor wide = Wide(x, kTag);
  Rows rows("log_softmax", wide, axis, kTag);
  const Reduction& over = rows.over_exp;
  Tensor total = Compute(
      over.shape,
      [&](const Index& i) {
        return te::sum(tvm::exp(At(wide, over.Source(i)) - At(rows.top, i)), over.iters);
      },
      "compute", kCommReduce);
  return Compute(x->shape,
                 [&](const Index& i) {
                   Index row = rows.RowOf(i);
                   PrimExpr value = At(wide, i) - At(rows.top, row) - tvm::log(At(total, row));
                   return tvm::cast(x->dtype, value);
                 },
                 "compute", kTag, {{"axis", static_cast<int64_t>(rows.axis)}});
}

namespace {
TVM_REGISTER() {
  Def("topi.nn.relu", &relu, "max(x, 0)", Arg("x"));
  Def("topi.nn.leaky_relu", &leaky_relu, "x, or alpha * x below 0.", Arg("x"), Arg("alpha"));
  Def("topi.nn.prelu", &prelu, "x, or slope * x below 0, a slope per element of an axis.", Arg("x"),
      Arg("slope"), Arg("axis", 1));
  Def("topi.nn.softplus", &softplus, "log(1 + exp(beta * x)) / beta; x above the threshold.",
      Arg("x"), Arg("beta", 1.0), Arg("threshold", 20.0));
  Def("topi.nn.gelu", &gelu, "x * (0.5 + 0.5 * erf(x / sqrt(2)))", Arg("x"));
  Def("topi.nn.gelu_tanh", &gelu_tanh, "The approximation of gelu by tanh.", Arg("x"));
  Def("topi.nn.silu", &silu, "x * sigmoid(x)", Arg("x"));
  Def("topi.nn.selu", &selu, "The scaled exponential linear unit.", Arg("x"));
  for (const char* name : {"topi.nn.softmax", "topi.nn.fast_softmax"}) {
    Def(name, &softmax, "exp(x) divided by its sum along the axis.", Arg("x"), Arg("axis", -1));
  }
  Def(
      "topi.nn.softmax_common", [](Tensor x, int64_t axis, bool) { return softmax(x, axis); },
      "exp(x) divided by its sum along the axis.", Arg("x"), Arg("axis"), Arg("use_fast_exp"));
  Def("topi.nn.log_softmax", &log_softmax, "The logarithm of softmax.", Arg("x"), Arg("axis", -1));
}
}  // namespace
}  // namespace tvm::topi::nn
