// SPDX-License-Identifier: Apache-2.0
// Functions of two elements, which broadcast, and of sizes.
#include <cmath>

#include "converter.h"
#include "elementwise.h"

namespace tvm::frontend::torch {
namespace {

/// Two numbers, of which one is symbolic or both are plain: the function of Python.
bool AreNumbers(const Conversion& c) { return IsNumber(c[0]) && IsNumber(c[1]); }

/// Whether the sizes of two tensors are provably those of one broadcast.
bool Broadcasts(const Conversion& c, const Expr& a, const Expr& b) {
  const Dims *x = IsTensor(a) ? DimsOf(InfoOf(a)) : nullptr,
             *y = IsTensor(b) ? DimsOf(InfoOf(b)) : nullptr;
  if (!x || !y) return true;
  for (size_t i = 1; i <= std::min(x->size(), y->size()); ++i) {
    const PrimExpr &m = (*x)[x->size() - i], &n = (*y)[y->size() - i];
    if (!IsOne(m) && !IsOne(n) && !c.Equal(m, n)) return false;
  }
  return true;
}
/// An operand with the sizes of the node's result, which the exporter knows by more than we do:
/// the ranges of symbols, and what the program checked. They are checked when it runs.
Expr WithSizesOfResult(Conversion& c, const Expr& x) {
  StructInfo info = c.importer()->StructInfoOf(c.meta());
  auto* result = info.as<TensorStructInfoObj>();
  const Dims* known = result ? DimsOf(result) : nullptr;
  Dims dims = ShapeOf(x);
  if (!known || known->size() < dims.size()) return x;
  for (size_t i = 1; i <= dims.size(); ++i) {
    size_t at = dims.size() - i;
    if (!IsOne(dims[at])) dims.Set(at, (*known)[known->size() - i]);
  }
  return c.bb->EmitMatchCast(x, relax::TensorStructInfo(dims, TypeOf(x)));
}
Expr Arithmetic(Conversion& c, const char* op, const Any& a, const Any& b) {
  DataType t = c.ResultType({a, b});
  // Sums and products of truth values are truth values.
  if (t.is_bool() && std::string_view(op) == "add") op = "logical_or";
  if (t.is_bool() && std::string_view(op) == "multiply") op = "logical_and";
  Expr left = c.As(a, t), right = c.As(b, t);
  if (!Broadcasts(c, left, right)) {
    left = WithSizesOfResult(c, left);
    right = WithSizesOfResult(c, right);
  }
  return c.Emit(op, left, right);
}
Any Binary(Conversion& c) { return Arithmetic(c, c.op, c[0], c[1]); }
/// Operands that are not real numbers yet become such.
Any RealBinary(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  if (IsIntegral(t)) t = c.default_dtype();
  Expr left = c.As(c[0], t);
  return c.Emit(c.op, left, c.As(c[1], t));
}
/// x + alpha * y
Any Scaled(Conversion& c) {
  Any other = c[1];
  if (!(c[2].try_cast<double>() == 1.0)) {
    other = IsTensor(other) ? Any(Arithmetic(c, "multiply", other, c[2]))
                            : Any(c.Number(1) * c.Number(2));
  }
  if (!IsTensor(c[0])) return Arithmetic(c, c.op, c.As(c[0], c.ResultType({c[0], other})), other);
  return Arithmetic(c, c.op, c[0], other);
}
Any ReversedSubtract(Conversion& c) {
  Any self = c[0];
  if (!(c[2].try_cast<double>() == 1.0)) self = Arithmetic(c, "multiply", self, c[2]);
  return Arithmetic(c, "subtract", c[1], self);
}
Any Logical(Conversion& c) {
  Expr left = ToBool(c, c.Tensor(0));
  return c.Emit(c.op, left, ToBool(c, c.Tensor(1)));
}
/// Bits of bool are its truth.
Any Bitwise(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  Expr left = c.As(c[0], t), right = c.As(c[1], t);
  std::string name = c.op;
  if (t.is_bool()) name.replace(0, 7, "logical");
  return c.Emit(name.c_str(), left, right);
}
Any Divide(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  std::string mode = c.Given(2) ? c.Text(2) : "";
  if (mode.empty() && IsIntegral(t)) t = c.default_dtype();
  Expr left = c.As(c[0], t), right = c.As(c[1], t);
  if (mode == "floor") return c.Emit("floor_divide", left, right);
  if (!mode.empty() && mode != "trunc") {
    TVM_REFUSE(c, ValueError) << "rounding_mode: expected None, 'floor' or 'trunc', got '" << mode
                              << "'";
  }
  Expr quotient = c.Emit("divide", left, right);
  return mode == "trunc" && !IsIntegral(t) ? c.Emit("trunc", quotient) : quotient;
}
Any Power(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1]});
  if (t.is_bool()) t = DataType::Int(64);
  Expr left = c.As(c[0], t);
  return c.Emit("power", left, c.As(c[1], t));
}

