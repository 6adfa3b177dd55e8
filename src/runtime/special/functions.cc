// SPDX-License-Identifier: Apache-2.0
// Special functions that no kernel computes: one element after the other, in double precision.
#include <cmath>
#include <limits>
#include <numbers>

#include "tvm/runtime/data_type.h"
#include "tvm/runtime/def.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::special {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = std::numbers::pi;

// ---- Bessel and Airy functions ------------------------------------------------------------------
template <int order>
double BesselY(double x) {
  if (x == 0) return -kInf;
  return x > 0 ? std::cyl_neumann(order, x) : kNaN;
}
/// K(x) e^x
template <int order>
double ScaledBesselK(double x) {
  if (x == 0) return kInf;
  if (!(x > 0)) return kNaN;
  if (x < 100) return std::cyl_bessel_k(order, x) * std::exp(x);
  double mu = 4.0 * order * order, term = 1, sum = 1;
  for (int k = 1; k <= 5; ++k) {
    term *= (mu - (2.0 * k - 1) * (2.0 * k - 1)) / (8 * x * k);
    sum += term;
  }
  return std::sqrt(kPi / (2 * x)) * sum;
}
template <int order>
double BesselK(double x) {
  return ScaledBesselK<order>(x) * std::exp(-x);
}
double AiryAi(double x) {
  constexpr double third = 1.0 / 3;
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : kNaN;
  if (std::abs(x) < 1e-8) return 0.35502805388781723926 - 0.25881940379280679840 * x;
  double a = std::abs(x), zeta = 2 * third * a * std::sqrt(a);
  if (x > 0) return zeta > 700 ? 0 : std::sqrt(a * third) / kPi * std::cyl_bessel_k(third, zeta);
  // J of order -1/3 by those of order 1/3.
  double j = std::cyl_bessel_j(third, zeta), y = std::cyl_neumann(third, zeta);
  return std::sqrt(a) * third * (j + std::cos(kPi * third) * j - std::sin(kPi * third) * y);
}

// ---- the normal distribution --------------------------------------------------------------------
/// e^(x^2) erfc(x)
double Erfcx(double x) {
  if (x < 25) return std::exp(x * x) * std::erfc(x);
  double r = 1 / (2 * x * x);
  return (1 - r * (1 - 3 * r * (1 - 5 * r))) / (x * std::sqrt(kPi));
}
double LogNdtr(double x) {
  double t = x * std::numbers::sqrt2 / 2;
  if (x < -1) return std::log(Erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}
/// Where the distribution function is p: an approximation, then steps of Halley's method.
double Ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNaN;
  if (p == 0 || p == 1) return p == 0 ? -kInf : kInf;
  if (p == 0.5) return 0;
  double q = std::min(p, 1 - p), t = std::sqrt(-2 * std::log(q));
  double x = (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t) - t;
  for (int i = 0; i < 4; ++i) {
    double error = std::erfc(-x * std::numbers::sqrt2 / 2) / 2 - q;
    double step = error * std::sqrt(2 * kPi) * std::exp(x * x / 2);
    x -= step / (1 + x * step / 2);
  }
  return p < 0.5 ? x : -x;
}

// ---- incomplete gamma functions -----------------------------------------------------------------
constexpr int kMaxTerms = 20000;
/// The lower one, regularised, by its series.
double GammaSeries(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < kMaxTerms && term > sum * 1e-17; ++k) {
    term *= x / (a + k);
    sum += term;
  }
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}
/// The upper one by its continued fraction (Lentz).
double GammaFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int k = 1; k < kMaxTerms; ++k) {
    double an = -k * (k - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    double factor = d * c;
    h *= factor;
    if (std::abs(factor - 1) < 1e-16) break;
  }
  return h * std::exp(a * std::log(x) - x - std::lgamma(a));
}
/// The value at the borders of the domain, or whether there is one.
bool AtBorder(double a, double x, double* lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0 || (a == 0 && x == 0) ||
      (std::isinf(a) && std::isinf(x))) {
    *lower = kNaN;
  } else if (a == 0 || std::isinf(x)) {
    *lower = 1;
  } else if (x == 0 || std::isinf(a)) {
    *lower = 0;
  } else {
    return false;
  }
  return true;
}
double GammaP(double a, double x) {
  double lower;
  if (AtBorder(a, x, &lower)) return lower;
  return x < a + 1 ? GammaSeries(a, x) : 1 - GammaFraction(a, x);
}
double GammaQ(double a, double x) {
  double lower;
  if (AtBorder(a, x, &lower)) return 1 - lower;
  return x < a + 1 ? 1 - GammaSeries(a, x) : GammaFraction(a, x);
}

