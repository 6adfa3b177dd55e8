// SPDX-License-Identifier: Apache-2.0
// Tensors from sizes and numbers, types, padding.
#include <algorithm>
#include <cmath>

#include "converter.h"

namespace tvm::frontend::torch {
namespace {

/// A full tensor of a number, which may be a size, or a scalar.
Expr FullOf(Conversion& c, const Dims& sizes, const Any& value, DataType t) {
  Expr fill = c.As(value, t);
  if (IsTensor(fill)) return c.Emit("full", ShapeExpr(sizes), fill, t);
  return c.Emit("add", c.Emit("zeros", ShapeExpr(sizes), t), fill);
}
DataType TypeOfValue(const Conversion& c, size_t dtype, const Any& value) {
  if (c.Given(dtype)) return c.Type(dtype, DataType::Void());
  return IsTensor(value) ? TypeOf(value.cast<Expr>()) : c.ResultType({value});
}
Any Full(Conversion& c) { return FullOf(c, c.Sizes(0), c[1], TypeOfValue(c, 2, c[1])); }
Any Zeros(Conversion& c) { return c.Emit("zeros", c.Sizes(0), c.Type(1, c.default_dtype())); }
Any Ones(Conversion& c) { return FullOf(c, c.Sizes(0), 1, c.Type(1, c.default_dtype())); }
Any EmptyPermuted(Conversion& c) {
  return c.Emit("zeros", c.Sizes(0), c.Type(2, c.default_dtype()));
}
Any NewFull(Conversion& c) { return FullOf(c, c.Sizes(1), c[2], c.Type(3, TypeOf(c.Tensor(0)))); }
Any NewOf(Conversion& c, int64_t value) {
  return FullOf(c, c.Sizes(1), value, c.Type(2, TypeOf(c.Tensor(0))));
}
Any NewOnes(Conversion& c) { return NewOf(c, 1); }
Any NewZeros(Conversion& c) { return NewOf(c, 0); }
Any NewEmptyStrided(Conversion& c) {
  return FullOf(c, c.Sizes(1), 0, c.Type(3, TypeOf(c.Tensor(0))));
}
Any LikeOf(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = c.Type(1, TypeOf(x));
  return t == TypeOf(x) ? c.Emit(c.op, x) : c.Emit(c.op, x, t);
}
Any FullLike(Conversion& c) {
  Expr x = c.Tensor(0);
  DataType t = c.Type(2, TypeOf(x));
  Expr value = IsTensor(c[1]) ? c.Cast(c.Tensor(1), t) : c.As(c[1], t);
  if (t == TypeOf(x) && IsTensor(value)) return c.Emit("full_like", x, value);
  return FullOf(c, ShapeOf(x), c[1], t);
}
Any Fill(Conversion& c) {
  Expr x = c.Tensor(0);
  return FullOf(c, ShapeOf(x), c[1], TypeOf(x));
}
Any ScalarTensor(Conversion& c) {
  DataType t = c.Type(1, c.default_dtype());
  Expr value = c.As(c[0], t);
  return IsTensor(value) ? c.Bind(value) : FullOf(c, {}, c[0], t);
}
Any ArangeOf(Conversion& c, const Any& begin, const Any& end, Any step, size_t dtype) {
  bool is_float = false, is_symbolic = false;
  for (const Any& bound : {begin, end, step}) {
    is_float |= bound.type_index() == kTVMFFIFloat;
    is_symbolic |= bound.as<PrimExprObj>() != nullptr;
  }
  DataType t = c.Type(dtype, is_float ? c.default_dtype() : DataType::Int(64));
  // Sizes are integers: a step of -1.0 between them is counted in integers.
  if (auto real = step.try_cast<double>(); is_symbolic && real && *real == std::trunc(*real)) {
    step = static_cast<int64_t>(*real);
  }
  return c.Emit("arange", begin, end, step, t);
}
Any ArangeTo(Conversion& c) { return ArangeOf(c, 0, c[0], 1, 1); }
Any ArangeFrom(Conversion& c) { return ArangeOf(c, c[0], c[1], 1, 2); }
Any ArangeStep(Conversion& c) { return ArangeOf(c, c[0], c[1], c[2], 3); }
Any Eye(Conversion& c, const Any& rows, const Any& columns, size_t dtype) {
  return c.Emit("eye", PrimValue(AsSize(rows)), PrimValue(AsSize(columns)), PrimValue::Int64(0),
                c.Type(dtype, c.default_dtype()));
}
Any EyeSquare(Conversion& c) { return Eye(c, c[0], c[0], 1); }
Any EyeMatrix(Conversion& c) { return Eye(c, c[0], c[1], 2); }
/// n numbers from `start` to `end`, both included.
Any Linspace(Conversion& c) {
  double start = c.Number(0), end = c.Number(1);
  int64_t n = c.Int(2);
  DataType t = c.Type(3, c.default_dtype());
  if (n < 2) return FullOf(c, {IntImm::Int64(n)}, start, t);
  double step = (end - start) / static_cast<double>(n - 1);
  return c.Emit("arange", start, end + step / 2, step, t);
}
Any OneHot(Conversion& c) {
  int64_t classes = c.Int(1);
  if (classes < 0) {
    TVM_REFUSE(c, ValueError) << "num_classes: expected the number of classes, got " << classes;
  }
  return c.Emit("one_hot", c.Tensor(0), PrimValue::Int64(1), PrimValue::Int64(0), classes, -1);
}
Any HammingWindow(Conversion& c) {
  DataType t = c.Type(4, c.default_dtype());
  return c.Emit("hamming_window", c.Int(0), static_cast<int64_t>(c.Flag(1)), c.Number(2),
                c.Number(3), t);
}
Any HammingWindowPlain(Conversion& c) {
  return c.Emit("hamming_window", c.Int(0), static_cast<int64_t>(c.Flag(1)), 0.54, 0.46,
                c.Type(2, c.default_dtype()));
}

// ---- types --------------------------------------------------------------------------------------
Any To(Conversion& c) {
  Expr x = c.Tensor(0);
  if (!c.Given(1)) return x;
  DataType t = c.Type(1, TypeOf(x));
  // Any number but 0 is true.
  if (t.is_bool() && !TypeOf(x).is_bool()) return c.Emit("not_equal", x, c.Const(0.0, TypeOf(x)));
  return c.Emit("astype", x, t);
}
Any ToDevice(Conversion& c) {
  Expr x = c.Tensor(0);
  return c.Given(2) ? c.Emit("astype", x, c.Type(2, TypeOf(x))) : x;
}
Any TypeAs(Conversion& c) { return c.Emit("astype", c.Tensor(0), TypeOf(c.Tensor(1))); }
/// The source in the type and shape of the destination.
Any Copy(Conversion& c) {
  Expr to = c.Tensor(0);
  return c.BroadcastTo(c.As(c[1], TypeOf(to)), ShapeOf(to));
}

// ---- padding ------------------------------------------------------------------------------------
/// PyTorch's pairs begin with the last dimension.
Expr PadOf(Conversion& c, const std::vector<int64_t>& pairs, const char* mode, double value) {
  Expr x = c.Tensor(0);
  std::vector<int64_t> widths(2 * RankOf(x), 0);
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    widths[widths.size() - 2 - i] = pairs[i];
    widths[widths.size() - 1 - i] = pairs[i + 1];
  }
  return c.Emit("nn.pad", x, AnyArray(widths), String(mode), value);
}
/// Widths that only running tells: what is added stands beside the tensor.
Any ConstantPad(Conversion& c) {
  Dims pairs = c.Sizes(1);
  auto is_known = [](const PrimExpr& width) { return AsConstInt(width).has_value(); };
  if (std::all_of(pairs.begin(), pairs.end(), is_known)) {
    return PadOf(c, c.Ints(1), "constant", c.Number(2));
  }
  Expr x = c.Tensor(0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (IsZero(pairs[i])) continue;
    int64_t axis = RankOf(x) - 1 - static_cast<int64_t>(i / 2);
    Dims shape = ShapeOf(x);
    shape.Set(axis, pairs[i]);
    Expr added = FullOf(c, shape, c[2], TypeOf(x));
    Array<Expr> parts = i % 2 ? Array<Expr>{x, added} : Array<Expr>{added, x};
    x = c.Emit("concat", relax::Tuple(parts), axis);
  }
  return x;
}
Any Pad(Conversion& c) { return PadOf(c, c.Ints(1), c.Text(2).c_str(), c.Number(3, 0)); }
Any PadMode(Conversion& c) { return PadOf(c, c.Ints(1), c.op, 0); }

TVM_REGISTER() {
  Converter("full.default", "size, fill_value, dtype=None", &Full);
  Converter("zeros.default empty.memory_format _efficientzerotensor.default", "size, dtype=None",
            &Zeros);
  Converter("ones.default", "size, dtype=None", &Ones);
  Converter("empty_strided.default", "size, stride, dtype=None", &EmptyPermuted);
  Converter("empty_permuted.default", "size, physical_layout, dtype=None", &EmptyPermuted);
  Converter("new_full.default", "self, size, fill_value, dtype=None", &NewFull);
  Converter("new_ones.default", "self, size, dtype=None", &NewOnes);
  Converter("new_zeros.default new_empty.default", "self, size, dtype=None", &NewZeros);
  Converter("new_empty_strided.default", "self, size, stride, dtype=None", &NewEmptyStrided);
  Converter("zeros_like.default empty_like.default", "self, dtype=None", &LikeOf, "zeros_like");
  Converter("ones_like.default", "self, dtype=None", &LikeOf, "ones_like");
  Converter("zero.default", "self, dtype=None", &LikeOf, "zeros_like");
  Converter("full_like.default", "self, fill_value, dtype=None", &FullLike);
  Converter("fill.Scalar fill.Tensor", "self, value", &Fill);
  Converter("scalar_tensor.default", "s, dtype=None", &ScalarTensor);
  Converter("arange.default", "end, dtype=None", &ArangeTo);
  Converter("arange.start", "start, end, dtype=None", &ArangeFrom);
  Converter("arange.start_step", "start, end, step=1, dtype=None", &ArangeStep);
  Converter("eye.default", "n, dtype=None", &EyeSquare);
  Converter("eye.m", "n, m, dtype=None", &EyeMatrix);
  Converter("linspace.default", "start, end, steps, dtype=None", &Linspace);
  Converter("one_hot.default", "self, num_classes=-1", &OneHot);
  Converter("hamming_window.periodic_alpha_beta",
            "window_length, periodic, alpha, beta, dtype=None", &HammingWindow);
  Converter("hamming_window.periodic", "window_length, periodic, dtype=None", &HammingWindowPlain);
  Converter("to.dtype", "self, dtype, non_blocking=False, copy=False, memory_format=None", &To);
  Converter("_to_copy.default", "self, dtype=None", &To);
  Converter("prims.convert_element_type.default", "a, dtype", &To);
  Converter("lift_fresh_copy.default", "self, dtype=None", &To);
  Converter("to.device",
            "self, device, dtype=None, non_blocking=False, copy=False, "
            "memory_format=None",
            &ToDevice);
  Converter("to.dtype_layout", "self, dtype=None", &To);
  Converter("type_as.default to.other", "self, other", &TypeAs);
  Converter("copy.default", "self, src, non_blocking=False", &Copy);
  Converter("constant_pad_nd.default", "self, pad, value=0", &ConstantPad);
  Converter("pad.default", "self, pad, mode='constant', value=None", &Pad);
  Converter("reflection_pad1d.default reflection_pad2d.default reflection_pad3d.default",
            "self, padding", &PadMode, "reflect");
  Converter("replication_pad1d.default replication_pad2d.default replication_pad3d.default",
            "self, padding", &PadMode, "replicate");
  Converter("_pad_circular.default", "self, pad", &PadMode, "circular");
}

}  // namespace
}  // namespace tvm::frontend::torch
