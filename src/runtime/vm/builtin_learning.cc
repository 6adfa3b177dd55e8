// SPDX-License-Identifier: Apache-2.0
// Builtins of learned models: what takes as many steps as its numbers need.
#include <algorithm>
#include <cmath>

#include "runtime/host_tensor.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm::learning {
namespace {
/// p with the least sum of (r[j][i] p[i] - r[i][j] p[j])² over pairs, by the second method of Wu,
/// Lin and Weng (2004): one p after the other is set to its optimum, and all are scaled to sum 1.
void FitRow(const std::vector<double>& r, int64_t k, float* result) {
  std::vector<double> q(k * k), p(k, 1.0 / static_cast<double>(k)), qp(k);
  for (int64_t t = 0; t < k; ++t) {
    for (int64_t j = 0; j < k; ++j) {
      if (j == t) continue;
      q[t * k + t] += r[j * k + t] * r[j * k + t];
      q[t * k + j] = -r[j * k + t] * r[t * k + j];
    }
  }
  double enough = 0.005 / static_cast<double>(k);
  for (int64_t turn = 0; turn < std::max<int64_t>(100, k); ++turn) {
    double total = 0, error = 0;
    for (int64_t t = 0; t < k; ++t) {
      qp[t] = 0;
      for (int64_t j = 0; j < k; ++j) qp[t] += q[t * k + j] * p[j];
      total += p[t] * qp[t];
    }
    for (int64_t t = 0; t < k; ++t) error = std::max(error, std::abs(qp[t] - total));
    if (error < enough) break;
    for (int64_t t = 0; t < k; ++t) {
      double step = (total - qp[t]) / q[t * k + t], scale = 1 + step;
      p[t] += step;
      total = (total + step * (step * q[t * k + t] + 2 * qp[t])) / scale / scale;
      for (int64_t j = 0; j < k; ++j) {
        qp[j] = (qp[j] + step * q[t * k + j]) / scale;
        p[j] /= scale;
      }
    }
  }
  std::copy(p.begin(), p.end(), result);
}
Tensor PairProbabilities(Tensor pairs, int64_t classes) {
  if (classes < 2 || classes > 4096 || DataType(pairs.dtype()) != DataType::Float(32) ||
      pairs.ndim() != 2 || pairs.size(1) != classes * (classes - 1) / 2)
    TVM_FFI_THROW(ValueError) << "pair_probabilities: expected float32 for each pair of " << classes
                              << " classes, got " << Shape(pairs.shape()) << " of "
                              << DataType(pairs.dtype());
  Tensor host = HostTensor(pairs);
  int64_t rows = pairs.size(0), extents[] = {rows, classes};
  Tensor result = Empty({extents, 2}, pairs.dtype(), {kDLCPU, 0});
  auto* given = static_cast<const float*>(host.data_ptr());
  std::vector<double> r(classes * classes);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < classes; ++i) {
      for (int64_t j = i + 1; j < classes; ++j) {
        double first = std::clamp<double>(*given++, 1e-7, 1 - 1e-7);
        r[i * classes + j] = first;
        r[j * classes + i] = 1 - first;
      }
    }
    FitRow(r, classes, static_cast<float*>(result.data_ptr()) + row * classes);
  }
  return result;
}
}  // namespace

TVM_REGISTER() {
  Def("vm.builtin.pair_probabilities", &PairProbabilities,
      "Rows of probabilities of classes, from those of the first class of each pair i < j.",
      Arg("pairs"), Arg("classes"));
}
}  // namespace tvm::runtime::vm::learning