using BinaryMath = PrimExpr (*)(const PrimExpr&, const PrimExpr&);
/// One kernel for a function that the graph has no operator for.
Any MathOf(Conversion& c, const char* name, BinaryMath math, bool is_real = true) {
  DataType t = c.ResultType({c[0], c[1]});
  if (is_real && IsIntegral(t)) t = c.default_dtype();
  auto tensor = [&](const Any& operand) {
    Expr x = c.As(operand, t);
    return IsTensor(x) ? x : c.Emit("full", ShapeExpr(Dims()), x, t);
  };
  Expr left = tensor(c[0]);
  return Elementwise(c, name, {left, tensor(c[1])},
                     [&](const std::vector<PrimExpr>& v) { return math(v[0], v[1]); });
}
Any Atan2(Conversion& c) {
  return MathOf(c, "atan2", [](const PrimExpr& a, const PrimExpr& b) { return atan2(a, b); });
}
Any Hypot(Conversion& c) {
  return MathOf(c, "hypot", [](const PrimExpr& a, const PrimExpr& b) { return hypot(a, b); });
}
Any CopySign(Conversion& c) {
  return MathOf(c, "copysign", [](const PrimExpr& a, const PrimExpr& b) { return copysign(a, b); });
}
Any NextAfter(Conversion& c) {
  return MathOf(c, "nextafter",
                [](const PrimExpr& a, const PrimExpr& b) { return nextafter(a, b); });
}
Any FMax(Conversion& c) {
  return MathOf(
      c, "fmax",
      [](const PrimExpr& a, const PrimExpr& b) -> PrimExpr {
        if (!a.dtype().is_float()) return max(a, b);
        return tir::Select(isnan(a), b, tir::Select(isnan(b), a, max(a, b)));
      },
      false);
}
Any FMin(Conversion& c) {
  return MathOf(
      c, "fmin",
      [](const PrimExpr& a, const PrimExpr& b) -> PrimExpr {
        if (!a.dtype().is_float()) return min(a, b);
        return tir::Select(isnan(a), b, tir::Select(isnan(b), a, min(a, b)));
      },
      false);
}
Any Heaviside(Conversion& c) {
  return MathOf(
      c, "heaviside",
      [](const PrimExpr& x, const PrimExpr& at_zero) -> PrimExpr {
        PrimExpr zero = MakeConst(x.dtype(), 0), one = MakeConst(x.dtype(), 1);
        PrimExpr step = tir::Select(x < zero, zero, tir::Select(equal(x, zero), at_zero, one));
        return x.dtype().is_float() ? PrimExpr(tir::Select(isnan(x), x, step)) : step;
      },
      false);
}

