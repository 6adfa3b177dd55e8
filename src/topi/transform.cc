// SPDX-License-Identifier: Apache-2.0
// Shapes, orders of axes, joining and splitting.
#include "tvm/topi/transform.h"

#include <algorithm>

#include "topi/shape.h"

namespace tvm::topi {
using namespace tir;

Tensor expand_dims(const Tensor& a, int64_t axis, int64_t num_newaxis) {
  size_t ndim = a->shape.size();
  if (num_newaxis < 0) {
    Complain("expand_dims", "a number of new axes from 0", std::to_string(num_newaxis));
  }
  size_t at = Axis("expand_dims", axis, ndim + 1), count = static_cast<size_t>(num_newaxis);
  Index shape(a->shape.begin(), a->shape.end());
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), count,
               MakeConst(IndexType(a->shape), 1));
  auto element = [&](const Index& i) {
    Index source;
    for (size_t d = 0; d < i.size(); ++d) {
      if (d < at || d >= at + count) source.push_back(i[d]);
    }
    return At(a, source);
  };
  return Compute(Shape(shape.begin(), shape.end()), element, "expand_dims", kBroadcast);
}
Tensor expand_dims_at(const Tensor& a, const Any& axis) {
  std::vector<int64_t> given = IntList("expand_dims", axis);
  size_t ndim = a->shape.size() + given.size();
  std::vector<bool> is_new(ndim);
  for (size_t d : Axes("expand_dims", axis, ndim)) is_new[d] = true;
  Shape shape;
  size_t next = 0;
  for (size_t d = 0; d < ndim; ++d) {
    shape.push_back(is_new[d] ? MakeConst(IndexType(a->shape), 1) : a->shape[next++]);
  }
  auto element = [&](const Index& i) {
    Index source;
    for (size_t d = 0; d < ndim; ++d) {
      if (!is_new[d]) source.push_back(i[d]);
    }
    return At(a, source);
  };
  return Compute(shape, element, "expand_dims", kBroadcast);
}

Tensor transpose(const Tensor& a, const Any& axes) {
  size_t ndim = a->shape.size();
  std::vector<size_t> order = Axes("transpose", axes, ndim);
  if (axes == nullptr) std::reverse(order.begin(), order.end());
  if (order.size() != ndim) {
    Complain("transpose", std::to_string(ndim) + " axes", std::to_string(order.size()));
  }
  Shape shape;
  for (size_t axis : order) shape.push_back(a->shape[axis]);
  auto element = [&](const Index& i) {
    Index source(ndim);
    for (size_t d = 0; d < ndim; ++d) source[order[d]] = i[d];
    return At(a, source);
  };
  return Compute(shape, element, "T_transpose");
}
Tensor flip(const Tensor& a, int64_t axis) {
  size_t at = Axis("flip", axis, a->shape.size());
  auto element = [&](const Index& i) {
    Index source = i;
    source[at] = a->shape[at] - MakeConst(i[at].dtype(), 1) - i[at];
    return At(a, source);
  };
  return Compute(a->shape, element, "T_reverse_sequence");
}
Tensor reverse_sequence(const Tensor& a, const Tensor& seq_lengths, int64_t seq_axis,
                        int64_t batch_axis) {
  size_t ndim = a->shape.size();
  size_t along = Axis("reverse_sequence", seq_axis, ndim);
  size_t batch = Axis("reverse_sequence", batch_axis, ndim);
  CheckRank("reverse_sequence", "lengths", seq_lengths, 1);
  if (DifferentDim(seq_lengths->shape[0], a->shape[batch])) {
    Complain("reverse_sequence", "a length per element of the batch of " + Text(a->shape),
             Text(seq_lengths->shape));
  }
  auto element = [&](const Index& i) {
    DataType t = i[along].dtype();
    PrimExpr length = tvm::cast(t, seq_lengths(i[batch])), one = MakeConst(t, 1);
    Index source = i;
    // A length of 0 or 1, or a place behind the length, changes nothing.
    source[along] =
        if_then_else(length <= one || length <= i[along], i[along],
                     if_then_else(length > a->shape[along], a->shape[along] - one - i[along],
                                  length - one - i[along]));
    return At(a, source);
  };
  return Compute(a->shape, element, "T_reverse_sequence");
}

