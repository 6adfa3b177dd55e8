// SPDX-License-Identifier: Apache-2.0
// What only traced graphs have: Python's indexing, sizes and attributes of tensors.
#include "converter.h"

namespace tvm::frontend::torch {
namespace {

/// The bounds of a slice: {"slice": [start, stop, step]}.
std::optional<Array<Any>> SliceOf(const Any& index) {
  if (index == nullptr) return std::nullopt;
  auto map = index.try_cast<Map<String, Any>>();
  if (!map || !(*map).count("slice")) return std::nullopt;
  return (*map)["slice"].cast<Array<Any>>();
}
bool IsEllipsis(const Any& index) {
  auto text = index == nullptr ? std::nullopt : index.try_cast<String>();
  return text && *text == "...";
}

/// x[0, 1:3, None, …, t]: elements by a tensor first, then one slice over all axes, then the shape
/// with axes of single positions left out and new ones put in.
Any IndexTensor(Conversion& c, Expr x, const Array<Any>& given) {
  int64_t rank = RankOf(x), used = 0;
  for (const Any& index : given) used += index != nullptr && !IsEllipsis(index);
  std::vector<Any> indices;  // one per axis, and None for new ones
  bool expanded = false;
  Any all = Map<String, Any>{{"slice", Array<Any>{nullptr, nullptr, nullptr}}};
  for (const Any& index : given) {
    if (!IsEllipsis(index)) {
      indices.push_back(index);
      continue;
    }
    for (int64_t i = used; i < rank && !expanded; ++i) indices.push_back(all);
    expanded = true;
  }
  for (int64_t i = used; i < rank && !expanded; ++i) indices.push_back(all);
  int64_t axis = 0, tensors = 0;
  std::vector<Any> remaining;
  for (const Any& index : indices) {
    int64_t width = index == nullptr ? 0 : 1;  // the axes of x that it stands for
    if (IsTensor(index)) {
      if (++tensors > 1) TVM_REFUSE(c, ValueError) << "expected at most one tensor among indices";
      x = c.Emit("take", x, index.cast<Expr>(), axis);
      width = RankOf(index.cast<Expr>());
      for (int64_t i = 0; i < width; ++i) remaining.push_back(all);
    } else {
      remaining.push_back(index);
    }
    axis += width;
  }
  indices = remaining;
  Dims dims = ShapeOf(x), shape;
  std::vector<int64_t> axes;
  Array<Any> begins, ends, strides;
  axis = 0;
  std::vector<bool> single;
  for (const Any& index : indices) {
    if (index == nullptr) continue;
    auto slice = SliceOf(index);
    axes.push_back(axis);
    if (slice) {
      begins.push_back((*slice)[0] == nullptr ? Any(0) : (*slice)[0]);
      ends.push_back((*slice)[1] == nullptr ? Any(dims[axis]) : (*slice)[1]);
      strides.push_back((*slice)[2] == nullptr ? Any(1) : (*slice)[2]);
    } else {
      PrimExpr at = AsSize(index);
      if (auto known = AsConstInt(at); known && *known < 0) at = c.Simplify(at + dims[axis]);
      begins.push_back(at);
      ends.push_back(c.Simplify(at + IntImm::Int64(1)));
      strides.push_back(1);
    }
    single.push_back(!slice);
    ++axis;
  }
  Expr part = c.Emit("strided_slice", x, AnyArray(axes), begins, ends, strides);
  Dims sizes = ShapeOf(part);
  axis = 0;
  for (const Any& index : indices) {
    if (index == nullptr) {
      shape.push_back(IntImm::Int64(1));
    } else {
      if (!single[axis]) shape.push_back(sizes[axis]);
      ++axis;
    }
  }
  return c.Emit("reshape", part, shape);
}
Any Item(Conversion& c, const Array<Any>& list) {
  if (auto slice = SliceOf(c[1])) {
    int64_t n = list.size();
    auto bound = [&](size_t i, int64_t otherwise) {
      if ((*slice)[i] == nullptr) return otherwise;
      int64_t at = (*slice)[i].cast<int64_t>();
      return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n);
    };
    Array<Any> part;
    for (int64_t i = bound(0, 0); i < bound(1, n); ++i) part.push_back(list[i]);
    return part;
  }
  int64_t i = c.Int(1), n = list.size();
  if (i < -n || i >= n)
    TVM_REFUSE(c, IndexError) << "expected an index below " << n << ", got " << i;
  return list[i < 0 ? i + n : i];
}
Any Unwrapped(const Any& size) {
  if (auto* e = size.as<IntImmObj>()) return e->value;
  return size;
}
Any FxGetItem(Conversion& c) {
  if (auto list = ListOf(c[0])) return Item(c, *list);
  if (auto* shape = c[0].as<relax::ShapeExprObj>()) {
    Any found = Item(c, Array<Any>(shape->values.begin(), shape->values.end()));
    if (auto part = ListOf(found)) {
      Dims dims;
      for (const Any& dim : *part) dims.push_back(dim.cast<PrimExpr>());
      return ShapeExpr(dims);
    }
    return Unwrapped(found);
  }
  if (!IsTensor(c[0])) return c.Bind(TupleGetItem(c[0].cast<Expr>(), c.Int(1)));
  if (auto list = ListOf(c[1])) return IndexTensor(c, c.Tensor(0), *list);
  return IndexTensor(c, c.Tensor(0), {c[1]});
}
Any FxSize(Conversion& c) {
  Dims dims = ShapeOf(c.Tensor(0));
  auto which = ListOf(c[1]);
  if (!which || (*which).empty()) return ShapeExpr(dims);
  return Unwrapped(dims[c.NormalAxis((*which)[0].cast<int64_t>(), dims.size())]);
}
Any FxGetAttr(Conversion& c) {
  std::string name = c.Text(1);
  Expr x = c.Tensor(0);
  if (name == "shape") return ShapeExpr(ShapeOf(x));
  if (name == "dtype") return String(ffi::DLDataTypeToString(TypeOf(x)));
  if (name == "ndim") return RankOf(x);
  if (name == "device") return String("cpu");
  if (name == "T") return c.Emit("permute_dims", x);
  TVM_REFUSE(c, NotImplementedError) << "expected shape, dtype, ndim, device or T, got " << name;
  TVM_FFI_UNREACHABLE();
}
Any FxNumel(Conversion& c) {
  PrimExpr count = c.Simplify(Count(ShapeOf(c.Tensor(0))));
  if (auto n = AsConstInt(count)) return c.Const(static_cast<double>(*n), DataType::Int(32));
  return count;
}
Any FxDim(Conversion& c) { return RankOf(c.Tensor(0)); }
Any FxTensor(Conversion& c) {
  if (!IsNumber(c[0])) TVM_REFUSE(c, ValueError) << "expected a scalar, got " << c[0].GetTypeKey();
  DataType t = c[0].type_index() == kTVMFFIFloat  ? DataType::Float(32)
               : c[0].type_index() == kTVMFFIBool ? DataType::Bool()
                                                  : DataType::Int(64);
  return c.As(c[0], c.Type(1, t));
}
Any FxIsFloatingPoint(Conversion& c) {
  return c.Const(TypeOf(c.Tensor(0)).is_float(), DataType::Bool());
}
Any FxItem(Conversion& c) { return c.Emit("take", c.Tensor(0), c.Const(0), 0); }
Any FxLerp(Conversion& c) {
  Expr start = c.Tensor(0), end = c.Tensor(1);
  Expr way = c.Emit("subtract", end, start);
  return c.Emit("add", start, c.Emit("multiply", c.As(c[2], TypeOf(start)), way));
}

TVM_REGISTER() {
  Converter("fx.getitem", "self, index", &FxGetItem);
  Converter("fx.size", "self, dim=[]", &FxSize);
  Converter("fx.getattr", "self, name", &FxGetAttr);
  Converter("fx.numel", "self", &FxNumel);
  Converter("fx.dim", "self", &FxDim);
  Converter("fx.tensor", "data, dtype=None", &FxTensor);
  Converter("fx.is_floating_point", "input", &FxIsFloatingPoint);
  Converter("fx.item", "self", &FxItem);
  Converter("fx.lerp", "self, end, weight", &FxLerp);
}

}  // namespace
}  // namespace tvm::frontend::torch
