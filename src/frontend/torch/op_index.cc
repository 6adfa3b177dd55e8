// SPDX-License-Identifier: Apache-2.0
// Elements by position: slices, indices that are tensors, scatters, masks.
#include <cmath>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {

Expr Positions(Conversion& c, const Expr& x) {
  tir::SizeVar n(c.bb->GetUniqueName("num_true"), DataType::Int(64));
  relax::TensorStructInfo info(Dims{IntImm::Int64(RankOf(x)), n}, DataType::Int(64));
  return c.bb->EmitMatchCast(c.Emit("nonzero", x), info);
}
Expr SizeTensor(Conversion& c, const PrimExpr& size) {
  if (auto known = AsConstInt(size)) return c.Const(*known);
  Expr zero = c.Emit("zeros", Array<Any>{1}, DataType::Int(64));
  return c.Reshape(c.Emit("add", zero, PrimValue(size)), {});
}

namespace {

constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// ---- slices -------------------------------------------------------------------------------------
Any SliceTensor(Conversion& c) {
  Expr x = c.Tensor(0);
  Any begin = c.Given(2) ? c[2] : Any(0), end = c.Given(3) ? c[3] : Any(kToTheEnd);
  int64_t axis = c.Axis(1, RankOf(x));
  PrimExpr extent = ShapeOf(x)[axis];
  if (!AsConstInt(extent)) {
    auto last = AsConstInt(AsSize(end));
    if (last && *last == kToTheEnd) end = extent;
    if (IsZero(AsSize(begin)) && c.Int(4) == 1 && c.Equal(AsSize(end), extent)) return x;
  }
  return c.Emit("strided_slice", x, Array<Any>{c.Int(1)}, Array<Any>{begin}, Array<Any>{end},
                Array<Any>{c.Int(4)});
}
Any Narrow(Conversion& c) {
  Expr x = c.Tensor(0);
  PrimExpr begin = AsSize(c[2]), length = AsSize(c[3]);
  int64_t axis = c.Axis(1, RankOf(x));
  if (auto known = AsConstInt(begin); known && *known < 0) begin = begin + ShapeOf(x)[axis];
  return c.Slice(x, axis, c.Simplify(begin), c.Simplify(begin + length));
}
/// A position along an axis, not counted from the end.
PrimExpr Position(Conversion& c, const Any& index, const PrimExpr& extent) {
  PrimExpr i = AsSize(index);
  auto known = AsConstInt(i);
  if (known && *known < 0) return c.Simplify(i + extent);
  return i;
}
Any Select(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t axis = c.Axis(1, RankOf(x));
  PrimExpr i = AsSize(c[2]);
  auto known = AsConstInt(i);
  if (known && *known >= 0) return c.Emit("take", x, c.Const(*known), c.Int(1));
  PrimExpr at = Position(c, c[2], ShapeOf(x)[axis]);
  if (auto constant = AsConstInt(at)) return c.Emit("take", x, c.Const(*constant), c.Int(1));
  return c.Emit("take", x, PrimValue(at), axis);
}
/// The bound of a slice brought into [0, extent].
PrimExpr Bound(Conversion& c, const Any& bound, const PrimExpr& extent) {
  auto known = AsConstInt(AsSize(bound));
  if (known && *known == kToTheEnd) return extent;
  PrimExpr at = Position(c, bound, extent);
  return c.Simplify(min(max(at, IntImm::Int64(0)), extent));
}
Any SliceScatter(Conversion& c) {
  Expr x = c.Tensor(0), src = c.Tensor(1);
  int64_t axis = c.Axis(2, RankOf(x));
  PrimExpr extent = ShapeOf(x)[axis];
  PrimExpr begin = c.Given(3) ? Bound(c, c[3], extent) : IntImm::Int64(0);
  PrimExpr end = c.Given(4) ? Bound(c, c[4], extent) : extent;
  return c.Emit("slice_scatter", x, c.Cast(src, TypeOf(x)), PrimValue(begin), PrimValue(end),
                PrimValue(AsSize(c[5])), axis);
}
Any SelectScatter(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t axis = c.Axis(2, RankOf(x));
  PrimExpr at = Position(c, c[3], ShapeOf(x)[axis]);
  Expr src = c.Emit("expand_dims", c.Cast(c.Tensor(1), TypeOf(x)), axis);
  return c.Emit("slice_scatter", x, src, PrimValue(at),
                PrimValue(c.Simplify(at + IntImm::Int64(1))), PrimValue::Int64(1), axis);
}

/// Windows of `size` elements, `step` apart; their elements are the last axis.
Any Unfold(Conversion& c) {
  Expr x = c.Tensor(0);
  if (RankOf(x) == 0) x = c.Reshape(x, {IntImm::Int64(1)});
  int64_t axis = c.Axis(1, RankOf(x)), size = c.Int(2), step = c.Int(3);
  PrimExpr last = ShapeOf(x)[axis] - IntImm::Int64(size);
  PrimExpr count = c.Simplify(floordiv(last, IntImm::Int64(step)) + IntImm::Int64(1));
  Expr begin = c.Emit("multiply", c.Arange(count), c.Const(step));
  Expr places = c.Emit("add", c.Emit("expand_dims", begin, 1), c.Arange(IntImm::Int64(size)));
  Expr windows = c.Emit("take", x, places, axis);
  if (RankOf(c.Tensor(0)) == 0) return c.Reshape(windows, {IntImm::Int64(size)});
  std::vector<int64_t> order = Axes(RankOf(windows));
  order.erase(order.begin() + axis + 1);
  order.push_back(axis + 1);
  return c.Permute(windows, order);
}

// ---- indices that are tensors -------------------------------------------------------------------
/// A scalar counts as a vector of one element.
Expr AsVector(Conversion& c, const Expr& e) {
  return RankOf(e) == 0 ? c.Reshape(e, {IntImm::Int64(1)}) : e;
}
Any Gather(Conversion& c) {
  Expr x = c.Tensor(0), indices = c.Tensor(2);
  Dims taken = ShapeOf(indices);
  // No indices take nothing, whatever their rank.
  if (std::any_of(taken.begin(), taken.end(), [](const PrimExpr& n) { return IsZero(n); })) {
    return c.Emit("zeros", taken, TypeOf(x));
  }
  if (RankOf(x) == 0 || RankOf(indices) == 0) {
    Expr found = c.Emit("gather_elements", AsVector(c, x), AsVector(c, indices), 0);
    return c.Reshape(found, ShapeOf(indices));
  }
  return c.Emit("gather_elements", x, indices, c.Int(1));
}
Any IndexSelect(Conversion& c) {
  Expr x = c.Tensor(0), indices = c.Tensor(2);
  if (RankOf(indices) == 0) indices = c.Reshape(indices, {IntImm::Int64(1)});
  if (RankOf(x) == 0)
    return c.Reshape(c.Emit("take", c.Reshape(x, {IntImm::Int64(1)}), indices, 0), {});
  return c.Emit("take", x, indices, c.Int(1));
}
/// Indices from the end counted from the beginning.
Expr NonNegative(Conversion& c, const Expr& indices, const PrimExpr& extent) {
  DataType t = TypeOf(indices);
  Expr is_negative = c.Emit("less", indices, c.Const(0.0, t));
  Expr moved = c.Emit("add", indices, PrimValue(cast(t, extent)));
  return c.Emit("where", is_negative, moved, indices);
}
Any Take(Conversion& c) {
  Expr x = c.Tensor(0);
  Expr flat = c.Emit("reshape", x, Array<Any>{-1});
  Expr indices = NonNegative(c, c.Tensor(1), c.Simplify(Count(ShapeOf(x))));
  return c.Emit("take", flat, indices, 0);
}
/// Whether a constant counts from the end somewhere.
bool HasNegative(const Expr& index) {
  auto* constant = index.as<relax::ConstantObj>();
  if (!constant || TypeOf(index) != DataType::Int(64)) return false;
  auto* values = static_cast<const int64_t*>(constant->data.data_ptr());
  return std::any_of(values, values + constant->data.numel(), [](int64_t i) { return i < 0; });
}
/// A mask among indices stands for the positions where it holds: one vector per axis of it.
std::vector<Any> ExpandMasks(Conversion& c, const Array<Any>& given) {
  std::vector<Any> indices;
  for (const Any& index : given) {
    bool is_mask = IsTensor(index) && (TypeOf(index.cast<Expr>()).is_bool() ||
                                       TypeOf(index.cast<Expr>()) == DataType::UInt(8));
    if (!is_mask) {
      indices.push_back(index);
      continue;
    }
    Expr positions = Positions(c, index.cast<Expr>());
    for (int64_t axis = 0; axis < RankOf(index.cast<Expr>()); ++axis) {
      indices.push_back(c.Emit("take", positions, c.Const(axis), 0));
    }
  }
  return indices;
}
/// x[i0, :, i1, …]: the axes that are indexed moved to the front, then indexed; the result's axes
/// lie where the indexed ones were if those are neighbours, else in front.
Any Index(Conversion& c) {
  Expr x = c.Tensor(0);
  std::vector<Any> given = ExpandMasks(c, c[1].cast<Array<Any>>());
  std::vector<int64_t> indexed, rest;
  Array<Expr> indices;
  int64_t rank = RankOf(x);
  for (int64_t i = 0; i < rank; ++i) {
    if (i < static_cast<int64_t>(given.size()) && given[i] != nullptr) {
      indexed.push_back(i);
      indices.push_back(given[i].cast<Expr>());
    } else {
      rest.push_back(i);
    }
  }
  if (indices.empty()) return x;
  if (indices.size() == 1) {
    Expr index = indices[0];
    if (HasNegative(index)) index = NonNegative(c, index, ShapeOf(x)[indexed[0]]);
    return c.Emit("take", x, index, indexed[0]);
  }
  bool neighbours = indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  std::vector<int64_t> order = indexed;
  order.insert(order.end(), rest.begin(), rest.end());
  Expr result = c.Emit("index_tensor", c.Permute(x, order), relax::Tuple(indices));
  if (!neighbours || indexed.front() == 0) return result;
  // The block of the indices' axes goes behind the axes that lay before the indexed ones.
  int64_t before = indexed.front();
  int64_t block = RankOf(result) - static_cast<int64_t>(rest.size());
  std::vector<int64_t> back;
  for (int64_t i = 0; i < before; ++i) back.push_back(block + i);
  for (int64_t i = 0; i < block; ++i) back.push_back(i);
  for (int64_t i = block + before; i < RankOf(result); ++i) back.push_back(i);
  return c.Permute(result, back);
}
Any IndexPut(Conversion& c) {
  Expr x = c.Tensor(0), values = c.Cast(c.Tensor(2), TypeOf(x));
  Array<Any> raw = c[1].cast<Array<Any>>();
  // One mask over all of x and one value: a choice, without positions.
  if (raw.size() == 1 && IsTensor(raw[0]) && TypeOf(raw[0].cast<Expr>()).is_bool() &&
      RankOf(values) == 0 && !c.Flag(3)) {
    Expr mask = raw[0].cast<Expr>();
    Dims dims = ShapeOf(mask);
    while (static_cast<int64_t>(dims.size()) < RankOf(x)) dims.push_back(IntImm::Int64(1));
    return c.Emit("where", c.Reshape(mask, dims), values, x);
  }
  std::vector<Any> given = ExpandMasks(c, raw);
  int64_t rank = RankOf(x), depth = 0;
  Dims dims = ShapeOf(x);
  std::vector<int64_t> indexed;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr) continue;
    depth = std::max(depth, RankOf(given[i].cast<Expr>()));
    indexed.push_back(static_cast<int64_t>(i));
  }
  bool neighbours = !indexed.empty() &&
                    indexed.back() - indexed.front() + 1 == static_cast<int64_t>(indexed.size());
  int64_t block = neighbours ? indexed.front() : 0;  // where the indices' axes lie in the values
  int64_t rest = rank - static_cast<int64_t>(indexed.size());
  Array<Expr> indices;
  int64_t passed = 0;
  for (int64_t i = 0; i < rank; ++i) {
    Dims shape(depth + rest, IntImm::Int64(1));
    if (i < static_cast<int64_t>(given.size()) && given[i] != nullptr) {
      Expr index = c.Cast(given[i].cast<Expr>(), DataType::Int(64));
      Dims own = ShapeOf(index);
      for (size_t k = 0; k < own.size(); ++k) shape.Set(block + depth - own.size() + k, own[k]);
      indices.push_back(c.Reshape(index, shape));
    } else {
      int64_t at = passed < block ? passed : passed + depth;
      shape.Set(at, dims[i]);
      indices.push_back(c.Reshape(c.Arange(dims[i]), shape));
      ++passed;
    }
  }
  return c.Emit("index_put", x, relax::Tuple(indices), values, c.Flag(3));
}
Any MaskedSelect(Conversion& c) {
  Expr x = c.Tensor(0), mask = c.Tensor(1);
  Array<Expr> both = Broadcast(c, {x, mask});
  x = both[0];
  mask = both[1];
  Expr flat = c.Emit("reshape", x, Array<Any>{-1});
  Expr positions = Positions(c, c.Emit("reshape", mask, Array<Any>{-1}));
  return c.Emit("take", flat, c.Emit("squeeze", positions, Array<Any>{0}), 0);
}
Any NonZero(Conversion& c) {
  Expr x = c.Tensor(0);
  Expr positions = Positions(c, AsVector(c, x));
  Expr result = c.Permute(positions, {1, 0});
  // A scalar has no axes to give positions along.
  return RankOf(x) > 0 ? result : c.Slice(result, 1, IntImm::Int64(0), IntImm::Int64(0));
}

