// SPDX-License-Identifier: Apache-2.0
// Special functions, computed in double precision and rounded once; running extremes.
#include <cmath>
#include <numbers>

#include "converter.h"
#include "elementwise.h"
#include "runtime_call.h"

namespace tvm::frontend::torch {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInf = std::numeric_limits<double>::infinity();

PrimExpr Real(double value) { return FloatImm(DataType::Float(64), value); }
PrimExpr operator/(const PrimExpr& a, const PrimExpr& b) { return div(a, b); }
PrimExpr Choose(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b) {
  return tir::Select(condition, a, b);
}
/// c0 + x (c1 + x (c2 + …))
PrimExpr Polynomial(const PrimExpr& x, std::initializer_list<double> coefficients) {
  PrimExpr sum;
  for (auto it = std::rbegin(coefficients); it != std::rend(coefficients); ++it) {
    sum = sum.defined() ? sum * x + Real(*it) : Real(*it);
  }
  return sum;
}

/// Lanczos' approximation (g = 7) from 1/2 on, the reflection below.
PrimExpr LogGammaUp(const PrimExpr& z) {
  static constexpr double kLanczos[] = {
      0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
      771.32342877765313,   -176.61502916214059,   12.507343278686905,
      -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  PrimExpr x = z - Real(1), sum = Real(kLanczos[0]);
  for (int i = 1; i < 9; ++i) sum = sum + Real(kLanczos[i]) / (x + Real(i));
  PrimExpr t = x + Real(7.5);
  return Real(0.5 * std::log(2 * kPi)) + (x + Real(0.5)) * log(t) - t + log(sum);
}
PrimExpr LogGamma(const PrimExpr& z) {
  PrimExpr below = Real(std::log(kPi)) - log(abs(sin(Real(kPi) * z))) - LogGammaUp(Real(1) - z);
  PrimExpr finite = Choose(z < Real(0.5), below, LogGammaUp(z));
  PrimExpr is_pole = z <= Real(0) && equal(floor(z), z);
  return Choose(is_pole || isinf(z), Real(kInf), finite);
}
/// The recurrence up to 10, then the asymptotic series; the reflection below 0.
PrimExpr DigammaUp(const PrimExpr& from) {
  PrimExpr steps = max(ceil(Real(10) - from), Real(0)), sum = Real(0), x = from + steps;
  for (int i = 0; i < 10; ++i) {
    sum = sum - Choose(Real(i) < steps, Real(1) / (from + Real(i)), Real(0));
  }
  PrimExpr r = Real(1) / (x * x);
  PrimExpr series = Polynomial(r, {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132});
  return sum + log(x) - Real(0.5) / x - r * series;
}
PrimExpr Digamma(const PrimExpr& x) {
  PrimExpr below = DigammaUp(Real(1) - x) - Real(kPi) / tan(Real(kPi) * x);
  PrimExpr value = Choose(x < Real(0), below, DigammaUp(x));
  value = Choose(x < Real(0) && equal(floor(x), x), Real(std::nan("")), value);
  return Choose(equal(x, Real(0)), copysign(Real(kInf), neg(x)), value);
}
/// Hurwitz' zeta function by Euler and Maclaurin's formula, from s = 1 on as in PyTorch.
PrimExpr Zeta(const PrimExpr& s, const PrimExpr& q) {
  constexpr int kTerms = 12;
  static constexpr double kBernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66};
  PrimExpr sum = Real(0), n = q + Real(kTerms);
  for (int k = 0; k < kTerms; ++k) sum = sum + pow(q + Real(k), neg(s));
  PrimExpr tail = pow(n, neg(s));
  sum = sum + n * tail / (s - Real(1)) + tail * Real(0.5);
  PrimExpr factor = s / n;  // s (s + 1) … / n^(2j - 1)
  double factorial = 2;
  for (int j = 0; j < 5; ++j) {
    sum = sum + tail * factor * Real(kBernoulli[j] / factorial);
    PrimExpr a = s + Real(2 * j + 1), b = s + Real(2 * j + 2);
    factor = factor * a * b / (n * n);
    factorial *= (2 * j + 3) * (2 * j + 4);
  }
  PrimExpr is_pole = q <= Real(0) && equal(floor(q), q);
  PrimExpr value = Choose(is_pole || equal(s, Real(1)), Real(kInf), sum);
  return Choose(s < Real(1), Real(std::nan("")), value);
}

// ---- Bessel functions: the mean over a circle, and asymptotic series far out --------------------
constexpr int kPoints = 32;
double PointAt(int i) { return kPi * (i + 0.5) / kPoints; }
/// The terms (μ - 1)(μ - 9)… / (k! (8x)^k) of the series for order ν, μ = 4ν².
std::vector<PrimExpr> Asymptotic(int order, const PrimExpr& x) {
  std::vector<PrimExpr> terms = {Real(1)};
  double mu = 4.0 * order * order;
  for (int k = 1; k <= 5; ++k) {
    double odd = 2 * k - 1;
    terms.push_back(terms.back() * Real((mu - odd * odd) / k) / (Real(8) * x));
  }
  return terms;
}
/// I(x) e^-|x|
PrimExpr BesselI(int order, const PrimExpr& x) {
  PrimExpr a = abs(x), sum = Real(0);
  for (int i = 0; i < kPoints; ++i) {
    double cosine = std::cos(PointAt(i));
    PrimExpr term = exp(a * Real(cosine - 1));
    sum = sum + (order == 0 ? term : term * Real(cosine));
  }
  std::vector<PrimExpr> terms = Asymptotic(order, max(a, Real(1)));
  PrimExpr far = Real(0);
  for (size_t k = 0; k < terms.size(); ++k) far = k % 2 ? far - terms[k] : far + terms[k];
  far = far / sqrt(Real(2 * kPi) * max(a, Real(1)));
  PrimExpr value = Choose(a < Real(50), sum * Real(1.0 / kPoints), far);
  return order == 0 ? value : copysign(value, x);
}
PrimExpr BesselJ(int order, const PrimExpr& x) {
  PrimExpr a = abs(x), sum = Real(0);
  for (int i = 0; i < kPoints; ++i) {
    double sine = std::sin(PointAt(i));
    PrimExpr angle = a * Real(sine);
    sum = sum + (order == 0 ? cos(angle) : sin(angle) * Real(sine));
  }
  PrimExpr far_x = max(a, Real(1));
  std::vector<PrimExpr> terms = Asymptotic(order, far_x);
  PrimExpr p = terms[0] - terms[2] + terms[4], q = terms[1] - terms[3] + terms[5];
  PrimExpr phase = far_x - Real(kPi * (0.5 * order + 0.25));
  PrimExpr far = sqrt(Real(2 / kPi) / far_x) * (p * cos(phase) - q * sin(phase));
  PrimExpr value = Choose(a < Real(25), sum * Real(1.0 / kPoints), far);
  return order == 0 ? value : Choose(x < Real(0), neg(value), value);
}
/// Giles' approximation of the inverse error function.
PrimExpr ErfInv(const PrimExpr& x) {
  PrimExpr w = neg(log((Real(1) - x) * (Real(1) + x)));
  PrimExpr near = Polynomial(
      w - Real(2.5), {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                      -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  PrimExpr far = Polynomial(sqrt(max(w, Real(0))) - Real(3),
                            {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
                             -0.00367342844, 0.00134934322, 0.000100950558, -0.000200214257});
  PrimExpr value = Choose(w < Real(5), near, far) * x;
  return Choose(equal(abs(x), Real(1)), copysign(Real(kInf), x), value);
}
/// 1 - erf(x) up to `bound`, beyond it Laplace's continued fraction: there the difference would
/// have few digits left.
PrimExpr Erfc(const PrimExpr& x, double bound, int terms) {
  PrimExpr far_x = max(x, Real(bound)), r = Real(0.5) / (far_x * far_x), fraction = Real(1);
  for (int k = terms; k > 0; --k) fraction = Real(1) + Real(k) * r / fraction;
  PrimExpr far = exp(neg(x * x)) / (far_x * fraction * Real(std::sqrt(kPi)));
  return Choose(x < Real(bound), Real(1) - erf(x), far);
}
PrimExpr SphericalJ0(const PrimExpr& x) { return Choose(equal(x, Real(0)), Real(1), sin(x) / x); }

using SpecialFn = PrimExpr (*)(const PrimExpr&);
struct SpecialRow {
  const char *overloads, *name;
  SpecialFn fn;
};
constexpr SpecialRow kSpecial[] = {
    {"lgamma.default special_gammaln.default", "lgamma", &LogGamma},
    {"digamma.default special_digamma.default special_psi.default", "digamma", &Digamma},
    {"erfinv.default special_erfinv.default", "erfinv", &ErfInv},
    {"i0.default special_i0.default special_modified_bessel_i0.default", "i0",
     [](const PrimExpr& x) { return BesselI(0, x) * exp(abs(x)); }},
    {"special_i0e.default", "i0e", [](const PrimExpr& x) { return BesselI(0, x); }},
    {"special_i1.default special_modified_bessel_i1.default", "i1",
     [](const PrimExpr& x) { return BesselI(1, x) * exp(abs(x)); }},
    {"special_i1e.default", "i1e", [](const PrimExpr& x) { return BesselI(1, x); }},
    {"special_bessel_j0.default", "j0", [](const PrimExpr& x) { return BesselJ(0, x); }},
    {"special_bessel_j1.default", "j1", [](const PrimExpr& x) { return BesselJ(1, x); }},
    {"special_spherical_bessel_j0.default", "spherical_j0", &SphericalJ0},
};
Any Special(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  DataType t = TypeOf(x);
  for (const SpecialRow& row : kSpecial) {
    if (std::string_view(row.name) != c.op) continue;
    return Elementwise(c, row.name, {x}, [&](const std::vector<PrimExpr>& v) {
      return cast(t, row.fn(cast(DataType::Float(64), v[0])));
    });
  }
  TVM_FFI_UNREACHABLE();
}
Any ErfcOf(Conversion& c) {
  Expr x = c.Real(c.Tensor(0));
  DataType t = TypeOf(x);
  // erfc(4) is 1.5e-8: half of the digits of double precision, all of single.
  bool is_double = t.bits() == 64;
  return Elementwise(c, "erfc", {x}, [&](const std::vector<PrimExpr>& v) {
    return cast(t, Erfc(cast(DataType::Float(64), v[0]), is_double ? 2 : 4, is_double ? 40 : 12));
  });
}
Any ZetaOf(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  if (IsIntegral(t)) t = c.default_dtype();
  auto tensor = [&](const Any& value) {
    return IsTensor(value) ? c.As(value, t) : c.Emit("full", ShapeExpr(Dims()), c.As(value, t), t);
  };
  Expr s = tensor(c[0]);
  return Elementwise(c, "zeta", {s, tensor(c[1])}, [&](const std::vector<PrimExpr>& v) {
    return cast(t, Zeta(cast(DataType::Float(64), v[0]), cast(DataType::Float(64), v[1])));
  });
}
/// The n-th derivative of digamma: (-1)^(n + 1) n! zeta(n + 1, x).
Any Polygamma(Conversion& c) {
  int64_t n = c.Int(0);
  Expr x = c.Real(c.Tensor(1));
  DataType t = TypeOf(x);
  double factor = n % 2 ? 1 : -1;
  for (int64_t i = 2; i <= n; ++i) factor *= static_cast<double>(i);
  return Elementwise(c, "polygamma", {x}, [&](const std::vector<PrimExpr>& v) {
    PrimExpr d = cast(DataType::Float(64), v[0]);
    if (n == 0) return cast(t, Digamma(d));
    return cast(t, Real(factor) * Zeta(Real(static_cast<double>(n + 1)), d));
  });
}

// ---- functions of the runtime -------------------------------------------------------------------
/// All operands as tensors of one floating type and shape.
Any InRuntime(Conversion& c) {
  std::vector<Any> given;
  for (size_t i = 0; i < c.size(); ++i) given.push_back(c[i]);
  DataType t = c.ResultType(given);
  if (IsIntegral(t)) t = c.default_dtype();
  DataType computed = t.bits() < 32 ? DataType::Float(32) : t;
  Array<Expr> operands;
  for (const Any& value : given) {
    Expr x = c.As(value, computed);
    if (!IsTensor(value)) x = c.Emit("full", ShapeExpr(Dims()), x, computed);
    operands.push_back(x);
  }
  operands = Broadcast(c, operands);
  std::string name = std::string("special.") + c.op;
  return c.Cast(RunInRuntime(c, name, operands, {InfoFor(ShapeOf(operands[0]), computed)})[0], t);
}

// ---- running extremes ---------------------------------------------------------------------------
/// The largest (smallest) element up to each, and the last position of it.
Any RunningExtreme(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) return Array<Any>{x, c.Emit("zeros_like", x, DataType::Int(64))};
  bool is_max = std::string_view(c.op) == "max", is_bool = TypeOf(x).is_bool();
  int64_t axis = c.Axis(1, RankOf(x));
  if (is_bool) x = c.Cast(x, DataType::UInt(8));
  Expr both = c.Compute(is_max ? "cummax" : "cummin", {x}, [&](const Array<te::Tensor>& in) {
    te::Tensor data = in[0];
    auto axis_over = [&] {
      return te::reduce_axis(
          Range::FromMinExtent(MakeZero(data->shape[axis].dtype()), data->shape[axis]));
    };
    auto at = [&](const Array<tir::Var>& i, const tir::IterVar& k) {
      Array<PrimExpr> position(i.begin(), i.end());
      position.Set(axis, k->var);
      return position;
    };
    DataType t = data->dtype;
    PrimExpr none = !t.is_float() ? (is_max ? min_value(t) : max_value(t))
                                  : MakeConst(t, is_max ? -kInf : kInf);
    tir::IterVar k = axis_over(), m = axis_over();
    te::Tensor extreme = te::compute(
        data->shape,
        [&](const Array<tir::Var>& i) {
          PrimExpr value = tir::Select(k->var <= i[axis], data(at(i, k)), none);
          return is_max ? te::max(value, {k}) : te::min(value, {k});
        },
        "extreme");
    te::Tensor index = te::compute(
        data->shape,
        [&](const Array<tir::Var>& i) {
          PrimExpr value = data(at(i, m)), is_it = equal(value, extreme(i));
          if (t.is_float()) is_it = is_it || isnan(value);
          PrimExpr place = cast(DataType::Int(64), m->var);
          return te::max(tir::Select(m->var <= i[axis] && is_it, place, IntImm::Int64(-1)), {m});
        },
        "index");
    return Array<te::Tensor>{extreme, index};
  });
  if (!is_bool) return both;
  Expr extreme = c.Bind(TupleGetItem(both, 0));
  return Array<Any>{c.Cast(extreme, DataType::Bool()), c.Bind(TupleGetItem(both, 1))};
}

TVM_REGISTER() {
  for (const SpecialRow& row : kSpecial) Converter(row.overloads, "self", &Special, row.name);
  Converter("erfc.default special_erfc.default", "self", &ErfcOf);
  Converter("special_zeta.default special_zeta.other_scalar special_zeta.self_scalar",
            "self, other", &ZetaOf);
  Converter("polygamma.default special_polygamma.default", "n, self", &Polygamma);
  for (const char* name :
       {"airy_ai", "bessel_y0", "bessel_y1", "erfcx", "log_ndtr", "modified_bessel_k0",
        "modified_bessel_k1", "ndtri", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"}) {
    Converter((std::string("special_") + name + ".default").c_str(), "self", &InRuntime, name);
  }
  for (const char* name :
       {"chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
        "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t",
        "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
        "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
        "laguerre_polynomial_l", "legendre_polynomial_p"}) {
    std::string overloads;
    for (const char* kind : {"default", "x_scalar", "n_scalar"}) {
      overloads += std::string("special_") + name + "." + kind + " ";
    }
    Converter(overloads.c_str(), "x, n", &InRuntime, name);
  }
  Converter("igamma.default special_gammainc.default", "self, other", &InRuntime, "igamma");
  Converter("igammac.default special_gammaincc.default", "self, other", &InRuntime, "igammac");
  Converter("cummax.default", "self, dim", &RunningExtreme, "max");
  Converter("cummin.default", "self, dim", &RunningExtreme, "min");
}

}  // namespace
}  // namespace tvm::frontend::torch
