// SPDX-License-Identifier: Apache-2.0
// Operators that combine elements along axes, and running ones.
#include "frontend/onnx/op/axes.h"
#include "tvm/topi/reduction.h"

namespace tvm::frontend::onnx {
namespace {
/// What is reduced along which axes. Axes that only running tells are set apart.
class Reduction {
 public:
  explicit Reduction(Node& n) : n_(n), x_(n.In(0)), shape_(Node::Shape(x_)) {
    keep_ = n.Int("keepdims", 1) != 0;
    bool noop = n.Int("noop_with_empty_axes", 0) != 0;
    int64_t rank = Node::Rank(x_);
    if (n.Has(1)) {
      if (auto given = n.TryConstInts(1)) {
        axes_ = *given;
      } else {
        named_ = ReadAxes(n, 1, rank);
        if (auto count = n.LengthOf(1)) {
          stay_ = rank - *count;
        } else {
          stay_ = n.DeclaredRank(0);
          PrimExpr none = equal(Node::Shape(n.In(1))[0], Num(0));
          for (PrimExpr& named : named_->named) named = noop ? named : named || none;
        }
        x_ = NamedAxesApart(n, x_, named_->named);
        for (int64_t i = 0; i < rank; ++i) axes_.push_back(rank + i);
        return;
      }
    }
    if (axes_.empty() && !noop) {
      for (int64_t i = 0; i < rank; ++i) axes_.push_back(i);
    }
    for (int64_t& a : axes_) a = n.Axis(a, rank, "axes");
  }
  const Expr& input() const { return x_; }
  bool is_noop() const { return axes_.empty(); }
  Array<int64_t> axes() const { return List(axes_); }
  Expr operator()(const char* op, const Expr& e) const {
    if (is_noop()) return e;
    if (!named_) return n_(op, e, axes(), keep_);
    return Finish(n_(op, e, axes(), false));
  }
  /// The result in its shape, from one without the axes.
  Expr Finish(const Expr& e) const {
    if (named_ && !keep_) {
      if (!stay_) n_.Fail("axes whose number is known", "a vector of any length");
      return n_.Reshape(e, DimsThatStay(n_, shape_, *named_, *stay_));
    }
    if (!keep_ || is_noop() || named_) return e;
    Dims dims = shape_;
    for (int64_t axis : axes_) dims.Set(axis, Num(1));
    return n_.Reshape(e, dims);
  }

 private:
  Node& n_;
  Expr x_;
  Dims shape_;
  bool keep_ = true;
  std::vector<int64_t> axes_;
  std::optional<RuntimeAxes> named_;
  std::optional<int64_t> stay_;  // how many axes are not named
};
template <Text op>
Outputs Reduce(Node& n) {
  Reduction r(n);
  if (!Node::TypeOf(r.input()).is_bool()) return r(op.value, r.input());
  return n.Cast(r(op.value, n.Cast(r.input(), DataType::UInt(8))), DataType::Bool());
}
Outputs ConvertReduceMean(Node& n) {
  Reduction r(n);
  DataType t = Node::TypeOf(r.input());
  if (t.is_float()) return r("mean", r.input());
  return n.Cast(r("mean", n.Cast(r.input(), DataType::Float(64))), t);
}
Outputs ConvertReduceL1(Node& n) {
  Reduction r(n);
  return r("sum", n("abs", r.input()));
}
Expr SumOfSquares(Node& n) {
  Reduction r(n);
  return r("sum", n("multiply", r.input(), r.input()));
}
Outputs ConvertReduceSumSquare(Node& n) { return SumOfSquares(n); }
/// A function of real numbers, of integers by way of them.
template <Text op>
Expr AsReal(Node& n, const Expr& x) {
  DataType t = Node::TypeOf(x);
  if (t.is_float()) return n(op.value, x);
  return n.Cast(n(op.value, n.Cast(x, DataType::Float(64))), t);
}
Outputs ConvertReduceL2(Node& n) { return AsReal<"sqrt">(n, SumOfSquares(n)); }
Outputs ConvertReduceLogSum(Node& n) { return AsReal<"log">(n, Reduce<"sum">(n)[0].expr); }
/// max + log(sum(exp(x - max))), where an infinite maximum must not make NaN of its difference.
Outputs ConvertReduceLogSumExp(Node& n) {
  Reduction r(n);
  DataType t = Node::TypeOf(r.input());
  Expr x = t.is_float() ? r.input() : n.Cast(r.input(), DataType::Float(64));
  if (r.is_noop()) return n.Cast(x, t);
  Expr most = n("max", x, r.axes(), true);
  Expr zero = n.Scalar(0, Node::TypeOf(x));
  Expr finite = n("where", n("isfinite", most), most, zero);
  Expr sum = n("sum", n("exp", n("subtract", x, finite)), r.axes(), true);
  Expr result = n("squeeze", n("add", n("log", sum), finite), r.axes());
  return n.Cast(r.Finish(result), t);
}
template <bool is_max>
Outputs ArgReduce(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  bool keep = n.Int("keepdims", 1) != 0, last = n.Int("select_last_index", 0) != 0;
  if (!last) return n(is_max ? "argmax" : "argmin", x, axis, keep);
  Te te(n);
  auto arg = is_max ? &topi::argmax : &topi::argmin;
  return te.Done(is_max ? "argmax" : "argmin",
                 arg(te(x), Any(axis), keep, last, DataType::Int(64)));
}
template <Text op>
Outputs Running(Node& n) {
  Expr x = n.In(0);
  auto given = n.TryConstInts(1);
  std::optional<RuntimeAxes> named;
  Dims shape = Node::Shape(x);
  if (!given) {
    named = ReadAxes(n, 1, Node::Rank(x), 1);
    x = NamedAxesLast(n, x, *named);
  }
  int64_t axis = n.Axis(given ? given->at(0) : -1, Node::Rank(x));
  bool exclusive = n.Int("exclusive", 0) != 0, reverse = n.Int("reverse", 0) != 0;
  if (reverse) x = n("flip", x, axis);
  x = n(op.value, x, axis, Node::TypeOf(x), exclusive);
  if (reverse) x = n("flip", x, axis);
  return named ? NamedAxesBack(n, x, *named, shape) : x;
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"ArgMax", &ArgReduce<true>},
      {"ArgMin", &ArgReduce<false>},
      {"CumProd", &Running<"cumprod">},
      {"CumSum", &Running<"cumsum">},
      {"ReduceL1", &ConvertReduceL1},
      {"ReduceL2", &ConvertReduceL2},
      {"ReduceLogSum", &ConvertReduceLogSum},
      {"ReduceLogSumExp", &ConvertReduceLogSumExp},
      {"ReduceMax", &Reduce<"max">},
      {"ReduceMean", &ConvertReduceMean},
      {"ReduceMin", &Reduce<"min">},
      {"ReduceProd", &Reduce<"prod">},
      {"ReduceSum", &Reduce<"sum">},
      {"ReduceSumSquare", &ConvertReduceSumSquare},
  });
}

}  // namespace tvm::frontend::onnx
