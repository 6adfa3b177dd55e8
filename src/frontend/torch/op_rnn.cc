// SPDX-License-Identifier: Apache-2.0
// Recurrent networks, step by step: their sequences have a constant length.
#include "converter.h"
#include "network.h"

namespace tvm::frontend::torch {
namespace {

struct Recurrence {
  Array<Expr> weights;  // per layer and direction: input, hidden and, with biases, theirs
  bool has_biases;
  int64_t num_layers;
  bool bidirectional, batch_first;
  int64_t PerDirection() const {
    return static_cast<int64_t>(weights.size()) / (num_layers * (bidirectional ? 2 : 1));
  }
  /// Whether what an LSTM gives is a product with a weight of its own.
  bool IsProjected() const { return PerDirection() % 2 == 1; }
};
/// The weights of one direction of a layer.
struct Cell {
  Expr input, hidden;
  Optional<Expr> input_bias, hidden_bias, projection;
};

/// x[:, i * n : (i + 1) * n]
Expr Gate(Conversion& c, const Expr& x, int64_t axis, int64_t i, const PrimExpr& n) {
  return c.Slice(x, axis, c.Simplify(n * IntImm::Int64(i)), c.Simplify(n * IntImm::Int64(i + 1)));
}
using State = std::vector<Expr>;
using Step = std::function<State(const Expr& x, const State& state)>;

Step LstmStep(Conversion& c, const Cell& cell, const PrimExpr& size) {
  Expr input = c.Emit("permute_dims", cell.input, Array<Any>{1, 0});
  Expr hidden = c.Emit("permute_dims", cell.hidden, Array<Any>{1, 0});
  Optional<Expr> projection;
  if (cell.projection.has_value())
    projection = c.Emit("permute_dims", *cell.projection, Array<Any>{1, 0});
  return [&c, cell, size, input, hidden, projection](const Expr& x, const State& state) -> State {
    Expr from_input = MatMul(c, x, input);
    Expr sum = c.Emit("add", from_input, MatMul(c, state[0], hidden));
    if (cell.input_bias.has_value()) {
      sum = c.Emit("add", sum, *cell.input_bias);
      sum = c.Emit("add", sum, *cell.hidden_bias);
    }
    Expr gates[4];
    for (int64_t i = 0; i < 4; ++i) gates[i] = Gate(c, sum, 1, i, size);
    for (int64_t i = 0; i < 4; ++i) gates[i] = c.Emit(i == 2 ? "tanh" : "sigmoid", gates[i]);
    Expr kept = c.Emit("multiply", gates[1], state[1]);
    Expr memory = c.Emit("add", kept, c.Emit("multiply", gates[0], gates[2]));
    Expr given = c.Emit("multiply", gates[3], c.Emit("tanh", memory));
    return {projection.has_value() ? MatMul(c, given, *projection) : given, memory};
  };
}
Step GruStep(Conversion& c, const Cell& cell, const PrimExpr& size) {
  Expr inputs[3], hiddens[3];
  for (int64_t i = 0; i < 3; ++i) {
    inputs[i] = Gate(c, cell.input, 0, i, size);
    hiddens[i] = Gate(c, cell.hidden, 0, i, size);
  }
  for (Expr* weights : {inputs, hiddens}) {
    for (int64_t i = 0; i < 3; ++i) {
      weights[i] = c.Emit("permute_dims", weights[i], Array<Any>{1, 0});
    }
  }
  std::vector<Expr> in(inputs, inputs + 3), hid(hiddens, hiddens + 3);
  return [&c, cell, size, in, hid](const Expr& x, const State& state) -> State {
    auto biased = [&](const Expr& product, const Optional<Expr>& bias, int64_t i) {
      return bias.has_value() ? c.Emit("add", product, Gate(c, *bias, 0, i, size)) : product;
    };
    auto gate = [&](int64_t i) {
      Expr a = MatMul(c, x, in[i]), b = MatMul(c, state[0], hid[i]);
      Expr sum = c.Emit("add", biased(a, cell.input_bias, i), b);
      return c.Emit("sigmoid", biased(sum, cell.hidden_bias, i));
    };
    Expr reset = gate(0), update = gate(1);
    Expr a = MatMul(c, x, in[2]), b = MatMul(c, state[0], hid[2]);
    a = biased(a, cell.input_bias, 2);
    Expr damped = c.Emit("multiply", reset, biased(b, cell.hidden_bias, 2));
    Expr fresh = c.Emit("tanh", c.Emit("add", a, damped));
    Expr share = c.Emit("subtract", c.Const(1.0, TypeOf(x)), update);
    Expr part = c.Emit("multiply", share, fresh);
    return {c.Emit("add", part, c.Emit("multiply", update, state[0]))};
  };
}
/// relu or tanh of a plain network.
Step PlainStep(Conversion& c, const Cell& cell, const char* activation) {
  Expr input = c.Emit("permute_dims", cell.input, Array<Any>{1, 0});
  Expr hidden = c.Emit("permute_dims", cell.hidden, Array<Any>{1, 0});
  return [&c, cell, activation, input, hidden](const Expr& x, const State& state) -> State {
    Expr from_input = MatMul(c, x, input);
    Expr sum = c.Emit("add", from_input, MatMul(c, state[0], hidden));
    if (cell.input_bias.has_value()) {
      sum = c.Emit("add", sum, *cell.input_bias);
      sum = c.Emit("add", sum, *cell.hidden_bias);
    }
    return {c.Emit(activation, sum)};
  };
}

/// All layers; `states` are (layers * directions, batch, size). Gives the sequence and the last
/// states.
Array<Any> Run(Conversion& c, Expr x, const Recurrence& r, Array<Expr> states, int64_t gates,
               const std::function<Step(const Cell&, const PrimExpr&)>& make_step) {
  bool is_batch = RankOf(x) == 3;
  if (!is_batch) {
    x = c.Emit("expand_dims", x, 1);
    Array<Expr> batched;
    for (const Expr& state : states) batched.push_back(c.Emit("expand_dims", state, 1));
    states = batched;
  } else if (r.batch_first) {
    x = c.Emit("permute_dims", x, Array<Any>{1, 0, 2});
  }
  int64_t directions = r.bidirectional ? 2 : 1;
  std::vector<Array<Expr>> last(states.size());
  for (int64_t layer = 0; layer < r.num_layers; ++layer) {
    auto length = AsConstInt(ShapeOf(x)[0]);
    if (!length) TVM_REFUSE(c, NotImplementedError) << "expected a sequence of constant length";
    Array<Expr> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      int64_t at = (layer * directions + d) * r.PerDirection();
      Cell cell{r.weights[at], r.weights[at + 1], {}, {}, {}};
      if (r.has_biases) {
        cell.input_bias = r.weights[at + 2];
        cell.hidden_bias = r.weights[at + 3];
      }
      if (r.IsProjected()) cell.projection = r.weights[at + r.PerDirection() - 1];
      PrimExpr size = floordiv(ShapeOf(cell.input)[0], IntImm::Int64(gates));
      State state;
      for (const Expr& initial : states) {
        state.push_back(
            c.Emit("take", initial, c.Const(layer * directions + d), 0, String("clip")));
      }
      Step step = make_step(cell, c.Simplify(size));
      std::vector<Expr> sequence(*length);
      for (int64_t i = 0; i < *length; ++i) {
        int64_t t = d == 0 ? i : *length - 1 - i;
        state = step(c.Emit("take", x, c.Const(t), 0, String("clip")), state);
        sequence[t] = state[0];
      }
      outputs.push_back(
          c.Emit("stack", relax::Tuple(Array<Expr>(sequence.begin(), sequence.end())), 0));
      for (size_t k = 0; k < states.size(); ++k) last[k].push_back(state[k]);
    }
    x = directions == 1 ? outputs[0] : c.Emit("concat", relax::Tuple(outputs), 2);
  }
  if (!is_batch) {
    x = c.Emit("squeeze", x, Array<Any>{1});
  } else if (r.batch_first) {
    x = c.Emit("permute_dims", x, Array<Any>{1, 0, 2});
  }
  Array<Any> results = {x};
  for (size_t k = 0; k < last.size(); ++k) {
    if (!c.Used(k + 1)) {
      results.push_back(nullptr);
      continue;
    }
    Expr stacked = c.Emit("stack", relax::Tuple(last[k]), 0);
    results.push_back(is_batch ? stacked : c.Emit("squeeze", stacked, Array<Any>{1}));
  }
  return results;
}
Recurrence RecurrenceOf(const Conversion& c) {
  // input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
  if (c.Flag(6) && c.Number(5) != 0) {
    TVM_REFUSE(c, NotImplementedError) << "expected no dropout between layers, got " << c.Number(5);
  }
  return {c.Tensors(2), c.Flag(3), c.Int(4), c.Flag(7), c.Flag(8)};
}
Any Lstm(Conversion& c) {
  return Run(c, c.Tensor(0), RecurrenceOf(c), c.Tensors(1), 4,
             [&](const Cell& cell, const PrimExpr& n) { return LstmStep(c, cell, n); });
}
/// One layer in one direction, as torch.compile sees an LSTM in inference: results in the order of
/// the sequence, and a workspace that only training reads.
Any LstmLayer(Conversion& c) {
  constexpr int64_t kLstm = 2;
  if (c.Int(9) != kLstm || c.Flag(15) || !c.Ints(8).empty()) {
    TVM_REFUSE(c, NotImplementedError) << "expected an LSTM in inference over whole sequences";
  }
  bool is_reversed = c.Flag(7);
  auto turned = [&](const Expr& x) { return is_reversed ? c.Emit("flip", x, 0) : x; };
  Array<Expr> weights;
  for (size_t i = 1; i <= 4; ++i) weights.push_back(c.Tensor(i));
  Array<Any> results = Run(
      c, turned(c.Tensor(0)), {weights, c.Flag(12), 1, false, false}, {c.Tensor(5), c.Tensor(6)}, 4,
      [&](const Cell& cell, const PrimExpr& n) { return LstmStep(c, cell, n); });
  results.Set(0, turned(results[0].cast<Expr>()));
  results.push_back(nullptr);
  return results;
}
Any Gru(Conversion& c) {
  return Run(c, c.Tensor(0), RecurrenceOf(c), {c.Tensor(1)}, 3,
             [&](const Cell& cell, const PrimExpr& n) { return GruStep(c, cell, n); });
}
Any Rnn(Conversion& c) {
  return Run(c, c.Tensor(0), RecurrenceOf(c), {c.Tensor(1)}, 1,
             [&](const Cell& cell, const PrimExpr&) { return PlainStep(c, cell, c.op); });
}

TVM_REGISTER() {
  const char* schema =
      "input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first";
  Converter("lstm.input", schema, &Lstm);
  Converter("mkldnn_rnn_layer.default",
            "input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode, "
            "hidden_size, num_layers, has_biases, bidirectional, batch_first, train",
            &LstmLayer);
  Converter("gru.input", schema, &Gru);
  Converter("rnn_tanh.input", schema, &Rnn, "tanh");
  Converter("rnn_relu.input", schema, &Rnn, "nn.relu");
}

}  // namespace
}  // namespace tvm::frontend::torch
