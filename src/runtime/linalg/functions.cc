// SPDX-License-Identifier: Apache-2.0
// Linear algebra as programs call it: batches of matrices in float32 or float64 on the CPU, results
// written into the last arguments.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "matrix.h"
#include "tvm/runtime/data_type.h"
#include "tvm/runtime/def.h"
#include "tvm/runtime/tensor.h"

namespace tvm::runtime::linalg {
namespace {

/// A batch of matrices, or with `kVectors` of vectors, in a tensor.
class Batch {
 public:
  enum Kind { kScalars, kVectors, kMatrices };
  Batch(const Tensor& tensor, Kind kind, const char* where) : tensor_(tensor), where_(where) {
    if (tensor.device().device_type != kDLCPU || !tensor.is_contiguous()) {
      TVM_FFI_THROW(ValueError) << where << ": expected tensors in row-major order on the CPU";
    }
    if (tensor.ndim() < kind) {
      TVM_FFI_THROW(ValueError) << where << ": expected a tensor of at least " << kind
                                << " dimensions, got " << tensor.ndim();
    }
    int batch_dims = tensor.ndim() - kind;
    for (int i = 0; i < batch_dims; ++i) count_ *= tensor.shape()[i];
    rows_ = kind >= kVectors ? tensor.shape()[batch_dims] : 1;
    columns_ = kind == kMatrices ? tensor.shape()[batch_dims + 1] : 1;
  }
  int64_t count() const { return count_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  void ExpectShape(int64_t count, int64_t rows, int64_t columns) const {
    if (count_ == count && rows_ == rows && columns_ == columns) return;
    TVM_FFI_THROW(ValueError) << where_ << ": expected " << count << " times " << rows << " x "
                              << columns << ", got " << count_ << " times " << rows_ << " x "
                              << columns_;
  }
  Matrix Load(int64_t at) const {
    Matrix m(rows_, columns_);
    Visit([&](const auto* data) {
      for (size_t i = 0; i < m.elements.size(); ++i) m.elements[i] = data[at * Size() + i];
    });
    return m;
  }
  template <class T>
  void Store(int64_t at, const std::vector<T>& elements) const {
    if (static_cast<int64_t>(elements.size()) != Size()) {
      TVM_FFI_THROW(ValueError) << where_ << ": expected a result of " << elements.size()
                                << " elements, got room for " << Size();
    }
    Visit([&](auto* data) {
      using Element = std::remove_pointer_t<decltype(data)>;
      for (int64_t i = 0; i < Size(); ++i) {
        data[at * Size() + i] = static_cast<Element>(elements[i]);
      }
    });
  }

 private:
  int64_t Size() const { return rows_ * columns_; }
  template <class F>
  void Visit(F f) const {
    DataType t = tensor_.dtype();
    if (t == DataType::Float(32)) return f(static_cast<float*>(tensor_.data_ptr()));
    if (t == DataType::Float(64)) return f(static_cast<double*>(tensor_.data_ptr()));
    if (t == DataType::Int(32)) return f(static_cast<int32_t*>(tensor_.data_ptr()));
    TVM_FFI_THROW(TypeError) << where_ << ": expected float32 or float64, got " << t;
  }
  Tensor tensor_;
  const char* where_;
  int64_t count_ = 1, rows_ = 1, columns_ = 1;
};
constexpr Batch::Kind kScalars = Batch::kScalars, kVectors = Batch::kVectors,
                      kMatrices = Batch::kMatrices;

void ExpectSquare(const Batch& a, const char* where) {
  if (a.rows() == a.columns()) return;
  TVM_FFI_THROW(ValueError) << where << ": expected square matrices, got " << a.rows() << " x "
                            << a.columns();
}
/// Pivots count from 1, as LAPACK's.
std::vector<int64_t> LoadPivots(const Batch& pivots, int64_t at, int64_t rows) {
  std::vector<int64_t> result;
  for (double p : pivots.Load(at).elements) {
    if (!(p >= 1 && p <= static_cast<double>(rows))) {
      TVM_FFI_THROW(ValueError) << "lu: expected pivots from 1 to " << rows << ", got " << p;
    }
    result.push_back(static_cast<int64_t>(p) - 1);
  }
  return result;
}

void LU(Tensor a, Tensor lu, Tensor pivots, Tensor info) {
  Batch in(a, kMatrices, "lu"), out(lu, kMatrices, "lu"), swaps(pivots, kVectors, "lu"),
      status(info, kScalars, "lu");
  out.ExpectShape(in.count(), in.rows(), in.columns());
  swaps.ExpectShape(in.count(), std::min(in.rows(), in.columns()), 1);
  status.ExpectShape(in.count(), 1, 1);
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    std::vector<int64_t> order;
    status.Store<int64_t>(b, {FactorLU(m, order)});
    for (int64_t& p : order) ++p;
    out.Store(b, m.elements);
    swaps.Store(b, order);
  }
}
/// Solves by factors of square matrices: `solve(factors, pivots of all, which, solution)`.
template <class F>
void SolveByFactors(const char* where, const Tensor& factored, const Tensor& pivots,
                    const Tensor& rhs, const Tensor& x, F solve) {
  Batch factors(factored, kMatrices, where), swaps(pivots, kVectors, where),
      in(rhs, kMatrices, where), out(x, kMatrices, where);
  ExpectSquare(factors, where);
  swaps.ExpectShape(factors.count(), factors.rows(), 1);
  in.ExpectShape(factors.count(), factors.rows(), in.columns());
  out.ExpectShape(in.count(), in.rows(), in.columns());
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix solution = in.Load(b);
    solve(factors.Load(b), swaps, b, solution);
    out.Store(b, solution.elements);
  }
}
void LUSolve(Tensor lu, Tensor pivots, Tensor rhs, Tensor x) {
  SolveByFactors("lu_solve", lu, pivots, rhs, x,
                 [](const Matrix& factors, const Batch& swaps, int64_t b, Matrix& solution) {
                   SolveLU(factors, LoadPivots(swaps, b, factors.rows), solution);
                 });
}
void LDL(Tensor a, Tensor ld, Tensor pivots, Tensor info) {
  Batch in(a, kMatrices, "ldl"), out(ld, kMatrices, "ldl"), swaps(pivots, kVectors, "ldl"),
      status(info, kScalars, "ldl");
  ExpectSquare(in, "ldl");
  out.ExpectShape(in.count(), in.rows(), in.columns());
  swaps.ExpectShape(in.count(), in.rows(), 1);
  status.ExpectShape(in.count(), 1, 1);
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    std::vector<int64_t> order;
    status.Store<int64_t>(b, {FactorLDL(m, order)});
    out.Store(b, m.elements);
    swaps.Store(b, order);
  }
}
/// Two negative pivots belong to a block of two.
std::vector<int64_t> LoadPivotsOfBlocks(const Batch& pivots, int64_t at) {
  std::vector<int64_t> result;
  for (double p : pivots.Load(at).elements) result.push_back(static_cast<int64_t>(p));
  int64_t n = pivots.rows();
  for (int64_t k = 0; k < n; ++k) {
    int64_t p = result[k];
    bool is_pair = p < 0 && k + 1 < n && result[k + 1] == p;
    if (p == 0 || std::abs(p) > n || (p < 0 && !is_pair)) {
      TVM_FFI_THROW(ValueError) << "ldl_solve: expected pivots from 1 to " << n
                                << ", or pairs of negative ones, got " << p;
    }
    if (is_pair) ++k;
  }
  return result;
}
void LDLSolve(Tensor ld, Tensor pivots, Tensor rhs, Tensor x) {
  SolveByFactors("ldl_solve", ld, pivots, rhs, x,
                 [](const Matrix& factors, const Batch& swaps, int64_t b, Matrix& solution) {
                   SolveLDL(factors, LoadPivotsOfBlocks(swaps, b), solution);
                 });
}
/// The matrix P of A = P L U.
void Permutation(Tensor pivots, Tensor p) {
  Batch swaps(pivots, kVectors, "permutation"), out(p, kMatrices, "permutation");
  int64_t n = out.rows();
  out.ExpectShape(swaps.count(), n, n);
  for (int64_t b = 0; b < swaps.count(); ++b) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::vector<int64_t> steps = LoadPivots(swaps, b, n);
    for (size_t i = 0; i < steps.size(); ++i) std::swap(order[i], order[steps[i]]);
    Matrix m(n, n);
    for (int64_t i = 0; i < n; ++i) m(order[i], i) = 1;
    out.Store(b, m.elements);
  }
}
void Cholesky(Tensor a, Tensor l, Tensor info) {
  Batch in(a, kMatrices, "cholesky"), out(l, kMatrices, "cholesky"),
      status(info, kScalars, "cholesky");
  ExpectSquare(in, "cholesky");
  out.ExpectShape(in.count(), in.rows(), in.columns());
  status.ExpectShape(in.count(), 1, 1);
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    status.Store<int64_t>(b, {FactorCholesky(m)});
    out.Store(b, m.elements);
  }
}
void TriangularSolve(Tensor a, Tensor rhs, bool upper, bool unit, Tensor x) {
  const char* where = "triangular_solve";
  Batch factor(a, kMatrices, where), in(rhs, kMatrices, where), out(x, kMatrices, where);
  ExpectSquare(factor, where);
  in.ExpectShape(factor.count(), factor.rows(), in.columns());
  out.ExpectShape(in.count(), in.rows(), in.columns());
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix solution = in.Load(b);
    SolveTriangular(factor.Load(b), upper, unit, solution);
    out.Store(b, solution.elements);
  }
}
void Geqrf(Tensor a, Tensor reflections, Tensor tau) {
  Batch in(a, kMatrices, "geqrf"), out(reflections, kMatrices, "geqrf"),
      scales(tau, kVectors, "geqrf");
  out.ExpectShape(in.count(), in.rows(), in.columns());
  scales.ExpectShape(in.count(), std::min(in.rows(), in.columns()), 1);
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    scales.Store(b, FactorHouseholder(m));
    out.Store(b, m.elements);
  }
}
/// As many columns of the product as the result has.
void HouseholderProduct(Tensor a, Tensor tau, Tensor q) {
  const char* where = "householder_product";
  Batch in(a, kMatrices, where), scales(tau, kVectors, where), out(q, kMatrices, where);
  int64_t most = std::min(in.rows(), in.columns());
  if (scales.rows() > most) {
    TVM_FFI_THROW(ValueError) << where << ": expected at most " << most << " reflections, got "
                              << scales.rows();
  }
  scales.ExpectShape(in.count(), scales.rows(), 1);
  out.ExpectShape(in.count(), in.rows(), out.columns());
  for (int64_t b = 0; b < in.count(); ++b) {
    out.Store(b, ProductOfReflections(in.Load(b), scales.Load(b).elements, out.columns()).elements);
  }
}
/// One half of each matrix is read.
void Eigh(Tensor a, bool upper, Tensor values, Tensor vectors) {
  Batch in(a, kMatrices, "eigh"), w(values, kVectors, "eigh"), v(vectors, kMatrices, "eigh");
  ExpectSquare(in, "eigh");
  w.ExpectShape(in.count(), in.rows(), 1);
  v.ExpectShape(in.count(), in.rows(), in.rows());
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    for (int64_t i = 0; i < m.rows; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        double& kept = upper ? m(j, i) : m(i, j);
        (upper ? m(i, j) : m(j, i)) = kept;
      }
    }
    w.Store(b, EigenSymmetric(m));
    v.Store(b, m.elements);
  }
}
void SVD(Tensor a, Tensor u, Tensor s, Tensor vh) {
  Batch in(a, kMatrices, "svd"), left(u, kMatrices, "svd"), values(s, kVectors, "svd"),
      right(vh, kMatrices, "svd");
  int64_t k = std::min(in.rows(), in.columns());
  values.ExpectShape(in.count(), k, 1);
  left.ExpectShape(in.count(), in.rows(), left.columns() == in.rows() ? in.rows() : k);
  right.ExpectShape(in.count(), right.rows() == in.columns() ? in.columns() : k, in.columns());
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix p, q;
    values.Store(b, SingularValues(in.Load(b), left.columns(), right.rows(), p, q));
    left.Store(b, p.elements);
    right.Store(b, q.elements);
  }
}
/// Values and vectors as their real and imaginary parts.
void Eig(Tensor a, Tensor values_re, Tensor values_im, Tensor vectors_re, Tensor vectors_im) {
  Batch in(a, kMatrices, "eig");
  Batch values[] = {{values_re, kVectors, "eig"}, {values_im, kVectors, "eig"}};
  Batch vectors[] = {{vectors_re, kMatrices, "eig"}, {vectors_im, kMatrices, "eig"}};
  ExpectSquare(in, "eig");
  for (const Batch& part : values) part.ExpectShape(in.count(), in.rows(), 1);
  for (const Batch& part : vectors) part.ExpectShape(in.count(), in.rows(), in.rows());
  auto parts = [](const std::vector<std::complex<double>>& numbers, bool imag) {
    std::vector<double> result;
    for (const auto& z : numbers) result.push_back(imag ? z.imag() : z.real());
    return result;
  };
  for (int64_t b = 0; b < in.count(); ++b) {
    Matrix m = in.Load(b);
    ComplexMatrix z(m.rows, m.columns);
    std::copy(m.elements.begin(), m.elements.end(), z.elements.begin());
    std::vector<std::complex<double>> found = EigenGeneral(z);
    for (bool imag : {false, true}) {
      values[imag].Store(b, parts(found, imag));
      vectors[imag].Store(b, parts(z.elements, imag));
    }
  }
}
void MatrixExp(Tensor a, Tensor result) {
  Batch in(a, kMatrices, "matrix_exp"), out(result, kMatrices, "matrix_exp");
  ExpectSquare(in, "matrix_exp");
  out.ExpectShape(in.count(), in.rows(), in.columns());
  for (int64_t b = 0; b < in.count(); ++b) out.Store(b, Exponential(in.Load(b)).elements);
}

