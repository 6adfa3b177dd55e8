// SPDX-License-Identifier: Apache-2.0
// Operators that read and write at indices which are data, sort and search.
#include "frontend/onnx/op/op.h"
#include "runtime/host_tensor.h"

namespace tvm::frontend::onnx {
namespace {
/// The first of constant indices of int64 that count up by one, within `dim`: exporters write them
/// for slices.
std::optional<int64_t> FirstOfRange(const Expr& indices, const PrimExpr& dim) {
  auto* constant = indices.as<relax::ConstantObj>();
  auto size = AsConstInt(dim);
  if (!constant || !size || DataType(constant->data.dtype()) != DataType::Int(64)) return {};
  runtime::Tensor host = runtime::HostTensor(constant->data);
  auto* data = static_cast<const int64_t*>(host.data_ptr());
  int64_t count = host.numel();
  if (count < 2 || data[0] < 0 || data[0] > *size - count) return {};
  for (int64_t i = 1; i < count; ++i) {
    if (data[i] != data[0] + i) return {};
  }
  return data[0];
}
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
  Dims shape = Node::Shape(x), places = Node::Shape(n.In(1));
  if (auto first = FirstOfRange(n.In(1), shape[axis])) {
    PrimExpr begin = Num(*first), count = n.Simplify(ProductOf(places)),
             end = n.Simplify(begin + count);
    if (!n.importer.builder()->analyzer()->CanProveEqual(count, shape[axis]))
      x = n("strided_slice", x, List({axis}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
    if (places.size() == 1) return x;
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, places.begin(), places.end());
    return n.Reshape(x, shape);
  }
  return n("take", x, PlainIndices(n, 1, shape[axis]), axis);
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
/// Indices whose tuples have that size, where they do not say theirs.
Expr WithTupleSize(Node& n, const Expr& indices, int64_t size) {
  Dims shape = Node::Shape(indices);
  if (shape.empty() || AsConstInt(shape.back()) || size < 0) return indices;
  shape.Set(static_cast<int64_t>(shape.size()) - 1, Num(size));
  return n.Fitted(indices, shape);
}
Outputs ConvertGatherND(Node& n) {
  Expr x = n.In(0), indices = n.In(1);
  int64_t batch = n.Int("batch_dims", 0);
  Dims shape = Node::Shape(x);
  if (auto rank = n.DeclaredRank(0))
    indices = WithTupleSize(n, indices, Node::Rank(indices) + Node::Rank(x) - batch - 1 - *rank);
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
/// The first of constant indices of int64 which name all places of a box in their order: the slices
/// that exporters write to.
std::optional<std::vector<int64_t>> FirstOfBox(const Expr& indices, const Dims& dims) {
  auto* constant = indices.as<relax::ConstantObj>();
  if (!constant || DataType(constant->data.dtype()) != DataType::Int(64)) return {};
  runtime::Tensor host = runtime::HostTensor(constant->data);
  auto* data = static_cast<const int64_t*>(host.data_ptr());
  int64_t rank = host.ndim() - 1, numel = host.numel();
  if (rank < 1 || host.size(rank) != rank || rank > static_cast<int64_t>(dims.size()) || numel == 0)
    return {};
  std::vector<int64_t> first(data, data + rank);
  for (int64_t i = 0; i < rank; ++i) {
    auto size = AsConstInt(dims[i]);
    if (!size || first[i] < 0 || first[i] > *size - host.size(i)) return {};
  }
  for (int64_t place = 0; place < numel; place += rank) {
    for (int64_t i = rank - 1, rest = place / rank; i >= 0; rest /= host.size(i--)) {
      if (data[place + i] != first[i] + rest % host.size(i)) return {};
    }
  }
  return first;
}
/// x with the box that begins at `first` replaced by the values.
Expr WriteBox(Node& n, const Expr& x, const Expr& values, const std::vector<int64_t>& first,
              size_t axis = 0) {
  if (axis == first.size()) return values;
  PrimExpr begin = Num(first[axis]), count = Node::Shape(values)[axis],
           end = n.Simplify(begin + count);
  if (AsConstInt(count) == AsConstInt(Node::Shape(x)[axis]))
    return WriteBox(n, x, values, first, axis + 1);
  auto along = static_cast<int64_t>(axis);
  Expr part = values;
  if (axis + 1 < first.size()) {
    part = n("strided_slice", x, List({along}), Dims{begin}, Dims{end}, Dims{Num(1)}, true);
    part = WriteBox(n, part, values, first, axis + 1);
  }
  return n("slice_scatter", x, part, relax::PrimValue(begin), relax::PrimValue(end),
           relax::PrimValue(Num(1)), along);
}
Outputs ConvertScatterND(Node& n) {
  Expr x = n.In(0), indices = n.In(1), updates = n.In(2);
  indices =
      WithTupleSize(n, indices, Node::Rank(indices) - 1 + Node::Rank(x) - Node::Rank(updates));
  std::string reduction = Reduction(n);
  Dims tuples = Node::Shape(indices);
  auto first = reduction == "update" ? FirstOfBox(indices, Node::Shape(x)) : std::nullopt;
  if (first) {
    Dims written = Node::Shape(x);
    for (size_t i = 0; i < first->size(); ++i) written.Set(i, tuples[i]);
    return WriteBox(n, x, n.Fitted(updates, written), *first);
  }
  return n("scatter_nd", x, PlainTuples(n, indices, Node::Shape(x)), updates, reduction);
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