// ---- sizes --------------------------------------------------------------------------------------
using SizeFn = PrimExpr (*)(PrimExpr, PrimExpr);
PrimExpr Plus(PrimExpr a, PrimExpr b) { return a + b; }
PrimExpr Minus(PrimExpr a, PrimExpr b) { return a - b; }
PrimExpr Times(PrimExpr a, PrimExpr b) { return a * b; }
PrimExpr FloorDivide(PrimExpr a, PrimExpr b) { return floordiv(a, b); }
PrimExpr FloorModulo(PrimExpr a, PrimExpr b) { return floormod(a, b); }
PrimExpr Larger(PrimExpr a, PrimExpr b) { return max(a, b); }
PrimExpr Smaller(PrimExpr a, PrimExpr b) { return min(a, b); }
struct SizeRow {
  const char *targets, *tensor_op;
  SizeFn fn;
};
constexpr SizeRow kSizes[] = {
    {"_operator.add", "add", &Plus},
    {"_operator.sub", "subtract", &Minus},
    {"_operator.mul", "multiply", &Times},
    {"_operator.floordiv", "floor_divide", &FloorDivide},
    {"_operator.mod", "floor_mod", &FloorModulo},
    {"torch.sym_max", "maximum", &Larger},
    {"torch.sym_min", "minimum", &Smaller},
    {"_operator.ge", "greater_equal", [](PrimExpr a, PrimExpr b) { return a >= b; }},
    {"_operator.gt", "greater", [](PrimExpr a, PrimExpr b) { return a > b; }},
    {"_operator.le", "less_equal", [](PrimExpr a, PrimExpr b) { return a <= b; }},
    {"_operator.lt", "less", [](PrimExpr a, PrimExpr b) { return a < b; }},
    {"_operator.eq", "equal", [](PrimExpr a, PrimExpr b) { return equal(a, b); }},
    {"_operator.ne", "not_equal", [](PrimExpr a, PrimExpr b) { return not_equal(a, b); }},
    {"_operator.and_", "bitwise_and", [](PrimExpr a, PrimExpr b) { return a && b; }},
    {"_operator.or_", "bitwise_or", [](PrimExpr a, PrimExpr b) { return a || b; }},
};
/// A number of Python, or an expression of sizes, in its own type.
PrimExpr AsNumber(const Any& value) {
  if (value.type_index() == kTVMFFIBool) return IntImm::Bool(value.cast<bool>());
  if (value.type_index() == kTVMFFIFloat) {
    return FloatImm(DataType::Float(64), value.cast<double>());
  }
  if (auto* e = value.as<PrimExprObj>()) return ffi::GetRef<PrimExpr>(e);
  return AsSize(value);
}
/// The arithmetic of Python on sizes; on tensors it is that of theirs.
Any SizeArithmetic(Conversion& c) {
  if (!AreNumbers(c)) return Arithmetic(c, c.op, c[0], c[1]);
  for (const SizeRow& row : kSizes) {
    if (std::string_view(row.tensor_op) != c.op) continue;
    PrimExpr result = c.Simplify(row.fn(AsNumber(c[0]), AsNumber(c[1])));
    if (auto* number = result.as<IntImmObj>(); number && !number->dtype.is_bool()) {
      return number->value;
    }
    return result;
  }
  TVM_FFI_UNREACHABLE();
}
Any TrueDivide(Conversion& c) {
  if (!AreNumbers(c)) return Divide(c);
  return div(cast(DataType::Float(64), AsNumber(c[0])), cast(DataType::Float(64), AsNumber(c[1])));
}
Any NegateSize(Conversion& c) {
  if (IsTensor(c[0])) return c.Emit("negative", c.Tensor(0));
  return c.Simplify(neg(AsNumber(c[0])));
}
Any PowerOfSize(Conversion& c) {
  if (!AreNumbers(c)) return Arithmetic(c, "power", c[0], c[1]);
  PrimExpr base = AsNumber(c[0]), result = MakeConst(base.dtype(), 1);
  for (int64_t i = 0; i < c.Int(1); ++i) result = result * base;
  return c.Simplify(result);
}
Any SizeOf(Conversion& c) {
  Expr x = c.Tensor(0);
  return ShapeOf(x)[c.Axis(1, RankOf(x))];
}
Any NumElements(Conversion& c) { return c.Simplify(Count(ShapeOf(c.Tensor(0)))); }
/// What PyTorch knows of the stride, which an input may bring as a number of its own; without that
/// the one of row-major order, in which all of ours lie.
Any StrideOf(Conversion& c) {
  if (auto* meta = c.meta().as<ScalarMetaObj>()) return c.importer()->symbols.Size(meta->expr);
  Dims dims = ShapeOf(c.Tensor(0));
  PrimExpr stride = IntImm::Int64(1);
  for (size_t i = c.Axis(1, dims.size()) + 1; i < dims.size(); ++i) stride = stride * dims[i];
  return c.Simplify(stride);
}
Any FloatOfSize(Conversion& c) {
  if (auto* e = c[0].as<PrimExprObj>()) return cast(DataType::Float(64), ffi::GetRef<PrimExpr>(e));
  return c[0].try_cast<double>() ? Any(c.Number(0)) : c[0];
}
Any IntOfNumber(Conversion& c) {
  auto* e = c[0].as<PrimExprObj>();
  if (!e) return static_cast<int64_t>(c.Number(0));
  PrimExpr x = ffi::GetRef<PrimExpr>(e);
  if (!x.dtype().is_float()) return x;
  PrimExpr rounded = std::string_view(c.op) == "ceil"    ? ceil(x)
                     : std::string_view(c.op) == "floor" ? floor(x)
                                                         : trunc(x);
  return cast(DataType::Int(64), rounded);
}
/// Assertions of the exporter: what they say is checked with the arguments' shapes.
Any Nothing(Conversion& c) { return c[0]; }