// ---- scatters -----------------------------------------------------------------------------------
/// Tensors as scatter_elements takes them: no scalars, updates of the shape of the indices.
Any ScatterOf(Conversion& c, const Expr& indices, Expr updates, const char* reduction) {
  Expr x = c.Tensor(0);
  Dims shape = ShapeOf(x);
  Expr at = AsVector(c, indices);
  updates = AsVector(c, updates);
  Dims sizes = ShapeOf(at), from = ShapeOf(updates);
  // Indices without elements may be of any rank.
  if (std::any_of(sizes.begin(), sizes.end(), &IsZero)) return x;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!c.Equal(sizes[i], from[i])) updates = c.Slice(updates, i, IntImm::Int64(0), sizes[i]);
  }
  Expr result = c.Emit("scatter_elements", AsVector(c, x), at, updates, c.Axis(1, RankOf(x)),
                       String(reduction));
  return c.Reshape(result, shape);
}
Any Scatter(Conversion& c) {
  Expr x = c.Tensor(0), indices = c.Tensor(2);
  Expr updates = IsTensor(c[3]) ? c.Cast(c.Tensor(3), TypeOf(x))
                                : c.Emit("broadcast_to", c.As(c[3], TypeOf(x)), ShapeOf(indices));
  std::string reduce = c.Given(4) ? c.Text(4) : "update";
  if (reduce == "multiply") reduce = "mul";
  return ScatterOf(c, indices, updates, reduce.c_str());
}
Any ScatterAdd(Conversion& c) {
  return ScatterOf(c, c.Tensor(2), c.Cast(c.Tensor(3), TypeOf(c.Tensor(0))), "add");
}
struct ReduceName {
  const char *torch, *ours;
  double neutral;
};
constexpr ReduceName kReduceNames[] = {
    {"sum", "add", 0},
    {"prod", "mul", 1},
    {"amax", "max", -std::numeric_limits<double>::infinity()},
    {"amin", "min", std::numeric_limits<double>::infinity()},
};
const ReduceName* FindReduce(const std::string& name) {
  for (const ReduceName& row : kReduceNames) {
    if (name == row.torch) return &row;
  }
  return nullptr;
}
/// x with a neutral value where the indices point, for reductions that leave x's own values out.
Expr WithoutSelf(Conversion& c, const Expr& x, const Expr& indices, double neutral) {
  DataType t = TypeOf(x);
  Any value = std::isinf(neutral) && !t.is_float()
                  ? Any(*AsConstInt(neutral < 0 ? min_value(t) : max_value(t)))
                  : Any(neutral);
  Expr blanks = c.Emit("broadcast_to", c.As(value, t), ShapeOf(indices));
  Expr result = c.Emit("scatter_elements", AsVector(c, x), AsVector(c, indices),
                       AsVector(c, blanks), c.Axis(1, RankOf(x)), String("update"));
  return c.Reshape(result, ShapeOf(x));
}
Any ScatterReduce(Conversion& c) {
  Expr x = c.Tensor(0), indices = c.Tensor(2);
  DataType t = TypeOf(x);
  Expr src = c.Cast(c.Tensor(3), t);
  std::string kind = c.Text(4);
  bool include_self = c.Flag(5);
  int64_t axis = c.Axis(1, RankOf(x));
  Expr at = AsVector(c, indices), from = AsVector(c, src);
  Dims sizes = ShapeOf(at);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!c.Equal(sizes[i], ShapeOf(from)[i])) from = c.Slice(from, i, IntImm::Int64(0), sizes[i]);
  }
  const ReduceName* row = FindReduce(kind == "mean" ? "sum" : kind);
  if (!row)
    TVM_REFUSE(c, ValueError) << "reduce: expected sum, prod, mean, amax or amin, got " << kind;
  Expr base = AsVector(c, include_self ? x : WithoutSelf(c, x, indices, row->neutral));
  Expr result = c.Emit("scatter_elements", base, at, from, axis, String(row->ours));
  if (kind == "mean") {
    Expr ones = c.Emit("ones_like", from);
    Expr start = c.Emit(include_self ? "ones_like" : "zeros_like", base);
    Expr counts = c.Emit("scatter_elements", start, at, ones, axis, String("add"));
    counts = c.Emit("maximum", counts, c.Const(1.0, t));
    result = c.Emit(IsIntegral(t) ? "floor_divide" : "divide", result, counts);
  }
  return c.Reshape(result, ShapeOf(x));
}
/// x with slices along an axis added to, or replaced: indices as those of scatter.
Expr SpreadIndices(Conversion& c, const Expr& indices, const Expr& src, int64_t axis) {
  Dims shape(RankOf(src), IntImm::Int64(1));
  shape.Set(axis, ShapeOf(indices)[0]);
  return c.BroadcastTo(c.Reshape(indices, shape), ShapeOf(src));
}
Any IndexScatter(Conversion& c, Expr src, const char* reduction) {
  Expr x = c.Tensor(0), indices = c.Tensor(2);
  Dims shape = ShapeOf(x);
  indices = AsVector(c, indices);
  int64_t axis = c.Axis(1, RankOf(x));
  Expr base = AsVector(c, x);
  Dims sizes = ShapeOf(base);
  sizes.Set(axis, ShapeOf(indices)[0]);
  src = RankOf(src) == RankOf(base) ? src : c.Emit("broadcast_to", src, sizes);
  Expr at = SpreadIndices(c, NonNegative(c, indices, ShapeOf(base)[axis]), src, axis);
  return c.Reshape(c.Emit("scatter_elements", base, at, src, axis, String(reduction)), shape);
}
Any IndexAdd(Conversion& c) {
  DataType t = TypeOf(c.Tensor(0));
  Expr src = c.Cast(c.Tensor(3), t);
  if (!(c[4].try_cast<double>() == 1.0)) src = c.Emit("multiply", src, c.As(c[4], t));
  return IndexScatter(c, src, "add");
}
Any IndexCopy(Conversion& c) { return IndexScatter(c, c.Tensor(3), "update"); }
Any IndexFill(Conversion& c) { return IndexScatter(c, c.As(c[3], TypeOf(c.Tensor(0))), "update"); }

