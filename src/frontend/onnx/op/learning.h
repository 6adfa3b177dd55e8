// SPDX-License-Identifier: Apache-2.0
// What classifiers and regressors of the domain ai.onnx.ml share.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
constexpr const char* kLearning = "ai.onnx.ml";

/// A vector of floats, or a scalar for one that all share.
Expr FloatVector(Node& n, const std::vector<double>& values);
/// What they do to their scores in the end: NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO.
Expr Transformed(Node& n, const Expr& scores, const std::string& how);
/// The labels of a classifier, numbers or words, at places.
struct ClassLabels {
  std::vector<int64_t> numbers;
  std::vector<std::string> words;
  int64_t size() const {
    return static_cast<int64_t>(words.empty() ? numbers.size() : words.size());
  }
  Value At(Node& n, const Expr& places) const;
};
/// Of the attributes `numbers` and `words`, one of which is there.
ClassLabels ReadLabels(Node& n, Name numbers, Name words);

}  // namespace tvm::frontend::onnx
