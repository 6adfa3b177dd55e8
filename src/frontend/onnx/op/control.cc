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
  BranchState state;
  std::vector<Value> values;
  Array<relax::BindingBlock> blocks;
};
Branch RunBranch(Node& n, const Graph& graph, const PrimExpr& holds) {
  Branch branch;
  branch.state.of = &n;
  branch.state.holds = holds;
  n.importer.builder()->BeginSequence();
  branch.values = n.importer.RunGraph(graph, {}, n.context, n.scope, &branch.state);
  if (branch.state.reached) branch.values = branch.state.values;
  branch.blocks = n.importer.builder()->EndSequence();
  return branch;
}
/// Whether values that take each other's place have the same rank, where they are tensors of
/// numbers.
bool HaveOneRank(const Value& a, const Value& b) {
  if (a.Otherwise() || b.Otherwise()) return true;
  auto rank = [](const Value& v) {
    if (!v.expr.defined()) return static_cast<int64_t>(v.known->shape.size());
    return relax::GetStructInfoAs<relax::TensorStructInfoObj>(v.expr)->ndim;
  };
  return rank(a) == rank(b) && rank(a) >= 0;
}
bool HaveRanks(const Branch& first, const Branch& second) {
  return std::equal(first.values.begin(), first.values.end(), second.values.begin(), &HaveOneRank);
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
/// The values of the branch that the condition chooses. `type` tells that of an object.
std::vector<Value> Choose(Node& n, const Expr& condition, const Branch& first, const Branch& second,
                          const std::function<TypeProto(size_t)>& type) {
  std::vector<BranchKind> kinds;
  for (size_t i = 0; i < first.values.size(); ++i) {
    BranchKind a = KindOf(first.values[i]), b = KindOf(second.values[i]);
    kinds.push_back(a == b ? a : BranchKind::kObject);
  }
  relax::BlockBuilder builder = n.importer.builder();
  relax::SeqExpr yes = Finished(n, first, kinds), no = Finished(n, second, kinds);
  Expr result = builder->Emit(relax::If(condition, yes, no), "lv");
  bool is_alone = kinds.size() == 1 && kinds[0] != BranchKind::kStrings;
  int64_t field = 0;
  auto next = [&] {
    return is_alone ? result : Expr(builder->Emit(relax::TupleGetItem(result, field++), "lv"));
  };
  std::vector<Value> values;
  for (size_t i = 0; i < kinds.size(); ++i) {
    Expr item = next();
    if (kinds[i] == BranchKind::kStrings) {
      values.push_back(Value::Strings(next(), item));
    } else if (kinds[i] == BranchKind::kObject) {
      values.push_back(n.importer.FromObject(item, type(i), true));
    } else if (HaveOneRank(first.values[i], second.values[i])) {
      values.emplace_back(n.Emit(item));
    } else {
      values.emplace_back(item);  // of the program: nothing more is computed of it
    }
  }
  return values;
}
/// The If in a branch of which the graph of the node is, or nullptr.
const Node* Around(const Node* node) {
  return node->scope->branch ? node->scope->branch->of : nullptr;
}
/// The branch with what follows the node behind it: what is wanted of the graph around the node.
void Continue(const Node& n, Branch* branch) {
  for (const Node* node = &n; node; node = Around(node)) {
    if (branch->state.reached == node) return;
  }
  BranchState state;
  state.of = Around(&n);
  state.is_main = n.importer.IsMain(n.scope);
  state.holds = branch->state.holds;
  Scope inside;
  inside.outer = n.scope;
  inside.branch = &state;
  for (size_t i = 0; i < n.proto.outputs.size() && i < branch->values.size(); ++i)
    inside.values[n.proto.outputs[i]] = branch->values[i];
  n.importer.builder()->BeginSequence();
  auto next = n.scope->nodes->begin() + static_cast<std::ptrdiff_t>(n.scope->at + 1);
  std::vector<NodeProto> rest(next, n.scope->nodes->end());
  n.importer.RunNodes(rest, n.context, &inside, n.scope->wanted);
  for (const auto& block : n.importer.builder()->EndSequence()) branch->blocks.push_back(block);
  branch->state.reached = state.reached ? state.reached : &n;
  branch->values = state.values;
  for (size_t i = 0; !state.reached && i < n.scope->wanted.size(); ++i) {
    const Value* value = inside.Find(n.scope->wanted[i]);
    if (!value) n.Fail("a value '" + std::string(n.scope->wanted[i]) + "'", "none");
    branch->values.push_back(*value);
  }
}
/// Every value has one rank here, so where that of the branches differs, what follows is imported
/// once for each of them: to the end of the graph, and where its results still differ of the graph
/// around it.
void ChooseRest(Node& n, const Expr& condition, Branch first, Branch second) {
  const Node* node = &n;
  for (;; node = Around(node)) {
    if (!node) n.Unsupported("results of different rank in the body of a loop or a function");
    Continue(*node, &first);
    Continue(*node, &second);
    bool fits = first.state.reached == node && second.state.reached == node;
    if (fits && (n.importer.IsMain(node->scope) || HaveRanks(first, second))) break;
  }
  auto type = [&](size_t i) {
    const Value &a = first.values[i], &b = second.values[i];
    return *n.importer.ObjectType(a.defined() ? a : b);
  };
  std::vector<Value> values = Choose(n, condition, first, second, type);
  n.scope->is_done = true;
  for (size_t i = 0; i < n.scope->wanted.size(); ++i)
    n.scope->values[n.scope->wanted[i]] = node == &n ? values[i] : Value();
  if (node == &n) return;
  n.scope->branch->reached = node;
  n.scope->branch->values = values;
}
/// The condition as an expression, as far as what holds around the node does not decide it;
/// undefined when only running tells it.
PrimExpr TruthHere(Node& n) {
  const Known* known = n.KnownOf(0);
  if (!known || known->elements.size() != 1) return {};
  std::vector<std::function<void()>> exits;
  for (const Scope* s = n.scope; s; s = s->outer) {
    if (s->branch && s->branch->holds.defined())
      exits.push_back(n.importer.builder()->analyzer()->EnterConstraint(s->branch->holds));
  }
  PrimExpr truth = n.Simplify(known->elements[0]);
  for (; !exits.empty(); exits.pop_back()) exits.back()();
  return truth;
}
Outputs ConvertIf(Node& n) {
  const Graph &then = SubgraphOf(n, "then_branch"), &otherwise = SubgraphOf(n, "else_branch");
  if (then.outputs.size() != otherwise.outputs.size())
    n.Fail("branches with as many outputs as each other", "different ones");
  PrimExpr truth = TruthHere(n);
  if (auto value = truth.defined() ? AsConstInt(truth) : std::nullopt)
    return n.importer.RunGraph(*value ? then : otherwise, {}, n.context, n.scope);
  Expr condition = n.Reshape(n.In(0), {});
  Branch first = RunBranch(n, then, truth),
         second = RunBranch(n, otherwise, truth.defined() ? !truth : truth);
  if (first.state.reached || second.state.reached || !HaveRanks(first, second)) {
    ChooseRest(n, condition, first, second);
    return std::vector<Value>();
  }
  return Choose(n, condition, first, second, [&](size_t i) { return then.outputs[i].type; });
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