TVM_REGISTER() {
  Def("relax.run.linalg.lu", &LU, "Factors P A = L U in one matrix, with row swaps from 1.",
      Arg("a"), Arg("lu"), Arg("pivots"), Arg("info"));
  Def("relax.run.linalg.lu_solve", &LUSolve, "Solves A X = B by the factors of A.", Arg("lu"),
      Arg("pivots"), Arg("b"), Arg("x"));
  Def("relax.run.linalg.ldl", &LDL, "Factors P A P' = L D L' in one matrix, pivots as LAPACK's.",
      Arg("a"), Arg("ld"), Arg("pivots"), Arg("info"));
  Def("relax.run.linalg.ldl_solve", &LDLSolve, "Solves A X = B by these factors of A.", Arg("ld"),
      Arg("pivots"), Arg("b"), Arg("x"));
  Def("relax.run.linalg.permutation", &Permutation, "The matrix of row swaps from 1.",
      Arg("pivots"), Arg("p"));
  Def("relax.run.linalg.cholesky", &Cholesky, "The lower factor L of A = L L'.", Arg("a"), Arg("l"),
      Arg("info"));
  Def("relax.run.linalg.triangular_solve", &TriangularSolve, "Solves A X = B for a triangular A.",
      Arg("a"), Arg("b"), Arg("upper"), Arg("unit"), Arg("x"));
  Def("relax.run.linalg.geqrf", &Geqrf, "R, and below it the reflections that make Q.", Arg("a"),
      Arg("reflections"), Arg("tau"));
  Def("relax.run.linalg.householder_product", &HouseholderProduct,
      "The first columns of a product of reflections.", Arg("a"), Arg("tau"), Arg("q"));
  Def("relax.run.linalg.eigh", &Eigh, "Eigenvalues and vectors of symmetric matrices.", Arg("a"),
      Arg("upper"), Arg("values"), Arg("vectors"));
  Def("relax.run.linalg.svd", &SVD, "Singular values, with the vectors of both sides.", Arg("a"),
      Arg("u"), Arg("s"), Arg("vh"));
  Def("relax.run.linalg.eig", &Eig, "Eigenvalues and vectors in parts.", Arg("a"), Arg("values_re"),
      Arg("values_im"), Arg("vectors_re"), Arg("vectors_im"));
  Def("relax.run.linalg.matrix_exp", &MatrixExp, "The exponential of matrices.", Arg("a"),
      Arg("result"));
}

}  // namespace
}  // namespace tvm::runtime::linalg