// ---- orthogonal polynomials by their recurrences ------------------------------------------------
/// p(0) = 1, p(1) = first, p(k + 1) = next(k, p(k), p(k - 1))
template <class Next>
double Recurrence(double n, double first, Next next) {
  auto degree = static_cast<int64_t>(n);
  if (degree < 0) return 0;
  double before = 1, p = first;
  if (degree == 0) return 1;
  for (int64_t k = 1; k < degree && !std::isnan(p); ++k) {
    double after = next(static_cast<double>(k), p, before);
    before = p;
    p = after;
  }
  return p;
}
/// The four kinds of Chebyshev differ in p(1) = first * x + offset.
template <int first, int offset>
double Chebyshev(double x, double n) {
  return Recurrence(n, first * x + offset,
                    [&](double, double p, double q) { return 2 * x * p - q; });
}
template <int first, int offset>
double ShiftedChebyshev(double x, double n) {
  return Chebyshev<first, offset>(2 * x - 1, n);
}
double HermiteH(double x, double n) {
  return Recurrence(n, 2 * x, [&](double k, double p, double q) { return 2 * (x * p - k * q); });
}
double HermiteHe(double x, double n) {
  return Recurrence(n, x, [&](double k, double p, double q) { return x * p - k * q; });
}
double LaguerreL(double x, double n) {
  return Recurrence(n, 1 - x, [&](double k, double p, double q) {
    return ((2 * k + 1 - x) * p - k * q) / (k + 1);
  });
}
double LegendreP(double x, double n) {
  return Recurrence(
      n, x, [&](double k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

// ---- tensors ------------------------------------------------------------------------------------
template <class F>
void WithElements(const Tensor& t, F f) {
  if (t.device().device_type != kDLCPU || !t.is_contiguous()) {
    TVM_FFI_THROW(ValueError) << "special: expected tensors in row-major order on the CPU";
  }
  DataType type = t.dtype();
  if (type == DataType::Float(32)) return f(static_cast<float*>(t.data_ptr()));
  if (type == DataType::Float(64)) return f(static_cast<double*>(t.data_ptr()));
  TVM_FFI_THROW(TypeError) << "special: expected float32 or float64, got " << type;
}
void ExpectCount(const Tensor& t, int64_t n) {
  if (t.numel() == n) return;
  TVM_FFI_THROW(ValueError) << "special: expected " << n << " elements, got " << t.numel();
}
using Unary = double (*)(double);
using Binary = double (*)(double, double);
void Apply(Unary function, const Tensor& x, const Tensor& out) {
  ExpectCount(x, out.numel());
  WithElements(x, [&](const auto* from) {
    WithElements(out, [&](auto* to) {
      using Element = std::remove_pointer_t<decltype(to)>;
      for (int64_t i = 0; i < out.numel(); ++i) to[i] = static_cast<Element>(function(from[i]));
    });
  });
}
void Apply(Binary function, const Tensor& x, const Tensor& y, const Tensor& out) {
  ExpectCount(x, out.numel());
  ExpectCount(y, out.numel());
  WithElements(x, [&](const auto* a) {
    WithElements(y, [&](const auto* b) {
      WithElements(out, [&](auto* to) {
        using Element = std::remove_pointer_t<decltype(to)>;
        for (int64_t i = 0; i < out.numel(); ++i)
          to[i] = static_cast<Element>(function(a[i], b[i]));
      });
    });
  });
}

struct UnaryRow {
  const char* name;
  Unary function;
};
constexpr UnaryRow kUnary[] = {
    {"airy_ai", &AiryAi},
    {"bessel_y0", &BesselY<0>},
    {"bessel_y1", &BesselY<1>},
    {"erfcx", &Erfcx},
    {"log_ndtr", &LogNdtr},
    {"modified_bessel_k0", &BesselK<0>},
    {"modified_bessel_k1", &BesselK<1>},
    {"ndtri", &Ndtri},
    {"scaled_modified_bessel_k0", &ScaledBesselK<0>},
    {"scaled_modified_bessel_k1", &ScaledBesselK<1>},
};
struct BinaryRow {
  const char* name;
  Binary function;
};
constexpr BinaryRow kBinary[] = {
    {"chebyshev_polynomial_t", &Chebyshev<1, 0>},
    {"chebyshev_polynomial_u", &Chebyshev<2, 0>},
    {"chebyshev_polynomial_v", &Chebyshev<2, -1>},
    {"chebyshev_polynomial_w", &Chebyshev<2, 1>},
    {"shifted_chebyshev_polynomial_t", &ShiftedChebyshev<1, 0>},
    {"shifted_chebyshev_polynomial_u", &ShiftedChebyshev<2, 0>},
    {"shifted_chebyshev_polynomial_v", &ShiftedChebyshev<2, -1>},
    {"shifted_chebyshev_polynomial_w", &ShiftedChebyshev<2, 1>},
    {"hermite_polynomial_h", &HermiteH},
    {"hermite_polynomial_he", &HermiteHe},
    {"laguerre_polynomial_l", &LaguerreL},
    {"legendre_polynomial_p", &LegendreP},
    {"igamma", &GammaP},
    {"igammac", &GammaQ},
};

TVM_REGISTER() {
  auto global = [](const char* name, auto function) {
    Function::SetGlobal(std::string("relax.run.special.") + name, Function::FromTyped(function));
  };
  for (const UnaryRow& row : kUnary) {
    global(row.name, [f = row.function](Tensor x, Tensor out) { Apply(f, x, out); });
  }
  for (const BinaryRow& row : kBinary) {
    global(row.name, [f = row.function](Tensor x, Tensor y, Tensor out) { Apply(f, x, y, out); });
  }
}

}  // namespace
}  // namespace tvm::runtime::special
