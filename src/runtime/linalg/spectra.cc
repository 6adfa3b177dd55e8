// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and singular values by rotations that make off-diagonal elements vanish.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "matrix.h"

namespace tvm::runtime::linalg {
namespace {

constexpr double kEpsilon = 1e-16;
constexpr int kMaxSweeps = 60;

/// The rotation of Jacobi for elements p, q of the diagonal and r beside it.
struct Rotation {
  double cosine, sine;
};
Rotation RotationFor(double p, double q, double r) {
  double theta = (q - p) / (2 * r);
  double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  double cosine = 1 / std::sqrt(t * t + 1);
  return {cosine, t * cosine};
}
void RotateColumns(Matrix& a, int64_t p, int64_t q, const Rotation& r) {
  for (int64_t i = 0; i < a.rows; ++i) {
    double x = a(i, p), y = a(i, q);
    a(i, p) = r.cosine * x - r.sine * y;
    a(i, q) = r.sine * x + r.cosine * y;
  }
}
/// The columns in another order.
Matrix Arranged(const Matrix& a, const std::vector<int64_t>& order) {
  Matrix result(a.rows, static_cast<int64_t>(order.size()));
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < result.columns; ++j) result(i, j) = a(i, order[j]);
  }
  return result;
}
template <class Less>
std::vector<int64_t> OrderBy(size_t n, Less less) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

/// Replaces the columns from `known` on by ones that are orthogonal to all before them.
void CompleteBasis(Matrix& u, int64_t known) {
  for (int64_t j = known; j < u.columns; ++j) {
    double best_norm = -1;
    std::vector<double> best;
    for (int64_t k = 0; k < u.rows; ++k) {
      std::vector<double> v(u.rows, 0.0);
      v[k] = 1;
      for (int pass = 0; pass < 2; ++pass) {  // twice is enough
        for (int64_t c = 0; c < j; ++c) {
          double dot = 0;
          for (int64_t i = 0; i < u.rows; ++i) dot += u(i, c) * v[i];
          for (int64_t i = 0; i < u.rows; ++i) v[i] -= dot * u(i, c);
        }
      }
      double norm = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
      if (norm > best_norm) {
        best_norm = norm;
        best = std::move(v);
      }
      if (best_norm > 0.5) break;
    }
    for (int64_t i = 0; i < u.rows; ++i) u(i, j) = best[i] / best_norm;
  }
}

}  // namespace

std::vector<double> EigenSymmetric(Matrix& a) {
  int64_t n = a.rows;
  Matrix v = Matrix::Identity(n);
  double norm = 0;
  for (double x : a.elements) norm = std::hypot(norm, x);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool is_diagonal = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        if (!(std::abs(a(p, q)) > kEpsilon * norm)) continue;
        is_diagonal = false;
        Rotation r = RotationFor(a(p, p), a(q, q), a(p, q));
        RotateColumns(a, p, q, r);
        for (int64_t j = 0; j < n; ++j) {
          double x = a(p, j), y = a(q, j);
          a(p, j) = r.cosine * x - r.sine * y;
          a(q, j) = r.sine * x + r.cosine * y;
        }
        a(p, q) = a(q, p) = 0;
        RotateColumns(v, p, q, r);
      }
    }
    if (is_diagonal) break;
  }
  std::vector<int64_t> order = OrderBy(n, [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  std::vector<double> values;
  for (int64_t i : order) values.push_back(a(i, i));
  a = Arranged(v, order);
  return values;
}

std::vector<double> SingularValues(const Matrix& a, int64_t left, int64_t right, Matrix& u,
                                   Matrix& vh) {
  if (a.rows < a.columns) {
    Matrix v, uh;
    std::vector<double> values = SingularValues(a.Transposed(), right, left, v, uh);
    u = uh.Transposed();
    vh = v.Transposed();
    return values;
  }
  // Rotations of columns until all are orthogonal: their lengths are the values.
  int64_t n = a.columns;
  Matrix w = a, v = Matrix::Identity(n);
  auto dot = [&](int64_t p, int64_t q) {
    double sum = 0;
    for (int64_t i = 0; i < w.rows; ++i) sum += w(i, p) * w(i, q);
    return sum;
  };
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool is_orthogonal = true;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = dot(p, p), qq = dot(q, q), pq = dot(p, q);
        if (!(std::abs(pq) > 1e-15 * std::sqrt(pp * qq))) continue;
        is_orthogonal = false;
        Rotation r = RotationFor(pp, qq, pq);
        RotateColumns(w, p, q, r);
        RotateColumns(v, p, q, r);
      }
    }
    if (is_orthogonal) break;
  }
  std::vector<double> lengths;
  for (int64_t j = 0; j < n; ++j) lengths.push_back(std::sqrt(dot(j, j)));
  std::vector<int64_t> order =
      OrderBy(n, [&](int64_t i, int64_t j) { return lengths[i] > lengths[j]; });
  std::vector<double> values;
  for (int64_t i : order) values.push_back(lengths[i]);
  vh = Arranged(v, order).Transposed();
  w = Arranged(w, order);
  u = Matrix(a.rows, left);
  int64_t known = 0;
  // Columns of length 0 have no direction.
  while (known < n && values[known] > 1e-14 * values[0]) ++known;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < known; ++j) u(i, j) = w(i, j) / values[j];
  }
  CompleteBasis(u, known);
  return values;
}

