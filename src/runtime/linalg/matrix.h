// SPDX-License-Identifier: Apache-2.0
// Small dense matrices and what is computed of them, in double precision.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace tvm::runtime::linalg {

/// Row by row.
template <class T>
struct Dense {
  int64_t rows = 0, columns = 0;
  std::vector<T> elements;
  Dense() = default;
  Dense(int64_t rows, int64_t columns)
      : rows(rows), columns(columns), elements(rows * columns, T(0)) {}
  T& operator()(int64_t i, int64_t j) { return elements[i * columns + j]; }
  const T& operator()(int64_t i, int64_t j) const { return elements[i * columns + j]; }
  static Dense Identity(int64_t n) {
    Dense eye(n, n);
    for (int64_t i = 0; i < n; ++i) eye(i, i) = T(1);
    return eye;
  }
  Dense Transposed() const {
    Dense t(columns, rows);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) t(j, i) = (*this)(i, j);
    }
    return t;
  }
};
using Matrix = Dense<double>;
using ComplexMatrix = Dense<std::complex<double>>;

Matrix Multiply(const Matrix& a, const Matrix& b);

// ---- factors ------------------------------------------------------------------------------------
/// a becomes its factors L (unit diagonal) and U in one; row i was swapped with pivots[i] >= i.
/// Returns the number (from 1) of the first pivot that is 0, or 0.
int64_t FactorLU(Matrix& a, std::vector<int64_t>& pivots);
/// Solves by the factors; b becomes the solution.
void SolveLU(const Matrix& lu, const std::vector<int64_t>& pivots, Matrix& b);
/// Symmetric pivoting by Bunch and Kaufman: the lower half of a becomes L (unit diagonal) and D,
/// whose blocks are 1 x 1 or 2 x 2. Pivots count from 1, as LAPACK's sytrf has them: pivots[k] > 0
/// says that k was swapped with it; two negative ones belong to a block of two, of which the second
/// was. The upper half is neither read nor written. Returns the number (from 1) of the first pivot
/// that is 0, or 0.
int64_t FactorLDL(Matrix& a, std::vector<int64_t>& pivots);
/// Solves by these factors; b becomes the solution.
void SolveLDL(const Matrix& ld, const std::vector<int64_t>& pivots, Matrix& b);
/// The lower factor of a symmetric matrix of which the lower half is read. Returns the number (from
/// 1) of the first leading minor that is not positive, or 0.
int64_t FactorCholesky(Matrix& a);
/// b becomes the solution x of a x = b, where one half of a is read.
void SolveTriangular(const Matrix& a, bool upper, bool unit, Matrix& b);
/// Reflections that make a upper triangular: R above, their vectors below the diagonal, as LAPACK
/// has them.
std::vector<double> FactorHouseholder(Matrix& a);
/// The first columns of the product of reflections.
Matrix ProductOfReflections(const Matrix& a, const std::vector<double>& tau, int64_t columns);
Matrix Exponential(const Matrix& a);

// ---- spectra ------------------------------------------------------------------------------------
/// Eigenvalues in ascending order of a symmetric matrix; its columns become their vectors.
std::vector<double> EigenSymmetric(Matrix& a);
/// Singular values in descending order. u has `left` columns and vh `right` rows: as many as there
/// are values, or all.
std::vector<double> SingularValues(const Matrix& a, int64_t left, int64_t right, Matrix& u,
                                   Matrix& vh);
/// Eigenvalues of any square matrix; its columns become their vectors, of length 1.
std::vector<std::complex<double>> EigenGeneral(ComplexMatrix& a);

}  // namespace tvm::runtime::linalg
