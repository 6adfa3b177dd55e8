// SPDX-License-Identifier: Apache-2.0
// Pools.
#include "frontend/onnx/op/window.h"

namespace tvm::frontend::onnx {
namespace {
/// The elements of a window, reduced: `element(place, inside)` for each of its places.
class WindowReducer {
 public:
  WindowReducer(Node& n, Te& te, const te::Tensor& x, const Window& w) : x_(x), w_(w) {
    shape = {x->shape[0], x->shape[1]};
    for (size_t i = 0; i < w.size(); ++i) shape.push_back(te(WindowCount(n, w, i, Outer(n, i))));
    for (size_t i = 0; i < w.size(); ++i) {
      first_.push_back(te(w.before[i]));
      last_.push_back(te(w.after[i]));
    }
  }
  Dims shape;
  std::vector<te::IterVar> axes() const {
    std::vector<te::IterVar> axes;
    for (size_t i = 0; i < w_.size(); ++i)
      axes.push_back(topi::Along(Num(w_.kernel[i]), "k" + std::to_string(i)));
    return axes;
  }
  /// Where the window of `at` has its element `k`, and whether that is in the data.
  std::pair<Index, PrimExpr> Place(const Index& at, const std::vector<te::IterVar>& k) const {
    Index place(at.begin(), at.begin() + 2);
    PrimExpr inside = const_true();
    for (size_t i = 0; i < w_.size(); ++i) {
      PrimExpr p = at[i + 2] * Num(w_.strides[i]) + k[i]->var * Num(w_.dilations[i]) - first_[i];
      place.push_back(p);
      inside = inside && p >= Num(0) && p < x_->shape[i + 2];
    }
    return {place, inside};
  }
  /// Whether a place is in the data or its padding: windows of ceil_mode reach further.
  PrimExpr InPadding(const Index& place) const {
    PrimExpr inside = const_true();
    for (size_t i = 0; i < w_.size(); ++i)
      inside = inside && place[i + 2] < x_->shape[i + 2] + last_[i];
    return inside;
  }

