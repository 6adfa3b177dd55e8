// SPDX-License-Identifier: Apache-2.0
// Builtins that choose the next token of a language model from its logits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/vm/program.h"
#include "tvm/runtime/data_type.h"

namespace tvm::runtime::vm {
namespace {
/// float32 on the CPU, contiguous, one row: all extents but the last are 1.
void CheckRow(const char* what, const Tensor& t) {
  bool row = t.ndim() > 0 && t.shape()[t.ndim() - 1] == t.numel() && t.numel() > 0;
  if (!row || DataType(t.dtype()) != DataType::Float(32) || !t.is_contiguous() ||
      t.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << what << ": expected one contiguous row of float32 on the CPU, got "
                              << Shape(t.shape()) << " of " << DataType(t.dtype());
  }
}
float* Values(const Tensor& t) {
  return reinterpret_cast<float*>(static_cast<char*>(t.data_ptr()) + t.byte_offset());
}
/// Logits to probabilities, in place; at a temperature of 0 all of it goes to the largest.
void SoftmaxInPlace(float* values, int64_t n, double temperature) {
  float largest = *std::max_element(values, values + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    double scaled = temperature < 1e-6 ? (values[i] == largest ? 0 : -INFINITY)
                                       : (values[i] - largest) / temperature;
    values[i] = static_cast<float>(std::exp(scaled));
    sum += values[i];
  }
  for (int64_t i = 0; i < n; ++i) values[i] = static_cast<float>(values[i] / sum);
}
/// Of the likeliest tokens that together reach `top_p`, the one at which their running sum passes
/// the share `uniform` of it.
int64_t SampleTopP(const float* probabilities, int64_t n, double top_p, double uniform) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
  double total = 0;
  int64_t kept = 0;
  while (kept < n && (kept == 0 || total < top_p)) total += probabilities[order[kept++]];
  double sum = 0;
  for (int64_t i = 0; i < kept; ++i) {
    sum += probabilities[order[i]];
    if (uniform * total < sum) return order[i];
  }
  return order[kept - 1];
}

int64_t SampleTopPFromLogits(Tensor logits, double temperature, double top_p, double uniform) {
  CheckRow("sample_top_p_from_logits", logits);
  std::vector<float> row(Values(logits), Values(logits) + logits.numel());
  SoftmaxInPlace(row.data(), logits.numel(), temperature);
  return SampleTopP(row.data(), logits.numel(), top_p, uniform);
}
int64_t SampleTopPFromProb(Tensor prob, double top_p, double uniform) {
  CheckRow("sample_top_p_from_prob", prob);
  return SampleTopP(Values(prob), prob.numel(), top_p, uniform);
}
int64_t MultinomialFromUniform(Tensor prob, double uniform) {
  CheckRow("multinomial_from_uniform", prob);
  double sum = 0;
  for (int64_t i = 0; i < prob.numel(); ++i) {
    sum += Values(prob)[i];
    if (uniform < sum) return i;
  }
  return prob.numel() - 1;
}
void ApplySoftmaxWithTemperature(Tensor logits, double temperature) {
  CheckRow("apply_softmax_with_temperature", logits);
  SoftmaxInPlace(Values(logits), logits.numel(), temperature);
}

/// Calls `f(logit, i)` for the i-th token of a vector of int32.
template <class F>
void ForTokens(const char* what, const Tensor& logits, const Tensor& tokens, F f) {
  CheckRow(what, logits);
  if (DataType(tokens.dtype()) != DataType::Int(32) || tokens.ndim() != 1 ||
      !tokens.is_contiguous() || tokens.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << what << ": expected a vector of int32 on the CPU";
  }
  auto* ids = reinterpret_cast<const int32_t*>(static_cast<const char*>(tokens.data_ptr()) +
                                               tokens.byte_offset());
  for (int64_t i = 0; i < tokens.numel(); ++i) {  // all are checked before anything changes
    if (ids[i] < 0 || ids[i] >= logits.numel()) {
      TVM_FFI_THROW(IndexError) << what << ": expected tokens below " << logits.numel() << ", got "
                                << ids[i];
    }
  }
  for (int64_t i = 0; i < tokens.numel(); ++i) f(Values(logits)[ids[i]], i);
}
void ApplyRepetitionPenalty(Tensor logits, Tensor tokens, double penalty) {
  ForTokens("apply_repetition_penalty", logits, tokens, [&](float& logit, int64_t) {
    logit = static_cast<float>(logit > 0 ? logit / penalty : logit * penalty);
  });
}
void ApplyPresenceAndFrequencyPenalty(Tensor logits, Tensor tokens, Tensor counts, double presence,
                                      double frequency) {
  constexpr const char* kName = "apply_presence_and_frequency_penalty";
  if (counts.numel() != tokens.numel() || DataType(counts.dtype()) != DataType::Int(32) ||
      !counts.is_contiguous() || counts.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << kName << ": expected a count of int32 for each token";
  }
  auto* count = reinterpret_cast<const int32_t*>(static_cast<const char*>(counts.data_ptr()) +
                                                 counts.byte_offset());
  ForTokens(kName, logits, tokens, [&](float& logit, int64_t i) {
    logit = static_cast<float>(logit - count[i] * frequency - presence);
  });
}

TVM_REGISTER() {
  Def("vm.builtin.sample_top_p_from_logits", &SampleTopPFromLogits,
      "The next token, among the likeliest whose probabilities reach top_p.", Arg("logits"),
      Arg("temperature"), Arg("top_p"), Arg("uniform"));
  Def("vm.builtin.sample_top_p_from_prob", &SampleTopPFromProb, "The same from probabilities.",
      Arg("prob"), Arg("top_p"), Arg("uniform"));
  Def("vm.builtin.multinomial_from_uniform", &MultinomialFromUniform,
      "The index at which the running sum of probabilities passes a number.", Arg("prob"),
      Arg("uniform"));
  Def("vm.builtin.apply_softmax_with_temperature", &ApplySoftmaxWithTemperature,
      "Logits to probabilities, in place.", Arg("logits"), Arg("temperature"));
  Def("vm.builtin.apply_repetition_penalty", &ApplyRepetitionPenalty,
      "Makes tokens less likely, in place.", Arg("logits"), Arg("token_ids"), Arg("penalty"));
  Def("vm.builtin.apply_presence_and_frequency_penalty", &ApplyPresenceAndFrequencyPenalty,
      "Makes tokens less likely by how often they came, in place.", Arg("logits"), Arg("token_ids"),
      Arg("token_freqs"), Arg("presence_penalty"), Arg("frequency_penalty"));
}
}  // namespace
}  // namespace tvm::runtime::vm
