// SPDX-License-Identifier: Apache-2.0
// Loops whose number of turns only running tells: functions that call themselves.
#pragma once
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {

/// Loops of few turns are unrolled.
constexpr int64_t kFewTurns = 64;
/// What a turn gives: whether another may follow (true where there is none), the values for it, and
/// values that are collected over all turns.
struct Turn {
  std::optional<Value> condition;
  std::vector<Value> carried, collected;
};
struct LoopSpec {
  std::optional<Expr> count;      // int64 scalar
  std::optional<Expr> condition;  // bool scalar, before the first turn
  std::vector<Value> carried;
  std::vector<TypeProto> types;  // as declared, of the carried values: needed of sequences
  std::set<Name> names;          // of values outside that the body may use
  const Scope* scope = nullptr;  // where those are, if it is not the node's
  size_t num_collected = 0;
  /// A turn: its number (an int64 scalar), the carried values, and the scope that has the names.
  std::function<Turn(const Expr& i, const std::vector<Value>& carried, const Scope& scope)> turn;
};
/// The carried values behind the last turn, then the collected ones, stacked.
std::vector<Value> EmitLoop(Node& n, const LoopSpec& loop);
/// The graph that an attribute holds.
const Graph& SubgraphOf(Node& n, Name name);
Value KnownScalar(int64_t value, DataType dtype);
/// Tensors as one, along a new axis.
Expr StackOf(Node& n, std::vector<Value>* parts, int64_t axis);
/// Names that a graph uses and does not define.
void FreeNames(const Graph& graph, std::set<Name>* names);

}  // namespace tvm::frontend::onnx
