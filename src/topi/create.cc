// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors from numbers, and those that depend on places alone.
#include "tvm/topi/create.h"

#include <numbers>

#include "topi/shape.h"

namespace tvm::topi {
using namespace tir;

Tensor full(const Any& shape, DataType dtype, const PrimExpr& fill_value) {
  PrimExpr value = tvm::cast(dtype, fill_value);
  return Compute(
      ShapeOf("full", shape), [&](const Index&) { return value; }, "T_full", kElementWise);
}
Tensor full_like(const Tensor& x, const PrimExpr& fill_value) {
  PrimExpr value = tvm::cast(x->dtype, fill_value);
  return Compute(x->shape, [&](const Index&) { return value; }, "T_full_like", kElementWise);
}
Tensor eye(const PrimExpr& n, const Optional<PrimExpr>& m, const PrimExpr& k, DataType dtype) {
  auto element = [&](const Index& i) {
    PrimExpr on_diagonal = equal(i[1], i[0] + tvm::cast(i[0].dtype(), k));
    return Select(on_diagonal, MakeConst(dtype, 1), MakeZero(dtype));
  };
  return Compute({n, m.value_or(n)}, element, "T_eye");
}
Tensor arange(const PrimExpr& start, const Optional<PrimExpr>& stop, const PrimExpr& step,
              DataType dtype) {
  PrimExpr from = stop ? start : MakeZero(start.dtype()), to = stop ? *stop : start, by = step;
  auto is_zero = [](const PrimExpr& e) {
    auto* f = e.as<FloatImmObj>();
    return IsZero(e) || (f && f->value == 0);
  };
  if (is_zero(step)) Complain("arange", "a step that is not 0", "0");
  PrimExpr count;
  bool is_integer = from.dtype().is_integer() && to.dtype().is_integer() && by.dtype().is_integer();
  if (is_integer) {
    MatchTypes(&to, &from, "arange");
    PrimExpr span = to - from;
    MatchTypes(&span, &by, "arange");
    PrimExpr zero = MakeZero(by.dtype());
    auto constant = AsConstInt(by);
    count = constant && *constant < 0 ? ceildiv(neg(span), neg(by)) : ceildiv(span, by);
    if (!constant) count = Select(by > zero, ceildiv(span, by), ceildiv(neg(span), neg(by)));
    count = max(count, MakeZero(count.dtype()));
  } else {
    DataType wide = DataType::Float(64);
    PrimExpr span = tvm::cast(wide, to) - tvm::cast(wide, from);
    PrimExpr steps = tvm::ceil(div(span, tvm::cast(wide, by)));
    count = tvm::cast(DataType::Int(32), max(steps, MakeZero(wide)));
  }
  auto element = [&](const Index& i) {
    return tvm::cast(dtype, from) + tvm::cast(dtype, by) * tvm::cast(dtype, i[0]);
  };
  return Compute({Simplified(count)}, element, "T_arange");
}
Tensor trilu(const Tensor& data, const PrimExpr& k, bool upper) {
  size_t ndim = data->shape.size();
  if (ndim < 2) Complain("trilu", "at least 2 dimensions", Text(data->shape));
  auto element = [&](const Index& i) {
    PrimExpr row = i[ndim - 2], column = i[ndim - 1], diagonal = row + tvm::cast(row.dtype(), k);
    PrimExpr kept = upper ? diagonal <= column : column <= diagonal;
    return Select(kept, At(data, i), MakeZero(data->dtype));
  };
  return Compute(data->shape, element, "trilu");
}
Tensor hamming_window(const PrimExpr& window_size, bool periodic, double alpha, double beta,
                      DataType dtype) {
  if (!dtype.is_float())
    TVM_FFI_THROW(TypeError) << "hamming_window: expected a float type, got " << dtype;
  if (IsOne(window_size)) return full(Any(Shape{window_size}), dtype, MakeConst(dtype, 1));
  PrimExpr count = periodic ? window_size : window_size - MakeConst(window_size.dtype(), 1);
  DataType wide = DataType::Float(64);
  auto element = [&](const Index& i) {
    PrimExpr angle =
        MakeConst(wide, 2 * std::numbers::pi) * div(tvm::cast(wide, i[0]), tvm::cast(wide, count));
    return tvm::cast(dtype, MakeConst(wide, alpha) - MakeConst(wide, beta) * tvm::cos(angle));
  };
  return Compute({window_size}, element, "hamming_window");
}
namespace {
/// The dimensions of a tensor as a vector.
Tensor ShapeTensor(const Tensor& array, DataType dtype) {
  auto ndim = static_cast<int64_t>(array->shape.size());
  auto element = [&](const Index& i) {
    PrimExpr value = MakeZero(dtype);
    for (int64_t d = ndim; d-- > 0;) {
      value =
          Select(equal(i[0], MakeConst(i[0].dtype(), d)), tvm::cast(dtype, array->shape[d]), value);
    }
    return value;
  };
  return Compute({PrimExpr(ndim)}, element, "T_shape");
}
Tensor TensorSize(const Tensor& array, DataType dtype) {
  return Compute(
      {}, [&](const Index&) { return tvm::cast(dtype, Product(array->shape)); }, "T_tensor_size");
}
/// `data` with its diagonals k (one, or a range of them stored in rows) replaced.
Tensor MatrixSetDiag(const Tensor& data, const Tensor& diagonal, const Any& k, String align) {
  constexpr const char* kOp = "matrix_set_diag";
  size_t ndim = data->shape.size();
  if (ndim < 2) Complain(kOp, "at least 2 dimensions", Text(data->shape));
  std::vector<int64_t> range = IntList(kOp, k);
  int64_t low = range[0], high = range.back();
  if (low > high) Complain(kOp, "k from low to high", std::to_string(low));
  bool only_one = low == high;
  std::string how = align;
  if (how != "RIGHT_LEFT" && how != "LEFT_RIGHT" && how != "LEFT_LEFT" && how != "RIGHT_RIGHT")
    Complain(kOp, "align \"RIGHT_LEFT\", \"LEFT_RIGHT\", \"LEFT_LEFT\" or \"RIGHT_RIGHT\"", how);
  bool above_right = how.starts_with("RIGHT"), below_right = how.ends_with("RIGHT");
  const PrimExpr &rows = data->shape[ndim - 2], &columns = data->shape[ndim - 1];
  auto element = [&](const Index& i) {
    DataType t = i[ndim - 1].dtype();
    PrimExpr row = i[ndim - 2], column = i[ndim - 1], which = column - row, zero = MakeZero(t);
    PrimExpr from = MakeConst(t, low), to = MakeConst(t, high);
    Index place(i.begin(), i.end() - 2);
    PrimExpr along = Select(which >= zero, row, column);
    if (!only_one) {
      place.push_back(to - which);
      PrimExpr length =
          Select(which >= zero, min(columns - which, rows), min(rows + which, columns));
      PrimExpr moved = diagonal->shape[diagonal->shape.size() - 1] - length;
      PrimExpr right = Select(which >= zero, MakeConst(DataType::Bool(), above_right),
                              MakeConst(DataType::Bool(), below_right));
      along = along + Select(right, moved, zero);
    }
    place.push_back(along);
    return if_then_else(from <= which && which <= to, At(diagonal, place), At(data, i));
  };
  return Compute(data->shape, element, "T_matrix_set_diag");
}
/// Windows along axes from `axis` on: (..., positions..., window...).
Tensor SlidingWindow(const Tensor& data, int64_t axis, const Array<PrimExpr>& window_shape,
                     const Array<PrimExpr>& strides) {
  constexpr const char* kOp = "sliding_window";
  size_t first = Axis(kOp, axis, data->shape.size()), count = data->shape.size() - first;
  if (window_shape.size() != count || strides.size() != count)
    Complain(kOp, std::to_string(count) + " sizes and strides",
             std::to_string(window_shape.size()));
  Shape shape;
  for (size_t d = 0; d < first; ++d) shape.push_back(data->shape[d]);
  for (size_t d = 0; d < count; ++d) {
    PrimExpr positions = floordiv(data->shape[first + d] - window_shape[d], strides[d]);
    shape.push_back(Simplified(positions + MakeConst(positions.dtype(), 1)));
  }
  for (const PrimExpr& extent : window_shape) shape.push_back(extent);
  auto element = [&](const Index& i) {
    Index source(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(first));
    for (size_t d = 0; d < count; ++d) {
      source.push_back(i[first + d] * strides[d] + i[first + count + d]);
    }
    return At(data, source);
  };
  return Compute(shape, element, "T_sliding_window");
}

TVM_REGISTER() {
  Def("topi.full", &full, "A tensor of one value.", Arg("shape"), Arg("dtype"), Arg("fill_value"));
  Def("topi.full_like", &full_like, "A tensor of one value, shaped like another.", Arg("x"),
      Arg("fill_value"));
  Def("topi.eye", &eye, "Ones on one diagonal of a matrix.", Arg("n"), Arg("m", nullptr),
      Arg("k", 0), Arg("dtype", "float32"));
  Def("topi.arange", &arange, "Numbers from start to before stop in steps.", Arg("start"),
      Arg("stop", nullptr), Arg("step", 1), Arg("dtype", "float32"));
  Def("topi.trilu", &trilu, "The upper or lower triangle of the last two axes, zero elsewhere.",
      Arg("data"), Arg("k"), Arg("upper"));
  Def("topi.hamming_window", &hamming_window, "alpha - beta * cos(2 pi n / (size - 1)).",
      Arg("window_size"), Arg("periodic"), Arg("alpha"), Arg("beta"), Arg("dtype"));
  Def("topi.shape", &ShapeTensor, "The dimensions of a tensor.", Arg("array"),
      Arg("dtype", "int32"));
  Def("topi.tensor_size", &TensorSize, "The number of elements.", Arg("array"),
      Arg("dtype", "int32"));
  Def("topi.matrix_set_diag", &MatrixSetDiag, "The tensor with other diagonals.", Arg("data"),
      Arg("diagonal"), Arg("k", 0), Arg("align", "RIGHT_LEFT"));
  Def("topi.sliding_window", &SlidingWindow, "Windows that slide along the last axes.", Arg("data"),
      Arg("axis"), Arg("window_shape"), Arg("strides"));
}
}  // namespace
}  // namespace tvm::topi