// ---- masks --------------------------------------------------------------------------------------
Any Where(Conversion& c) {
  DataType t = c.ResultType({c[1], c[2]});
  Expr condition = ToBool(c, c.Tensor(0));
  Expr left = c.As(c[1], t);
  return c.Emit("where", condition, left, c.As(c[2], t));
}
Any MaskedFill(Conversion& c) {
  Expr x = c.Tensor(0), mask = ToBool(c, c.Tensor(1));
  Expr values = c.Emit("full_like", x, c.As(c[2], TypeOf(x)));
  return c.Emit("where", mask, values, x);
}
/// Elements of the source one after the other where the mask holds.
Any MaskedScatter(Conversion& c) {
  Array<Expr> both = Broadcast(c, {c.Tensor(0), c.Tensor(1)});
  Expr x = both[0], mask = both[1], source = c.Tensor(2);
  Dims shape = ShapeOf(x);
  Expr flat = RankOf(mask) == 1 ? mask : c.Emit("reshape", mask, Array<Any>{-1});
  Expr counts = c.Emit("cumsum", c.Cast(flat, DataType::Int(32)), 0, DataType::Int(32));
  Expr at = c.Emit("subtract", counts, c.Const(1.0, DataType::Int(32)));
  at = c.Emit("maximum", at, c.Const(0.0, DataType::Int(32)));
  if (RankOf(source) != 1) source = c.Emit("reshape", source, Array<Any>{-1});
  Expr values = c.Reshape(c.Emit("take", source, at, 0, String("clip")), shape);
  return c.Emit("where", mask, values, x);
}

