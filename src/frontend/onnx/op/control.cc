// SPDX-License-Identifier: Apache-2.0
// Branches and loops.
#include "frontend/onnx/op/loop.h"

namespace tvm::frontend::onnx {

const Graph& SubgraphOf(Node& n, Name name) {
  const Attribute* attr = n.Find(name, Attribute::kGraph);
  if (!attr) n.Fail("an attribute '" + std::string(name) + "', a graph", "none");
  return *attr->graph;
}
Value KnownScalar(int64_t value, DataType dtype) {
  PrimExpr e = dtype.is_bool() ? PrimExpr(IntImm::Bool(value != 0)) : Num(value);
  return Value(Known{{}, dtype, {e}});
}
Expr StackOf(Node& n, std::vector<Value>* parts, int64_t axis) {
  std::vector<Expr> items;
  for (Value& part : *parts) items.push_back(n.importer.TensorOf(&part));
  return n("stack", relax::Tuple(Alike(n, items)), axis);
}

namespace {
std::optional<bool> TruthOf(const Known* known) {
  if (!known || known->elements.size() != 1) return std::nullopt;
  auto value = AsConstInt(known->elements[0]);
  return value ? std::optional(*value != 0) : std::nullopt;
}

// ---- branches -----------------------------------------------------------------------------------
/// What a value is in the tuple that a branch gives: strings take two fields.
enum class BranchKind { kNumbers, kStrings, kObject };
BranchKind KindOf(const Value& value) {
  if (value.IsStrings()) return BranchKind::kStrings;
  return value.Otherwise() ? BranchKind::kObject : BranchKind::kNumbers;
}
struct Branch {
  std::vector<Value> values;
  Array<relax::BindingBlock> blocks;
};
Branch RunBranch(Node& n, const Graph& graph) {
  n.importer.builder()->BeginSequence();
  std::vector<Value> values = n.importer.RunGraph(graph, {}, n.context, n.scope);
  return {values, n.importer.builder()->EndSequence()};
}
/// The branch with a tuple of its values as result.
relax::SeqExpr Finished(Node& n, Branch branch, const std::vector<BranchKind>& kinds) {
  relax::BlockBuilder builder = n.importer.builder();
  builder->BeginSequence();
  Array<Expr> results;
  for (size_t i = 0; i < kinds.size(); ++i) {
    Value& value = branch.values[i];
    if (kinds[i] == BranchKind::kStrings) {
      results.push_back(value.expr);
      results.push_back(value.words);
    } else {
      results.push_back(kinds[i] == BranchKind::kObject ? n.importer.ObjectOf(&value)
                                                        : n.importer.TensorOf(&value));
    }
  }
  Expr body = builder->Emit(results.size() == 1 ? results[0] : relax::Tuple(results), "gv");
  for (const auto& block : builder->EndSequence()) branch.blocks.push_back(block);
  return relax::MakeSeq(relax::SeqExpr({}, body), branch.blocks, body);
}
Outputs ConvertIf(Node& n) {
  const Graph &then = SubgraphOf(n, "then_branch"), &otherwise = SubgraphOf(n, "else_branch");
  if (then.outputs.size() != otherwise.outputs.size())
    n.Fail("branches with as many outputs as each other", "different ones");
  if (auto truth = TruthOf(n.KnownOf(0)))
    return n.importer.RunGraph(*truth ? then : otherwise, {}, n.context, n.scope);
  Expr condition = n.Reshape(n.In(0), {});
  Branch first = RunBranch(n, then), second = RunBranch(n, otherwise);
  std::vector<BranchKind> kinds;
  for (size_t i = 0; i < then.outputs.size(); ++i) {
    BranchKind a = KindOf(first.values[i]), b = KindOf(second.values[i]);
    kinds.push_back(a == b ? a : BranchKind::kObject);
  }
  relax::SeqExpr yes = Finished(n, first, kinds), no = Finished(n, second, kinds);
  Expr result = n.Emit(relax::If(condition, yes, no));
  std::vector<Value> values;
  int64_t field = 0;
  for (size_t i = 0; i < kinds.size(); ++i) {
    bool is_alone = kinds.size() == 1 && kinds[0] != BranchKind::kStrings;
    Expr item = is_alone ? result : n.Item(result, field++);
    if (kinds[i] == BranchKind::kNumbers) {
      values.emplace_back(item);
    } else if (kinds[i] == BranchKind::kStrings) {
      values.push_back(Value::Strings(n.Item(result, field++), item));
    } else {
      values.push_back(n.importer.FromObject(item, then.outputs[i].type, true));
    }
  }
  return values;
}

// ---- loops --------------------------------------------------------------------------------------
/// The turns one after the other, where their number is known: shapes may change from turn to turn.
/// Nothing when the condition turns out not to be known.
std::optional<Outputs> Unrolled(Node& n, const Graph& body, std::vector<Value> carried,
                                std::optional<int64_t> turns, bool goes_on) {
  size_t scans = body.outputs.size() - 1 - carried.size();
  std::vector<std::vector<Value>> collected(scans);
  for (int64_t i = 0; goes_on && (!turns || i < *turns); ++i) {
    if (i >= kFewTurns) return std::nullopt;
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
  if (known_count && goes_on && turns.value_or(0) <= kFewTurns) {
    if (auto outputs = Unrolled(n, body, carried, turns, *goes_on)) return *outputs;
  }
  LoopSpec loop;
  if (n.Has(0)) loop.count = n.Cast(n.Reshape(n.In(0), {}), DataType::Int(64));
  if (n.Has(1)) loop.condition = n.Reshape(n.In(1), {});
  loop.carried = carried;
  for (size_t i = 0; i < carried.size(); ++i) loop.types.push_back(body.inputs[i + 2].type);
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
struct ScanSpec {
  const Graph& body;
  std::vector<Value> carried;
  std::vector<Expr> inputs;  // scanned along `in_axes`, all forwards
  std::vector<int64_t> in_axes, out_axes, out_back;
  const Scope* scope;  // of the names that the body may use
};
/// The states behind the last turn, then the results of all turns.
std::vector<Value> RunScan(Node& n, ScanSpec scan) {
  auto states = static_cast<int64_t>(scan.carried.size());
  auto scanned = static_cast<int64_t>(scan.inputs.size());
  auto results = static_cast<int64_t>(scan.body.outputs.size()) - states;
  PrimExpr length = Node::Shape(scan.inputs[0])[scan.in_axes[0]];
  auto turns = AsConstInt(length);
  if (!turns || *turns > kFewTurns || *turns == 0) {
    LoopSpec loop;
    Value count{Known{{}, DataType::Int(64), {length}}};
    loop.count = n.importer.TensorOf(&count);
    loop.carried = scan.carried;
    // What is scanned is carried along unchanged.
    for (const Expr& x : scan.inputs) loop.carried.emplace_back(x);
    loop.num_collected = results;
    FreeNames(scan.body, &loop.names);
    loop.scope = scan.scope;
    loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
      std::vector<Value> arguments(values.begin(), values.begin() + states);
      for (int64_t k = 0; k < scanned; ++k)
        arguments.emplace_back(n("take", values[states + k].expr, i, scan.in_axes[k]));
      std::vector<Value> all = n.importer.RunGraph(scan.body, arguments, n.context, &scope);
      Turn turn{{}, {all.begin(), all.begin() + states}, {all.begin() + states, all.end()}};
      turn.carried.insert(turn.carried.end(), values.begin() + states, values.end());
      return turn;
    };
    std::vector<Value> all = EmitLoop(n, loop);
    all.erase(all.begin() + states, all.begin() + states + scanned);
    for (int64_t k = 0; k < results; ++k) {
      Expr y = all[states + k].expr;
      if (scan.out_back[k]) y = n("flip", y, 0);
      int64_t axis = n.Axis(scan.out_axes[k], Node::Rank(y), "scan_output_axes");
      std::vector<int64_t> order;
      for (int64_t d = 1; d < Node::Rank(y); ++d) order.push_back(d);
      order.insert(order.begin() + axis, 0);
      all[states + k] = Value(axis == 0 ? y : Transposed(n, y, order));
    }
    return all;
  }
  std::vector<std::vector<Value>> collected(results);
  for (int64_t t = 0; t < *turns; ++t) {
    std::vector<Value> arguments = scan.carried;
    Expr place = n.Scalar(static_cast<double>(t), DataType::Int(64));
    for (int64_t i = 0; i < scanned; ++i)
      arguments.emplace_back(n("take", scan.inputs[i], place, scan.in_axes[i]));
    std::vector<Value> outputs = n.importer.RunGraph(scan.body, arguments, n.context, scan.scope);
    std::copy_n(outputs.begin(), states, scan.carried.begin());
    for (int64_t i = 0; i < results; ++i) collected[i].push_back(outputs[states + i]);
  }
  for (int64_t i = 0; i < results; ++i) {
    if (scan.out_back[i]) std::reverse(collected[i].begin(), collected[i].end());
    Expr first = n.importer.TensorOf(&collected[i][0]);
    int64_t axis = n.Axis(scan.out_axes[i], Node::Rank(first) + 1, "scan_output_axes");
    scan.carried.emplace_back(StackOf(n, &collected[i], axis));
  }
  return scan.carried;
}
/// Opset 8: the first axis of all values is a batch, each element of which is scanned on its own.
Outputs ScanBatches(Node& n, const Graph& body, int64_t scanned) {
  int64_t states = static_cast<int64_t>(n.NumInputs()) - 1 - scanned;
  int64_t results = static_cast<int64_t>(body.outputs.size()) - states;
  if (n.Has(0)) n.Unsupported("lengths of sequences");
  if (scanned < 1 || states < 0 || results < 0)
    n.Fail("a body with the states and scanned values as inputs", "another one");
  auto back = n.Ints("directions", std::vector<int64_t>(scanned, 0));
  std::vector<Expr> given;
  for (int64_t i = 0; i < states + scanned; ++i) given.push_back(n.In(i + 1));
  auto turn = [&](const Expr& place, const std::vector<Expr>& all, const Scope& scope) {
    ScanSpec scan{body,
                  {},
                  {},
                  std::vector<int64_t>(scanned, 0),
                  std::vector<int64_t>(results, 0),
                  std::vector<int64_t>(results, 0),
                  &scope};
    for (int64_t i = 0; i < states + scanned; ++i) {
      Expr x = n("take", all[i], place, 0);
      if (i < states) {
        scan.carried.emplace_back(x);
      } else {
        scan.inputs.push_back(back.at(i - states) ? n("flip", x, 0) : x);
      }
    }
    return RunScan(n, scan);
  };
  PrimExpr batch = Node::Shape(given[0])[0];
  if (auto size = AsConstInt(batch); !size || *size > kFewTurns || *size == 0) {
    LoopSpec loop;
    Value count{Known{{}, DataType::Int(64), {batch}}};
    loop.count = n.importer.TensorOf(&count);
    for (const Expr& e : given) loop.carried.emplace_back(e);  // unchanged
    loop.num_collected = states + results;
    FreeNames(body, &loop.names);
    loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope& scope) {
      std::vector<Expr> all;
      for (const Value& value : values) all.push_back(value.expr);
      return Turn{{}, values, turn(i, all, scope)};
    };
    std::vector<Value> all = EmitLoop(n, loop);
    all.erase(all.begin(), all.begin() + states + scanned);
    return all;
  }
  std::vector<std::vector<Value>> columns(states + results);
  for (int64_t b = 0; b < *AsConstInt(batch); ++b) {
    std::vector<Value> values =
        turn(n.Scalar(static_cast<double>(b), DataType::Int(64)), given, *n.scope);
    for (size_t i = 0; i < columns.size(); ++i) columns[i].push_back(values[i]);
  }
  std::vector<Value> outputs;
  for (auto& column : columns) outputs.emplace_back(StackOf(n, &column, 0));
  return outputs;
}
Outputs ConvertScan(Node& n) {
  const Graph& body = SubgraphOf(n, "body");
  int64_t scanned = n.Int("num_scan_inputs"), given = static_cast<int64_t>(n.NumInputs());
  if (n.opset < 9) return ScanBatches(n, body, scanned);
  int64_t states = given - scanned, results = static_cast<int64_t>(body.outputs.size()) - states;
  if (scanned < 1 || states < 0 || results < 0 || given != static_cast<int64_t>(body.inputs.size()))
    n.Fail("a body with the states and scanned values as inputs", "another one");
  ScanSpec scan{body,
                {},
                {},
                n.Ints("scan_input_axes", std::vector<int64_t>(scanned, 0)),
                n.Ints("scan_output_axes", std::vector<int64_t>(results, 0)),
                n.Ints("scan_output_directions", std::vector<int64_t>(results, 0)),
                n.scope};
  auto in_back = n.Ints("scan_input_directions", std::vector<int64_t>(scanned, 0));
  for (int64_t i = 0; i < states; ++i) scan.carried.push_back(n.Input(i));
  for (int64_t i = 0; i < scanned; ++i) {
    Expr x = n.In(states + i);
    scan.in_axes.at(i) = n.Axis(scan.in_axes.at(i), Node::Rank(x), "scan_input_axes");
    scan.inputs.push_back(in_back.at(i) ? n("flip", x, scan.in_axes[i]) : x);
  }
  return RunScan(n, scan);
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"If", &ConvertIf},
      {"Loop", &ConvertLoop},
      {"Scan", &ConvertScan},
  });
}

}  // namespace tvm::frontend::onnx
