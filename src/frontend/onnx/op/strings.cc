// SPDX-License-Identifier: Apache-2.0
// Operators on strings. Those that only move elements are those of numbers, on the places of the
// strings in their array of words.
#include <cmath>

#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
constexpr const char* kMl = "ai.onnx.ml";
const DataType kPlace = DataType::Int(64);

relax::Tuple WordList(const std::vector<std::string>& words) {
  Array<Expr> list;
  for (const std::string& word : words) list.push_back(relax::StringImm(word));
  return relax::Tuple(list);
}
/// Places of input `i` in the common shape of both inputs.
Dims CommonShape(Node& n) {
  Dims a = Node::Shape(n.StringsIn(0).expr), b = Node::Shape(n.StringsIn(1).expr);
  if (a.size() < b.size()) std::swap(a, b);
  for (size_t i = 0; i < b.size(); ++i) {
    size_t to = a.size() - b.size() + i;
    if (IsConstInt(a[to], 1)) a.Set(to, b[i]);
  }
  return a;
}
Expr Broadcasted(Node& n, const Expr& places, const Dims& shape) {
  return n("broadcast_to", places, relax::ShapeExpr(shape));
}
/// The arguments of a builtin on pairs of strings.
Array<Expr> Pairs(Node& n, const Dims& shape) {
  const Value &a = n.StringsIn(0), &b = n.StringsIn(1);
  return {a.words, Broadcasted(n, a.expr, shape), b.words, Broadcasted(n, b.expr, shape)};
}
relax::TensorStructInfo Like(const Value& strings, DataType dtype) {
  return relax::TensorStructInfo(Node::Shape(strings.expr), dtype);
}

Outputs EqualStrings(Node& n) {
  Dims shape = CommonShape(n);
  return n.importer.CallRuntime("strings.equal", Pairs(n, shape),
                                relax::TensorStructInfo(shape, DataType::Bool()));
}
Outputs ConvertStringConcat(Node& n) {
  Dims shape = CommonShape(n);
  return n.importer.StringsInOrder(n.importer.CallRuntime("strings.concat", Pairs(n, shape)),
                                   shape);
}
Outputs ConvertRegexFullMatch(Node& n) {
  const Value& x = n.StringsIn(0);
  return n.importer.CallRuntime("strings.full_match",
                                {x.words, x.expr, relax::StringImm(n.Str("pattern"))},
                                Like(x, DataType::Bool()));
}
Outputs ConvertStringSplit(Node& n) {
  const Value& x = n.StringsIn(0);
  int64_t rank = Node::Rank(x.expr);
  relax::TupleStructInfo info(
      {relax::ObjectStructInfo::Get(), relax::TensorStructInfo(kPlace, rank + 1), Like(x, kPlace)});
  Expr all = n.importer.CallRuntime("strings.split",
                                    {x.words, x.expr, relax::StringImm(n.Str("delimiter", "")),
                                     relax::PrimValue(Num(n.Int("maxsplit", -1)))},
                                    info);
  return std::vector<Value>{Value::Strings(n.Item(all, 0), n.Item(all, 1)), n.Item(all, 2)};
}
Outputs ConvertStringNormalizer(Node& n) {
  const Value& x = n.StringsIn(0);
  std::string change = n.Str("case_change_action", "NONE");
  if (change != "NONE" && change != "LOWER" && change != "UPPER")
    n.Fail("case_change_action to be NONE, LOWER or UPPER", change);
  n.Ignore("locale");  // letters are those of Unicode
  int64_t rank = Node::Rank(x.expr);
  if (rank != 1 && rank != 2) n.Fail("strings of shape [C] or [1, C]", std::to_string(rank));
  relax::TupleStructInfo info(
      {relax::ObjectStructInfo::Get(), relax::TensorStructInfo(kPlace, rank)});
  Expr all =
      n.importer.CallRuntime("strings.normalize",
                             {x.words, x.expr, relax::StringImm(change),
                              relax::PrimValue(IntImm::Bool(n.Int("is_case_sensitive", 0) != 0)),
                              WordList(n.Strs("stopwords"))},
                             info);
  return Value::Strings(n.Item(all, 0), n.Item(all, 1));
}
Outputs ConcatStrings(Node& n) {
  Array<Expr> parts;
  Expr words = n.StringsIn(0).words;
  parts.push_back(n.StringsIn(0).expr);
  for (size_t i = 1; i < n.NumInputs(); ++i) {
    Expr count =
        n.importer.CallRuntime("strings.count", {words}, relax::TensorStructInfo(Dims{}, kPlace));
    parts.push_back(n("add", n.StringsIn(i).expr, count));
    words = n.importer.CallRuntime("strings.join", {words, n.StringsIn(i).words});
  }
  int64_t axis = n.Axis(n.Int("axis"), Node::Rank(parts[0]));
  return Value::Strings(words,
                        parts.size() == 1 ? parts[0] : n("concat", relax::Tuple(parts), axis));
}
Outputs WhereStrings(Node& n) {
  const Value &a = n.StringsIn(1), &b = n.StringsIn(2);
  Expr count =
      n.importer.CallRuntime("strings.count", {a.words}, relax::TensorStructInfo(Dims{}, kPlace));
  Expr places = n("where", n.In(0), a.expr, n("add", b.expr, count));
  return Value::Strings(n.importer.CallRuntime("strings.join", {a.words, b.words}), places);
}
Outputs CastStrings(Node& n) {
  const Value& x = n.StringsIn(0);
  n.Ignore("saturate");
  n.Ignore("round_mode");
  if (n.Int("to") == kString) return x;
  DataType to = n.Type("to"), wide = to.is_float() ? DataType::Float(64) : DataType::Int(64);
  Expr numbers = n.importer.CallRuntime(
      "strings.parse", {x.words, x.expr, relax::PrimValue(IntImm::Bool(to.is_float()))},
      Like(x, wide));
  return n.Cast(numbers, to);
}

