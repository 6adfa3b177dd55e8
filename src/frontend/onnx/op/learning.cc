// SPDX-License-Identifier: Apache-2.0
// Operators of the domain ai.onnx.ml.
#include "frontend/onnx/op/learning.h"

#include <cmath>
#include <numbers>

namespace tvm::frontend::onnx {
namespace {
/// The place below which a normal number lies with that probability: √2 erf⁻¹(2p - 1), where the
/// inverse is Winitzki's, of which three digits are right.
Expr Probit(Node& n, const Expr& scores) {
  constexpr double kA = 0.147;
  return MapElements(n, "probit", scores, [](const PrimExpr& p) {
    auto number = [&](double value) { return Num(p.dtype(), value); };
    PrimExpr x = p * number(2) - number(1), log = tvm::log((number(1) - x) * (number(1) + x));
    PrimExpr half = number(2 / (std::numbers::pi * kA)) + log * number(0.5);
    PrimExpr size = tvm::sqrt(tvm::sqrt(half * half - log * number(1 / kA)) - half);
    return tir::Select(x < number(0), neg(size), size) * number(std::numbers::sqrt2);
  });
}
}  // namespace

Expr Transformed(Node& n, const Expr& scores, const std::string& how) {
  if (how == "NONE") return scores;
  if (how == "LOGISTIC") return n("sigmoid", scores);
  if (how == "SOFTMAX") return n("nn.softmax", scores, -1);
  if (how == "PROBIT") return Probit(n, scores);
  if (how != "SOFTMAX_ZERO") n.Unsupported("post_transform " + how);
  // Zeros stay zeros and take no part.
  DataType t = Node::TypeOf(scores);
  Expr zero = n.Scalar(0, t), power = n("subtract", scores, n("max", scores, List({-1}), true));
  Expr e = n("where", n("equal", scores, zero), zero, n("exp", power));
  return n("divide", e, n("maximum", n("sum", e, List({-1}), true), n.Scalar(1e-30, t)));
}
ClassLabels ReadLabels(Node& n, Name numbers, Name words) {
  ClassLabels labels{n.Ints(numbers), n.Strs(words)};
  if (labels.size() == 0)
    n.Fail("labels in " + std::string(numbers) + " or " + std::string(words), "none");
  return labels;
}
Value ClassLabels::At(Node& n, const Expr& places) const {
  if (words.empty()) return n("take", n.IntVector(numbers), places, 0);
  return Value::Strings(n.importer.StringConstant({size()}, words).words, places);
}

Expr FloatVector(Node& n, const std::vector<double>& values) {
  Known known{{}, kSingle, {}};
  if (values.size() != 1) known.shape = {static_cast<int64_t>(values.size())};
  for (double v : values) known.elements.push_back(MakeConst(kSingle, v));
  Value value{std::move(known)};
  return n.importer.TensorOf(&value);
}

namespace {
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
/// With one score for two classes, its sign decides between them.
Outputs ConvertLinearClassifier(Node& n) {
  ClassLabels labels = ReadLabels(n, "classlabels_ints", "classlabels_strings");
  auto rows = static_cast<int64_t>(std::max<size_t>(1, n.Floats("intercepts").size()));
  if (n.Floats("intercepts").empty()) rows = labels.size();
  Expr scores = LinearScores(n, rows);
  n.Ignore("multi_class");
  std::string how = n.Str("post_transform", "NONE");
  if (rows > 1)
    return std::vector<Value>{labels.At(n, n("argmax", scores, 1)), Transformed(n, scores, how)};
  if (labels.size() != 2) n.Fail("two labels for one score", std::to_string(labels.size()));
  Expr is_second = n("greater", n("squeeze", scores, List({1})), n.Scalar(0, kSingle));
  Expr second = how == "LOGISTIC" ? n("sigmoid", scores) : scores;
  Expr first =
      how == "LOGISTIC" ? n("subtract", n.Scalar(1, kSingle), second) : n("negative", second);
  Expr both = n("concat", relax::Tuple({first, second}), 1);
  return std::vector<Value>{labels.At(n, n.Cast(is_second, DataType::Int(64))),
                            how == "LOGISTIC" ? both : Transformed(n, both, how)};
}
/// A row of scores as a map from the labels.
Outputs ConvertZipMap(Node& n) {
  ClassLabels labels = ReadLabels(n, "classlabels_int64s", "classlabels_strings");
  Expr keys = labels.words.empty() ? n.IntVector(labels.numbers)
                                   : n.importer.StringConstant({labels.size()}, labels.words).words;
  auto type = std::make_shared<TypeProto>();
  type->kind = TypeProto::kSequence;
  Expr scores = n.Cast(n.In(0), kSingle);
  return Value::Object(n.importer.CallRuntime("sequence.maps_of_rows", {scores, keys}), type);
}
/// A map that is the input, and the type of its values: nothing for words.
struct MapInput {
  Expr map;
  std::optional<DataType> numbers;
};
MapInput ReadMap(Node& n, bool has_words_as_keys) {
  const Value& x = n.Input(0);
  if (!x.object || x.object->kind != TypeProto::kMap || !x.object->element)
    n.Fail("a map", x.Otherwise() ? x.Otherwise() : "a tensor");
  if ((x.object->key_type == kString) != has_words_as_keys)
    n.Fail(has_words_as_keys ? "words as keys" : "integers as keys", "others");
  MapInput input{x.expr, {}};
  if (x.object->element->data_type != kString) {
    input.numbers = DataTypeOf(x.object->element->data_type);
    if (!input.numbers) n.Fail("numbers or words as values", "others");
  }
  return input;
}
/// The values at keys, (1, count).
Expr MapNumbers(Node& n, const Expr& map, const Expr& keys, const PrimExpr& count, DataType dtype) {
  return n.importer.CallRuntime("map.numbers", {map, keys, relax::DataTypeImm(dtype)},
                                relax::TensorStructInfo(Dims{Num(1), count}, dtype));
}
Value MapWords(Node& n, const Expr& map, const Expr& keys, const PrimExpr& count,
               const char* missing) {
  return n.importer.StringsInOrder(
      n.importer.CallRuntime("map.words", {map, keys, relax::StringImm(missing)}), {Num(1), count});
}
Outputs ConvertDictVectorizer(Node& n) {
  ClassLabels labels = ReadLabels(n, "int64_vocabulary", "string_vocabulary");
  auto [map, numbers] = ReadMap(n, !labels.words.empty());
  Expr keys = labels.words.empty() ? n.IntVector(labels.numbers)
                                   : n.importer.StringConstant({labels.size()}, labels.words).words;
  if (!numbers) return MapWords(n, map, keys, Num(labels.size()), "");
  return MapNumbers(n, map, keys, Num(labels.size()), *numbers);
}
/// The values by their keys: one behind the other, or each at the place that its key says.
Outputs ConvertCastMap(Node& n) {
  auto [map, numbers] = ReadMap(n, false);
  std::string to = n.Str("cast_to", "TO_FLOAT"), form = n.Str("map_form", "DENSE");
  int64_t size = n.Int("max_map", 1);
  constexpr int64_t kMost = int64_t{1} << 28;  // a small file must not take all memory
  if (form != "DENSE" && form != "SPARSE") n.Fail("map_form to be DENSE or SPARSE", form);
  if (form == "SPARSE" && (size < 1 || size > kMost))
    n.Fail("max_map in [1, " + std::to_string(kMost) + "]", std::to_string(size));
  if (to != "TO_FLOAT" && to != "TO_INT64" && to != "TO_STRING")
    n.Fail("cast_to to be TO_FLOAT, TO_INT64 or TO_STRING", to);
  bool is_dense = form == "DENSE";
  Expr keys = is_dense ? n.Emit(relax::CallOperator("relax.null_value", {}))
                       : Expr(relax::PrimValue(Num(size)));
  PrimExpr count = is_dense ? PrimExpr(n.importer.FreshDim()) : Num(size);
  if (is_dense) {
    Expr shape = n.importer.CallRuntime("map.shape", {map}, relax::ShapeStructInfo(2));
    n.importer.builder()->EmitMatchCast(shape, relax::ShapeStructInfo(Dims{Num(1), count}), "lv");
  }
  // What is missing among texts is spelled as ONNX Runtime does.
  if (to == "TO_STRING") return MapWords(n, map, keys, count, "0.f");
  DataType type = to == "TO_FLOAT" ? kSingle : DataType::Int(64);
  if (numbers) return n.Cast(MapNumbers(n, map, keys, count, *numbers), type);
  Value words = MapWords(n, map, keys, count, "0");
  DataType wide = to == "TO_FLOAT" ? DataType::Float(64) : DataType::Int(64);
  Expr parsed = n.importer.CallRuntime(
      "strings.parse", {words.words, words.expr, relax::PrimValue(IntImm::Bool(type.is_float()))},
      relax::TensorStructInfo(Dims{Num(1), count}, wide));
  return n.Cast(parsed, type);
}
/// A new last axis, 1 where the category is.
Outputs ConvertOneHotEncoder(Node& n) {
  ClassLabels labels = ReadLabels(n, "cats_int64s", "cats_strings");
  if (n.Int("zeros", 1) == 0) n.Unsupported("an error for unknown categories (zeros = 0)");
  Te te(n);
  Expr found;
  if (labels.words.empty()) {
    found = n.Cast(n.In(0), DataType::Int(64));
  } else {
    const Value& x = n.StringsIn(0);
    Expr words = n.importer.StringConstant({labels.size()}, labels.words).words;
    found = n.importer.CallRuntime("strings.lookup", {x.words, x.expr, words},
                                   relax::TensorStructInfo(Node::Shape(x.expr), DataType::Int(64)));
    for (int64_t i = 0; i < labels.size(); ++i) labels.numbers.push_back(i);
  }
  te::Tensor at = te(found), table = te(n.IntVector(labels.numbers));
  Dims shape = at->shape;
  shape.push_back(Num(labels.size()));
  return ComputeElements(n, "one_hot", te, shape, [&](const Index& i) -> PrimExpr {
    PrimExpr same = equal(topi::At(at, Index(i.begin(), i.end() - 1)), table(i.back()));
    return tir::Select(same, Num(kSingle, 1), Num(kSingle, 0));
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"ArrayFeatureExtractor", &ConvertArrayFeatureExtractor, kLearning},
      {"Binarizer", &ConvertBinarizer, kLearning},
      {"CastMap", &ConvertCastMap, kLearning},
      {"DictVectorizer", &ConvertDictVectorizer, kLearning},
      {"FeatureVectorizer", &ConvertFeatureVectorizer, kLearning},
      {"Imputer", &ConvertImputer, kLearning},
      {"LinearClassifier", &ConvertLinearClassifier, kLearning},
      {"LinearRegressor", &ConvertLinearRegressor, kLearning},
      {"Normalizer", &ConvertNormalizer, kLearning},
      {"OneHotEncoder", &ConvertOneHotEncoder, kLearning},
      {"Scaler", &ConvertScaler, kLearning},
      {"ZipMap", &ConvertZipMap, kLearning},
  });
}

}  // namespace tvm::frontend::onnx
