// SPDX-License-Identifier: Apache-2.0
// Factors of matrices: LU, LDL, Cholesky, QR by reflections; systems that they solve; the
// exponential.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "matrix.h"

namespace tvm::runtime::linalg {

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

namespace {
void SwapRows(Matrix& a, int64_t i, int64_t k) {
  if (i == k) return;
  std::swap_ranges(&a(i, 0), &a(i, 0) + a.columns, &a(k, 0));
}
/// row(i) -= factor * row(k), from a column on
void SubtractRow(Matrix& a, int64_t i, int64_t k, double factor, int64_t from = 0) {
  for (int64_t j = from; j < a.columns; ++j) a(i, j) -= factor * a(k, j);
}
}  // namespace

int64_t FactorLU(Matrix& a, std::vector<int64_t>& pivots) {
  int64_t steps = std::min(a.rows, a.columns), singular = 0;
  pivots.resize(steps);
  for (int64_t k = 0; k < steps; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < a.rows; ++i) {
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    }
    pivots[k] = best;
    if (a(best, k) == 0) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    SwapRows(a, k, best);
    for (int64_t i = k + 1; i < a.rows; ++i) {
      a(i, k) /= a(k, k);
      SubtractRow(a, i, k, a(i, k), k + 1);
    }
  }
  return singular;
}