Tensor reshape(const Tensor& a, Array<PrimExpr> newshape) {
  PrimExpr total = Product(a->shape), known = MakeConst(total.dtype(), 1);
  std::optional<size_t> open;
  for (size_t i = 0; i < newshape.size(); ++i) {
    if (!IsConstInt(newshape[i], -1)) {
      known = known * newshape[i];
    } else if (std::exchange(open, i)) {
      Complain("reshape", "at most one dimension of -1", Text(newshape));
    }
  }
  if (open) {
    newshape.Set(*open, Simplified(floordiv(total, known)));
  } else if (DifferentDim(total, known)) {
    Complain("reshape", "a shape with as many elements as " + Text(a->shape), Text(newshape));
  }
  bool is_empty = IsZero(total);
  auto element = [&](const Index& i) -> PrimExpr {
    if (is_empty) return MakeZero(a->dtype);
    arith::Analyzer analyzer;
    Index source = Unravel(Ravel(i, newshape), a->shape);
    for (PrimExpr& at : source) at = analyzer.Simplify(at);
    return At(a, source);
  };
  return Compute(newshape, element, "T_reshape");
}
Tensor squeeze(const Tensor& a, const Any& axis) {
  std::vector<bool> gone(a->shape.size());
  for (size_t d : Axes("squeeze", axis, a->shape.size())) {
    gone[d] = IsOne(a->shape[d]);
    if (axis != nullptr && !gone[d] && AsConstInt(a->shape[d])) {
      Complain("squeeze", "axis " + std::to_string(d) + " of size 1", Text(a->shape));
    }
    if (axis != nullptr) gone[d] = true;
  }
  Shape shape;
  for (size_t d = 0; d < gone.size(); ++d) {
    if (!gone[d]) shape.push_back(a->shape[d]);
  }
  auto element = [&](const Index& i) {
    Index source;
    size_t next = 0;
    for (size_t d = 0; d < gone.size(); ++d) {
      source.push_back(gone[d] ? MakeZero(a->shape[d].dtype()) : i[next++]);
    }
    return At(a, source);
  };
  return Compute(shape, element, "T_squeeze");
}

// ---- joining and splitting ----------------------------------------------------------------------
namespace {
void CheckAlike(const char* op, const Array<Tensor>& tensors, std::optional<size_t> except) {
  for (const Tensor& t : tensors) {
    const Shape &shape = t->shape, &first = tensors[0]->shape;
    bool alike = shape.size() == first.size();
    for (size_t d = 0; alike && d < shape.size(); ++d) {
      alike = d == except || !DifferentDim(shape[d], first[d]);
    }
    if (!alike) Complain(op, "tensors shaped like " + Text(first), Text(shape));
    if (t->dtype != tensors[0]->dtype) {
      TVM_FFI_THROW(TypeError) << op << ": expected tensors of type " << tensors[0]->dtype
                               << ", got " << t->dtype;
    }
  }
}
}  // namespace
Tensor concatenate(const Array<Tensor>& a_tuple, int64_t axis) {
  if (a_tuple.empty()) Complain("concatenate", "at least one tensor", "none");
  size_t at = Axis("concatenate", axis, a_tuple[0]->shape.size());
  CheckAlike("concatenate", a_tuple, at);
  std::vector<PrimExpr> begins;
  PrimExpr total = MakeZero(a_tuple[0]->shape[at].dtype());
  for (const Tensor& t : a_tuple) {
    begins.push_back(total);
    total = Simplified(total + t->shape[at]);
  }
  Shape shape = a_tuple[0]->shape;
  shape.Set(at, total);
  auto element = [&](const Index& i) {
    PrimExpr value;
    for (size_t k = 0; k < a_tuple.size(); ++k) {
      if (IsZero(a_tuple[k]->shape[at])) continue;
      Index source = i;
      source[at] = i[at] - begins[k];
      PrimExpr part = At(a_tuple[k], source);
      value = value.defined() ? if_then_else(begins[k] <= i[at], part, value) : part;
    }
    if (!value.defined()) value = MakeZero(a_tuple[0]->dtype);  // of nothing
    return value;
  };
  return Compute(shape, element, "T_concat");
}
Tensor stack(const Array<Tensor>& tensors, int64_t axis) {
  if (tensors.empty()) Complain("stack", "at least one tensor", "none");
  CheckAlike("stack", tensors, std::nullopt);
  size_t at = Axis("stack", axis, tensors[0]->shape.size() + 1);
  Index shape(tensors[0]->shape.begin(), tensors[0]->shape.end());
  DataType t = IndexType(tensors[0]->shape);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at),
               MakeConst(t, static_cast<int64_t>(tensors.size())));
  auto element = [&](const Index& i) {
    Index source = i;
    source.erase(source.begin() + static_cast<std::ptrdiff_t>(at));
    PrimExpr value;
    for (size_t k = 0; k < tensors.size(); ++k) {
      PrimExpr part = At(tensors[k], source);
      PrimExpr from = MakeConst(i[at].dtype(), static_cast<int64_t>(k));
      value = value.defined() ? if_then_else(from <= i[at], part, value) : part;
    }
    return value;
  };
  return Compute(Shape(shape.begin(), shape.end()), element, "T_stack");
}
Array<Tensor> split(const Tensor& ary, const Any& indices_or_sections, int64_t axis) {
  size_t at = Axis("split", axis, ary->shape.size());
  const PrimExpr& extent = ary->shape[at];
  std::vector<PrimExpr> ends;
  const char* name = "T_split_indices";
  if (auto indices = indices_or_sections.as<Array<Any>>()) {
    for (const Any& index : *indices) {
      PrimExpr end = tvm::cast(extent.dtype(), index.cast<PrimExpr>());
      if (auto e = AsConstInt(end); e && *e < 0) end = extent + end;
      ends.push_back(Simplified(max(min(end, extent), MakeZero(extent.dtype()))));
    }
  } else {
    name = "T_split_sections";
    int64_t sections = IntList("split", indices_or_sections)[0];
    if (sections < 1) Complain("split", "a number of sections from 1", std::to_string(sections));
    PrimExpr size = ceildiv(extent, MakeConst(extent.dtype(), sections));
    for (int64_t k = 1; k < sections; ++k) {
      ends.push_back(Simplified(min(size * MakeConst(extent.dtype(), k), extent)));
    }
  }
  ends.push_back(extent);
  Array<Tensor> parts;
  PrimExpr begin = MakeZero(extent.dtype());
  for (const PrimExpr& end : ends) {
    Shape shape = ary->shape;
    shape.Set(at, Simplified(max(end - begin, MakeZero(extent.dtype()))));
    auto element = [&](const Index& i) {
      Index source = i;
      source[at] = i[at] + begin;
      return At(ary, source);
    };
    parts.push_back(Compute(shape, element, name));
    begin = end;
  }
  return parts;
}

