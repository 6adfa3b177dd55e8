// SPDX-License-Identifier: Apache-2.0
// Complex numbers as pairs of tensors, and Fourier transforms as products with matrices.
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>
#include <set>
#include <sstream>

#include "complex.h"
#include "elementwise.h"
#include "network.h"
#include "tvm/runtime/tensor.h"

namespace tvm::frontend::torch {

Complex::Complex(Expr real, Expr imag) {
  auto node = ffi::make_object<ComplexObj>();
  node->real = std::move(real);
  node->imag = std::move(imag);
  data_ = std::move(node);
}
namespace {
constexpr std::pair<const char*, const char*> kComplexTypes[] = {
    {"complex32", "float16"}, {"complex64", "float32"}, {"complex128", "float64"}};
const char* PartType(const String& dtype) {
  for (const auto& [complex, part] : kComplexTypes) {
    if (dtype == complex) return part;
  }
  return nullptr;
}
}  // namespace
std::optional<size_t> ComplexTypeOf(const std::vector<Any>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    auto text = args[i].try_cast<String>();
    if (text && PartType(*text)) return i;
  }
  return std::nullopt;
}
String PartTypeOf(const String& dtype) { return PartType(dtype); }
bool IsComplexMeta(const Any& meta) {
  auto* tensor = meta.as<TensorMetaObj>();
  return tensor && PartType(tensor->dtype);
}
bool HasComplex(const Any& arg) {
  if (arg.as<ComplexObj>()) return true;
  auto list = ListOf(arg);
  return list && std::any_of((*list).begin(), (*list).end(), &HasComplex);
}
Any PartOf(const Any& arg, bool imag) {
  if (auto* value = arg.as<ComplexObj>()) return imag ? value->imag : value->real;
  auto list = ListOf(arg);
  if (!list) return arg;
  Array<Any> parts;
  for (const Any& item : *list) parts.push_back(PartOf(item, imag));
  return parts;
}
Any FromParts(const Any& real, const Any& imag) {
  auto reals = ListOf(real), imags = ListOf(imag);
  if (!reals || !imags) return Complex(real.cast<Expr>(), imag.cast<Expr>());
  Array<Any> values;
  for (size_t i = 0; i < (*reals).size(); ++i) {
    values.push_back(FromParts((*reals)[i], (*imags)[i]));
  }
  return values;
}
bool IsPartwise(const std::string& target) {
  // Shapes, positions, sums: what acts on each part alone.
  static const std::set<std::string> partwise = {"aten.alias.default",
                                                 "aten.as_strided.default",
                                                 "aten.cat.default",
                                                 "aten.clone.default",
                                                 "aten.constant_pad_nd.default",
                                                 "aten.copy.default",
                                                 "aten.cumsum.default",
                                                 "aten.detach.default",
                                                 "aten.diagonal.default",
                                                 "aten.diagonal_scatter.default",
                                                 "aten.diag_embed.default",
                                                 "aten.empty_like.default",
                                                 "aten.expand.default",
                                                 "aten.flip.default",
                                                 "aten.gather.default",
                                                 "aten.index.Tensor",
                                                 "aten.index_put.default",
                                                 "aten.index_select.default",
                                                 "aten.mean.default",
                                                 "aten.mean.dim",
                                                 "aten.narrow.default",
                                                 "aten.narrow_copy.default",
                                                 "aten.neg.default",
                                                 "aten.new_empty.default",
                                                 "aten.new_empty_strided.default",
                                                 "aten.new_zeros.default",
                                                 "aten.permute.default",
                                                 "aten.repeat.default",
                                                 "aten.reshape.default",
                                                 "aten.roll.default",
                                                 "aten.scatter_add.default",
                                                 "aten.select.int",
                                                 "aten.select_scatter.default",
                                                 "aten.slice.Tensor",
                                                 "aten.slice_scatter.default",
                                                 "aten.split.Tensor",
                                                 "aten.split_with_sizes.default",
                                                 "aten.squeeze.default",
                                                 "aten.squeeze.dim",
                                                 "aten.squeeze.dims",
                                                 "aten.stack.default",
                                                 "aten.sum.default",
                                                 "aten.sum.dim_IntList",
                                                 "aten.t.default",
                                                 "aten.transpose.int",
                                                 "aten.tril.default",
                                                 "aten.triu.default",
                                                 "aten.unfold.default",
                                                 "aten.unbind.int",
                                                 "aten.unsqueeze.default",
                                                 "aten.view.default",
                                                 "aten.zeros_like.default",
                                                 "_operator.getitem"};
  return partwise.count(target);
}

