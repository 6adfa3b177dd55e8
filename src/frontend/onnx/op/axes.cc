// SPDX-License-Identifier: Apache-2.0
// Axes that only running the program tells: places are expressions of them.
#include "frontend/onnx/op/axes.h"

namespace tvm::frontend::onnx {

PrimExpr SelectSum(const std::vector<PrimExpr>& where, const std::vector<PrimExpr>& values) {
  PrimExpr sum = Num(0);
  for (size_t i = 0; i < where.size(); ++i) sum = sum + tir::Select(where[i], values[i], Num(0));
  return sum;
}
std::vector<PrimExpr> IsAxis(const std::vector<PrimExpr>& axes, int64_t i, int64_t rank) {
  std::vector<PrimExpr> is;
  for (const PrimExpr& a : axes) is.push_back(equal(a, Num(i)) || equal(a, Num(i - rank)));
  return is;
}
RuntimeAxes ReadAxes(Node& n, size_t input, int64_t rank, std::optional<int64_t> count) {
  // What fills up is no axis.
  std::vector<PrimExpr> given =
      count ? n.Integers(input, count) : n.IntegersUpTo(input, rank, rank);
  if (auto length = n.LengthOf(input)) count = length;
  RuntimeAxes axes;
  std::vector<PrimExpr> before{Num(0)};  // how many are named before each axis
  for (int64_t i = 0; i < rank; ++i) {
    PrimExpr named = const_false();
    for (const PrimExpr& is : IsAxis(given, i, rank)) named = named || is;
    axes.named.push_back(n.Simplify(named));
    before.push_back(before.back() + tir::Select(named, Num(1), Num(0)));
  }
  PrimExpr others = Num(rank) - (count ? Num(*count) : before.back());
  for (int64_t i = 0; i < rank; ++i)
    axes.place.push_back(
        n.Simplify(tir::Select(axes.named[i], others + before[i], Num(i) - before[i])));
  return axes;
}
namespace {
std::vector<PrimExpr> IsPlace(const std::vector<PrimExpr>& place, size_t j) {
  std::vector<PrimExpr> is;
  for (const PrimExpr& p : place) is.push_back(equal(p, Num(static_cast<int64_t>(j))));
  return is;
}
}  // namespace
Dims DimsThatStay(Node& n, const Dims& shape, const RuntimeAxes& axes, int64_t count) {
  Dims dims;
  for (int64_t j = 0; j < count; ++j)
    dims.push_back(n.Simplify(SelectSum(IsPlace(axes.place, j), {shape.begin(), shape.end()})));
  return dims;
}
Expr NamedAxesApart(Node& n, const Expr& x, const std::vector<PrimExpr>& named) {
  Te te(n);
  te::Tensor t = te(x);
  std::vector<PrimExpr> is = te(named);
  size_t rank = is.size();
  Dims shape;
  for (size_t i = 0; i < rank; ++i) shape.push_back(tir::Select(is[i], Num(1), t->shape[i]));
  for (size_t i = 0; i < rank; ++i) shape.push_back(tir::Select(is[i], t->shape[i], Num(1)));
  Expr apart = ComputeElements(n, "move_axes", te, shape, [&](const Index& i) {
    Index from;
    for (size_t k = 0; k < rank; ++k) from.push_back(i[k] + i[rank + k]);  // one of them is 0
    return topi::At(t, from);
  });
  // A copy whose sizes are plain variables: kernels that reduce over extents such as these above
  // leave their results unwritten where one of them is 0.
  if (rank == 0) return apart;
  Expr items = n.importer.CallRuntime("sequence.make", {apart});
  return n.importer.CallRuntime(
      "sequence.concat", {items, relax::PrimValue(Num(0)), relax::PrimValue(IntImm::Bool(false))},
      relax::TensorStructInfo(Node::TypeOf(x), static_cast<int64_t>(2 * rank)));
}
Expr NamedAxesLast(Node& n, const Expr& x, const RuntimeAxes& axes) {
  Te te(n);
  te::Tensor t = te(x);
  std::vector<PrimExpr> place = te(axes.place), dims(t->shape.begin(), t->shape.end());
  Dims shape;
  for (size_t j = 0; j < dims.size(); ++j) {
    bool stays = IsConstInt(place[j], static_cast<int64_t>(j));
    shape.push_back(stays ? dims[j] : n.Simplify(SelectSum(IsPlace(place, j), dims)));
  }
  return ComputeElements(n, "move_axes", te, shape, [&](const Index& i) {
    Index from;
    for (const PrimExpr& p : place) {
      std::vector<PrimExpr> is;
      for (size_t j = 0; j < i.size(); ++j) is.push_back(equal(p, Num(static_cast<int64_t>(j))));
      from.push_back(SelectSum(is, i));
    }
    return topi::At(t, from);
  });
}
Expr NamedAxesBack(Node& n, const Expr& x, const RuntimeAxes& axes, const Dims& shape) {
  Te te(n);
  te::Tensor t = te(x);
  std::vector<PrimExpr> place = te(axes.place);
  return ComputeElements(n, "move_axes", te, te(shape), [&](const Index& i) {
    Index from;
    for (size_t j = 0; j < i.size(); ++j) from.push_back(SelectSum(IsPlace(place, j), i));
    return topi::At(t, from);
  });
}

}  // namespace tvm::frontend::onnx