// ---- tables of labels ---------------------------------------------------------------------------
/// Strings or numbers that attributes of three kinds, or a tensor, may give.
struct Labels {
  std::vector<std::string> strings;
  Value numbers;  // a vector, where there are no strings
  int64_t size = 0;
};
template <class T>
Value VectorOf(Node& n, const std::vector<T>& values, DataType dtype) {
  int64_t size = static_cast<int64_t>(values.size());
  runtime::Tensor tensor = runtime::Empty({&size, 1}, dtype, {kDLCPU, 0});
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data_ptr()));
  return n.importer.Constant(tensor);
}
std::optional<Labels> LabelsOf(Node& n, const std::string& what) {
  auto named = [&](const char* kind) { return what + "_" + kind; };
  auto keep = [](std::string name) -> Name {  // attributes are looked up by views of their names
    static auto* names = new std::set<std::string>();
    return *names->insert(std::move(name)).first;
  };
  bool plural = what.back() == 's';
  if (const Attribute* a = n.Find(keep(named("tensor")), Attribute::kTensor)) {
    if (a->tensor->data_type == kString) {
      std::vector<std::string> strings(a->tensor->strings.begin(), a->tensor->strings.end());
      return Labels{strings, {}, static_cast<int64_t>(strings.size())};
    }
    Value tensor = n.importer.Constant(MakeTensor(n.importer.model(), *a->tensor));
    int64_t size = tensor.constant->numel();
    return Labels{{}, Value(n.Reshape(tensor.expr, {Num(size)})), size};
  }
  auto list = [&](const char* many, const char* one) { return keep(named(plural ? many : one)); };
  if (Name name = list("strings", "string"); n.HasAttr(name)) {
    auto strings = plural ? n.Strs(name) : std::vector<std::string>{n.Str(name)};
    return Labels{strings, {}, static_cast<int64_t>(strings.size())};
  }
  if (Name name = list("int64s", "int64"); n.HasAttr(name)) {
    auto values = plural ? n.Ints(name) : std::vector<int64_t>{n.Int(name)};
    return Labels{{}, VectorOf(n, values, kPlace), static_cast<int64_t>(values.size())};
  }
  if (Name name = list("floats", "float"); n.HasAttr(name)) {
    auto wide = plural ? n.Floats(name) : std::vector<double>{n.Float(name)};
    std::vector<float> values(wide.begin(), wide.end());
    return Labels{
        {}, VectorOf(n, values, DataType::Float(32)), static_cast<int64_t>(values.size())};
  }
  return std::nullopt;
}
/// The number of the key that an element equals, or that of keys where there is none. NaN equals
/// NaN.
Expr FindNumbers(Node& n, const Expr& x, Expr keys, int64_t count) {
  DataType t = Node::TypeOf(x);
  Te te(n);
  te::Tensor values = te(x), table = te(n.Cast(keys, t));
  te::Tensor first = topi::Compute(
      values->shape,
      [&](const Index& i) {
        te::IterVar k = topi::Along(Num(count), "k");
        PrimExpr a = topi::At(values, i), b = table(k->var), same = equal(a, b);
        if (t.is_float()) same = same || (not_equal(a, a) && not_equal(b, b));
        return te::min(tir::Select(same, tvm::cast(kPlace, k->var), Num(count)), {k});
      },
      "find", topi::kCommReduce);
  return te.Done("find", first);
}
Outputs ConvertLabelEncoder(Node& n) {
  auto keys = LabelsOf(n, "keys"), values = LabelsOf(n, "values"),
       fallback = LabelsOf(n, "default");
  if (!keys || !values || keys->size != values->size || keys->size == 0)
    n.Fail("as many keys as values", "others");
  Expr found;
  if (keys->strings.empty()) {
    found = FindNumbers(n, n.In(0), keys->numbers.expr, keys->size);
  } else {
    const Value& x = n.StringsIn(0);
    found = n.importer.CallRuntime("strings.lookup", {x.words, x.expr, WordList(keys->strings)},
                                   Like(x, kPlace));
  }
  if (!values->strings.empty()) {
    std::vector<std::string> words = values->strings;
    words.push_back(fallback && !fallback->strings.empty() ? fallback->strings[0] : "_Unused");
    return Value::Strings(WordList(words), found);
  }
  Expr table = values->numbers.expr;
  DataType t = Node::TypeOf(table);
  // -0.0 is the default of floating-point numbers.
  Expr other = fallback && fallback->numbers.defined()
                   ? n.Cast(fallback->numbers.expr, t)
                   : n.Reshape(n.Scalar(t.is_float() ? -0.0 : -1, t), {Num(1)});
  return n("take", n("concat", relax::Tuple({table, other}), 0), found, 0);
}
/// Words to numbers, or numbers to words.
Outputs ConvertCategoryMapper(Node& n) {
  std::vector<std::string> words = n.Strs("cats_strings");
  std::vector<int64_t> numbers = n.Ints("cats_int64s");
  int64_t other_number = n.Int("default_int64", -1);
  std::string other_word = n.Str("default_string", "_Unused");
  if (words.size() != numbers.size() || words.empty())
    n.Fail("as many cats_strings as cats_int64s", "others");
  auto count = static_cast<int64_t>(words.size());
  if (n.Input(0).IsStrings()) {
    const Value& x = n.StringsIn(0);
    Expr found = n.importer.CallRuntime("strings.lookup", {x.words, x.expr, WordList(words)},
                                        Like(x, kPlace));
    numbers.push_back(other_number);
    return n("take", VectorOf(n, numbers, kPlace).expr, found, 0);
  }
  words.push_back(other_word);
  return Value::Strings(WordList(words),
                        FindNumbers(n, n.In(0), VectorOf(n, numbers, kPlace).expr, count));
}