namespace {

std::map<std::string, ConverterInfo>& ComplexConverters() {
  static auto* table = new std::map<std::string, ConverterInfo>();
  return *table;
}
/// Registered apart from the converter for real arguments.
void ForComplex(const char* overloads, size_t params, ConvertFn convert) {
  std::stringstream names(overloads);
  for (std::string name; names >> name;) {
    ConverterInfo info{std::vector<std::string>(params, "arg"), {}, convert, nullptr};
    if (const ConverterInfo* real = FindConverter("aten." + name)) info = *real;
    info.convert = convert;
    ComplexConverters()["aten." + name] = info;
  }
}

/// The parts of an argument; a real one, or a number, has the imaginary part 0.
struct Parts {
  Expr re, im;
};
Parts PartsOf(Conversion& c, size_t i, DataType t) {
  if (auto* value = c[i].as<ComplexObj>()) return {value->real, value->imag};
  Expr x = c.As(c[i], t);
  return {x, c.Const(0.0, t)};
}
DataType TypeOfComplex(const Conversion& c) {
  for (size_t i = 0; i < 2; ++i) {
    if (auto* value = c[i].as<ComplexObj>()) return TypeOf(value->real);
  }
  return c.default_dtype();
}
Expr Plus(Conversion& c, const Expr& a, const Expr& b) { return c.Emit("add", a, b); }
Expr Minus(Conversion& c, const Expr& a, const Expr& b) { return c.Emit("subtract", a, b); }
Expr Times(Conversion& c, const Expr& a, const Expr& b) { return c.Emit("multiply", a, b); }

Any ComplexAdd(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  return Complex(Plus(c, a.re, b.re), Plus(c, a.im, b.im));
}
Any ComplexSubtract(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  return Complex(Minus(c, a.re, b.re), Minus(c, a.im, b.im));
}
Any ComplexMultiply(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  if (!c[1].as<ComplexObj>()) return Complex(Times(c, a.re, b.re), Times(c, a.im, b.re));
  if (!c[0].as<ComplexObj>()) return Complex(Times(c, a.re, b.re), Times(c, a.re, b.im));
  return Complex(Minus(c, Times(c, a.re, b.re), Times(c, a.im, b.im)),
                 Plus(c, Times(c, a.re, b.im), Times(c, a.im, b.re)));
}
Any ComplexDivide(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  if (!c[1].as<ComplexObj>()) {
    return Complex(c.Emit("divide", a.re, b.re), c.Emit("divide", a.im, b.re));
  }
  Expr size = Plus(c, Times(c, b.re, b.re), Times(c, b.im, b.im));
  Expr re = Plus(c, Times(c, a.re, b.re), Times(c, a.im, b.im));
  Expr im = Minus(c, Times(c, a.im, b.re), Times(c, a.re, b.im));
  return Complex(c.Emit("divide", re, size), c.Emit("divide", im, size));
}
Expr EqualParts(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  return c.Emit("logical_and", c.Emit("equal", a.re, b.re), c.Emit("equal", a.im, b.im));
}
Any ComplexEqual(Conversion& c) { return EqualParts(c); }
Any ComplexNotEqual(Conversion& c) { return c.Emit("logical_not", EqualParts(c)); }
Any ComplexAbs(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  return c.Emit("sqrt", Plus(c, Times(c, x->real, x->real), Times(c, x->imag, x->imag)));
}
/// x / |x|, and 0 of 0.
Any ComplexSign(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  Expr size = ComplexAbs(c).cast<Expr>(), zero = c.Const(0.0, TypeOf(size));
  size = c.Emit("where", c.Emit("equal", size, zero), c.Const(1.0, TypeOf(size)), size);
  return Complex(c.Emit("divide", x->real, size), c.Emit("divide", x->imag, size));
}
Any ComplexFill(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  Parts value = PartsOf(c, 1, TypeOf(x->real));
  return Complex(c.Emit("full_like", x->real, value.re), c.Emit("full_like", x->imag, value.im));
}
/// (A + B i) (x + y i) = p + q i as a real system [[A, -B], [B, A]] [x, y] = [p, q].
Any ComplexSolve(Conversion& c) {
  DataType t = TypeOfComplex(c);
  Parts a = PartsOf(c, 0, t), b = PartsOf(c, 1, t);
  if (!c.Flag(2) || c.Used(1) || c.Used(2)) {
    TVM_REFUSE(c, NotImplementedError) << "expected left=True and no use of the factors";
  }
  auto zeros_for = [&](size_t i, const Parts& p) {
    return c[i].as<ComplexObj>() ? p.im : c.Emit("zeros_like", p.re);
  };
  a.im = zeros_for(0, a);
  b.im = zeros_for(1, b);
  bool is_vector = RankOf(b.re) < RankOf(a.re);
  int64_t row = is_vector ? -1 : -2;
  auto joined = [&](const Expr& first, const Expr& second, int64_t axis) {
    return c.Emit("concat", Tuple({first, second}), axis);
  };
  Expr matrix = joined(joined(a.re, c.Emit("negative", a.im), -1), joined(a.im, a.re, -1), -2);
  Array<Any> args = {matrix, joined(b.re, b.im, row), true, false};
  Array<Any> solved = c.importer()->Apply("aten._linalg_solve_ex.default", args).cast<Array<Any>>();
  Expr x = solved[0].cast<Expr>();
  Expr parts = c.Emit("split", x, 2, RankOf(x) + row);
  Complex result(c.Bind(TupleGetItem(parts, 0)), c.Bind(TupleGetItem(parts, 1)));
  return Array<Any>{result, nullptr, nullptr, solved[3]};
}
Any ComplexReal(Conversion& c) { return c[0].as<ComplexObj>()->real; }
Any ComplexImag(Conversion& c) { return c[0].as<ComplexObj>()->imag; }
Any ComplexConj(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  return Complex(x->real, c.Emit("negative", x->imag));
}
Any ComplexWhere(Conversion& c) {
  auto* known = (c[1].as<ComplexObj>() ? c[1] : c[2]).as<ComplexObj>();
  DataType t = TypeOf(known->real);
  Parts a = PartsOf(c, 1, t), b = PartsOf(c, 2, t);
  Expr condition = c.Tensor(0);
  return Complex(c.Emit("where", condition, a.re, b.re), c.Emit("where", condition, a.im, b.im));
}
/// (a + b i) (c + d i) of matrices.
Any ComplexProduct(Conversion& c) {
  DataType t = TypeOfComplex(c);
  auto product = [&](bool left_imag, bool right_imag) {
    auto part = [&](size_t i, bool imag) {
      auto* value = c[i].as<ComplexObj>();
      return !value ? c.As(c[i], t) : imag ? value->imag : value->real;
    };
    return MatMul(c, part(0, left_imag), part(1, right_imag));
  };
  bool left = c[0].as<ComplexObj>(), right = c[1].as<ComplexObj>();
  if (!left) return Complex(product(false, false), product(false, true));
  if (!right) return Complex(product(false, false), product(true, false));
  return Complex(Minus(c, product(false, false), product(true, true)),
                 Plus(c, product(false, true), product(true, false)));
}
Any ComplexAngle(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  return c.importer()->Apply("aten.atan2.default", {x->imag, x->real});
}
Any ComplexSame(Conversion& c) { return c[0]; }
/// To other parts; a real type drops the imaginary one.
Any ComplexTo(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  if (!c.Given(1)) return c[0];
  DataType t = c.Type(1, TypeOf(x->real));
  bool stays = IsComplexMeta(c.meta());
  return stays ? Any(Complex(c.Cast(x->real, t), c.Cast(x->imag, t))) : Any(c.Cast(x->real, t));
}
Any ViewAsReal(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  return c.Emit("stack", relax::Tuple({x->real, x->imag}), -1);
}
Any ComplexExp(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  Expr size = c.Emit("exp", x->real);
  return Complex(Times(c, size, c.Emit("cos", x->imag)), Times(c, size, c.Emit("sin", x->imag)));
}
Any ViewAsComplex(Conversion& c) {
  Expr x = c.Tensor(0);
  int64_t last = RankOf(x) - 1;
  Expr re = c.Emit("take", x, c.Const(static_cast<int64_t>(0)), last);
  return Complex(re, c.Emit("take", x, c.Const(static_cast<int64_t>(1)), last));
}
Any MakeComplex(Conversion& c) {
  Array<Expr> parts = Broadcast(c, {c.Tensor(0), c.Tensor(1)});
  return Complex(parts[0], parts[1]);
}
Any Polar(Conversion& c) {
  Expr size = c.Tensor(0), angle = c.Tensor(1);
  return Complex(Times(c, size, c.Emit("cos", angle)), Times(c, size, c.Emit("sin", angle)));
}

// ---- Fourier transforms -------------------------------------------------------------------------
using Element = std::function<double(int64_t row, int64_t column)>;
Expr Matrix(int64_t rows, int64_t columns, DataType t, const Element& fill) {
  int64_t shape[] = {rows, columns};
  ffi::Tensor tensor = runtime::Empty(ffi::ShapeView(shape, 2), t, DLDevice{kDLCPU, 0});
  for (int64_t i = 0; i < rows * columns; ++i) {
    double value = fill(i / columns, i % columns);
    if (t.bits() == 64) {
      static_cast<double*>(tensor.data_ptr())[i] = value;
    } else {
      static_cast<float*>(tensor.data_ptr())[i] = static_cast<float>(value);
    }
  }
  return Constant(tensor);
}
/// 2π · (i·k mod n) / n: exact for large products.
double Angle(int64_t i, int64_t k, int64_t n) {
  return 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
}
int64_t FactorOf(int64_t n) {
  for (int64_t f = static_cast<int64_t>(std::sqrt(static_cast<double>(n))); f > 1; --f) {
    if (n % f == 0) return f;
  }
  return n;
}
/// cos and sin of 2π i k / n for a length that only running tells.
Parts SymbolicWaves(Conversion& c, const PrimExpr& n, int sign, DataType t) {
  Expr i = c.Arange(n);
  Expr product = Times(c, c.Reshape(i, {n, IntImm::Int64(1)}), c.Reshape(i, {IntImm::Int64(1), n}));
  Expr turns = c.Cast(c.Emit("floor_mod", product, PrimValue(n)), t);
  PrimExpr step = div(MakeConst(t, 2 * std::numbers::pi), cast(t, n));
  Expr angle = Times(c, turns, PrimValue(step));
  Expr sin = c.Emit("sin", angle);
  return {c.Emit("cos", angle), sign > 0 ? sin : c.Emit("negative", sin)};
}
/// x as a row vector times cos + i sin.
Parts TimesWaves(Conversion& c, const Parts& x, const Parts& waves) {
  Expr re = MatMul(c, x.re, waves.re), im = MatMul(c, x.re, waves.im);
  if (!x.im.defined()) return {re, im};
  return {Minus(c, re, MatMul(c, x.im, waves.im)), Plus(c, im, MatMul(c, x.im, waves.re))};
}
/// The transform along the last axis, sign -1 forward. A length of many factors is done in steps
/// of short transforms (Cooley and Tukey).
Parts Transform(Conversion& c, const Parts& x, int64_t n, int sign) {
  constexpr int64_t kDirect = 64;
  DataType t = TypeOf(x.re);
  int64_t a = FactorOf(n), b = n / a;
  if (n <= kDirect || a == n) {
    Expr cos = Matrix(n, n, t, [&](int64_t i, int64_t k) { return std::cos(Angle(i, k, n)); });
    Expr sin =
        Matrix(n, n, t, [&](int64_t i, int64_t k) { return sign * std::sin(Angle(i, k, n)); });
    return TimesWaves(c, x, {cos, sin});
  }
  Dims shape = ShapeOf(x.re), split(shape.begin(), shape.end() - 1);
  split.push_back(IntImm::Int64(a));
  split.push_back(IntImm::Int64(b));
  std::vector<int64_t> swap = Axes(split.size());
  std::swap(swap[split.size() - 1], swap[split.size() - 2]);
  auto turned = [&](const Expr& e) { return c.Permute(e, swap); };
  Parts columns{turned(c.Reshape(x.re, split)),
                x.im.defined() ? turned(c.Reshape(x.im, split)) : Expr()};
  Parts inner = Transform(c, columns, a, sign);  // (…, b, a)
  Expr cos = Matrix(b, a, t, [&](int64_t i, int64_t k) { return std::cos(Angle(i, k, n)); });
  Expr sin = Matrix(b, a, t, [&](int64_t i, int64_t k) { return sign * std::sin(Angle(i, k, n)); });
  Expr re = Minus(c, Times(c, inner.re, cos), Times(c, inner.im, sin));
  Expr im = Plus(c, Times(c, inner.re, sin), Times(c, inner.im, cos));
  Parts outer = Transform(c, {turned(re), turned(im)}, b, sign);  // (…, a, b)
  return {c.Reshape(turned(outer.re), shape), c.Reshape(turned(outer.im), shape)};
}
int64_t LengthOf(Conversion& c, const Expr& x, int64_t axis) {
  auto n = AsConstInt(ShapeOf(x)[axis]);
  if (!n) TVM_REFUSE(c, NotImplementedError) << "expected a constant length along the axis";
  return *n;
}
/// A transform along any axis: it is moved to the end and back.
Parts TransformAlong(Conversion& c, const Parts& x, int64_t axis, int sign) {
  int64_t rank = RankOf(x.re);
  PrimExpr length = ShapeOf(x.re)[axis];
  std::vector<int64_t> swap = Axes(rank);
  std::swap(swap[axis], swap[rank - 1]);
  Parts moved{c.Permute(x.re, swap), x.im.defined() ? c.Permute(x.im, swap) : Expr()};
  auto n = AsConstInt(length);
  Parts result = n ? Transform(c, moved, *n, sign)
                   : TimesWaves(c, moved, SymbolicWaves(c, length, sign, TypeOf(x.re)));
  return {c.Permute(result.re, swap), c.Permute(result.im, swap)};
}
/// normalization: 0 none, 1 by the root of the number of elements, 2 by that number.
Expr Scaled(Conversion& c, const Expr& x, int64_t normalization, const PrimExpr& count) {
  if (normalization == 0) return x;
  DataType t = TypeOf(x), exact = DataType::Float(64);
  PrimExpr n = cast(exact, count);
  PrimExpr scale = div(MakeConst(exact, 1.0), normalization == 1 ? sqrt(n) : n);
  if (auto known = AsConstInt(count)) {
    auto value = static_cast<double>(*known);
    return Times(c, x, c.Const(1 / (normalization == 1 ? std::sqrt(value) : value), t));
  }
  return Times(c, x, PrimValue(cast(t, scale)));
}
Complex ScaledBoth(Conversion& c, const Parts& x, int64_t normalization, const PrimExpr& count) {
  return Complex(Scaled(c, x.re, normalization, count), Scaled(c, x.im, normalization, count));
}
Any FftComplex(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  Parts parts{x->real, x->imag};
  PrimExpr count = IntImm::Int64(1);
  for (int64_t axis : c.NormalAxes(c.Ints(1), RankOf(parts.re))) {
    count = c.Simplify(count * ShapeOf(parts.re)[axis]);
    parts = TransformAlong(c, parts, axis, c.Flag(3) ? -1 : 1);
  }
  return ScaledBoth(c, parts, c.Int(2), count);
}
Any FftReal(Conversion& c) {
  Expr x = c.Tensor(0);
  std::vector<int64_t> axes = c.NormalAxes(c.Ints(1), RankOf(x));
  Parts parts{x, Expr()};
  PrimExpr count = IntImm::Int64(1);
  for (size_t i = axes.size(); i-- > 0;) {  // the last one halves
    PrimExpr n = ShapeOf(x)[axes[i]];
    count = c.Simplify(count * n);
    parts = TransformAlong(c, parts, axes[i], -1);
    if (c.Flag(3) && i + 1 == axes.size()) {
      PrimExpr half = c.Simplify(floordiv(n, IntImm::Int64(2)) + IntImm::Int64(1));
      parts = {c.Slice(parts.re, axes[i], IntImm::Int64(0), half),
               c.Slice(parts.im, axes[i], IntImm::Int64(0), half)};
    }
  }
  return ScaledBoth(c, parts, c.Int(2), count);
}
/// The real signal of a half spectrum: what is left out mirrors what is there.
Any FftToReal(Conversion& c) {
  auto* x = c[0].as<ComplexObj>();
  Parts parts{x->real, x->imag};
  int64_t rank = RankOf(parts.re), n = c.Int(3);
  std::vector<int64_t> axes = c.NormalAxes(c.Ints(1), rank);
  PrimExpr count = IntImm::Int64(n);
  for (size_t i = 0; i + 1 < axes.size(); ++i) {
    count = c.Simplify(count * ShapeOf(parts.re)[axes[i]]);
    parts = TransformAlong(c, parts, axes[i], 1);
  }
  int64_t axis = axes.back(), half = LengthOf(c, parts.re, axis);
  DataType t = TypeOf(parts.re);
  auto weight = [&](int64_t k) { return k == 0 || 2 * k == n ? 1.0 : 2.0; };
  Expr cos = Matrix(half, n, t,
                    [&](int64_t k, int64_t i) { return weight(k) * std::cos(Angle(k, i, n)); });
  Expr sin = Matrix(half, n, t,
                    [&](int64_t k, int64_t i) { return weight(k) * std::sin(Angle(k, i, n)); });
  std::vector<int64_t> swap = Axes(rank);
  std::swap(swap[axis], swap[rank - 1]);
  Expr re = MatMul(c, c.Permute(parts.re, swap), cos);
  Expr im = MatMul(c, c.Permute(parts.im, swap), sin);
  return Scaled(c, c.Permute(Minus(c, re, im), swap), c.Int(2), count);
}
Any RefuseReal(Conversion& c) {
  TVM_REFUSE(c, TypeError) << "expected a complex tensor, got a real one";
  TVM_FFI_UNREACHABLE();
}

TVM_REGISTER() {
  RegisterNode<ComplexObj>("A complex tensor: its real and its imaginary part.");
  Converter("view_as_complex.default", "self", &ViewAsComplex);
  Converter("complex.default", "real, imag", &MakeComplex);
  Converter("polar.default", "abs, angle", &Polar);
  Converter("_fft_r2c.default", "self, dim, normalization, onesided", &FftReal);
  // For complex arguments alone.
  Converter("_fft_c2c.default", "self, dim, normalization, forward", &RefuseReal);
  Converter("_fft_c2r.default", "self, dim, normalization, last_dim_size", &RefuseReal);
  Converter("view_as_real.default imag.default", "self", &RefuseReal);
}

}  // namespace

