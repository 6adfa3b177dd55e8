// SPDX-License-Identifier: Apache-2.0
// Branches, loops, sequences and optionals.
#include "frontend/onnx/op/loop.h"

namespace tvm::frontend::onnx {
namespace {
// Loops of few turns are unrolled; those over sequences must be.
constexpr int64_t kFewTurns = 64, kMaxTurns = 1024;

const Graph& SubgraphOf(Node& n, Name name) {
  const Attribute* attr = n.Find(name, Attribute::kGraph);
  if (!attr) n.Fail("an attribute '" + std::string(name) + "', a graph", "none");
  return *attr->graph;
}
std::optional<bool> TruthOf(const Known* known) {
  if (!known || known->elements.size() != 1) return std::nullopt;
  auto value = AsConstInt(known->elements[0]);
  return value ? std::optional(*value != 0) : std::nullopt;
}

// ---- branches -----------------------------------------------------------------------------------
relax::SeqExpr MakeBranch(Node& n, const Graph& graph) {
  relax::BlockBuilder builder = n.importer.builder();
  builder->BeginSequence();
  Array<Expr> results;
  for (Value& value : n.importer.RunGraph(graph, {}, n.context, n.scope))
    results.push_back(n.importer.ExprOf(&value));
  Expr body = builder->Emit(results.size() == 1 ? results[0] : relax::Tuple(results), "gv");
  return relax::MakeSeq(relax::SeqExpr({}, body), builder->EndSequence(), body);
}
Outputs ConvertIf(Node& n) {
  const Graph &then = SubgraphOf(n, "then_branch"), &otherwise = SubgraphOf(n, "else_branch");
  if (then.outputs.size() != otherwise.outputs.size())
    n.Fail("branches with as many outputs as each other", "different ones");
  if (auto truth = TruthOf(n.KnownOf(0)))
    return n.importer.RunGraph(*truth ? then : otherwise, {}, n.context, n.scope);
  Expr condition = n.Reshape(n.In(0), {});
  relax::SeqExpr yes = MakeBranch(n, then), no = MakeBranch(n, otherwise);
  Expr result = n.Emit(relax::If(condition, yes, no));
  if (then.outputs.size() == 1) return result;
  std::vector<Value> values;
  for (size_t i = 0; i < then.outputs.size(); ++i) values.emplace_back(n.Item(result, i));
  return values;
}

// ---- loops --------------------------------------------------------------------------------------
Value KnownScalar(int64_t value, DataType dtype) {
  PrimExpr e = dtype.is_bool() ? PrimExpr(IntImm::Bool(value != 0)) : Num(value);
  return Value(Known{{}, dtype, {e}});
}
Expr StackOf(Node& n, std::vector<Value>* parts, int64_t axis) {
  Array<Expr> items;
  for (Value& part : *parts) items.push_back(n.importer.TensorOf(&part));
  return n("stack", relax::Tuple(items), axis);
}
/// The turns one after the other, where their number is known: shapes may change from turn to turn.
/// Nothing when the condition turns out not to be known.
std::optional<Outputs> Unrolled(Node& n, const Graph& body, std::vector<Value> carried,
                                std::optional<int64_t> turns, bool goes_on) {
  size_t scans = body.outputs.size() - 1 - carried.size();
  std::vector<std::vector<Value>> collected(scans);
  for (int64_t i = 0; goes_on && (!turns || i < *turns); ++i) {
    if (i >= kMaxTurns) return std::nullopt;
    std::vector<Value> inputs = {KnownScalar(i, DataType::Int(64)),
                                 KnownScalar(1, DataType::Bool())};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    std::vector<Value> results = n.importer.RunGraph(body, inputs, n.context, n.scope);
    auto truth = TruthOf(n.importer.KnownOf(&results[0]));
    if (!truth) return std::nullopt;
    goes_on = *truth;
    std::copy_n(results.begin() + 1, carried.size(), carried.begin());
    for (size_t s = 0; s < scans; ++s) collected[s].push_back(results[1 + carried.size() + s]);
  }
  std::vector<Value> outputs = carried;
  for (size_t s = 0; s < scans; ++s) {
    if (collected[s].empty()) return std::nullopt;  // how they would look is still to be found out
    outputs.emplace_back(StackOf(n, &collected[s], 0));
  }
  return outputs;
}
Outputs ConvertLoop(Node& n) {
  const Graph& body = SubgraphOf(n, "body");
  std::optional<int64_t> turns;
  bool known_count = true;
  if (n.Has(0)) {
    auto count = n.ScalarOf(0);
    known_count = count && AsConstInt(*count);
    if (known_count) turns = *AsConstInt(*count);
  }
  std::optional<bool> goes_on = n.Has(1) ? TruthOf(n.KnownOf(1)) : true;
  std::vector<Value> carried;
  for (size_t i = 2; i < n.NumInputs(); ++i) carried.push_back(n.Input(i));
  if (body.outputs.size() < carried.size() + 1 || body.inputs.size() != carried.size() + 2)
    n.Fail("a body with the carried values as inputs and outputs", "another one");
  bool sequences =
      std::any_of(carried.begin(), carried.end(), [](const Value& v) { return bool(v.sequence); });
  if (known_count && goes_on && turns.value_or(0) <= (sequences ? kMaxTurns : kFewTurns)) {
    if (auto outputs = Unrolled(n, body, carried, turns, *goes_on)) return *outputs;
  }
  LoopSpec loop;
  if (n.Has(0)) loop.count = n.Cast(n.Reshape(n.In(0), {}), DataType::Int(64));
  if (n.Has(1)) loop.condition = n.Reshape(n.In(1), {});
  loop.carried = carried;
  loop.num_collected = body.outputs.size() - 1 - carried.size();
  FreeNames(body, &loop.names);
  loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
    std::vector<Value> inputs = {Value(i), KnownScalar(1, DataType::Bool())};
    inputs.insert(inputs.end(), values.begin(), values.end());
    std::vector<Value> results = n.importer.RunGraph(body, inputs, n.context, &scope);
    auto middle = results.begin() + 1 + static_cast<int64_t>(values.size());
    return Turn{results[0], {results.begin() + 1, middle}, {middle, results.end()}};
  };
  return EmitLoop(n, loop);
}
Outputs ConvertScan(Node& n) {
  if (n.opset < 9) n.Unsupported("Scan before opset 9");
  const Graph& body = SubgraphOf(n, "body");
  int64_t scanned = n.Int("num_scan_inputs"), given = static_cast<int64_t>(n.NumInputs());
  int64_t states = given - scanned, results = static_cast<int64_t>(body.outputs.size()) - states;
  if (scanned < 1 || states < 0 || results < 0 || given != static_cast<int64_t>(body.inputs.size()))
    n.Fail("a body with the states and scanned values as inputs", "another one");
  auto in_axes = n.Ints("scan_input_axes", std::vector<int64_t>(scanned, 0));
  auto in_back = n.Ints("scan_input_directions", std::vector<int64_t>(scanned, 0));
  auto out_axes = n.Ints("scan_output_axes", std::vector<int64_t>(results, 0));
  auto out_back = n.Ints("scan_output_directions", std::vector<int64_t>(results, 0));
  std::vector<Value> carried;
  std::vector<Expr> inputs;
  for (int64_t i = 0; i < states; ++i) carried.push_back(n.Input(i));
  PrimExpr length;
  for (int64_t i = 0; i < scanned; ++i) {
    Expr x = n.In(states + i);
    in_axes[i] = n.Axis(in_axes[i], Node::Rank(x), "scan_input_axes");
    length = Node::Shape(x)[in_axes[i]];
    if (in_back[i]) x = n("flip", x, in_axes[i]);
    inputs.push_back(x);
  }
  auto turns = AsConstInt(length);
  if (!turns || *turns > kFewTurns || *turns == 0) {
    LoopSpec loop;
    Value count{Known{{}, DataType::Int(64), {length}}};
    loop.count = n.importer.TensorOf(&count);
    loop.carried = carried;
    // What is scanned is carried along unchanged.
    for (const Expr& x : inputs) loop.carried.emplace_back(x);
    loop.num_collected = results;
    FreeNames(body, &loop.names);
    loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
      std::vector<Value> arguments(values.begin(), values.begin() + states);
      for (int64_t k = 0; k < scanned; ++k)
        arguments.emplace_back(n("take", values[states + k].expr, i, in_axes[k]));
      std::vector<Value> all = n.importer.RunGraph(body, arguments, n.context, &scope);
      Turn turn{{}, {all.begin(), all.begin() + states}, {all.begin() + states, all.end()}};
      turn.carried.insert(turn.carried.end(), values.begin() + states, values.end());
      return turn;
    };
    std::vector<Value> all = EmitLoop(n, loop);
    all.erase(all.begin() + states, all.begin() + states + scanned);
    for (int64_t k = 0; k < results; ++k) {
      Expr y = all[states + k].expr;
      if (out_back[k]) y = n("flip", y, 0);
      int64_t axis = n.Axis(out_axes[k], Node::Rank(y), "scan_output_axes");
      std::vector<int64_t> order;
      for (int64_t d = 1; d < Node::Rank(y); ++d) order.push_back(d);
      order.insert(order.begin() + axis, 0);
      all[states + k] = Value(axis == 0 ? y : Transposed(n, y, order));
    }
    return all;
  }
  std::vector<std::vector<Value>> collected(results);
  for (int64_t t = 0; t < *turns; ++t) {
    std::vector<Value> arguments = carried;
    Expr place = n.Scalar(static_cast<double>(t), DataType::Int(64));
    for (int64_t i = 0; i < scanned; ++i)
      arguments.emplace_back(n("take", inputs[i], place, in_axes[i]));
    std::vector<Value> outputs = n.importer.RunGraph(body, arguments, n.context, n.scope);
    std::copy_n(outputs.begin(), states, carried.begin());
    for (int64_t i = 0; i < results; ++i) collected[i].push_back(outputs[states + i]);
  }
  for (int64_t i = 0; i < results; ++i) {
    if (out_back[i]) std::reverse(collected[i].begin(), collected[i].end());
    Expr first = n.importer.TensorOf(&collected[i][0]);
    int64_t axis = n.Axis(out_axes[i], Node::Rank(first) + 1, "scan_output_axes");
    carried.emplace_back(StackOf(n, &collected[i], axis));
  }
  return carried;
}