Any ChosenNumber(Conversion& c) {
  return c.Simplify(tir::Select(AsNumber(c[0]), AsNumber(c[1]), AsNumber(c[2])));
}
Any SumOfSizes(Conversion& c) {
  PrimExpr sum = IntImm::Int64(0);
  for (const PrimExpr& size : c.Sizes(0)) sum = sum + size;
  return c.Simplify(sum);
}

Any MultiplyAdd(Conversion& c) {
  DataType t = c.ResultType({c[0], c[1], c[2]});
  return c.Emit("add", c.Emit("multiply", c.As(c[0], t), c.As(c[1], t)), c.As(c[2], t));
}
/// Tensors lie in row-major order, from the beginning of their memory.
Any IsContiguous(Conversion& c) {
  std::string format = c.Given(1) ? c.Text(1) : "torch.contiguous_format";
  if (format != "torch.contiguous_format") {
    TVM_REFUSE(c, NotImplementedError)
        << "memory_format: expected torch.contiguous_format, got " << format;
  }
  return true;
}
Any StorageOffset(Conversion& c) { return int64_t{0}; }

TVM_REGISTER() {
  const char* schema = "self, other";
  struct Row {
    const char *overloads, *op;
    ConvertFn convert;
  };
  static constexpr Row kRows[] = {
      {"mul.Tensor mul.Scalar", "multiply", &Binary},
      {"remainder.Tensor remainder.Scalar remainder.Scalar_Tensor", "floor_mod", &Binary},
      {"fmod.Tensor fmod.Scalar", "mod", &Binary},
      {"floor_divide.default floor_divide.Scalar", "floor_divide", &Binary},
      {"eq.Tensor eq.Scalar", "equal", &Binary},
      {"ne.Tensor ne.Scalar", "not_equal", &Binary},
      {"lt.Tensor lt.Scalar", "less", &Binary},
      {"le.Tensor le.Scalar", "less_equal", &Binary},
      {"gt.Tensor gt.Scalar", "greater", &Binary},
      {"ge.Tensor ge.Scalar", "greater_equal", &Binary},
      {"maximum.default max.other", "maximum", &Binary},
      {"minimum.default min.other", "minimum", &Binary},
      {"logaddexp.default", "log_add_exp", &RealBinary},
      {"bitwise_and.Tensor bitwise_and.Scalar bitwise_and.Scalar_Tensor __and__.Tensor "
       "__and__.Scalar",
       "bitwise_and", &Bitwise},
      {"bitwise_or.Tensor bitwise_or.Scalar bitwise_or.Scalar_Tensor "
       "__or__.Tensor __or__.Scalar",
       "bitwise_or", &Bitwise},
      {"bitwise_xor.Tensor bitwise_xor.Scalar bitwise_xor.Scalar_Tensor __xor__.Tensor "
       "__xor__.Scalar",
       "bitwise_xor", &Bitwise},
      {"bitwise_left_shift.Tensor bitwise_left_shift.Tensor_Scalar "
       "bitwise_left_shift.Scalar_Tensor "
       "__lshift__.Tensor __lshift__.Scalar",
       "left_shift", &Binary},
      {"bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar "
       "bitwise_right_shift.Scalar_Tensor __rshift__.Tensor __rshift__.Scalar",
       "right_shift", &Binary},
      {"logical_and.default", "logical_and", &Logical},
      {"logical_or.default", "logical_or", &Logical},
      {"logical_xor.default", "logical_xor", &Logical},
      {"atan2.default", nullptr, &Atan2},
      {"hypot.default", nullptr, &Hypot},
      {"copysign.Tensor copysign.Scalar", nullptr, &CopySign},
      {"nextafter.default", nullptr, &NextAfter},
      {"fmax.default", nullptr, &FMax},
      {"fmin.default", nullptr, &FMin},
  };
  for (const Row& row : kRows) Converter(row.overloads, schema, row.convert, row.op);
  Converter("prims.fma.default", "a, b, c", &MultiplyAdd);
  Converter("heaviside.default", "self, values", &Heaviside);
  Converter("add.Tensor add.Scalar", "self, other, alpha=1", &Scaled, "add");
  Converter("sub.Tensor sub.Scalar", "self, other, alpha=1", &Scaled, "subtract");
  Converter("rsub.Tensor rsub.Scalar", "self, other, alpha=1", &ReversedSubtract);
  Converter("div.Tensor div.Scalar true_divide.Tensor div.Tensor_mode div.Scalar_mode",
            "self, other, rounding_mode=None", &Divide);
  Converter("pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar", "self, exponent", &Power);

  for (const SizeRow& row : kSizes) {
    Converter(row.targets, "a, b", &SizeArithmetic, row.tensor_op);
  }
  Converter("_operator.truediv", "a, b, rounding_mode=None", &TrueDivide);
  Converter("_operator.neg", "a", &NegateSize);
  Converter("_operator.pow", "a, b", &PowerOfSize);
  Converter("sym_size.int", "self, dim", &SizeOf);
  Converter("torch.sym_sum", "args", &SumOfSizes);
  Converter("torch.sym_ite", "b, t, f", &ChosenNumber);
  Converter("sym_stride.int", "self, dim", &StrideOf);
  Converter("sym_numel.default", "self", &NumElements);
  Converter("sym_is_contiguous.default", "self, memory_format=None", &IsContiguous);
  Converter("sym_storage_offset.default", "self", &StorageOffset);
  Converter("torch.sym_float torch.sym_int_to_float", "a", &FloatOfSize);
  Converter("math.ceil", "a", &IntOfNumber, "ceil");
  Converter("math.floor", "a", &IntOfNumber, "floor");
  Converter("math.trunc torch.sym_int", "a", &IntOfNumber, "trunc");
  Converter("_assert_scalar.default", "self, assert_msg=None", &Nothing);
  Converter("_assert_tensor_metadata.default",
            "a, size=None, stride=None, dtype=None, device=None, layout=None", &Nothing);
  Converter("_assert_async.msg _assert_async.default", "self, assert_msg=None", &Nothing);
  Converter("sym_constrain_range_for_size.default sym_constrain_range.default",
            "size, min=None, max=None", &Nothing);
}

}  // namespace
}  // namespace tvm::frontend::torch
