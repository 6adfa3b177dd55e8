// SPDX-License-Identifier: Apache-2.0
// Recurrent networks, one step after the other.
#include "frontend/onnx/op/loop.h"
#include "frontend/onnx/op/quantize.h"

namespace tvm::frontend::onnx {
namespace {
constexpr int64_t kMostUnrolled = 512;  // more steps, or any number of them, are a loop

/// An activation by its name, with its numbers.
using Activation = std::function<Expr(const Expr&)>;
Activation MakeActivation(Node& n, const std::string& name, double alpha, double beta) {
  std::string word = name;
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  auto map = [&n](const char* label, auto element) -> Activation {
    return [&n, label, element](const Expr& x) { return MapElements(n, label, x, element); };
  };
  auto num = [](const PrimExpr& x, double v) { return Num(x.dtype(), v); };
  if (word == "sigmoid") return [&n](const Expr& x) { return n("sigmoid", x); };
  if (word == "tanh") return [&n](const Expr& x) { return n("tanh", x); };
  if (word == "relu") return [&n](const Expr& x) { return n("nn.relu", x); };
  if (word == "softplus") return [&n](const Expr& x) { return n("nn.softplus", x); };
  if (word == "affine")
    return map("affine", [=](PrimExpr x) { return num(x, alpha) * x + num(x, beta); });
  if (word == "softsign")
    return map("softsign", [=](PrimExpr x) { return div(x, num(x, 1) + tvm::abs(x)); });
  if (word == "scaledtanh")
    return map("scaled_tanh", [=](PrimExpr x) { return num(x, alpha) * tanh(num(x, beta) * x); });
  if (word == "hardsigmoid")
    return map("hard_sigmoid", [=](PrimExpr x) {
      return max(num(x, 0), min(num(x, 1), num(x, alpha) * x + num(x, beta)));
    });
  if (word == "leakyrelu")
    return map("leaky_relu", [=](PrimExpr x) -> PrimExpr {
      return tir::Select(x < num(x, 0), num(x, alpha) * x, x);
    });
  if (word == "thresholdedrelu")
    return map("thresholded_relu", [=](PrimExpr x) -> PrimExpr {
      return tir::Select(x > num(x, alpha), x, num(x, 0));
    });
  if (word == "elu")
    return map("elu", [=](PrimExpr x) -> PrimExpr {
      return tir::Select(x < num(x, 0), num(x, alpha) * (exp(x) - num(x, 1)), x);
    });
  n.Fail("the name of an activation", name);
}

/// What the three kinds share: inputs, directions, lengths, outputs. Weights may be quantised: then
/// they are (directions, inputs, gates), and behind the other inputs are their scales and zero
/// points.
class Recurrent {
 public:
  Recurrent(Node& n, int64_t gates, std::vector<std::string> defaults, bool has_cell,
            bool is_quantized = false)
      : n_(n), gates_(gates), has_cell_(has_cell), is_quantized_(is_quantized) {
    batch_first_ = n.Int("layout", 0) != 0;
    std::string direction = n.Str("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
      n.Fail("direction to be forward, reverse or bidirectional", direction);
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_first_ = direction == "reverse";
    x_ = n.In(0);
    if (batch_first_) x_ = Transposed(n, x_, {1, 0, 2});
    hidden = n.HasAttr("hidden_size") ? n.Int("hidden_size")
                                      : n.StaticDim(n.In(2), is_quantized ? 1 : 2);
    if (n.HasAttr("clip")) clip_ = n.Float("clip");
    n.Ignore("output_sequence");  // of opset 1: what is wanted says it
    auto names = n.Strs("activations");
    auto alphas = n.Floats("activation_alpha"), betas = n.Floats("activation_beta");
    if (names.empty()) {
      for (int64_t d = 0; d < directions_; ++d)
        names.insert(names.end(), defaults.begin(), defaults.end());
    }
    per_direction_ = defaults.size();
    if (names.size() < per_direction_ * directions_)
      n.Fail(std::to_string(per_direction_ * directions_) + " activations",
             std::to_string(names.size()));
    // Numbers are given one after the other, for those that have one.
    size_t next_alpha = 0, next_beta = 0;
    for (const std::string& name : names) {
      auto [alpha, beta, takes] = DefaultsOf(name);
      if (takes >= 1 && next_alpha < alphas.size()) alpha = alphas[next_alpha++];
      if (takes >= 2 && next_beta < betas.size()) beta = betas[next_beta++];
      activations_.push_back(MakeActivation(n, name, alpha, beta));
    }
    if (n.Has(4)) lengths_ = n.Cast(n.Fitted(n.In(4), {Node::Shape(x_)[1]}), DataType::Int(64));
  }
  /// One step: the new (h, c) from what the input gives to the gates, and (h, c).
  struct State {
    Expr h, c;
  };
  /// A weight (inputs, gates). Of 8-bit numbers it has a scale, and maybe a zero point.
  struct Matrix {
    Expr data, scale, zero;
  };
  struct Direction {
    Matrix r;
    Expr bias_w, bias_r, peepholes;  // biases (gates · hidden); undefined when there are none
    std::vector<Activation> act;
  };
  using Step = std::function<State(const Direction& d, const Expr& gates, const State& s)>;
  int64_t hidden = 0;

  Outputs Run(const Step& step) {
    std::vector<Expr> ys, hs, cs;
    for (int64_t d = 0; d < directions_; ++d) {
      bool reverse = d == 1 || reverse_first_;
      auto [y, last] = RunDirection(d, reverse, step);
      ys.push_back(n_("expand_dims", y, List({1})));
      hs.push_back(n_("expand_dims", last.h, List({0})));
      if (has_cell_) cs.push_back(n_("expand_dims", last.c, List({0})));
    }
    Expr y = Joined(ys, 1), h = Joined(hs, 0);
    if (batch_first_) {
      y = Transposed(n_, y, {2, 0, 1, 3});
      h = Transposed(n_, h, {1, 0, 2});
    }
    if (!has_cell_) return std::vector<Expr>{y, h};
    Expr c = Joined(cs, 0);
    if (batch_first_) c = Transposed(n_, c, {1, 0, 2});
    return std::vector<Expr>{y, h, c};
  }
  /// Columns [i · hidden, (i + 1) · hidden) of the last axis.
  Expr Gate(const Expr& gates, int64_t i) {
    int64_t axis = Node::Rank(gates) - 1;
    return n_("strided_slice", gates, List({axis}), Dims{Num(i * hidden)},
              Dims{Num((i + 1) * hidden)}, Dims{Num(1)}, true);
  }
  Expr Times(const Expr& x, const Matrix& w) {
    if (!w.scale.defined()) return n_("matmul", x, w.data);
    DynamicNumbers q = DynamicallyQuantized(n_, x);
    std::optional<Expr> zero;
    if (w.zero.defined()) zero = w.zero;
    Expr sum = IntegerProduct(n_, q.data, w.data, n_.Cast(q.zero, DataType::Int(32)), zero);
    return n_("multiply", n_.Cast(sum, Node::TypeOf(x)), n_("multiply", q.scale, w.scale));
  }
  Expr Clipped(const Expr& e) { return clip_ ? n_("clip", e, -*clip_, *clip_) : e; }

 private:
  static std::tuple<double, double, int> DefaultsOf(std::string name) {
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (name == "hardsigmoid") return {0.2F, 0.5, 2};
    if (name == "scaledtanh" || name == "affine") return {1, name == "affine" ? 0.0 : 1.0, 2};
    if (name == "leakyrelu") return {0.01F, 0, 1};
    if (name == "thresholdedrelu" || name == "elu") return {1, 0, 1};
    return {0, 0, 0};
  }
  Expr Joined(const std::vector<Expr>& parts, int64_t axis) {
    if (parts.size() == 1) return parts[0];
    return n_("concat", relax::Tuple(Array<Expr>(parts.begin(), parts.end())), axis);
  }
  /// Entry `d` of the first axis.
  Expr Entry(const Expr& e, int64_t d) {
    return n_("take", e, n_.Scalar(static_cast<double>(d), DataType::Int(64)), 0);
  }
  Expr Initial(size_t i, int64_t d) {
    if (n_.Has(i)) {
      Expr all = n_.In(i);
      if (batch_first_) all = Transposed(n_, all, {1, 0, 2});
      return Entry(n_.Fitted(all, {Num(directions_), Node::Shape(x_)[1], Num(hidden)}), d);
    }
    return n_("zeros", relax::ShapeExpr({Node::Shape(x_)[1], Num(hidden)}), Node::TypeOf(x_));
  }
  /// Steps in reverse, those behind a sequence's end left where they are.
  Expr Reversed(const Expr& e) {
    if (!lengths_) return n_("flip", e, 0);
    Te te(n_);
    te::Tensor t = te(e), lengths = te(*lengths_);
    return ComputeElements(n_, "reverse_steps", te, t->shape, [&](const Index& i) {
      Index at = i;
      PrimExpr length = lengths(i[1]);
      at[0] = tir::Select(i[0] < length, length - Num(1) - i[0], i[0]);
      return topi::At(t, at);
    });
  }
  /// `fresh` while the sequence lasts, `old` afterwards.
  Expr While(const std::optional<Expr>& lengths, const Expr& step, const Expr& fresh,
             const Expr& old) {
    if (!lengths) return fresh;
    return n_("where", n_("expand_dims", n_("greater", *lengths, step), List({1})), fresh, old);
  }
  /// The state behind one step, and what the step shows.
  std::pair<State, Expr> Advance(const Direction& dir, const Step& step, const Expr& i,
                                 const Expr& gates, const State& s,
                                 const std::optional<Expr>& lengths) {
    State next = step(dir, n_("take", gates, i, 0), s);
    Expr shown = While(lengths, i, next.h, n_.Scalar(0, Node::TypeOf(x_)));
    next.h = While(lengths, i, next.h, s.h);
    if (has_cell_) next.c = While(lengths, i, next.c, s.c);
    return {next, shown};
  }
  /// The steps as a loop, which carries along what it does not change.
  std::pair<Expr, State> RunLoop(const Direction& dir, const Step& step, const Expr& gates,
                                 const State& first) {
    LoopSpec loop;
    Value count{Known{{}, DataType::Int(64), {Node::Shape(x_)[0]}}};
    loop.count = n_.importer.TensorOf(&count);
    loop.carried = {first.h};
    std::vector<Expr> fixed{gates, dir.r.data};
    for (const Expr& e :
         {dir.r.scale, dir.r.zero, dir.bias_r, dir.peepholes, lengths_.value_or(Expr())}) {
      if (e.defined()) fixed.push_back(e);
    }
    if (has_cell_) loop.carried.emplace_back(first.c);
    size_t states = loop.carried.size();
    loop.carried.insert(loop.carried.end(), fixed.begin(), fixed.end());
    loop.num_collected = 1;
    loop.turn = [&](const Expr& i, const std::vector<Value>& values, const Scope&) {
      size_t at = states;
      auto next_of = [&](const Expr& e) { return e.defined() ? values[at++].expr : e; };
      Expr all = next_of(gates);
      Direction inner = dir;
      inner.r.data = next_of(dir.r.data);
      inner.r.scale = next_of(dir.r.scale);
      inner.r.zero = next_of(dir.r.zero);
      inner.bias_r = next_of(dir.bias_r);
      inner.peepholes = next_of(dir.peepholes);
      PrimExpr batch = Node::Shape(all)[1];
      std::optional<Expr> lengths;
      if (lengths_) lengths = n_.Fitted(next_of(*lengths_), {batch});
      State s{n_.Fitted(values[0].expr, {batch, Num(hidden)}), {}};
      if (has_cell_) s.c = n_.Fitted(values[1].expr, {batch, Num(hidden)});
      auto [state, shown] = Advance(inner, step, i, all, s, lengths);
      Turn turn{{}, {state.h}, {shown}};
      if (has_cell_) turn.carried.emplace_back(state.c);
      turn.carried.insert(turn.carried.end(), values.begin() + states, values.end());
      return turn;
    };
    std::vector<Value> results = EmitLoop(n_, loop);
    Dims shape = Node::Shape(gates);
    Dims of_state{shape[1], Num(hidden)};
    State last{n_.Fitted(results[0].expr, of_state), {}};
    if (has_cell_) last.c = n_.Fitted(results[1].expr, of_state);
    return {n_.Fitted(results.back().expr, {shape[0], shape[1], Num(hidden)}), last};
  }
  /// A weight with the sizes that are known of it.
  Expr Weight(size_t i, const Dims& sizes) { return n_.Fitted(n_.In(i), sizes); }
  /// Input `i`, whose scale is input `scale`, for a direction that has `rows` inputs.
  Matrix MatrixOf(size_t i, size_t scale, int64_t d, const PrimExpr& rows) {
    PrimExpr count = Num(directions_), columns = Num(gates_ * hidden);
    if (!is_quantized_)
      return {Transposed(n_, Entry(Weight(i, {count, columns, rows}), d), {1, 0}), {}, {}};
    Matrix w{Entry(Weight(i, {count, rows, columns}), d), Entry(n_.In(scale), d), {}};
    if (auto zero = ZeroOffset(n_, scale + 1)) w.zero = Entry(*zero, d);
    return w;
  }
  std::pair<Expr, State> RunDirection(int64_t d, bool reverse, const Step& step) {
    Direction dir;
    int64_t size = gates_ * hidden;
    PrimExpr count = Num(directions_);
    Matrix w = MatrixOf(1, 8, d, Node::Shape(x_)[2]);
    dir.r = MatrixOf(2, 10, d, Num(hidden));
    if (n_.Has(3)) {
      Expr both = Entry(Weight(3, {count, Num(2 * size)}), d);
      auto part = [&](int64_t i) {
        return n_("strided_slice", both, List({0}), Dims{Num(i * size)}, Dims{Num((i + 1) * size)},
                  Dims{Num(1)}, true);
      };
      dir.bias_w = part(0);
      dir.bias_r = part(1);
    }
    if (has_cell_ && n_.Has(7)) dir.peepholes = Entry(Weight(7, {count, Num(3 * hidden)}), d);
    for (size_t i = 0; i < per_direction_; ++i)
      dir.act.push_back(activations_[d * per_direction_ + i]);
    Expr x = reverse ? Reversed(x_) : x_;
    Expr all = Times(x, w);
    if (dir.bias_w.defined()) all = n_("add", all, dir.bias_w);
    State state{Initial(5, d), has_cell_ ? Initial(6, d) : Expr()};
    Expr y;
    auto steps = AsConstInt(Node::Shape(x_)[0]);
    if (!steps || *steps > kMostUnrolled || *steps == 0) {
      std::tie(y, state) = RunLoop(dir, step, all, state);
    } else {
      Array<Expr> outputs;
      for (int64_t t = 0; t < *steps; ++t) {
        Expr i = n_.Scalar(static_cast<double>(t), DataType::Int(64)), shown;
        std::tie(state, shown) = Advance(dir, step, i, all, state, lengths_);
        outputs.push_back(shown);
      }
      y = n_("stack", relax::Tuple(outputs), 0);
    }
    return {reverse ? Reversed(y) : y, state};
  }
  Node& n_;
  int64_t gates_, directions_ = 1;
  bool has_cell_, is_quantized_, batch_first_ = false, reverse_first_ = false;
  size_t per_direction_ = 0;
  std::optional<double> clip_;
  std::optional<Expr> lengths_;
  std::vector<Activation> activations_;
  Expr x_;
};
Expr AddIf(Node& n, const Expr& a, const Expr& b) { return b.defined() ? n("add", a, b) : a; }

Outputs ConvertRNN(Node& n) {
  Recurrent net(n, 1, {"Tanh"}, false);
  return net.Run([&](const auto& d, const Expr& gates, const auto& s) {
    Expr sum = n("add", gates, AddIf(n, net.Times(s.h, d.r), d.bias_r));
    return Recurrent::State{d.act[0](net.Clipped(sum)), {}};
  });
}
Outputs ConvertGRU(Node& n) {
  bool linear = n.Int("linear_before_reset", 0) != 0;
  Recurrent net(n, 3, {"Sigmoid", "Tanh"}, false);
  return net.Run([&](const auto& d, const Expr& gates, const auto& s) {
    Expr from_h = AddIf(n, net.Times(s.h, d.r), d.bias_r);
    auto gate = [&](int64_t i) {
      return d.act[0](net.Clipped(n("add", net.Gate(gates, i), net.Gate(from_h, i))));
    };
    Expr z = gate(0), r = gate(1), part;
    if (linear) {
      part = n("multiply", r, net.Gate(from_h, 2));
    } else {
      part = n("matmul", n("multiply", r, s.h), net.Gate(d.r.data, 2));
      if (d.bias_r.defined()) part = n("add", part, net.Gate(d.bias_r, 2));
    }
    Expr h = d.act[1](net.Clipped(n("add", net.Gate(gates, 2), part)));
    Expr one = n.Scalar(1, Node::TypeOf(h));
    Expr mixed = n("add", n("multiply", n("subtract", one, z), h), n("multiply", z, s.h));
    return Recurrent::State{mixed, {}};
  });
}
template <bool is_quantized>
Outputs ConvertLSTM(Node& n) {
  bool coupled = n.Int("input_forget", 0) != 0;
  Recurrent net(n, 4, {"Sigmoid", "Tanh", "Tanh"}, true, is_quantized);
  return net.Run([&](const auto& d, const Expr& gates, const auto& s) {
    Expr sum = n("add", gates, AddIf(n, net.Times(s.h, d.r), d.bias_r));
    // Gates are in the order input, output, forget, cell; peepholes input, output, forget.
    auto gate = [&](int64_t i, const Expr& cell) {
      Expr e = net.Gate(sum, i);
      if (d.peepholes.defined()) e = n("add", e, n("multiply", net.Gate(d.peepholes, i), cell));
      return d.act[0](net.Clipped(e));
    };
    Expr i = gate(0, s.c);
    Expr f = coupled ? n("subtract", n.Scalar(1, Node::TypeOf(i)), i) : gate(2, s.c);
    Expr c = d.act[1](net.Clipped(net.Gate(sum, 3)));
    Expr cell = n("add", n("multiply", f, s.c), n("multiply", i, c));
    Expr o = gate(1, cell);
    return Recurrent::State{n("multiply", o, d.act[2](cell)), cell};
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"GRU", &ConvertGRU},
      {"LSTM", &ConvertLSTM<false>},
      {"DynamicQuantizeLSTM", &ConvertLSTM<true>, "com.microsoft"},
      {"RNN", &ConvertRNN},
  });
}

}  // namespace tvm::frontend::onnx