const ConverterInfo* FindComplexConverter(const std::string& target) {
  [[maybe_unused]] static const bool once = [] {  // when all converters are known
    ForComplex("add.Tensor add.Scalar", 3, &ComplexAdd);
    ForComplex("sub.Tensor sub.Scalar", 3, &ComplexSubtract);
    ForComplex("mul.Tensor mul.Scalar", 2, &ComplexMultiply);
    ForComplex("div.Tensor div.Scalar", 3, &ComplexDivide);
    ForComplex("abs.default", 1, &ComplexAbs);
    ForComplex("angle.default", 1, &ComplexAngle);
    ForComplex("sgn.default", 1, &ComplexSign);
    ForComplex("fill.Scalar", 2, &ComplexFill);
    ForComplex("_linalg_solve_ex.default", 4, &ComplexSolve);
    ForComplex("where.self", 3, &ComplexWhere);
    ForComplex("eq.Tensor eq.Scalar", 2, &ComplexEqual);
    ForComplex("ne.Tensor ne.Scalar", 2, &ComplexNotEqual);
    ForComplex("mm.default bmm.default matmul.default mv.default dot.default", 2, &ComplexProduct);
    ForComplex("real.default", 1, &ComplexReal);
    ForComplex("imag.default", 1, &ComplexImag);
    ForComplex("conj.default _conj.default conj_physical.default _conj_physical.default", 1,
               &ComplexConj);
    ForComplex("resolve_conj.default resolve_neg.default", 1, &ComplexSame);
    ForComplex("_to_copy.default to.dtype", 2, &ComplexTo);
    ForComplex("view_as_real.default", 1, &ViewAsReal);
    ForComplex("exp.default", 1, &ComplexExp);
    ForComplex("_fft_c2c.default", 4, &FftComplex);
    ForComplex("_fft_c2r.default", 4, &FftToReal);
    return true;
  }();
  auto it = ComplexConverters().find(target);
  return it == ComplexConverters().end() ? FindComplexComposite(target) : &it->second;
}

}  // namespace tvm::frontend::torch