// ---- matrices without symmetry ------------------------------------------------------------------
namespace {

using Number = std::complex<double>;

/// The unitary rotation that takes (x, y) to (r, 0).
struct Givens {
  Number c, s;
};
Givens GivensFor(Number x, Number y) {
  double r = std::hypot(std::abs(x), std::abs(y));
  if (r == 0) return {1, 0};
  return {x / r, y / r};
}
/// Rows p, q of a times the rotation, from a column on.
void RotateRows(ComplexMatrix& a, int64_t p, int64_t q, const Givens& g, int64_t from) {
  for (int64_t j = from; j < a.columns; ++j) {
    Number x = a(p, j), y = a(q, j);
    a(p, j) = std::conj(g.c) * x + std::conj(g.s) * y;
    a(q, j) = -g.s * x + g.c * y;
  }
}
/// Columns p, q of a times the inverse of the rotation, down to a row.
void RotateBack(ComplexMatrix& a, int64_t p, int64_t q, const Givens& g, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i) {
    Number x = a(i, p), y = a(i, q);
    a(i, p) = x * g.c + y * g.s;
    a(i, q) = -x * std::conj(g.s) + y * std::conj(g.c);
  }
}
/// The eigenvalue of the last 2 x 2 block before row `n` that is nearer to its last element.
Number Shift(const ComplexMatrix& a, int64_t n) {
  Number p = a(n - 2, n - 2), q = a(n - 1, n - 1), half = (p + q) / 2.0;
  Number root = std::sqrt((p - q) * (p - q) / 4.0 + a(n - 2, n - 1) * a(n - 1, n - 2));
  return std::abs(half + root - q) < std::abs(half - root - q) ? half + root : half - root;
}
/// a becomes upper triangular, q the product of the rotations: a = q t q'.
void Schur(ComplexMatrix& a, ComplexMatrix& q) {
  int64_t n = a.rows;
  for (int64_t k = 0; k + 2 < n; ++k) {  // to one diagonal below the main one
    for (int64_t i = k + 2; i < n; ++i) {
      if (a(i, k) == 0.0) continue;
      Givens g = GivensFor(a(k + 1, k), a(i, k));
      RotateRows(a, k + 1, i, g, k);
      RotateBack(a, k + 1, i, g, n);
      RotateBack(q, k + 1, i, g, n);
      a(i, k) = 0;
    }
  }
  int64_t end = n, turns = 0;
  while (end > 1 && turns < 100 * n) {
    int64_t begin = end - 1;  // of the block that has not split
    while (begin > 0) {
      double size = std::abs(a(begin, begin)) + std::abs(a(begin - 1, begin - 1));
      if (!(std::abs(a(begin, begin - 1)) > kEpsilon * size)) break;
      --begin;
    }
    if (begin > 0) a(begin, begin - 1) = 0;
    if (begin == end - 1) {
      --end;
      turns = 0;
      continue;
    }
    // An exceptional shift ends cycles.
    Number shift = ++turns % 20 ? Shift(a, end) : Number(std::abs(a(end - 1, end - 2)));
    for (int64_t i = begin; i < end; ++i) a(i, i) -= shift;
    std::vector<Givens> rotations;
    for (int64_t k = begin; k + 1 < end; ++k) {
      rotations.push_back(GivensFor(a(k, k), a(k + 1, k)));
      RotateRows(a, k, k + 1, rotations.back(), k);
    }
    for (int64_t k = begin; k + 1 < end; ++k) {
      const Givens& g = rotations[k - begin];
      RotateBack(a, k, k + 1, g, std::min(k + 2, end));
      RotateBack(q, k, k + 1, g, n);
    }
    for (int64_t i = begin; i < end; ++i) a(i, i) += shift;
  }
}

}  // namespace

std::vector<Number> EigenGeneral(ComplexMatrix& a) {
  int64_t n = a.rows;
  ComplexMatrix q = ComplexMatrix::Identity(n), vectors(n, n);
  Schur(a, q);
  std::vector<Number> values;
  for (int64_t k = 0; k < n; ++k) {
    values.push_back(a(k, k));
    std::vector<Number> x(n, 0);
    x[k] = 1;
    for (int64_t i = k; i-- > 0;) {
      Number sum = 0, gap = a(i, i) - a(k, k);
      for (int64_t j = i + 1; j <= k; ++j) sum += a(i, j) * x[j];
      if (std::abs(gap) < kEpsilon) gap = kEpsilon;  // a defective matrix
      x[i] = -sum / gap;
    }
    double norm = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= k; ++j) vectors(i, k) += q(i, j) * x[j];
      norm = std::hypot(norm, std::abs(vectors(i, k)));
    }
    for (int64_t i = 0; i < n; ++i) vectors(i, k) /= norm;
  }
  a = vectors;
  return values;
}

}  // namespace tvm::runtime::linalg
