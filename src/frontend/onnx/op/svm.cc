// SPDX-License-Identifier: Apache-2.0
// Support vector machines of the domain ai.onnx.ml.
#include "frontend/onnx/op/learning.h"

namespace tvm::frontend::onnx {
namespace {
/// What both kinds of machines are made of.
struct Machine {
  Expr x;  // (rows, features)
  std::string kernel;
  std::vector<double> params, coefficients, vectors, rho;
};
Machine ReadMachine(Node& n) {
  Machine m{n.Cast(n.In(0), kSingle),
            n.Str("kernel_type", "LINEAR"),
            n.Floats("kernel_params", {0, 0, 0}),
            n.Floats("coefficients"),
            n.Floats("support_vectors"),
            n.Floats("rho", {0})};
  if (Node::Rank(m.x) == 1) m.x = n("expand_dims", m.x, List({0}));
  if (m.params.size() != 3 || m.rho.empty()) n.Fail("three kernel_params and a rho", "others");
  return m;
}
Expr Number(Node& n, double value) { return n.Scalar(value, kSingle); }
/// A constant of so many rows.
Expr Matrix(Node& n, const std::vector<double>& values, int64_t rows) {
  auto size = static_cast<int64_t>(values.size());
  if (rows <= 0 || size == 0 || size % rows)
    n.Fail("numbers for " + std::to_string(rows) + " rows", std::to_string(size));
  return n.Reshape(FloatVector(n, values), {Num(rows), Num(size / rows)});
}
/// The kernel of each row with each support vector.
Expr Kernels(Node& n, const Machine& m, int64_t count) {
  Expr support = Matrix(n, m.vectors, count);
  const auto& p = m.params;
  if (m.kernel == "RBF") {
    Expr apart = n("subtract", n("expand_dims", m.x, List({1})), support);
    Expr distance = n("sum", n("multiply", apart, apart), List({-1}), false);
    return n("exp", n("multiply", distance, Number(n, -p[0])));
  }
  Expr y = n("matmul", m.x, Transposed(n, support, {1, 0}));
  if (m.kernel == "LINEAR") return y;
  y = n("add", n("multiply", y, Number(n, p[0])), Number(n, p[1]));
  if (m.kernel == "POLY") return n("power", y, Number(n, p[2]));
  if (m.kernel != "SIGMOID") n.Fail("kernel_type to be LINEAR, POLY, RBF or SIGMOID", m.kernel);
  return n("tanh", y);
}
/// The sum of kernels with support vectors; without them, of a linear one with the coefficients.
Outputs ConvertSVMRegressor(Node& n) {
  Machine m = ReadMachine(n);
  int64_t count = n.Int("n_supports", 0);
  Expr y = count == 0 ? n("matmul", m.x, Transposed(n, Matrix(n, m.coefficients, 1), {1, 0}))
                      : n("matmul", Kernels(n, m, count), Matrix(n, m.coefficients, count));
  y = n("add", y, Number(n, m.rho[0]));
  if (n.Int("one_class", 0) != 0)
    y = n("where", n("greater", y, Number(n, 0)), Number(n, 1), Number(n, -1));
  return Transformed(n, y, n.Str("post_transform", "NONE"));
}

// ---- classifiers --------------------------------------------------------------------------------
/// The pairs of classes i < j, in order.
std::vector<std::pair<int64_t, int64_t>> PairsOf(int64_t classes) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < classes; ++i) {
    for (int64_t j = i + 1; j < classes; ++j) pairs.emplace_back(i, j);
  }
  return pairs;
}
/// A score for every pair of classes: above 0 it speaks for the first one.
Expr PairScores(Node& n, const Machine& m, const std::vector<int64_t>& per_class, int64_t count) {
  auto classes = static_cast<int64_t>(per_class.size());
  auto pairs = PairsOf(classes);
  if (m.coefficients.size() != static_cast<size_t>(count * (classes - 1)) ||
      m.rho.size() != pairs.size())
    n.Fail(std::to_string(count * (classes - 1)) + " coefficients and " +
               std::to_string(pairs.size()) + " numbers in rho",
           std::to_string(m.coefficients.size()) + " and " + std::to_string(m.rho.size()));
  // The coefficients of a vector of class i against class j are in row j - 1, or j where j < i.
  std::vector<double> weights;
  for (int64_t of = 0, vector = 0; of < classes; ++of) {
    for (int64_t k = 0; k < per_class[of]; ++k, ++vector) {
      for (auto [i, j] : pairs) {
        int64_t row = of == i ? j - 1 : i;
        weights.push_back(of == i || of == j ? m.coefficients[row * count + vector] : 0);
      }
    }
  }
  Expr sums = n("matmul", Kernels(n, m, count), Matrix(n, weights, count));
  return n("add", sums, FloatVector(n, m.rho));
}
/// How many pairs speak for each class.
Expr Votes(Node& n, const Expr& scores, int64_t classes) {
  std::vector<double> gains, losses;  // of a pair whose first class wins, or loses
  for (auto [i, j] : PairsOf(classes)) {
    for (int64_t c = 0; c < classes; ++c) {
      gains.push_back(c == i ? 1 : 0);
      losses.push_back(c == j ? 1 : 0);
    }
  }
  auto rows = static_cast<int64_t>(gains.size()) / classes;
  Expr wins = n("greater", scores, Number(n, 0));
  Expr won = n("matmul", n.Cast(wins, kSingle), Matrix(n, gains, rows));
  Expr lost = n("matmul", n.Cast(n("logical_not", wins), kSingle), Matrix(n, losses, rows));
  return n("add", won, lost);
}
/// Probabilities of classes that fit those of the pairs best.
Expr Probabilities(Node& n, const Expr& scores, int64_t classes) {
  auto a = n.Floats("prob_a"), b = n.Floats("prob_b");
  if (a.size() != PairsOf(classes).size() || b.size() != a.size())
    n.Fail("prob_a and prob_b for every pair of classes",
           std::to_string(a.size()) + " and " + std::to_string(b.size()));
  Expr line = n("add", n("multiply", scores, FloatVector(n, a)), FloatVector(n, b));
  Expr pairs = n("sigmoid", n("negative", line));
  relax::TensorStructInfo info({Node::Shape(scores)[0], Num(classes)}, kSingle);
  return n.importer.CallRuntime("pair_probabilities", {pairs, relax::PrimValue(Num(classes))},
                                info);
}
/// Without support vectors: a row of coefficients for each class.
Outputs LinearMachine(Node& n, const Machine& m, const ClassLabels& labels,
                      const std::string& how) {
  Expr w = Transposed(n, Matrix(n, m.coefficients, labels.size()), {1, 0});
  Expr scores = n("add", n("matmul", m.x, w), Number(n, m.rho[0]));
  Expr places = n("argmax", scores, 1);
  if (labels.size() == 2) {
    // As ONNX Runtime has it: a score that is high enough, of either class, means the second one.
    bool is_positive =
        std::all_of(m.coefficients.begin(), m.coefficients.end(), [](double c) { return c >= 0; });
    Expr most = n("max", scores, List({1}), false);
    Expr is_high =
        n(is_positive ? "greater_equal" : "greater", most, Number(n, is_positive ? 0.5 : 0));
    places = n("where", is_high, n.Scalar(1, DataType::Int(64)), places);
  }
  return std::vector<Value>{labels.At(n, places), Transformed(n, scores, how)};
}
Outputs ConvertSVMClassifier(Node& n) {
  Machine m = ReadMachine(n);
  ClassLabels labels = ReadLabels(n, "classlabels_ints", "classlabels_strings");
  std::string how = n.Str("post_transform", "NONE");
  std::vector<int64_t> per_class = n.Ints("vectors_per_class");
  int64_t count = 0;
  for (int64_t c : per_class) {
    if (c < 0) n.Fail("vectors_per_class of at least 0", std::to_string(c));
    count += c;
  }
  bool has_odds = !n.Floats("prob_a").empty();
  n.Ignore("prob_b");
  if (count == 0) return LinearMachine(n, m, labels, how);
  if (labels.size() < 2 || labels.size() != static_cast<int64_t>(per_class.size()))
    n.Fail("two labels or more, each with vectors_per_class",
           std::to_string(labels.size()) + " and " + std::to_string(per_class.size()));
  Expr scores = PairScores(n, m, per_class, count);
  Value label = labels.At(n, n("argmax", Votes(n, scores, labels.size()), 1));
  if (has_odds) {
    scores = Probabilities(n, scores, labels.size());
  } else if (labels.size() == 2) {
    scores = n("concat", relax::Tuple({n("negative", scores), scores}), 1);
  }
  return std::vector<Value>{label, Transformed(n, scores, how)};
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"SVMClassifier", &ConvertSVMClassifier, kLearning},
      {"SVMRegressor", &ConvertSVMRegressor, kLearning},
  });
}

}  // namespace tvm::frontend::onnx