// ---- tables -------------------------------------------------------------------------------------
/// Operators whose first output has the strings of the first input, at other places.
constexpr Name kMoving[] = {"Compress", "DepthToSpace",   "Expand",       "Flatten",
                            "Gather",   "GatherElements", "GatherND",     "Identity",
                            "Reshape",  "Slice",          "SpaceToDepth", "Split",
                            "Squeeze",  "Tile",           "Transpose",    "Unsqueeze"};
constexpr Name kDescribing[] = {"Shape", "Size"};
struct OnStrings {
  Name op;
  Converter convert;
};
/// Operators that numbers have as well.
constexpr OnStrings kOnStrings[] = {
    {"Cast", &CastStrings},
    {"Concat", &ConcatStrings},
    {"Equal", &EqualStrings},
    {"Where", &WhereStrings},
};
}  // namespace

Outputs ConvertOnStrings(Node& n) {
  auto is_op = [&](Name op) { return op == n.op && n.proto.domain.empty(); };
  bool moves = std::any_of(std::begin(kMoving), std::end(kMoving), is_op);
  if (moves || std::any_of(std::begin(kDescribing), std::end(kDescribing), is_op)) {
    Expr words = n.StringsIn(0).words;
    n.inputs[0].words = Expr();
    Outputs outputs = FindConverter(n.proto.domain, n.op)(n);
    for (Value& value : outputs) {
      if (moves) value = Value::Strings(words, n.importer.TensorOf(&value));
    }
    return outputs;
  }
  for (const OnStrings& row : kOnStrings) {
    if (is_op(row.op)) return row.convert(n);
  }
  return FindConverter(n.proto.domain, n.op)(n);
}

TVM_REGISTER() {
  AddConverters({
      {"CategoryMapper", &ConvertCategoryMapper, kMl},
      {"LabelEncoder", &ConvertLabelEncoder, kMl},
      {"RegexFullMatch", &ConvertRegexFullMatch},
      {"StringConcat", &ConvertStringConcat},
      {"StringNormalizer", &ConvertStringNormalizer},
      {"StringSplit", &ConvertStringSplit},
  });
}

}  // namespace tvm::frontend::onnx