// ---- copies -------------------------------------------------------------------------------------
Tensor repeat(const Tensor& a, int64_t repeats, const Any& axis) {
  if (repeats < 0) Complain("repeat", "a number of repeats from 0", std::to_string(repeats));
  if (axis == nullptr) return repeat(reshape(a, {PrimExpr(-1)}), repeats, 0);
  size_t at = Axis("repeat", IntList("repeat", axis)[0], a->shape.size());
  PrimExpr times = MakeConst(a->shape[at].dtype(), repeats);
  Shape shape = a->shape;
  shape.Set(at, Simplified(a->shape[at] * times));
  auto element = [&](const Index& i) {
    Index source = i;
    source[at] = floordiv(i[at], times);
    return At(a, source);
  };
  return Compute(shape, element, "T_repeat", kBroadcast);
}
Tensor tile(const Tensor& a, const Any& reps) {
  Index times;
  if (auto list = reps.as<Array<Any>>()) {
    for (const Any& r : *list) times.push_back(r.cast<PrimExpr>());
  } else {
    times.push_back(reps.cast<PrimExpr>());
  }
  for (const PrimExpr& r : times) {
    if (!r.defined()) TVM_FFI_THROW(TypeError) << "tile: expected numbers as reps, got None";
  }
  size_t ndim = std::max(times.size(), a->shape.size());
  DataType t = IndexType(a->shape);
  times.insert(times.begin(), ndim - times.size(), MakeConst(t, 1));
  Index extents(a->shape.begin(), a->shape.end());
  extents.insert(extents.begin(), ndim - extents.size(), MakeConst(t, 1));
  Shape shape;
  for (size_t d = 0; d < ndim; ++d) {
    shape.push_back(Simplified(extents[d] * tvm::cast(extents[d].dtype(), times[d])));
  }
  bool is_empty = IsZero(Product(shape));
  auto element = [&](const Index& i) -> PrimExpr {
    if (is_empty) return MakeZero(a->dtype);
    Index source;
    for (size_t d = ndim - a->shape.size(); d < ndim; ++d) {
      source.push_back(IsOne(times[d]) ? i[d] : floormod(i[d], extents[d]));
    }
    return At(a, source);
  };
  return Compute(shape, element, "T_tile", kBroadcast);
}
Array<Tensor> meshgrid(const Array<Tensor>& a_tuple, String indexing) {
  if (indexing != "ij" && indexing != "xy")
    Complain("meshgrid", "indexing \"ij\" or \"xy\"", '"' + std::string(indexing) + '"');
  bool swapped = indexing == "xy" && a_tuple.size() >= 2;
  auto place = [&](size_t k) { return swapped && k < 2 ? 1 - k : k; };
  Shape shape;
  for (size_t k = 0; k < a_tuple.size(); ++k) {
    const Tensor& t = a_tuple[place(k)];
    if (t->shape.size() > 1) CheckRank("meshgrid", "vectors", t, 1);
    shape.push_back(t->shape.empty() ? PrimExpr(1) : t->shape[0]);
  }
  Array<Tensor> grids;
  for (size_t k = 0; k < a_tuple.size(); ++k) {
    auto element = [&](const Index& i) {
      return At(a_tuple[k], a_tuple[k]->shape.empty() ? Index{} : Index{i[place(k)]});
    };
    grids.push_back(Compute(shape, element, "T_meshgrid"));
  }
  return grids;
}
namespace {
Tensor ExpandLike(const Tensor& a, const Tensor& shape_like, const Any& axis) {
  std::vector<bool> is_new(shape_like->shape.size());
  for (size_t d : Axes("expand_like", axis, is_new.size())) is_new[d] = true;
  auto kept = static_cast<size_t>(std::count(is_new.begin(), is_new.end(), false));
  if (kept != a->shape.size()) {
    // A scalar as a tensor of one element.
    if (!(kept == 0 && a->shape.size() == 1 && IsOne(a->shape[0])))
      CheckRank("expand_like", "a tensor", a, kept);
  }
  auto element = [&](const Index& i) {
    Index source;
    for (size_t d = 0; d < i.size(); ++d) {
      if (!is_new[d]) source.push_back(i[d]);
    }
    if (source.size() < a->shape.size()) source.push_back(PrimExpr(0));
    return At(a, source);
  };
  return Compute(shape_like->shape, element, "expand_like", kBroadcast);
}

TVM_REGISTER() {
  Def(
      "topi.expand_dims",
      [](Tensor a, Any axis, int64_t num_newaxis) {
        return axis.as<Array<Any>>() ? expand_dims_at(a, axis)
                                     : expand_dims(a, IntList("expand_dims", axis)[0], num_newaxis);
      },
      "New axes of size 1; a list of axes is in the numbering of the result.", Arg("a"),
      Arg("axis"), Arg("num_newaxis", 1));
  Def("topi.expand_like", &ExpandLike, "The tensor repeated along new axes to another's shape.",
      Arg("a"), Arg("shape_like"), Arg("axis"));
  Def("topi.transpose", &transpose, "The axes in another order; reversed for None.", Arg("a"),
      Arg("axes", nullptr));
  Def("topi.flip", &flip, "The elements along an axis in reverse.", Arg("a"), Arg("axis", 0));
  Def("topi.reverse_sequence", &reverse_sequence,
      "The first elements along an axis in reverse, as many as each length says.", Arg("a"),
      Arg("seq_lengths"), Arg("seq_axis", 1), Arg("batch_axis", 0));
  Def("topi.reshape", &reshape, "The elements in row-major order in another shape.", Arg("a"),
      Arg("newshape"));
  Def("topi.squeeze", &squeeze, "Without axes of size 1.", Arg("a"), Arg("axis", nullptr));
  Def("topi.concatenate", &concatenate, "Tensors one after another along an axis.", Arg("a_tuple"),
      Arg("axis", 0));
  Def("topi.stack", &stack, "Tensors side by side along a new axis.", Arg("tensors"),
      Arg("axis", 0));
  Def("topi.split", &split, "Parts along an axis: a number of sections, or cut at indices.",
      Arg("ary"), Arg("indices_or_sections"), Arg("axis", 0));
  Def("topi.repeat", &repeat, "Every element several times along an axis.", Arg("a"),
      Arg("repeats"), Arg("axis", nullptr));
  Def("topi.tile", &tile, "The tensor several times along its axes.", Arg("a"), Arg("reps"));
  Def("topi.meshgrid", &meshgrid, "Grids of coordinates from vectors.", Arg("a_tuple"),
      Arg("indexing"));
}
}  // namespace
}  // namespace tvm::topi
