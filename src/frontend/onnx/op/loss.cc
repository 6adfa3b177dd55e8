// SPDX-License-Identifier: Apache-2.0
// Losses.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
/// The loss of log probabilities (N, C, …) for targets (N, …).
Expr NegativeLogLikelihood(Node& n, const Expr& log_prob, const Expr& target) {
  std::string reduction = n.Str("reduction", "mean");
  int64_t ignored = n.Int("ignore_index", -100);
  Any weight = nullptr;
  if (n.Has(2)) weight = n.In(2);
  return n("nn.nll_loss", log_prob, target, weight, reduction, ignored);
}
Outputs ConvertNegativeLogLikelihoodLoss(Node& n) {
  return NegativeLogLikelihood(n, n.In(0), n.In(1));
}
Outputs ConvertSoftmaxCrossEntropyLoss(Node& n) {
  Expr log_prob = n("nn.log_softmax", n.In(0), 1);
  return std::vector<Expr>{NegativeLogLikelihood(n, log_prob, n.In(1)), log_prob};
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"NegativeLogLikelihoodLoss", &ConvertNegativeLogLikelihoodLoss},
      {"SoftmaxCrossEntropyLoss", &ConvertSoftmaxCrossEntropyLoss},
  });
}

}  // namespace tvm::frontend::onnx