 private:
  PrimExpr Outer(Node& n, size_t i) const { return Node::Shape(n.In(0))[i + 2]; }
  te::Tensor x_;
  const Window& w_;
  std::vector<PrimExpr> first_, last_;
};
Array<te::IterVar> AsArray(const std::vector<te::IterVar>& axes) {
  return {axes.begin(), axes.end()};
}

/// The sum over each window of `element` where it is inside.
template <class F>
te::Tensor SumOverWindows(const te::Tensor& x, const WindowReducer& r, const char* name,
                          F element) {
  return topi::Compute(
      r.shape,
      [&](const Index& at) {
        auto k = r.axes();
        auto [place, inside] = r.Place(at, k);
        return te::sum(if_then_else(inside, element(topi::At(x, place)), MakeZero(x->dtype)),
                       AsArray(k));
      },
      name, topi::kCommReduce);
}

Outputs ConvertMaxPool(Node& n) {
  Expr x = n.In(0);
  Window w = ReadWindow(n, x);
  bool column_major = n.Int("storage_order", 0) != 0;
  auto pads = w.ConstPads();
  if (!n.Wants(1) && pads && w.size() >= 1 && w.size() <= 3) {
    std::string name = "nn.max_pool" + std::to_string(w.size()) + "d";
    return n(name.c_str(), x, List(w.kernel), List(w.strides), List(*pads), List(w.dilations),
             w.ceil_mode);
  }
  Te te(n);
  te::Tensor t = te(x);
  WindowReducer r(n, te, t, w);
  PrimExpr lowest = t->dtype.is_float() ? neg(infinity(t->dtype)) : min_value(t->dtype);
  te::Tensor most = topi::Compute(
      r.shape,
      [&](const Index& at) {
        auto k = r.axes();
        auto [place, inside] = r.Place(at, k);
        return te::max(if_then_else(inside, topi::At(t, place), lowest), AsArray(k), {lowest});
      },
      "max_pool", topi::kCommReduce);
  if (!n.Wants(1)) return te.Done("max_pool", most);
  // The index counts in the whole tensor; of equal elements the first is meant.
  PrimExpr none = max_value(DataType::Int(64));
  te::Tensor where = topi::Compute(
      r.shape,
      [&](const Index& at) {
        auto k = r.axes();
        auto [place, inside] = r.Place(at, k);
        Dims order = t->shape;
        Index numbered = place;
        if (column_major) {
          std::reverse(numbered.begin() + 2, numbered.end());
          for (size_t i = 0; i < w.size(); ++i) order.Set(i + 2, t->shape[t->shape.size() - 1 - i]);
        }
        PrimExpr is_most =
            if_then_else(inside, equal(topi::At(t, place), topi::At(most, at)), const_false());
        return te::min(tir::Select(is_most, topi::Ravel(numbered, order), none), AsArray(k),
                       {none});
      },
      "max_pool_index", topi::kCommReduce);
  return te.Done("max_pool", Array<te::Tensor>{most, where});
}
Outputs ConvertAveragePool(Node& n) {
  Expr x = n.In(0);
  Window w = ReadWindow(n, x);
  bool include = n.Int("count_include_pad", 0) != 0;
  auto pads = w.ConstPads();
  if (pads && w.size() >= 1 && w.size() <= 3 && !w.ceil_mode) {
    std::string name = "nn.avg_pool" + std::to_string(w.size()) + "d";
    return n(name.c_str(), x, List(w.kernel), List(w.strides), List(*pads), List(w.dilations),
             false, include);
  }
  Te te(n);
  te::Tensor t = te(x);
  WindowReducer r(n, te, t, w);
  te::Tensor sum = SumOverWindows(t, r, "pool_sum", [](PrimExpr e) { return e; });
  te::Tensor count = topi::Compute(
      r.shape,
      [&](const Index& at) {
        auto k = r.axes();
        auto [place, inside] = r.Place(at, k);
        PrimExpr counted = include ? r.InPadding(place) : inside;
        return te::sum(tir::Select(counted, Num(t->dtype, 1), Num(t->dtype, 0)), AsArray(k));
      },
      "pool_count", topi::kCommReduce);
  return te.Done("avg_pool", topi::Of(&topi::divide, sum, count));
}
Outputs ConvertLpPool(Node& n) {
  Expr x = n.In(0);
  Window w = ReadWindow(n, x);
  double p = static_cast<double>(n.Int("p", 2));
  Te te(n);
  te::Tensor t = te(x);
  WindowReducer r(n, te, t, w);
  te::Tensor sum = SumOverWindows(t, r, "pool_sum", [&](PrimExpr e) {
    return p == 2 ? e * e : pow(tvm::abs(e), Num(e.dtype(), p));
  });
  return te.Done("lp_pool", topi::Compute(
                                sum->shape,
                                [&](const Index& i) {
                                  PrimExpr e = topi::At(sum, i);
                                  return p == 2 ? sqrt(e) : pow(e, Num(e.dtype(), 1 / p));
                                },
                                "lp_pool", topi::kElementWise));
}
std::vector<int64_t> SpatialAxes(Node& n, const Expr& x) {
  std::vector<int64_t> axes;
  if (Node::Rank(x) < 3) n.Fail("data (N, C, …)", "rank " + std::to_string(Node::Rank(x)));
  for (int64_t i = 2; i < Node::Rank(x); ++i) axes.push_back(i);
  return axes;
}
Outputs ConvertGlobalAveragePool(Node& n) {
  Expr x = n.In(0);
  auto axes = SpatialAxes(n, x);
  if (axes.size() != 2) return n("mean", x, List(axes), true);
  return n("nn.adaptive_avg_pool2d", x, List({1, 1}));
}
Outputs ConvertGlobalMaxPool(Node& n) {
  Expr x = n.In(0);
  return n("max", x, List(SpatialAxes(n, x)), true);
}
Outputs ConvertGlobalLpPool(Node& n) {
  Expr x = n.In(0);
  double p = static_cast<double>(n.Int("p", 2));
  DataType t = Node::TypeOf(x);
  Expr powers = n("power", n("abs", x), n.Scalar(p, t));
  return n("power", n("sum", powers, List(SpatialAxes(n, x)), true), n.Scalar(1 / p, t));
}
/// Elements back to where MaxPool found them, zeros elsewhere.
Outputs ConvertMaxUnpool(Node& n) {
  Expr x = n.In(0), indices = n.In(1);
  Window w = ReadWindow(n, x);
  Dims shape = Node::Shape(x), pooled = shape;
  for (size_t i = 0; i < w.size(); ++i) {
    pooled.Set(i + 2, n.Simplify((shape[i + 2] - Num(1)) * Num(w.strides[i]) + Num(w.kernel[i]) -
                                 w.before[i] - w.after[i]));
  }
  Dims out = n.Has(2) ? DimsOf(n.Integers(2, Node::Rank(x))) : pooled;
  // The indices count in the smaller tensor, of which a larger output is an extension.
  Dims flat{n.Simplify(ProductOf(pooled))}, few{n.Simplify(ProductOf(shape))};
  Expr zeros = n("zeros", relax::ShapeExpr(flat), Node::TypeOf(x));
  Expr spread = n("scatter_elements", zeros, n.Reshape(indices, few), n.Reshape(x, few), 0);
  Expr small = n.Reshape(spread, pooled);
  if (!n.Has(2)) return small;
  Te te(n);
  te::Tensor t = te(small);
  return ComputeElements(n, "max_unpool", te, te(out), [&](const Index& i) {
    PrimExpr inside = const_true();
    for (size_t d = 0; d < i.size(); ++d) inside = inside && i[d] < t->shape[d];
    return if_then_else(inside, topi::At(t, i), MakeZero(t->dtype));
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"AveragePool", &ConvertAveragePool},
      {"GlobalAveragePool", &ConvertGlobalAveragePool},
      {"GlobalLpPool", &ConvertGlobalLpPool},
      {"GlobalMaxPool", &ConvertGlobalMaxPool},
      {"LpPool", &ConvertLpPool},
      {"MaxPool", &ConvertMaxPool},
      {"MaxUnpool", &ConvertMaxUnpool},
  });
}

}  // namespace tvm::frontend::onnx
