// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: lists of values while the model is imported where their length is known,
// arrays of the program otherwise.
#include "frontend/onnx/op/loop.h"

namespace tvm::frontend::onnx {
namespace {
const Value& SequenceIn(Node& n, size_t i) {
  const Value& value = n.Input(i);
  bool is_object = value.object && value.object->kind == TypeProto::kSequence;
  const char* what = value.Otherwise();
  if (!value.sequence && !is_object)
    n.Fail("a sequence as input " + std::to_string(i), what ? what : "a tensor");
  return value;
}
/// The elements, where how many there are is known.
const std::vector<Value>& SequenceOf(Node& n, size_t i) { return *SequenceIn(n, i).sequence; }
/// Whether the work is left to running: the sequence, or the position in it, is not known.
bool IsOpen(Node& n, size_t sequence, size_t position) {
  return !SequenceIn(n, sequence).sequence || (n.Has(position) && !n.TryConstInts(position));
}
/// The same in the program: the sequence, and the position where there is one.
Array<Expr> RuntimeArgs(Node& n, size_t position) {
  Value sequence = SequenceIn(n, 0), none;
  return {n.importer.ObjectOf(&sequence),
          n.Has(position) ? n.In(position) : n.importer.ObjectOf(&none)};
}
Value SequenceLike(Node& n, Expr object, const Value& of) {
  return Value::Object(std::move(object), n.importer.ObjectType(of));
}
/// The element of a sequence at a position, a scalar.
Value ElementAt(Node& n, const Value& sequence, const Expr& position) {
  auto type = n.importer.ObjectType(sequence);
  if (!type->element) n.Fail("a sequence of a declared type", "another one");
  Value copy = sequence;
  Expr element = n.importer.CallRuntime("sequence.at", {n.importer.ObjectOf(&copy), position});
  return n.importer.FromObject(element, *type->element, true);
}
int64_t PlaceIn(Node& n, size_t i, int64_t size, int64_t fallback, bool behind) {
  if (!n.Has(i)) return fallback;
  int64_t at = n.ConstInts(i).at(0);
  if (at < -size || at >= size + (behind ? 1 : 0))
    n.Fail("a position in a sequence of " + std::to_string(size), std::to_string(at));
  return at < 0 ? at + size : at;
}
Outputs ConvertSequenceConstruct(Node& n) {
  std::vector<Value> items;
  for (size_t i = 0; i < n.NumInputs(); ++i) items.push_back(n.Input(i));
  return Value::Sequence(std::move(items));
}
Outputs ConvertSequenceEmpty(Node& n) {
  n.Ignore("dtype");
  return Value::Sequence({});
}
Outputs ConvertSequenceAt(Node& n) {
  if (IsOpen(n, 0, 1)) return ElementAt(n, SequenceIn(n, 0), n.In(1));
  const auto& items = SequenceOf(n, 0);
  return items[PlaceIn(n, 1, static_cast<int64_t>(items.size()), 0, false)];
}
Outputs ConvertSequenceInsert(Node& n) {
  if (IsOpen(n, 0, 2)) {
    Array<Expr> args = RuntimeArgs(n, 2);
    Value item = n.Input(1);
    args.insert(args.begin() + 1, n.importer.ObjectOf(&item));
    return Value::Object(n.importer.CallRuntime("sequence.insert", args),
                         n.importer.TypeWithItem(SequenceIn(n, 0), n.Input(1)));
  }
  std::vector<Value> items = SequenceOf(n, 0);
  auto size = static_cast<int64_t>(items.size());
  items.insert(items.begin() + PlaceIn(n, 2, size, size, true), n.Input(1));
  return Value::Sequence(std::move(items));
}
Outputs ConvertSequenceErase(Node& n) {
  if (IsOpen(n, 0, 1)) {
    Expr rest = n.importer.CallRuntime("sequence.erase", RuntimeArgs(n, 1));
    return SequenceLike(n, rest, SequenceIn(n, 0));
  }
  std::vector<Value> items = SequenceOf(n, 0);
  auto size = static_cast<int64_t>(items.size());
  if (items.empty()) n.Fail("a sequence with elements", "an empty one");
  items.erase(items.begin() + PlaceIn(n, 1, size, size - 1, false));
  return Value::Sequence(std::move(items));
}
Expr LengthOf(Node& n, const Value& sequence) {
  Value copy = sequence;
  return n.importer.CallRuntime("sequence.length", {n.importer.ObjectOf(&copy)},
                                relax::TensorStructInfo(Dims{}, DataType::Int(64)));
}
Outputs ConvertSequenceLength(Node& n) {
  if (!SequenceIn(n, 0).sequence) return LengthOf(n, SequenceIn(n, 0));
  return KnownScalar(static_cast<int64_t>(SequenceOf(n, 0).size()), DataType::Int(64));
}
/// The elements of a sequence, of which only their type is known, as one tensor.
Expr JoinedSequence(Node& n, const Value& sequence) {
  auto element = n.importer.ObjectType(sequence)->element;
  bool is_new = n.Int("new_axis", 0) != 0;
  auto dtype = element ? DataTypeOf(element->data_type) : std::nullopt;
  if (!dtype || !element->shape) n.Fail("a sequence of tensors of a declared rank", "another one");
  int64_t rank = static_cast<int64_t>(element->shape->size()) + (is_new ? 1 : 0);
  int64_t axis = n.Axis(n.Int("axis"), rank);
  Value copy = sequence;
  return n.importer.CallRuntime("sequence.concat",
                                {n.importer.ObjectOf(&copy), relax::PrimValue(Num(axis)),
                                 relax::PrimValue(IntImm::Bool(is_new))},
                                relax::TensorStructInfo(*dtype, rank));
}
Outputs ConvertConcatFromSequence(Node& n) {
  if (!SequenceIn(n, 0).sequence) return JoinedSequence(n, SequenceIn(n, 0));
  std::vector<Value> items = SequenceOf(n, 0);
  if (items.empty()) n.Fail("a sequence with elements", "an empty one");
  int64_t axis = n.Int("axis");
  Expr first = n.importer.TensorOf(&items[0]);
  if (n.Int("new_axis", 0)) return StackOf(n, &items, n.Axis(axis, Node::Rank(first) + 1));
  axis = n.Axis(axis, Node::Rank(first));
  if (items.size() == 1) return first;
  std::vector<Expr> tensors;
  for (Value& item : items) tensors.push_back(n.importer.TensorOf(&item));
  return Concatenated(n, tensors, axis);
}
Outputs ConvertSplitToSequence(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  bool keep = n.Int("keepdims", 1) != 0 || n.Has(1);
  std::vector<PrimExpr> sizes;
  bool one_size = n.Has(1) && Node::Rank(n.In(1)) == 0;
  bool is_open = n.Has(1) ? (one_size ? !n.TryConstInts(1) : !n.LengthOf(1))
                          : !AsConstInt(Node::Shape(x)[axis]);
  if (is_open) {
    Expr each = n.Has(1) ? n.In(1) : n.Scalar(1, DataType::Int(64));
    Expr parts = n.importer.CallRuntime("sequence.split", {x, each, relax::PrimValue(Num(axis)),
                                                           relax::PrimValue(IntImm::Bool(keep))});
    auto type = std::make_shared<TypeProto>();
    type->kind = TypeProto::kSequence;
    type->element = std::make_shared<TypeProto>(*n.importer.ObjectType(Value(x)));
    if (!keep) type->element->shape->pop_back();
    return Value::Object(parts, type);
  }
  if (n.Has(1) && Node::Rank(n.In(1)) == 1) {
    sizes = n.Integers(1);
  } else {  // one size for all parts but the last
    int64_t each = n.Has(1) ? n.ConstInts(1).at(0) : 1, dim = n.StaticDim(x, axis);
    if (each <= 0) n.Fail("a positive size", std::to_string(each));
    for (int64_t at = 0; at < dim; at += each) sizes.push_back(Num(std::min(each, dim - at)));
  }
  std::vector<Value> items;
  PrimExpr begin = Num(0);
  for (const PrimExpr& size : sizes) {
    PrimExpr end = n.Simplify(begin + size);
    Expr part = n("strided_slice", x, List({axis}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
    items.emplace_back(keep ? part : n("squeeze", part, List({axis})));
    begin = end;
  }
  PrimExpr dim = Node::Shape(x)[axis];
  if (IsTrue(n.Simplify(not_equal(begin, dim))))
    n.Fail("sizes that sum to the dimension", "others");
  return Value::Sequence(std::move(items));
}
/// A loop over a sequence of a length that only running tells, which collects sequences.
Outputs MapAtRuntime(Node& n, const Graph& body) {
  LoopSpec loop;
  loop.count = LengthOf(n, SequenceIn(n, 0));
  for (const ValueInfo& output : body.outputs) {
    TypeProto type;
    type.kind = TypeProto::kSequence;
    type.element = std::make_shared<TypeProto>(output.type);
    loop.types.push_back(type);
    loop.carried.push_back(Value::Sequence({}));
  }
  FreeNames(body, &loop.names);
  for (size_t i = 0; i < n.NumInputs(); ++i) {
    n.Input(i);
    if (n.Has(i)) loop.names.insert(n.proto.inputs[i]);
  }
  loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
    std::vector<Value> arguments;
    for (Name name : n.proto.inputs) {
      Value value = name.empty() ? Value() : *scope.Find(name);
      bool is_sequence =
          value.sequence || (value.object && value.object->kind == TypeProto::kSequence);
      arguments.push_back(is_sequence ? ElementAt(n, value, i) : value);
    }
    std::vector<Value> results = n.importer.RunGraph(body, arguments, n.context, &scope);
    Turn turn;
    for (size_t k = 0; k < results.size(); ++k) {
      Value so_far = values[k], none;
      Expr longer = n.importer.CallRuntime(
          "sequence.insert",
          {so_far.expr, n.importer.ObjectOf(&results[k]), n.importer.ObjectOf(&none)});
      turn.carried.push_back(Value::Object(longer, n.importer.TypeWithItem(so_far, results[k])));
    }
    return turn;
  };
  return EmitLoop(n, loop);
}
Outputs ConvertSequenceMap(Node& n) {
  const Graph& body = SubgraphOf(n, "body");
  for (size_t i = 0; i < n.NumInputs(); ++i) {
    if (n.Input(i).object) return MapAtRuntime(n, body);
  }
  const auto& items = SequenceOf(n, 0);
  std::vector<std::vector<Value>> columns(body.outputs.size());
  for (size_t k = 0; k < items.size(); ++k) {
    std::vector<Value> arguments = {items[k]};
    for (size_t i = 1; i < n.NumInputs(); ++i) {
      const Value& more = n.Input(i);
      arguments.push_back(more.sequence ? more.sequence->at(k) : more);
    }
    auto results = n.importer.RunGraph(body, arguments, n.context, n.scope);
    for (size_t c = 0; c < columns.size(); ++c) columns[c].push_back(results[c]);
  }
  std::vector<Value> outputs;
  for (auto& column : columns) outputs.push_back(Value::Sequence(std::move(column)));
  return outputs;
}

// ---- optionals: their element, or nothing -------------------------------------------------------
Outputs ConvertOptional(Node& n) {
  n.Ignore("type");
  return n.Has(0) ? n.Input(0) : Value();
}
bool IsOptional(const Value& value) {
  return value.object && value.object->kind == TypeProto::kOptional;
}
Outputs ConvertOptionalGetElement(Node& n) {
  if (!n.Has(0)) n.Fail("an optional with an element", "an empty one");
  Value value = n.Input(0);
  if (!IsOptional(value)) return value;
  if (!value.object->element) n.Fail("an optional of a declared type", "another one");
  Expr element = n.importer.CallRuntime("optional.get", {value.expr});
  return n.importer.FromObject(element, *value.object->element, true);
}
Outputs ConvertOptionalHasElement(Node& n) {
  if (n.Has(0) && IsOptional(n.Input(0)))
    return n.importer.CallRuntime("optional.has", {n.Input(0).expr},
                                  relax::TensorStructInfo(Dims{}, DataType::Bool()));
  if (n.Has(0)) n.Input(0);
  return KnownScalar(n.Has(0), DataType::Bool());
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"ConcatFromSequence", &ConvertConcatFromSequence},
      {"Optional", &ConvertOptional},
      {"OptionalGetElement", &ConvertOptionalGetElement},
      {"OptionalHasElement", &ConvertOptionalHasElement},
      {"SequenceAt", &ConvertSequenceAt},
      {"SequenceConstruct", &ConvertSequenceConstruct},
      {"SequenceEmpty", &ConvertSequenceEmpty},
      {"SequenceErase", &ConvertSequenceErase},
      {"SequenceInsert", &ConvertSequenceInsert},
      {"SequenceLength", &ConvertSequenceLength},
      {"SequenceMap", &ConvertSequenceMap},
      {"SplitToSequence", &ConvertSplitToSequence},
  });
}

}  // namespace tvm::frontend::onnx