// ---- sequences whose length is known ------------------------------------------------------------
const std::vector<Value>& SequenceOf(Node& n, size_t i) {
  const Value& value = n.Input(i);
  if (!value.sequence) n.Fail("a sequence as input " + std::to_string(i), "something else");
  return *value.sequence;
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
  const auto& items = SequenceOf(n, 0);
  return items[PlaceIn(n, 1, static_cast<int64_t>(items.size()), 0, false)];
}
Outputs ConvertSequenceInsert(Node& n) {
  std::vector<Value> items = SequenceOf(n, 0);
  auto size = static_cast<int64_t>(items.size());
  items.insert(items.begin() + PlaceIn(n, 2, size, size, true), n.Input(1));
  return Value::Sequence(std::move(items));
}
Outputs ConvertSequenceErase(Node& n) {
  std::vector<Value> items = SequenceOf(n, 0);
  auto size = static_cast<int64_t>(items.size());
  if (items.empty()) n.Fail("a sequence with elements", "an empty one");
  items.erase(items.begin() + PlaceIn(n, 1, size, size - 1, false));
  return Value::Sequence(std::move(items));
}
Outputs ConvertSequenceLength(Node& n) {
  return KnownScalar(static_cast<int64_t>(SequenceOf(n, 0).size()), DataType::Int(64));
}
Outputs ConvertConcatFromSequence(Node& n) {
  std::vector<Value> items = SequenceOf(n, 0);
  if (items.empty()) n.Fail("a sequence with elements", "an empty one");
  int64_t axis = n.Int("axis");
  Expr first = n.importer.TensorOf(&items[0]);
  if (n.Int("new_axis", 0)) return StackOf(n, &items, n.Axis(axis, Node::Rank(first) + 1));
  axis = n.Axis(axis, Node::Rank(first));
  if (items.size() == 1) return first;
  Array<Expr> tensors;
  for (Value& item : items) tensors.push_back(n.importer.TensorOf(&item));
  return n("concat", relax::Tuple(tensors), axis);
}
Outputs ConvertSplitToSequence(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  bool keep = n.Int("keepdims", 1) != 0 || n.Has(1);
  std::vector<PrimExpr> sizes;
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
Outputs ConvertSequenceMap(Node& n) {
  const Graph& body = SubgraphOf(n, "body");
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
Outputs ConvertOptionalGetElement(Node& n) {
  if (!n.Has(0)) n.Fail("an optional with an element", "an empty one");
  return n.Input(0);
}
Outputs ConvertOptionalHasElement(Node& n) {
  if (n.Has(0)) n.Input(0);
  return KnownScalar(n.Has(0), DataType::Bool());
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"ConcatFromSequence", &ConvertConcatFromSequence},
      {"If", &ConvertIf},
      {"Loop", &ConvertLoop},
      {"Optional", &ConvertOptional},
      {"OptionalGetElement", &ConvertOptionalGetElement},
      {"OptionalHasElement", &ConvertOptionalHasElement},
      {"Scan", &ConvertScan},
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
