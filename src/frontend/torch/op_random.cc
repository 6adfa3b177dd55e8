// SPDX-License-Identifier: Apache-2.0
// Random numbers: uniform and normal ones come from the runtime's generator
// ("relax.run.random.seed" sets its seed), other distributions follow from them.
#include <cmath>
#include <numbers>

#include "converter.h"
#include "runtime_call.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::torch {
namespace {

/// What the runtime draws. Calls are numbered, so that two are never taken for one.
Expr Drawn(Conversion& c, const char* kind, const Dims& shape, DataType t,
           const Array<Expr>& bounds = {}) {
  DataType computed = topi::SumType(t);
  Array<Expr> args = {PrimValue::Int64(c.importer()->NextCall())};
  for (const Expr& bound : bounds) args.push_back(bound);
  std::string name = std::string("random.") + kind;
  return c.Cast(RunInRuntime(c, name, args, {InfoFor(shape, computed)})[0], t);
}
Expr UniformLike(Conversion& c, const Expr& x) {
  return Drawn(c, "uniform", ShapeOf(x), TypeOf(x));
}
Any OfSize(Conversion& c) { return Drawn(c, c.op, c.Sizes(0), c.Type(1, c.default_dtype())); }
Any Like(Conversion& c) {
  Expr x = c.Tensor(0);
  return Drawn(c, c.op, ShapeOf(x), c.Type(1, TypeOf(x)));
}
Any IntegersOf(Conversion& c, const Any& low, const Any& high, const Dims& shape, DataType t) {
  Expr drawn = Drawn(c, "integers", shape, DataType::Int(64),
                     {PrimValue(AsSize(low)), PrimValue(AsSize(high))});
  return c.Cast(drawn, t);
}
Any IntegersBelow(Conversion& c) {
  return IntegersOf(c, 0, c[0], c.Sizes(1), c.Type(2, DataType::Int(64)));
}
Any IntegersBetween(Conversion& c) {
  return IntegersOf(c, c[0], c[1], c.Sizes(2), c.Type(3, DataType::Int(64)));
}
Any IntegersLike(Conversion& c) {
  Expr x = c.Tensor(0);
  return IntegersOf(c, 0, c[1], ShapeOf(x), c.Type(2, TypeOf(x)));
}
Any IntegersLikeBetween(Conversion& c) {
  Expr x = c.Tensor(0);
  return IntegersOf(c, c[1], c[2], ShapeOf(x), c.Type(3, TypeOf(x)));
}
Any Permutation(Conversion& c) {
  Expr drawn = Drawn(c, "permutation", {AsSize(c[0])}, DataType::Int(64));
  return c.Cast(drawn, c.Type(1, DataType::Int(64)));
}

// ---- distributions ------------------------------------------------------------------------------
/// In [from, to)
Any Uniform(Conversion& c) {
  Expr x = c.Tensor(0), u = UniformLike(c, x);
  double from = c.Number(1), to = c.Number(2);
  DataType t = TypeOf(x);
  return c.Emit("add", c.Emit("multiply", u, c.Const(to - from, t)), c.Const(from, t));
}
Expr NormalOf(Conversion& c, const Dims& shape, DataType t, const Any& mean, const Any& std) {
  Expr z = Drawn(c, "normal", shape, t);
  return c.Emit("add", c.Emit("multiply", z, c.As(std, t)), c.As(mean, t));
}
Any NormalLike(Conversion& c) {
  Expr x = c.Tensor(0);
  return NormalOf(c, ShapeOf(x), TypeOf(x), c[1], c[2]);
}
/// Mean and deviation, of which one or both are tensors.
Any NormalByTensors(Conversion& c) {
  DataType t = IsTensor(c[0]) ? TypeOf(c.Tensor(0)) : TypeOf(c.Tensor(1));
  Dims shape = IsTensor(c[0]) ? ShapeOf(c.Tensor(0)) : ShapeOf(c.Tensor(1));
  if (IsTensor(c[0]) && IsTensor(c[1])) {
    shape = ShapeOf(c.Emit("add", c.Tensor(0), c.Tensor(1)));
  }
  return NormalOf(c, shape, t, c[0], c[1]);
}
Any NormalOfSize(Conversion& c) {
  return NormalOf(c, c.Sizes(2), c.Type(3, c.default_dtype()), c[0], c[1]);
}
Any LogNormal(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("exp", NormalOf(c, ShapeOf(x), TypeOf(x), c[1], c[2]));
}
/// log(1 - u), which is finite.
Expr LogOfRest(Conversion& c, const Expr& x) {
  return c.Emit("log", c.Emit("subtract", c.Const(1.0, TypeOf(x)), UniformLike(c, x)));
}
Any Exponential(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Emit("divide", LogOfRest(c, x), c.Const(-c.Number(1), TypeOf(x)));
}
Any Geometric(Conversion& c) {
  Expr x = c.Tensor(0), real = c.Real(x);
  double scale = std::log1p(-c.Number(1));
  Expr turns = c.Emit("ceil", c.Emit("divide", LogOfRest(c, real), c.Const(scale, TypeOf(real))));
  return c.Cast(c.Emit("maximum", turns, c.Const(1.0, TypeOf(real))), TypeOf(x));
}
Any Cauchy(Conversion& c) {
  Expr x = c.Tensor(0), u = UniformLike(c, x);
  DataType t = TypeOf(x);
  Expr angle =
      c.Emit("multiply", c.Emit("subtract", u, c.Const(0.5, t)), c.Const(std::numbers::pi, t));
  Expr spread = c.Emit("multiply", c.Emit("tan", angle), c.Const(c.Number(2), t));
  return c.Emit("add", spread, c.Const(c.Number(1), t));
}
/// 1 where a uniform number is below the probability.
Any Bernoulli(Conversion& c) {
  Expr p = c.Tensor(0);
  return c.Cast(c.Emit("less", UniformLike(c, p), p), TypeOf(p));
}
Any BernoulliByTensor(Conversion& c) {
  Expr x = c.Tensor(0), p = c.Tensor(1);
  Expr u = Drawn(c, "uniform", ShapeOf(x), TypeOf(p));
  return c.Cast(c.Emit("less", u, p), TypeOf(x));
}
/// Categories by their weights: those of the largest log(weight) + noise of Gumbel's kind.
Any Multinomial(Conversion& c) {
  Expr weights = c.Tensor(0);
  int64_t n = c.Int(1);
  DataType t = TypeOf(weights);
  Expr logs = c.Emit("log", weights);
  Dims shape = ShapeOf(weights);
  bool with_replacement = c.Flag(2);
  if (with_replacement) {
    logs = c.Emit("expand_dims", logs, -2);
    shape.insert(shape.end() - 1, IntImm::Int64(n));
  }
  // In (0, 1]: both logarithms are defined.
  Expr u = c.Emit("subtract", c.Const(1.0, t), Drawn(c, "uniform", shape, t));
  Expr wait = c.Emit("maximum", c.Emit("negative", c.Emit("log", u)), c.Const(1e-30, t));
  Expr keys = c.Emit("subtract", logs, c.Emit("log", wait));
  if (with_replacement) return c.Emit("argmax", keys, -1, false);
  return c.Emit("topk", keys, n, -1, "indices", true, DataType::Int(64));
}
/// A slope drawn for each element below 0; the mean of the bounds outside of training.
Any RandomizedRelu(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = TypeOf(x);
  double low = c.Number(2), high = c.Number(3);
  Expr slope = c.Const((low + high) / 2, t);
  if (c.Flag(4)) {
    Expr u = c.Emit("multiply", UniformLike(c, x), c.Const(high - low, t));
    slope = c.Emit("add", u, c.Const(low, t));
  }
  Expr is_positive = c.Emit("greater", x, c.Const(0.0, t));
  Expr y = c.Emit("where", is_positive, x, c.Emit("multiply", x, slope));
  Expr noise = c.Flag(4) ? c.Emit("where", is_positive, c.Const(1.0, t), slope) : c.Tensor(1);
  return Array<Any>{y, noise};
}

TVM_REGISTER() {
  Converter("rand.default", "size, dtype=None", &OfSize, "uniform");
  Converter("randn.default", "size, dtype=None", &OfSize, "normal");
  Converter("rand_like.default", "self, dtype=None", &Like, "uniform");
  Converter("randn_like.default", "self, dtype=None", &Like, "normal");
  Converter("randint.default", "high, size, dtype=None", &IntegersBelow);
  Converter("randint.low", "low, high, size, dtype=None", &IntegersBetween);
  Converter("randint_like.default", "self, high, dtype=None", &IntegersLike);
  Converter("randint_like.low_dtype", "self, low, high, dtype=None", &IntegersLikeBetween);
  Converter("randperm.default", "n, dtype=None", &Permutation);
  Converter("uniform.default", "self, from=0.0, to=1.0, generator=None", &Uniform);
  Converter("normal_functional.default", "self, mean=0.0, std=1.0, generator=None", &NormalLike);
  Converter("normal.Tensor_Tensor normal.Tensor_float normal.float_Tensor",
            "mean, std=1.0, generator=None", &NormalByTensors);
  Converter("normal.float_float", "mean, std, size, dtype=None, generator=None", &NormalOfSize);
  Converter("log_normal.default", "self, mean=1.0, std=2.0, generator=None", &LogNormal);
  Converter("exponential.default", "self, lambd=1.0, generator=None", &Exponential);
  Converter("geometric.default", "self, p, generator=None", &Geometric);
  Converter("cauchy.default", "self, median=0.0, sigma=1.0, generator=None", &Cauchy);
  Converter("multinomial.default", "self, num_samples, replacement=False, generator=None",
            &Multinomial);
  Converter("rrelu_with_noise_functional.default",
            "self, noise, lower=0.125, upper=0.3333333333333333, training=False, generator=None",
            &RandomizedRelu);
  Converter("bernoulli.default", "self, generator=None", &Bernoulli);
  Converter("bernoulli.Tensor", "self, p, generator=None", &BernoulliByTensor);
}

}  // namespace
}  // namespace tvm::frontend::torch
