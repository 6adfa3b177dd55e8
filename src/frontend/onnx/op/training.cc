// SPDX-License-Identifier: Apache-2.0
// Steps of optimisers: the domain ai.onnx.preview.training.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kTraining = "ai.onnx.preview.training";

/// Inputs are a rate, the number of steps before, then tensors in `columns` groups; the outputs of
/// a step are given for each tensor, and returned group by group.
template <class F>
Outputs EachTensor(Node& n, size_t columns, F step) {
  size_t count = n.NumInputs() < 2 ? 0 : (n.NumInputs() - 2) / columns;
  if (count == 0 || 2 + count * columns != n.NumInputs())
    n.Fail("a rate, a count and groups of " + std::to_string(columns) + " tensors",
           std::to_string(n.NumInputs()) + " inputs");
  std::vector<std::vector<Expr>> groups;
  for (size_t i = 0; i < count; ++i) {
    std::vector<Expr> inputs;
    for (size_t c = 0; c < columns; ++c) inputs.push_back(n.In(2 + c * count + i));
    std::vector<Expr> results = step(inputs);
    groups.resize(results.size());
    for (size_t g = 0; g < results.size(); ++g) groups[g].push_back(results[g]);
  }
  std::vector<Value> outputs;
  for (const auto& group : groups) outputs.insert(outputs.end(), group.begin(), group.end());
  return outputs;
}
Expr Scaled(Node& n, const Expr& x, double factor) {
  return n("multiply", x, n.Scalar(factor, Node::TypeOf(x)));
}
/// The gradient with what the weight's own size adds to it.
Expr Regularised(Node& n, const Expr& x, const Expr& g, double norm) {
  return norm == 0 ? g : n("add", Scaled(n, x, norm), g);
}
Outputs ConvertAdagrad(Node& n) {
  double decay = n.Float("decay_factor", 0), epsilon = n.Float("epsilon", 0),
         norm = n.Float("norm_coefficient", 0);
  return EachTensor(n, 3, [&](const std::vector<Expr>& in) {
    DataType t = Node::TypeOf(in[0]);
    Expr slow = n("add", Scaled(n, n.Cast(n.In(1), t), decay), n.Scalar(1, t));
    Expr rate = n("divide", n.Cast(n.In(0), t), slow);
    Expr g = Regularised(n, in[0], in[1], norm);
    Expr h = n("add", in[2], n("multiply", g, g));
    Expr adapted = n("add", n("sqrt", h), n.Scalar(epsilon, t));
    return std::vector<Expr>{n("subtract", in[0], n("divide", n("multiply", rate, g), adapted)), h};
  });
}
Outputs ConvertAdam(Node& n) {
  double alpha = n.Float("alpha", 0.9F), beta = n.Float("beta", 0.999F),
         epsilon = n.Float("epsilon", 0), norm = n.Float("norm_coefficient", 0),
         post = n.Float("norm_coefficient_post", 0);
  return EachTensor(n, 4, [&](const std::vector<Expr>& in) {
    DataType t = Node::TypeOf(in[0]);
    Expr rate = n.Cast(n.In(0), t), steps = n.Cast(n.In(1), t), one = n.Scalar(1, t);
    auto left = [&](double base) {
      return n("subtract", one, n("power", n.Scalar(base, t), steps));
    };
    Expr started = n("greater", steps, n.Scalar(0, t));
    Expr warm = n("divide", n("multiply", rate, n("sqrt", left(beta))), left(alpha));
    rate = n("where", started, warm, rate);
    Expr g = Regularised(n, in[0], in[1], norm);
    Expr v = n("add", Scaled(n, in[2], alpha), Scaled(n, g, 1 - alpha));
    Expr h = n("add", Scaled(n, in[3], beta), Scaled(n, n("multiply", g, g), 1 - beta));
    Expr root = n("add", n("sqrt", h), n.Scalar(epsilon, t));
    Expr x = n("subtract", in[0], n("divide", n("multiply", rate, v), root));
    return std::vector<Expr>{post == 0 ? x : Scaled(n, x, 1 - post), v, h};
  });
}
Outputs ConvertMomentum(Node& n) {
  double alpha = n.Float("alpha"), beta = n.Float("beta"), norm = n.Float("norm_coefficient");
  std::string mode = n.Str("mode");
  if (mode != "standard" && mode != "nesterov") n.Fail("mode to be standard or nesterov", mode);
  return EachTensor(n, 3, [&](const std::vector<Expr>& in) {
    DataType t = Node::TypeOf(in[0]);
    Expr started = n("greater", n.Cast(n.In(1), t), n.Scalar(0, t));
    Expr factor = n("where", started, n.Scalar(beta, t), n.Scalar(1, t));
    Expr g = Regularised(n, in[0], in[1], norm);
    Expr v = n("add", Scaled(n, in[2], alpha), n("multiply", factor, g));
    Expr move = mode == "standard" ? v : n("add", g, Scaled(n, v, alpha));
    return std::vector<Expr>{n("subtract", in[0], n("multiply", n.Cast(n.In(0), t), move)), v};
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Adagrad", &ConvertAdagrad, kTraining},
      {"Adam", &ConvertAdam, kTraining},
      {"Momentum", &ConvertMomentum, kTraining},
  });
}

}  // namespace tvm::frontend::onnx