// ---- scalars of tensors -------------------------------------------------------------------------
/// The element of a tensor of one; an integer becomes a size that later shapes can use.
Any Item(Conversion& c) {
  Expr x = c.Tensor(0);
  Expr scalar =
      RankOf(x) == 0 ? x : c.Emit("take", c.Emit("reshape", x, Array<Any>{-1}), c.Const(0), 0);
  auto* meta = c.meta().as<ScalarMetaObj>();
  if (!meta || meta->kind != "int") return scalar;
  Expr vector = c.Emit("reshape", c.Cast(scalar, DataType::Int(64)), Array<Any>{1});
  Expr shape = c.Emit("tensor_to_shape", vector);
  PrimExpr size = c.importer()->symbols.Size(meta->expr);
  c.bb->EmitMatchCast(shape, relax::ShapeStructInfo(Dims{size}));
  return size;
}

TVM_REGISTER() {
  Converter("slice.Tensor slice_copy.Tensor", "self, dim=0, start=None, end=None, step=1",
            &SliceTensor);
  Converter("narrow.default narrow_copy.default", "self, dim, start, length", &Narrow);
  Converter("select.int select_copy.int", "self, dim, index", &Select);
  Converter("slice_scatter.default", "self, src, dim=0, start=None, end=None, step=1",
            &SliceScatter);
  Converter("unfold.default unfold_copy.default", "self, dimension, size, step", &Unfold);
  Converter("select_scatter.default", "self, src, dim, index", &SelectScatter);
  Converter("gather.default", "self, dim, index, sparse_grad=False", &Gather);
  Converter("index_select.default", "self, dim, index", &IndexSelect);
  Converter("take.default", "self, index", &Take);
  Converter("index.Tensor _unsafe_index.Tensor", "self, indices", &Index);
  Converter("index_put.default _unsafe_index_put.default",
            "self, indices, values, accumulate=False", &IndexPut);
  Converter("masked_select.default", "self, mask", &MaskedSelect);
  Converter("nonzero.default", "self", &NonZero);
  Converter("scatter.src", "self, dim, index, src, reduce=None", &Scatter);
  Converter("scatter.value", "self, dim, index, value, reduce=None", &Scatter);
  Converter("scatter.reduce", "self, dim, index, src, reduce", &Scatter);
  Converter("scatter.value_reduce", "self, dim, index, value, reduce", &Scatter);
  Converter("scatter_add.default", "self, dim, index, src", &ScatterAdd);
  Converter("scatter_reduce.two", "self, dim, index, src, reduce, include_self=True",
            &ScatterReduce);
  Converter("index_add.default", "self, dim, index, source, alpha=1", &IndexAdd);
  Converter("index_copy.default", "self, dim, index, source", &IndexCopy);
  Converter("index_fill.int_Scalar index_fill.int_Tensor", "self, dim, index, value", &IndexFill);
  Converter("where.self where.ScalarSelf where.ScalarOther where.Scalar", "condition, self, other",
            &Where);
  Converter("masked_fill.Scalar masked_fill.Tensor", "self, mask, value", &MaskedFill);
  Converter("masked_scatter.default", "self, mask, source", &MaskedScatter);
  Converter("item.default _local_scalar_dense.default", "self", &Item);
}

}  // namespace
}  // namespace tvm::frontend::torch
