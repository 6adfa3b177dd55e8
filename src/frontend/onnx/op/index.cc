// SPDX-License-Identifier: Apache-2.0
// Operators that read and write at indices which are data, sort and search.
#include "frontend/onnx/op/op.h"

namespace tvm::frontend::onnx {
namespace {
/// Indices that are known not to count from the end are taken as they are.
Expr PlainIndices(Node& n, size_t i, const PrimExpr& dim) {
  Expr indices = n.In(i);
  if (const Known* known = n.KnownOf(i)) {
    bool plain = std::all_of(known->elements.begin(), known->elements.end(),
                             [](const PrimExpr& e) { return AsConstInt(e).value_or(-1) >= 0; });
    if (plain) return indices;
  }
  return FromEnd(n, indices, dim);
}
Outputs ConvertGather(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  return n("take", x, PlainIndices(n, 1, Node::Shape(x)[axis]), axis);
}
Outputs ConvertGatherElements(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  return n("gather_elements", x, PlainIndices(n, 1, Node::Shape(x)[axis]), axis);
}
/// Indices whose last axis goes over the axes of `shape`, counted from the front.
Expr PlainTuples(Node& n, const Expr& indices, const Dims& shape) {
  Te te(n);
  te::Tensor t = te(n.Cast(indices, DataType::Int(64)));
  Dims dims = te(shape);
  return ComputeElements(n, "from_end", te, t->shape, [&](const Index& i) -> PrimExpr {
    PrimExpr at = topi::At(t, i), dim = Num(0);
    for (size_t d = dims.size(); d-- > 0;)
      dim = tir::Select(equal(i.back(), Num(static_cast<int64_t>(d))), dims[d], dim);
    return tir::Select(at < Num(0), at + dim, at);
  });
}
Outputs ConvertGatherND(Node& n) {
  Expr x = n.In(0), indices = n.In(1);
  int64_t batch = n.Int("batch_dims", 0);
  Dims shape = Node::Shape(x);
  Dims rest(shape.begin() + std::min<int64_t>(batch, Node::Rank(x)), shape.end());
  return n("gather_nd", x, PlainTuples(n, indices, rest), batch);
}
std::string Reduction(Node& n) {
  std::string how = n.Str("reduction", "none");
  return how == "none" ? "update" : how;
}
Outputs ConvertScatterElements(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", 0), Node::Rank(x));
  Expr indices = PlainIndices(n, 1, Node::Shape(x)[axis]);
  return n("scatter_elements", x, indices, n.In(2), axis, Reduction(n));
}
Outputs ConvertScatterND(Node& n) {
  Expr x = n.In(0);
  return n("scatter_nd", x, PlainTuples(n, n.In(1), Node::Shape(x)), n.In(2), Reduction(n));
}
Outputs ConvertOneHot(Node& n) {
  Expr indices = n.Cast(n.In(0), DataType::Int(64)), values = n.In(2);
  PrimExpr depth;
  if (auto known = n.ScalarOf(1)) {
    depth = n.Simplify(tvm::cast(DataType::Int(64), *known));
  } else {
    Expr one = n.Fitted(n.In(1), Dims(Node::Rank(n.In(1)), Num(1)));
    depth = n.RuntimeIntegers(n.Cast(one, DataType::Int(64))).at(0);
  }
  int64_t axis = n.Axis(n.Int("axis", -1), Node::Rank(indices) + 1);
  Te te(n);
  te::Tensor t = te(indices), v = te(values);
  PrimExpr size = te(depth);
  Dims shape = t->shape;
  shape.insert(shape.begin() + axis, size);
  return ComputeElements(n, "one_hot", te, shape, [&](Index i) -> PrimExpr {
    PrimExpr at = i[axis];
    i.erase(i.begin() + axis);
    PrimExpr index = topi::At(t, i);
    PrimExpr hit = equal(index, at) || equal(index + size, at);
    return tir::Select(hit, v(Num(1)), v(Num(0)));
  });
}
/// The indices (rank, count) of the elements that are not 0.
Expr NonZero(Node& n, const Expr& x) {
  relax::BlockBuilder builder = n.importer.builder();
  Expr found = builder->Emit(relax::CallOperator("relax.nonzero", {x}), "lv");
  Dims shape{Num(Node::Rank(x)), n.importer.FreshDim("count")};
  return builder->EmitMatchCast(found, relax::TensorStructInfo(shape, DataType::Int(64)), "lv");
}
Outputs ConvertNonZero(Node& n) { return NonZero(n, n.In(0)); }
Outputs ConvertTopK(Node& n) {
  Expr x = n.In(0);
  int64_t axis = n.Axis(n.Int("axis", -1), Node::Rank(x));
  bool largest = n.Int("largest", 1) != 0;
  n.Int("sorted", 1);  // sorted ones are good where any order is
  PrimExpr k = n.Integer(1);
  auto count = AsConstInt(k);
  if (count && *count > 0) {
    Expr both = n("topk", x, *count, axis, "both", largest, DataType::Int(64));
    return std::vector<Expr>{n.Item(both, 0), n.Item(both, 1)};
  }
  Expr both = n("topk", x, 0, axis, "both", largest, DataType::Int(64));
  std::vector<Expr> results;
  for (int64_t i : {0, 1}) {
    results.push_back(n("strided_slice", n.Item(both, i), List({axis}), Dims{Num(0)}, Dims{k},
                        Dims{Num(1)}, true));
  }
  return results;
}
Outputs ConvertUnique(Node& n) {
  Expr x = n.In(0);
  bool sorted = n.Int("sorted", 1) != 0;
  bool wanted[] = {true, n.Wants(1), n.Wants(2), n.Wants(3)};
  Any axis = nullptr;
  if (n.HasAttr("axis")) {
    axis = n.Axis(n.Int("axis"), Node::Rank(x));
  } else {
    x = n("flatten", x);
  }
  Expr all = n("unique", x, sorted, wanted[1], wanted[2], wanted[3], axis);
  if (!wanted[1] && !wanted[2] && !wanted[3]) return all;
  std::vector<Value> results;
  for (int64_t i = 0, item = 0; i < 4; ++i)
    results.push_back(wanted[i] ? Value(n.Item(all, item++)) : Value());
  return results;
}
Outputs ConvertCompress(Node& n) {
  Expr x = n.In(0);
  int64_t axis = 0;
  if (n.HasAttr("axis")) {
    axis = n.Axis(n.Int("axis"), Node::Rank(x));
  } else {
    x = n("flatten", x);
  }
  Expr chosen = NonZero(n, n.In(1));
  return n("take", x, n.Reshape(chosen, {Node::Shape(chosen)[1]}), axis);
}
/// Writes `update` into a cache along an axis, at a place for each batch.
Outputs ConvertTensorScatter(Node& n) {
  Expr past = n.In(0), update = n.In(1);
  int64_t axis = n.Axis(n.Int("axis", -2), Node::Rank(past));
  std::string mode = n.Str("mode", "linear");
  if (mode != "linear" && mode != "circular") n.Fail("mode to be linear or circular", mode);
  Te te(n);
  te::Tensor old = te(past), fresh = te(update);
  std::optional<te::Tensor> where;
  if (n.Has(2)) where = te(n.Cast(n.In(2), DataType::Int(64)));
  PrimExpr size = old->shape[axis], length = fresh->shape[axis];
  return ComputeElements(n, "tensor_scatter", te, old->shape, [&](const Index& i) {
    PrimExpr at = i[axis] - (where ? (*where)(i[0]) : Num(0));
    if (mode == "circular") at = floormod(at, size);
    Index from = i;
    from[axis] = at;
    return if_then_else(at >= Num(0) && at < length, topi::At(fresh, from), topi::At(old, i));
  });
}
}  // namespace

TVM_REGISTER() {
  AddConverters({
      {"Compress", &ConvertCompress},
      {"Gather", &ConvertGather},
      {"GatherElements", &ConvertGatherElements},
      {"GatherND", &ConvertGatherND},
      {"NonZero", &ConvertNonZero},
      {"OneHot", &ConvertOneHot},
      {"Scatter", &ConvertScatterElements},
      {"ScatterElements", &ConvertScatterElements},
      {"ScatterND", &ConvertScatterND},
      {"TensorScatter", &ConvertTensorScatter},
      {"TopK", &ConvertTopK},
      {"Unique", &ConvertUnique},
  });
}

}  // namespace tvm::frontend::onnx
