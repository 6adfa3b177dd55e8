// SPDX-License-Identifier: Apache-2.0
// Operators on numbers of the domain ai.onnx.ml.
#include <cmath>

#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kLearning = "ai.onnx.ml";
const DataType kSingle = DataType::Float(32);

/// A vector of floats, or a scalar for one that all share.
Expr FloatVector(Node& n, const std::vector<double>& values) {
  Known known{{}, kSingle, {}};
  if (values.size() != 1) known.shape = {static_cast<int64_t>(values.size())};
  for (double v : values) known.elements.push_back(MakeConst(kSingle, v));
  Value value{std::move(known)};
  return n.importer.TensorOf(&value);
}
Outputs ConvertArrayFeatureExtractor(Node& n) {
  Expr x = n.In(0), indices = n.In(1);
  PrimExpr count = ProductOf(Node::Shape(indices));
  if (Node::Rank(x) == 1) x = n("expand_dims", x, List({0}));
  return n("take", x, n.Reshape(indices, {n.Simplify(count)}), Node::Rank(x) - 1);
}
Outputs ConvertBinarizer(Node& n) {
  double threshold = n.Float("threshold", 0);
  return MapElements(n, "binarizer", n.In(0), [&](PrimExpr x) -> PrimExpr {
    DataType t = x.dtype();
    return tir::Select(x > Num(t, threshold), Num(t, 1), Num(t, 0));
  });
}
Outputs ConvertScaler(Node& n) {
  Expr x = n.Cast(n.In(0), kSingle);
  auto offset = n.Floats("offset"), scale = n.Floats("scale");
  if (!offset.empty()) x = n("subtract", x, FloatVector(n, offset));
  return scale.empty() ? x : n("multiply", x, FloatVector(n, scale));
}
Outputs ConvertNormalizer(Node& n) {
  Expr x = n.Cast(n.In(0), kSingle);
  std::string norm = n.Str("norm", "MAX");
  Expr size;
  if (norm == "MAX") {
    size = n("max", x, -1, true);
  } else if (norm == "L1") {
    size = n("sum", n("abs", x), -1, true);
  } else if (norm == "L2") {
    size = n("sqrt", n("sum", n("multiply", x, x), -1, true));
  } else {
    n.Fail("norm to be MAX, L1 or L2", norm);
  }
  Expr zero = n.Scalar(0, kSingle);
  return n("where", n("equal", size, zero), x, n("divide", x, size));
}
Outputs ConvertImputer(Node& n) {
  Expr x = n.In(0);
  bool is_float = Node::TypeOf(x).is_float();
  if (!is_float) {
    std::vector<int64_t> values = n.Ints("imputed_value_int64s");
    int64_t replaced = n.Int("replaced_value_int64", 0);
    Expr with = values.size() == 1 ? n.Scalar(static_cast<double>(values[0]), Node::TypeOf(x))
                                   : n.IntVector(values, Node::TypeOf(x));
    Expr is = n("equal", x, n.Scalar(static_cast<double>(replaced), Node::TypeOf(x)));
    return n("where", is, with, x);
  }
  double replaced = n.Float("replaced_value_float", 0);
  Expr with = FloatVector(n, n.Floats("imputed_value_floats"));
  Expr is =
      std::isnan(replaced) ? n("isnan", x) : n("equal", x, n.Scalar(replaced, Node::TypeOf(x)));
  return n("where", is, with, x);
}
Outputs ConvertFeatureVectorizer(Node& n) {
  n.Ignore("inputdimensions");
  Array<Expr> parts;
  for (const Expr& e : n.All()) {
    Expr x = n.Cast(e, kSingle);
    parts.push_back(Node::Rank(x) == 1 ? n("expand_dims", x, List({0})) : x);
  }
  return parts.size() == 1 ? parts[0] : n("concat", relax::Tuple(parts), 1);
}
/// What classifiers and regressors do to their scores in the end.
Expr Transformed(Node& n, const Expr& y, const std::string& how) {
  if (how == "NONE") return y;
  if (how == "LOGISTIC") return n("sigmoid", y);
  if (how == "SOFTMAX") return n("nn.softmax", y, -1);
  n.Unsupported("post_transform " + how);
}
/// x · coefficientsᵀ + intercepts, a row per target.
Expr LinearScores(Node& n, int64_t targets) {
  Expr x = n.Cast(n.In(0), kSingle);
  if (Node::Rank(x) == 1) x = n("expand_dims", x, List({0}));
  auto coefficients = n.Floats("coefficients"), intercepts = n.Floats("intercepts");
  auto size = static_cast<int64_t>(coefficients.size());
  if (targets <= 0 || size % targets) n.Fail("coefficients for each target", std::to_string(size));
  Expr w = n.Reshape(FloatVector(n, coefficients), {Num(targets), Num(size / targets)});
  Expr y = n("matmul", x, Transposed(n, w, {1, 0}));
  return intercepts.empty() ? y : n("add", y, FloatVector(n, intercepts));
}
Outputs ConvertLinearRegressor(Node& n) {
  Expr y = LinearScores(n, n.Int("targets", 1));
  return Transformed(n, y, n.Str("post_transform", "NONE"));
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"ArrayFeatureExtractor", &ConvertArrayFeatureExtractor, kLearning},
      {"Binarizer", &ConvertBinarizer, kLearning},
      {"FeatureVectorizer", &ConvertFeatureVectorizer, kLearning},
      {"Imputer", &ConvertImputer, kLearning},
      {"LinearRegressor", &ConvertLinearRegressor, kLearning},
      {"Normalizer", &ConvertNormalizer, kLearning},
      {"Scaler", &ConvertScaler, kLearning},
  });
}

}  // namespace tvm::frontend::onnx