void SolveTriangular(const Matrix& a, bool upper, bool unit, Matrix& b) {
  int64_t n = a.rows;
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = upper ? n - 1 - step : step;
    int64_t begin = upper ? i + 1 : 0, end = upper ? n : i;
    for (int64_t k = begin; k < end; ++k) SubtractRow(b, i, k, a(i, k));
    if (unit) continue;
    for (int64_t j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

namespace {
/// The size of the block of D at k, and the row that is to be its last.
struct Pivot {
  int64_t size, row;
};
Pivot ChoosePivot(const Matrix& a, int64_t k) {
  // The growth of elements is least for this threshold (Bunch and Kaufman, 1977).
  const double threshold = (1 + std::sqrt(17.0)) / 8;
  auto at = [&](int64_t i, int64_t j) { return std::abs(i >= j ? a(i, j) : a(j, i)); };
  int64_t largest = k;
  for (int64_t i = k + 1; i < a.rows; ++i) {
    if (largest == k || at(i, k) > at(largest, k)) largest = i;
  }
  double column = largest == k ? 0 : at(largest, k), row = 0;
  if (!(at(k, k) < threshold * column)) return {1, k};  // NaN stays where it is
  for (int64_t j = k; j < a.rows; ++j) {
    if (j != largest) row = std::max(row, at(largest, j));
  }
  if (at(k, k) >= threshold * column * (column / row)) return {1, k};
  return {at(largest, largest) >= threshold * row ? 1 : 2, largest};
}
/// Swaps rows and columns i < p of a symmetric matrix of which the lower half from k on is kept.
void SwapSymmetric(Matrix& a, int64_t k, int64_t i, int64_t p) {
  if (i == p) return;
  for (int64_t j = p + 1; j < a.rows; ++j) std::swap(a(j, i), a(j, p));
  for (int64_t j = i + 1; j < p; ++j) std::swap(a(j, i), a(p, j));
  for (int64_t j = k; j < i; ++j) std::swap(a(i, j), a(p, j));
  std::swap(a(i, i), a(p, p));
}
}  // namespace

int64_t FactorLDL(Matrix& a, std::vector<int64_t>& pivots) {
  int64_t n = a.rows, singular = 0;
  pivots.resize(n);
  for (int64_t k = 0; k < n;) {
    Pivot pivot = ChoosePivot(a, k);
    int64_t last = k + pivot.size - 1;
    SwapSymmetric(a, k, last, pivot.row);
    if (pivot.size == 1) {
      pivots[k] = pivot.row + 1;
      double d = a(k, k);
      if (d == 0 && singular == 0) singular = k + 1;
      for (int64_t j = k + 1; j < n && d != 0; ++j) {
        for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * a(j, k) / d;
      }
      for (int64_t i = k + 1; i < n && d != 0; ++i) a(i, k) /= d;
    } else {
      pivots[k] = pivots[last] = -(pivot.row + 1);
      double d = a(k, k) * a(last, last) - a(last, k) * a(last, k);
      for (int64_t j = last + 1; j < n; ++j) {
        double l = (a(last, last) * a(j, k) - a(last, k) * a(j, last)) / d;
        double m = (a(k, k) * a(j, last) - a(last, k) * a(j, k)) / d;
        for (int64_t i = j; i < n; ++i) a(i, j) -= a(i, k) * l + a(i, last) * m;
        a(j, k) = l;
        a(j, last) = m;
      }
    }
    k += pivot.size;
  }
  return singular;
}

void SolveLDL(const Matrix& ld, const std::vector<int64_t>& pivots, Matrix& b) {
  int64_t n = ld.rows;
  auto size = [&](int64_t k) { return pivots[k] > 0 ? 1 : 2; };
  for (int64_t k = 0; k < n; k += size(k)) {
    int64_t last = k + size(k) - 1;
    SwapRows(b, last, std::abs(pivots[k]) - 1);
    for (int64_t i = last + 1; i < n; ++i) {
      for (int64_t j = k; j <= last; ++j) SubtractRow(b, i, j, ld(i, j));
    }
  }
  for (int64_t k = 0; k < n; k += size(k)) {
    int64_t last = k + size(k) - 1;
    double p = ld(k, k), q = ld(last, k), r = ld(last, last), d = p * r - q * q;
    for (int64_t j = 0; j < b.columns; ++j) {
      double x = b(k, j), y = b(last, j);
      b(k, j) = last == k ? x / p : (r * x - q * y) / d;
      if (last != k) b(last, j) = (p * y - q * x) / d;
    }
  }
  for (int64_t last = n - 1; last >= 0; --last) {
    int64_t k = pivots[last] > 0 ? last : last - 1;
    for (int64_t j = k; j <= last; ++j) {
      for (int64_t i = last + 1; i < n; ++i) SubtractRow(b, j, i, ld(i, j));
    }
    SwapRows(b, last, std::abs(pivots[last]) - 1);
    last = k;
  }
}

void SolveLU(const Matrix& lu, const std::vector<int64_t>& pivots, Matrix& b) {
  for (size_t i = 0; i < pivots.size(); ++i) SwapRows(b, static_cast<int64_t>(i), pivots[i]);
  SolveTriangular(lu, false, true, b);
  SolveTriangular(lu, true, false, b);
}

int64_t FactorCholesky(Matrix& a) {
  int64_t n = a.rows;
  for (int64_t j = 0; j < n; ++j) {
    double* row = &a(j, 0);
    double rest = row[j] - std::inner_product(row, row + j, row, 0.0);
    if (!(rest > 0)) return j + 1;
    row[j] = std::sqrt(rest);
    for (int64_t i = j + 1; i < n; ++i) {
      a(i, j) = (a(i, j) - std::inner_product(row, row + j, &a(i, 0), 0.0)) / row[j];
    }
    std::fill(row + j + 1, row + n, 0.0);
  }
  return 0;
}

namespace {
/// a = (1 - tau v v') a from row k on, where v is 1 and below it column `from` of `vectors`.
void Reflect(Matrix& a, const Matrix& vectors, int64_t k, double tau, int64_t from) {
  for (int64_t j = from; j < a.columns; ++j) {
    double sum = a(k, j);
    for (int64_t i = k + 1; i < a.rows; ++i) sum += vectors(i, k) * a(i, j);
    sum *= tau;
    a(k, j) -= sum;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, j) -= vectors(i, k) * sum;
  }
}
}  // namespace

std::vector<double> FactorHouseholder(Matrix& a) {
  int64_t steps = std::min(a.rows, a.columns);
  std::vector<double> tau(steps, 0.0);
  for (int64_t k = 0; k < steps; ++k) {
    double below = 0;
    for (int64_t i = k + 1; i < a.rows; ++i) below = std::hypot(below, a(i, k));
    if (below == 0) continue;
    double alpha = a(k, k), beta = -std::copysign(std::hypot(alpha, below), alpha);
    tau[k] = (beta - alpha) / beta;
    for (int64_t i = k + 1; i < a.rows; ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    Reflect(a, a, k, tau[k], k + 1);
  }
  return tau;
}

Matrix ProductOfReflections(const Matrix& a, const std::vector<double>& tau, int64_t columns) {
  Matrix q(a.rows, columns);
  for (int64_t i = 0; i < std::min(a.rows, columns); ++i) q(i, i) = 1;
  for (int64_t k = static_cast<int64_t>(tau.size()); k-- > 0;) Reflect(q, a, k, tau[k], 0);
  return q;
}

/// Scaled until its norm is at most 1/2, by the series, squared as often.
Matrix Exponential(const Matrix& a) {
  constexpr int kTerms = 18;  // 0.5^18 / 18! is below the rounding
  double norm = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < a.columns; ++j) sum += std::abs(a(i, j));
    norm = std::max(norm, sum);
  }
  int squarings = norm > 0.5 && std::isfinite(norm) ? std::ilogb(norm) + 2 : 0;
  Matrix scaled = a, sum = Matrix::Identity(a.rows), term = sum;
  for (double& x : scaled.elements) x = std::ldexp(x, -squarings);
  for (int k = 1; k <= kTerms; ++k) {
    term = Multiply(term, scaled);
    for (size_t i = 0; i < sum.elements.size(); ++i) {
      term.elements[i] /= k;
      sum.elements[i] += term.elements[i];
    }
  }
  for (int i = 0; i < squarings; ++i) sum = Multiply(sum, sum);
  return sum;
}

}  // namespace tvm::runtime::linalg
