// SPDX-License-Identifier: Apache-2.0
// LSTM: a scan over time whose state is what is shown and what is remembered.
#include <array>

#include "topi/shape.h"
#include "tvm/ir/callback.h"
#include "tvm/topi/transform.h"

namespace tvm::topi::nn {
using namespace tir;
namespace {
constexpr const char* kOp = "lstm";

/// A function of an element: one that the user gives, or the usual one.
struct Activation {
  const Optional<ffi::Function>& given;
  PrimExpr (*usual)(PrimExpr, Optional<Span>);
  PrimExpr operator()(const PrimExpr& x) const {
    return given ? CallBack(given.value(), x).cast<PrimExpr>() : usual(x, std::nullopt);
  }
};
void CheckShape(const char* what, const Tensor& t, const Shape& expected) {
  CheckRank(kOp, what, t, expected.size());
  for (size_t d = 0; d < expected.size(); ++d) {
    if (DifferentDim(t->shape[d], expected[d]))
      Complain(kOp, std::string(what) + " shaped " + Text(expected), Text(t->shape));
  }
}
void CheckShape(const char* what, const Optional<Tensor>& t, const Shape& expected) {
  if (t) CheckShape(what, t.value(), expected);
}
/// Where the rows of the input, forget, cell (G) and output gates begin, in numbers of gates.
std::array<int64_t, 4> PlacesOf(const String& layout) {
  std::array<int64_t, 4> places{};
  std::string text = layout, gates = "IFGO";
  for (size_t k = 0; k < 4; ++k) {
    size_t at = text.find(gates[k]);
    if (text.size() != 4 || at == std::string::npos)
      Complain(kOp, "an order of I, F, G and O as weight_layout", '"' + text + '"');
    places[k] = static_cast<int64_t>(at);
  }
  return places;
}
/// The sum of products of the last dimensions of a tensor at `row` and of weights (out, in).
PrimExpr Product(const Tensor& x, Index row, const Tensor& weights, const PrimExpr& out) {
  IterVar k = Along(weights->shape[1], "k");
  row.push_back(k->var);
  return te::sum(At(x, row) * weights(out, k->var), {k});
}

Array<Tensor> Lstm(Tensor xs, Tensor wi, Tensor wh, Optional<Tensor> bi, Optional<Tensor> bh,
                   Optional<Tensor> h_init, Optional<Tensor> c_init, Optional<Tensor> proj,
                   Optional<Tensor> p_i, Optional<Tensor> p_f, Optional<Tensor> p_o,
                   Optional<ffi::Function> f_act, Optional<ffi::Function> g_act,
                   Optional<ffi::Function> h_act, bool reverse, String weight_layout) {
  CheckRank(kOp, "inputs (time, batch, channels)", xs, 3);
  CheckRank(kOp, "weights of inputs", wi, 2);
  CheckRank(kOp, "weights of states", wh, 2);
  const PrimExpr &steps = xs->shape[0], &batch = xs->shape[1], &rows = wi->shape[0];
  PrimExpr one = MakeConst(steps.dtype(), 1), four = MakeConst(rows.dtype(), 4);
  if (auto n = AsConstInt(rows); n && *n % 4 != 0)
    Complain(kOp, "rows of four gates in the weights", Text(wi->shape));
  PrimExpr hidden = Simplified(floordiv(rows, four)), shown = hidden;
  if (proj) {
    CheckRank(kOp, "a projection", proj.value(), 2);
    shown = proj.value()->shape[0];
    CheckShape("a projection", proj, {shown, hidden});
  }
  CheckShape("weights of inputs", wi, {rows, xs->shape[2]});
  CheckShape("weights of states", wh, {rows, shown});
  for (const auto& bias : {bi, bh}) CheckShape("a bias", bias, {rows});
  for (const auto& peephole : {p_i, p_f, p_o}) CheckShape("a peephole", peephole, {batch, hidden});
  CheckShape("a first hidden state", h_init, {batch, shown});
  CheckShape("a first cell state", c_init, {batch, hidden});
  const auto [in, forget, cell, out] = PlacesOf(weight_layout);
  DataType dtype = xs->dtype;

  // What does not depend on the state, of all times at once.
  Tensor products = Compute(
      {steps, batch, rows},
      [&](const Index& i) {
        PrimExpr time = reverse ? steps - one - i[0] : i[0];
        return Product(xs, {time, i[1]}, wi, i[2]);
      },
      "lstm_inputs", kCommReduce);
  Tensor inputs = products;
  if (bi || bh) {
    inputs = Compute(
        products->shape,
        [&](const Index& i) {
          PrimExpr sum = At(products, i);
          if (bi) sum = sum + bi.value()(i[2]);
          if (bh) sum = sum + bh.value()(i[2]);
          return sum;
        },
        "lstm_biased", kBroadcast);
  }
  // State t + 1 is that behind input t.
  PrimExpr times = Simplified(steps + one);
  auto first = [&](const Optional<Tensor>& init, const PrimExpr& size, const char* name) {
    return Compute(
        {one, batch, size},
        [&](const Index& i) { return init ? init.value()(i[1], i[2]) : MakeZero(dtype); }, name);
  };
  Tensor h = te::placeholder({times, batch, shown}, dtype, "hidden_state"),
         c = te::placeholder({times, batch, hidden}, dtype, "cell_state");
  auto step = [&](const PrimExpr& size, const char* name, const IndexFn& element,
                  const char* tag = kInjective) {
    return Compute({times, batch, size}, element, name, tag);
  };
  Tensor recurrent = step(
      rows, "lstm_recurrent",
      [&](const Index& i) { return Product(h, {i[0] - one, i[1]}, wh, i[2]); }, kCommReduce);
  Activation gate_of{f_act, &tvm::sigmoid}, cell_of{g_act, &tvm::tanh}, shown_of{h_act, &tvm::tanh};
  auto gate = [&](const Index& i, int64_t place, const Optional<Tensor>& peephole,
                  const PrimExpr& seen, const Activation& act) {
    PrimExpr row = Simplified(hidden * MakeConst(hidden.dtype(), place)) + i[2];
    PrimExpr sum = inputs(i[0] - one, i[1], row) + recurrent(i[0], i[1], row);
    return act(peephole ? sum + peephole.value()(i[1], i[2]) * seen : sum);
  };
  Tensor next_c = step(hidden, "lstm_cell", [&](const Index& i) {
    PrimExpr before = c(i[0] - one, i[1], i[2]);
    return gate(i, forget, p_f, before, gate_of) * before +
           gate(i, in, p_i, before, gate_of) * gate(i, cell, {}, before, cell_of);
  });
  Tensor next_h = step(hidden, "lstm_hidden", [&](const Index& i) {
    PrimExpr now = At(next_c, i);
    return gate(i, out, p_o, now, gate_of) * shown_of(now);
  });
  if (proj) {
    next_h = step(
        shown, "lstm_projected",
        [&, full = next_h](const Index& i) {
          return Product(full, {i[0], i[1]}, proj.value(), i[2]);
        },
        kCommReduce);
  }
  Array<Tensor> states =
      te::scan({first(h_init, shown, "first_hidden"), first(c_init, hidden, "first_cell")},
               {next_h, next_c}, {h, c}, {}, "lstm_scan");
  auto behind_first = [&](const Tensor& state, const char* name) {
    return Compute(
        {steps, batch, state->shape[2]},
        [&](const Index& i) { return state(i[0] + one, i[1], i[2]); }, name);
  };
  return {behind_first(states[0], "hidden_states"), behind_first(states[1], "cell_states")};
}

TVM_REGISTER() {
  Def("topi.nn.lstm", &Lstm,
      "The hidden and the cell states behind each input, in the order in which inputs are seen. Xs "
      "is (time, batch, channels), weights have the rows of four gates in the order weight_layout: "
      "input I, forget F, cell G, output O. proj makes what is shown of hidden states; p_i, p_f, "
      "p_o are peepholes (batch, hidden). f_act, g_act, h_act are functions of an expression, of "
      "gates, of the cell, and of what is shown: sigmoid, tanh, tanh.",
      Arg("Xs"), Arg("Wi"), Arg("Wh"), Arg("Bi", nullptr), Arg("Bh", nullptr),
      Arg("h_init", nullptr), Arg("c_init", nullptr), Arg("proj", nullptr), Arg("p_i", nullptr),
      Arg("p_f", nullptr), Arg("p_o", nullptr), Arg("f_act", nullptr), Arg("g_act", nullptr),
      Arg("h_act", nullptr), Arg("reverse", false), Arg("weight_layout", "IFGO"));
}
}  // namespace
}  // namespace tvm::topi::nn
