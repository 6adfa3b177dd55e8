// SPDX-License-Identifier: Apache-2.0
// Nodes of older opsets in the newest form: a row for each thing that changed.
#include <algorithm>

#include "frontend/onnx/importer.h"

namespace tvm::frontend::onnx {
namespace {
void SetInput(Node& n, size_t i, Value value) {
  if (n.inputs.size() <= i) n.inputs.resize(i + 1);
  n.inputs[i] = std::move(value);
}
void SetInt(Node& n, Name name, int64_t value) {
  Attribute attr;
  attr.name = name;
  attr.type = Attribute::kInt;
  attr.i = value;
  n.attributes[name] = attr;
}
void SetText(Node& n, Name name, Name value) {
  Attribute attr;
  attr.name = name;
  attr.type = Attribute::kString;
  attr.s = value;
  n.attributes[name] = attr;
}

// ---- attributes that became inputs --------------------------------------------------------------
struct Moved {
  const char* op;  // one that ends with '*' is the beginning of several
  int64_t since;
  const char* attribute;
  size_t input;
};
constexpr Moved kMoved[] = {
    {"Reshape", 5, "shape", 1},   {"Upsample", 9, "scales", 1}, {"Slice", 10, "starts", 1},
    {"Slice", 10, "ends", 2},     {"Slice", 10, "axes", 3},     {"TopK", 10, "k", 1},
    {"Clip", 11, "min", 1},       {"Clip", 11, "max", 2},       {"Pad", 11, "pads", 1},
    {"Pad", 11, "value", 2},      {"Dropout", 12, "ratio", 1},  {"Squeeze", 13, "axes", 1},
    {"Unsqueeze", 13, "axes", 1}, {"Split", 13, "split", 1},    {"ReduceSum", 13, "axes", 1},
    {"Reduce*", 18, "axes", 1},   {"DFT", 20, "axis", 2},
};
/// The attribute as a tensor: floating-point numbers have the type of the first input.
Value AsInput(Node& n, const Attribute& attr) {
  Known known{{}, DataType::Int(64), {}};
  auto add_float = [&](double value) {
    known.elements.push_back(MakeConst(DataType::Float(32), value));
    known.dtype = DataType::Float(32);
  };
  switch (attr.type) {
    case Attribute::kInt:
      known.elements.push_back(IntImm::Int64(attr.i));
      return known;
    case Attribute::kFloat:
      if (DataType type = Node::TypeOf(n.In(0)); type != DataType::Float(32))
        return n.Scalar(attr.f, type);
      add_float(attr.f);
      return known;
    case Attribute::kFloats:
      for (float value : attr.floats) add_float(value);
      known.shape = {static_cast<int64_t>(known.elements.size())};
      return known;
    default:
      if (!attr.ints.empty() || attr.type == Attribute::kInts || attr.type == Attribute::kNone) {
        for (int64_t value : attr.ints) known.elements.push_back(IntImm::Int64(value));
        known.shape = {static_cast<int64_t>(known.elements.size())};
        return known;
      }
      n.Fail("attribute '" + std::string(attr.name) + "' to be numbers", "something else");
  }
}

// ---- other changes ------------------------------------------------------------------------------
/// Before 7 an axis said where the second operand begins; otherwise it is aligned at the end.
void AlignOperand(Node& n) {
  bool broadcast = n.Int("broadcast", 0) != 0;
  n.attributes.erase("broadcast");
  if (!n.HasAttr("axis")) return;
  Dims a = Node::Shape(n.In(0)), b = Node::Shape(n.In(1));
  int64_t axis = n.Int("axis"), rank = static_cast<int64_t>(a.size());
  axis = broadcast ? n.Axis(axis, rank) : rank - static_cast<int64_t>(b.size());
  while (axis + static_cast<int64_t>(b.size()) < rank) b.push_back(IntImm::Int64(1));
  n.inputs[1] = Value(n.Reshape(n.In(1), b));
  n.attributes.erase("axis");
}
/// p was a number with a point.
void IntegerPower(Node& n) {
  if (n.HasAttr("p") && n.attributes["p"].type == Attribute::kFloat)
    SetInt(n, "p", static_cast<int64_t>(n.Float("p")));
}
/// How often, and along which axis: numbers of the type of the data.
void SpreadTiles(Node& n) {
  std::vector<double> tiles = n.ConstFloats(1), axes = n.ConstFloats(2);
  int64_t rank = Node::Rank(n.In(0));
  if (tiles.size() != 1 || axes.size() != 1) n.Fail("one number of tiles and one axis", "others");
  Known repeats{{rank}, DataType::Int(64), {}};
  int64_t axis = n.Axis(static_cast<int64_t>(axes[0]), rank);
  for (int64_t i = 0; i < rank; ++i)
    repeats.elements.push_back(IntImm::Int64(i == axis ? static_cast<int64_t>(tiles[0]) : 1));
  n.inputs.resize(1);
  SetInput(n, 1, repeats);
}
/// Scales of the last two axes.
void JoinScales(Node& n) {
  Known scales{{4}, DataType::Float(32), {}};
  for (double scale : {1.0, 1.0, n.Float("height_scale"), n.Float("width_scale")})
    scales.elements.push_back(MakeConst(DataType::Float(32), scale));
  SetInput(n, 1, scales);
}
/// Scales become the third input of Resize, positions are not centred, halves round down.
void AsResize(Node& n) {
  n.op = "Resize";
  if (n.inputs.size() > 1) {
    Value scales = n.inputs[1];
    n.inputs[1] = Value();
    SetInput(n, 2, scales);
  }
  if (n.HasAttr("mode") && n.Str("mode") == "bilinear") SetText(n, "mode", "linear");
  SetText(n, "coordinate_transformation_mode", "asymmetric");
  SetText(n, "nearest_mode", "floor");
}
/// Before 21 scale and bias had an element per group.
void SpreadGroups(Node& n) {
  int64_t per_group = n.StaticDim(n.In(0), 1) / n.Int("num_groups");
  for (size_t i : {1, 2}) n.inputs[i] = Value(n("repeat", n.In(i), per_group, 0));
}
void RenameSampling(Node& n) {
  std::string mode = n.Str("mode", "bilinear");
  if (mode == "bilinear") SetText(n, "mode", "linear");
  if (mode == "bicubic") SetText(n, "mode", "cubic");
}
void CastByName(Node& n) {
  if (n.attributes.count("to") && n.attributes["to"].type == Attribute::kInt) return;
  static constexpr std::pair<Name, int64_t> kNames[] = {
      {"FLOAT", 1}, {"UINT8", 2}, {"INT8", 3},     {"UINT16", 4},  {"INT16", 5},   {"INT32", 6},
      {"INT64", 7}, {"BOOL", 9},  {"FLOAT16", 10}, {"DOUBLE", 11}, {"UINT32", 12}, {"UINT64", 13}};
  std::string to = n.Str("to");
  for (const auto& [name, type] : kNames) {
    if (name == to) return SetInt(n, "to", type);
  }
  n.Fail("the name of a data type as 'to'", to);
}
template <const char* attribute, int64_t value>
void DefaultInt(Node& n) {
  if (!n.HasAttr(attribute)) SetInt(n, attribute, value);
}
/// A slope for each channel, the second axis.
void SpreadSlope(Node& n) {
  Expr slope = n.In(1);
  int64_t rank = Node::Rank(n.In(0));
  if (Node::Rank(slope) != 1 || rank < 3) return;
  Dims shape(rank - 1, IntImm::Int64(1));
  shape.Set(0, Node::Shape(slope)[0]);
  SetInput(n, 1, n.Reshape(slope, shape));
}
constexpr char kAxis[] = "axis";
struct Changed {
  const char* op;
  int64_t since;
  void (*change)(Node& n);
};
constexpr Changed kChanged[] = {
    {"Add", 7, &AlignOperand},
    {"Sub", 7, &AlignOperand},
    {"Mul", 7, &AlignOperand},
    {"Div", 7, &AlignOperand},
    {"Pow", 7, &AlignOperand},
    {"And", 7, &AlignOperand},
    {"Or", 7, &AlignOperand},
    {"Xor", 7, &AlignOperand},
    {"Equal", 7, &AlignOperand},
    {"Greater", 7, &AlignOperand},
    {"Less", 7, &AlignOperand},
    {"Cast", 6, &CastByName},
    {"Concat", 4, &DefaultInt<kAxis, 1>},
    {"PRelu", 7, &SpreadSlope},
    {"Gemm", 7, [](Node& n) { n.attributes.erase("broadcast"); }},
    {"Dropout", 7, [](Node& n) { n.attributes.erase("is_test"); }},
    {"BatchNormalization", 7, [](Node& n) { n.attributes.erase("is_test"); }},
    {"LpPool", 2, &IntegerPower},
    {"GlobalLpPool", 2, &IntegerPower},
    {"Tile", 6, &SpreadTiles},
    {"Upsample", 7, &JoinScales},
    {"Resize", 11, &AsResize},
    {"Upsample", 100, &AsResize},  // no newer form: it is deprecated
    {"Scatter", 100, [](Node& n) { n.op = "ScatterElements"; }},
    {"RoiAlign", 16,
     [](Node& n) { SetText(n, "coordinate_transformation_mode", "output_half_pixel"); }},
    {"GridSample", 20, &RenameSampling},
    {"GroupNormalization", 21, &SpreadGroups},
};
bool IsOp(Name op, Name pattern) {
  return pattern.back() == '*'
             ? op.substr(0, pattern.size() - 1) == pattern.substr(0, pattern.size() - 1)
             : op == pattern;
}
}  // namespace

void ModernizeNode(Node& n) {
  if (!n.proto.domain.empty()) return;
  if (n.opset < 6) n.attributes.erase("consumed_inputs");
  if (n.op == "Pad" && n.opset < 2 && n.HasAttr("paddings")) {
    auto renamed = n.attributes.extract("paddings");
    renamed.key() = "pads";
    n.attributes.insert(std::move(renamed));
  }
  for (const Moved& row : kMoved) {
    auto it = n.attributes.find(row.attribute);
    if (n.opset >= row.since || !IsOp(n.op, row.op) || it == n.attributes.end()) continue;
    SetInput(n, row.input, AsInput(n, it->second));
    n.attributes.erase(row.attribute);
  }
  for (const Changed& row : kChanged) {
    if (n.opset < row.since && n.op == row.op) row.change(n);
  }
}

}  // namespace tvm::frontend::onnx
