// SPDX-License-Identifier: Apache-2.0
// Operators: type matching, folding and the functions Python sees.
#include "tvm/expr/op.h"

#include <bit>
#include <cmath>

namespace tvm {
using namespace tir;

// ---- types ------------------------------------------------------------------------------------
namespace {
/// The common type of two scalar types, or void when there is none.
DataType Promote(DataType a, DataType b) {
  if (a == b) return a;
  if (a.is_handle() || b.is_handle() || !a.is_numeric() || !b.is_numeric()) return DataType::Void();
  if (a.is_bool()) return b;
  if (b.is_bool()) return a;
  if (a.is_float() != b.is_float()) return a.is_float() ? a : b;
  if (a.is_float()) {
    // float16 and bfloat16 hold different numbers: only float32 has both.
    if (a.bits() == b.bits()) return DataType::Float(std::max(32, a.bits()));
    return a.bits() > b.bits() ? a : b;
  }
  if (a.bits() != b.bits()) return a.bits() > b.bits() ? a : b;
  return a.is_uint() ? a : b;
}
[[noreturn]] void ThrowNoCommonType(const char* op, DataType a, DataType b) {
  TVM_FFI_THROW(TypeError) << op << ": expected operands with a common type, got " << a << " and "
                           << b;
  TVM_FFI_UNREACHABLE();
}
}  // namespace

void MatchTypes(PrimExpr* a, PrimExpr* b, const char* op) {
  DataType x = a->dtype(), y = b->dtype();
  if (x == y) return;
  if (x.is_vector() && y.is_vector() && x.raw_lanes() != y.raw_lanes()) ThrowNoCommonType(op, x, y);
  DataType common = Promote(x.element(), y.element());
  if (common.is_void()) ThrowNoCommonType(op, x, y);
  int lanes = x.is_scalar() ? y.raw_lanes() : x.raw_lanes();
  *a = cast(common.with_lanes(lanes), *a);
  *b = cast(common.with_lanes(lanes), *b);
}

// ---- arithmetic -------------------------------------------------------------------------------
namespace {
enum Accepts { kNumber, kInteger, kBool, kAny };
void CheckAccepts(Accepts accepts, const PrimExpr& e, const char* op) {
  DataType t = e.dtype();
  bool ok = accepts == kAny       ? true
            : accepts == kNumber  ? t.is_numeric()
            : accepts == kInteger ? t.is_integer() || t.is_bool()
                                  : t.is_bool();
  if (ok) return;
  const char* expected = accepts == kNumber ? "numbers" : accepts == kInteger ? "integers" : "bool";
  TVM_FFI_THROW(TypeError) << op << ": expected " << expected << ", got " << t;
}
/// Rules that hold for every value and need no analysis: 0 and 1 where they are neutral. Floating
/// point keeps x + 0 (x may be -0) and x * 0 (x may be NaN).
template <class N>
std::optional<PrimExpr> Neutral(const PrimExpr& a, const PrimExpr& b) {
  if (a.dtype().is_float()) {
    if constexpr (std::is_same_v<N, Mul>) {
      auto is_one = [](const PrimExpr& e) {
        auto* f = e.as<FloatImmObj>();
        return f && f->value == 1;
      };
      if (is_one(b)) return a;
      if (is_one(a)) return b;
    }
    return std::nullopt;
  }
  if constexpr (std::is_same_v<N, Add>) {
    if (IsZero(a)) return b;
    if (IsZero(b)) return a;
  } else if constexpr (std::is_same_v<N, Sub>) {
    if (IsZero(b)) return a;
  } else if constexpr (std::is_same_v<N, Mul>) {
    if (IsOne(a) || IsZero(b)) return b;
    if (IsOne(b) || IsZero(a)) return a;
  } else if constexpr (std::is_same_v<N, Div> || std::is_same_v<N, FloorDiv>) {
    if (IsOne(b) || IsZero(a)) return a;
  } else if constexpr (std::is_same_v<N, Mod> || std::is_same_v<N, FloorMod>) {
    if (IsOne(b)) return MakeZero(a.dtype());
    if (IsZero(a)) return a;
  } else if constexpr (std::is_same_v<N, Min> || std::is_same_v<N, Max>) {
    if (a.same_as(b)) return a;
  } else if constexpr (std::is_same_v<N, And>) {
    if (IsTrue(a) || IsFalse(b)) return b;
    if (IsTrue(b) || IsFalse(a)) return a;
  } else if constexpr (std::is_same_v<N, Or>) {
    if (IsFalse(a) || IsTrue(b)) return b;
    if (IsFalse(b) || IsTrue(a)) return a;
  }
  return std::nullopt;
}
template <class N>
PrimExpr MakeBinary(PrimExpr a, PrimExpr b, const Optional<Span>& span, Accepts accepts,
                    const char* op) {
  CheckAccepts(accepts, a, op);
  CheckAccepts(accepts, b, op);
  // bool has no arithmetic of its own.
  constexpr bool compares =
      requires { typename N::ContainerType; } && (std::is_same_v<N, EQ> || std::is_same_v<N, NE> ||
                                                  std::is_same_v<N, And> || std::is_same_v<N, Or>);
  if (!compares && a.dtype().is_bool() && b.dtype().is_bool()) {
    a = cast(DataType::Int(32, a.dtype().raw_lanes()), a);
  }
  MatchTypes(&a, &b, op);
  if (auto folded = TryFold<N>(a, b)) return *folded;
  if (auto simple = Neutral<N>(a, b)) return *simple;
  return N(std::move(a), std::move(b), span);
}
}  // namespace

#define ROW(fn, Node, accepts, doc)                                          \
  PrimExpr fn(PrimExpr a, PrimExpr b, Optional<Span> span) {                 \
    return MakeBinary<Node>(std::move(a), std::move(b), span, accepts, #fn); \
  }
TVM_BINARY_OPS(ROW)
#undef ROW

PrimExpr logical_not(PrimExpr a, Optional<Span> span) {
  CheckAccepts(kBool, a, "logical_not");
  if (auto value = AsConstInt(a); value && a.dtype().is_scalar()) return IntImm::Bool(!*value);
  return Not(a, span);
}
PrimExpr neg(PrimExpr a, Optional<Span> span) {
  CheckAccepts(kNumber, a, "neg");
  if (auto* f = a.as<FloatImmObj>()) return FloatImm(f->dtype, -f->value, span);
  if (a.dtype().is_float()) {
    // 0 - x would make +0 of a positive zero.
    return mul(a, MakeConst(a.dtype(), -1.0), span);
  }
  return sub(MakeZero(a.dtype()), a, span);
}
PrimExpr ceildiv(PrimExpr a, PrimExpr b, Optional<Span> span) {
  CheckAccepts(kInteger, a, "ceildiv");
  CheckAccepts(kInteger, b, "ceildiv");
  MatchTypes(&a, &b, "ceildiv");
  return floordiv(add(a, sub(b, MakeConst(b.dtype(), 1))), b, span);
}

// ---- bits -------------------------------------------------------------------------------------
namespace {
template <class F>
PrimExpr MakeBitwise(PrimExpr a, PrimExpr b, const Op& op, const char* name, F fold,
                     const Optional<Span>& span) {
  CheckAccepts(kInteger, a, name);
  CheckAccepts(kInteger, b, name);
  MatchTypes(&a, &b, name);
  if (auto *x = a.as<IntImmObj>(), *y = b.as<IntImmObj>(); x && y) {
    return cast(a.dtype(), IntImm::Int64(fold(x->value, y->value, a.dtype())), span);
  }
  return Call(a.dtype(), op, {a, b}, span);
}
}  // namespace
PrimExpr bitwise_and(PrimExpr a, PrimExpr b, Optional<Span> span) {
  return MakeBitwise(
      a, b, builtin::bitwise_and(), "bitwise_and",
      [](int64_t x, int64_t y, DataType) { return x & y; }, span);
}
PrimExpr bitwise_or(PrimExpr a, PrimExpr b, Optional<Span> span) {
  return MakeBitwise(
      a, b, builtin::bitwise_or(), "bitwise_or",
      [](int64_t x, int64_t y, DataType) { return x | y; }, span);
}
PrimExpr bitwise_xor(PrimExpr a, PrimExpr b, Optional<Span> span) {
  return MakeBitwise(
      a, b, builtin::bitwise_xor(), "bitwise_xor",
      [](int64_t x, int64_t y, DataType) { return x ^ y; }, span);
}
/// Shifts by the width or more (or by a negative number) leave nothing but the sign.
PrimExpr shift_left(PrimExpr a, PrimExpr b, Optional<Span> span) {
  return MakeBitwise(
      a, b, builtin::shift_left(), "shift_left",
      [](int64_t x, int64_t y, DataType t) {
        return y < 0 || y >= t.bits() ? int64_t{0}
                                      : static_cast<int64_t>(static_cast<uint64_t>(x) << y);
      },
      span);
}
PrimExpr shift_right(PrimExpr a, PrimExpr b, Optional<Span> span) {
  return MakeBitwise(
      a, b, builtin::shift_right(), "shift_right",
      [](int64_t x, int64_t y, DataType t) {
        if (t.is_int()) return x >> std::min<uint64_t>(static_cast<uint64_t>(y), 63);
        bool all = y < 0 || y >= t.bits();
        return all ? int64_t{0} : static_cast<int64_t>(static_cast<uint64_t>(x) >> y);
      },
      span);
}
PrimExpr bitwise_not(PrimExpr a, Optional<Span> span) {
  CheckAccepts(kInteger, a, "bitwise_not");
  if (a.dtype().is_bool()) return logical_not(a, span);
  if (auto* x = a.as<IntImmObj>()) return cast(a.dtype(), IntImm::Int64(~x->value), span);
  return Call(a.dtype(), builtin::bitwise_not(), {a}, span);
}
PrimExpr popcount(PrimExpr x, Optional<Span> span) {
  CheckAccepts(kInteger, x, "popcount");
  return Call(x.dtype(), builtin::popcount(), {x}, span);
}
PrimExpr clz(PrimExpr x, Optional<Span> span) {
  CheckAccepts(kInteger, x, "clz");
  return Call(DataType::Int(32, x.dtype().raw_lanes()), builtin::clz(), {x}, span);
}
PrimExpr reinterpret(DataType t, PrimExpr value, Optional<Span> span) {
  DataType from = value.dtype();
  if (from == t) return value;
  int64_t from_bits = int64_t{from.bits()} * from.lanes(), to_bits = int64_t{t.bits()} * t.lanes();
  if (from_bits != to_bits || from.is_scalable() != t.is_scalable()) {
    TVM_FFI_THROW(TypeError) << "reinterpret: expected a type of " << from_bits << " bits as "
                             << from << " has, got " << t;
  }
  return Call(t, builtin::reinterpret(), {value}, span);
}

// ---- choice -----------------------------------------------------------------------------------
PrimExpr if_then_else(PrimExpr cond, PrimExpr t, PrimExpr f, Optional<Span> span) {
  CheckAccepts(kBool, cond, "if_then_else");
  MatchTypes(&t, &f, "if_then_else");
  if (IsTrue(cond)) return t;
  if (IsFalse(cond)) return f;
  return Call(t.dtype(), builtin::if_then_else(), {cond, t, f}, span);
}
PrimExpr likely(PrimExpr cond, Optional<Span> span) {
  if (AsConstInt(cond)) return cond;
  return Call(cond.dtype(), builtin::likely(), {cond}, span);
}

// ---- mathematics ------------------------------------------------------------------------------
namespace {
/// Integers become the float that holds most of them.
PrimExpr ToFloat(const PrimExpr& x, const char* op) {
  CheckAccepts(kNumber, x, op);
  DataType t = x.dtype();
  return t.is_float() ? x : cast(DataType::Float(t.bits() > 32 ? 64 : 32, t.raw_lanes()), x);
}
PrimExpr UnaryMath(const Op& op, PrimExpr x, const Optional<Span>& span, const char* name) {
  x = ToFloat(x, name);
  return Call(x.dtype(), op, {x}, span);
}
PrimExpr BinaryMath(const Op& op, PrimExpr x1, PrimExpr x2, const Optional<Span>& span,
                    const char* name) {
  MatchTypes(&x1, &x2, name);
  x1 = ToFloat(x1, name);
  x2 = ToFloat(x2, name);
  return Call(x1.dtype(), op, {x1, x2}, span);
}
}  // namespace
#define ROW(fn, doc) \
  PrimExpr fn(PrimExpr x, Optional<Span> span) { return UnaryMath(builtin::fn(), x, span, #fn); }
TVM_UNARY_MATH(ROW)
#undef ROW
#define ROW(fn, doc)                                           \
  PrimExpr fn(PrimExpr x, Optional<Span> span) {               \
    CheckAccepts(kNumber, x, #fn);                             \
    if (!x.dtype().is_float()) return x;                       \
    if (auto* f = x.as<FloatImmObj>()) {                       \
      return FloatImm(f->dtype, RoundAs(#fn, f->value), span); \
    }                                                          \
    return Call(x.dtype(), builtin::fn(), {x}, span);          \
  }
namespace {
double RoundAs(std::string_view fn, double x) {
  return fn == "floor"   ? std::floor(x)
         : fn == "ceil"  ? std::ceil(x)
         : fn == "trunc" ? std::trunc(x)
                         : std::nearbyint(x);
}
}  // namespace
TVM_ROUNDING_MATH(ROW)
#undef ROW
#define ROW(fn, doc)                                           \
  PrimExpr fn(PrimExpr x1, PrimExpr x2, Optional<Span> span) { \
    return BinaryMath(builtin::fn(), x1, x2, span, #fn);       \
  }
TVM_BINARY_MATH(ROW)
#undef ROW

PrimExpr pow(PrimExpr x, PrimExpr y, Optional<Span> span) {
  return BinaryMath(builtin::pow(), x, y, span, "pow");
}
PrimExpr abs(PrimExpr x, Optional<Span> span) {
  CheckAccepts(kNumber, x, "abs");
  DataType t = x.dtype();
  if (t.is_uint() || t.is_bool()) return x;
  if (auto* f = x.as<FloatImmObj>()) return FloatImm(t, std::fabs(f->value), span);
  if (t.is_float()) return Call(t, builtin::fabs(), {x}, span);
  if (auto* i = x.as<IntImmObj>()) return i->value < 0 ? neg(x, span) : x;
  return Select(x >= MakeZero(t), x, neg(x), span);
}
PrimExpr isnan(PrimExpr x, Optional<Span> span) {
  CheckAccepts(kNumber, x, "isnan");
  DataType t = DataType::Bool(x.dtype().raw_lanes());
  if (!x.dtype().is_float()) return MakeConst(t, 0);
  if (auto* f = x.as<FloatImmObj>()) return IntImm::Bool(std::isnan(f->value));
  return Call(t, builtin::isnan(), {x}, span);
}
PrimExpr isinf(PrimExpr x, Optional<Span> span) {
  CheckAccepts(kNumber, x, "isinf");
  DataType t = x.dtype();
  bool has_infinity = t.is_float() && std::isinf(RoundToFloatType(INFINITY, t.element()));
  if (!has_infinity) return MakeConst(DataType::Bool(t.raw_lanes()), 0);
  return equal(abs(x), MakeConst(t, static_cast<double>(INFINITY)), span);
}
PrimExpr isfinite(PrimExpr x, Optional<Span> span) {
  return logical_and(logical_not(isnan(x)), logical_not(isinf(x)), span);
}
PrimExpr fma(PrimExpr x, PrimExpr y, PrimExpr z, Optional<Span> span) {
  MatchTypes(&x, &y, "fma");
  MatchTypes(&x, &z, "fma");
  MatchTypes(&y, &z, "fma");
  return Call(x.dtype(), builtin::fma(), {x, y, z}, span);
}

// ---- registration -----------------------------------------------------------------------------
namespace {
/// tir.const: Python numbers in any type.
PrimExpr Const(Any value, Optional<DataType> dtype, Optional<Span> span) {
  if (auto e = value.as<PrimExpr>(); e && e->defined()) {
    return dtype ? cast(*dtype, *e, span) : *e;
  }
  if (auto b = value.as<bool>(); value.type_index() == kTVMFFIBool)
    return MakeConst(dtype.value_or(DataType::Bool()), int64_t{*b}, span);
  if (auto i = value.as<int64_t>(); value.type_index() == kTVMFFIInt) {
    bool small = *i >= INT32_MIN && *i <= INT32_MAX;
    return MakeConst(dtype.value_or(DataType::Int(small ? 32 : 64)), *i, span);
  }
  if (auto f = value.as<double>()) {
    bool large = std::isfinite(*f) && std::abs(*f) > std::numeric_limits<float>::max();
    return MakeConst(dtype.value_or(DataType::Float(large ? 64 : 32)), *f, span);
  }
  TVM_FFI_THROW(TypeError) << "const: expected a number, got " << value.GetTypeKey();
  TVM_FFI_UNREACHABLE();
}
using Unary = PrimExpr (*)(PrimExpr, Optional<Span>);
using Binary = PrimExpr (*)(PrimExpr, PrimExpr, Optional<Span>);

TVM_REGISTER() {
  Arg span("span", nullptr);
#define ROW(fn, Node, accepts, doc) \
  Def("tir._op." #fn, static_cast<Binary>(&fn), doc, Arg("a"), Arg("b"), span);
  TVM_BINARY_OPS(ROW)
#undef ROW
#define ROW(fn, doc) Def("tir." #fn, static_cast<Unary>(&fn), doc, Arg("x"), span);
  TVM_UNARY_MATH(ROW)
  TVM_ROUNDING_MATH(ROW)
#undef ROW
#define ROW(fn, doc) Def("tir." #fn, static_cast<Binary>(&fn), doc, Arg("x1"), Arg("x2"), span);
  TVM_BINARY_MATH(ROW)
#undef ROW
  const std::pair<const char*, Binary> binary[] = {
      {"tir.truncdiv", &truncdiv}, {"tir.truncmod", &truncmod}, {"tir.floordiv", &floordiv},
      {"tir.floormod", &floormod}, {"tir.indexdiv", &indexdiv}, {"tir.indexmod", &indexmod},
      {"tir.ceildiv", &ceildiv}};
  for (auto [name, fn] : binary) Def(name, fn, "", Arg("a"), Arg("b"), span);
  Def("tir.bitwise_and", static_cast<Binary>(&bitwise_and), "x & y", Arg("x"), Arg("y"), span);
  Def("tir.bitwise_or", static_cast<Binary>(&bitwise_or), "x | y", Arg("x"), Arg("y"), span);
  Def("tir.bitwise_xor", static_cast<Binary>(&bitwise_xor), "x ^ y", Arg("x"), Arg("y"), span);
  Def("tir.bitwise_not", static_cast<Unary>(&bitwise_not), "~x", Arg("x"), span);
  Def("tir.shift_left", static_cast<Binary>(&shift_left), "x << y; 0 from the width on.", Arg("x"),
      Arg("y"), span);
  Def("tir.shift_right", static_cast<Binary>(&shift_right),
      "x >> y; 0 or the sign from the width on.", Arg("x"), Arg("y"), span);
  Def("tir.pow", static_cast<Binary>(&pow), "x to the power y.", Arg("x"), Arg("y"), span);
  Def("tir.power", static_cast<Binary>(&pow), "x to the power y.", Arg("x"), Arg("y"), span);
  Def("tir.abs", static_cast<Unary>(&abs), "The absolute value.", Arg("x"), span);
  Def("tir.isnan", static_cast<Unary>(&isnan), "Whether x is not a number.", Arg("x"), span);
  Def("tir.isinf", static_cast<Unary>(&isinf), "Whether x is infinite.", Arg("x"), span);
  Def("tir.isfinite", static_cast<Unary>(&isfinite), "Whether x is a finite number.", Arg("x"),
      span);
  Def("tir.popcount", static_cast<Unary>(&popcount), "The number of bits set.", Arg("x"), span);
  Def("tir.clz", static_cast<Unary>(&clz), "The number of leading zero bits.", Arg("x"), span);
  Def("tir.likely", static_cast<Unary>(&likely), "The condition, said to be true almost always.",
      Arg("cond"), span);
  Def("tir._op.neg", static_cast<Unary>(&neg), "-a", Arg("a"), span);
  Def("tir._op.logical_not", static_cast<Unary>(&logical_not), "not a", Arg("a"), span);
  Def(
      "tir._op.cast", [](DataType t, PrimExpr v, Optional<Span> span) { return cast(t, v, span); },
      "The value in another type.", Arg("dtype"), Arg("value"), span);
  Def(
      "tir.reinterpret",
      [](DataType t, PrimExpr v, Optional<Span> span) { return reinterpret(t, v, span); },
      "The bits of a value as another type of the same width.", Arg("dtype"), Arg("value"), span);
  Def("tir.if_then_else",
      static_cast<PrimExpr (*)(PrimExpr, PrimExpr, PrimExpr, Optional<Span>)>(&if_then_else),
      "t where cond holds, else f; only the chosen value is evaluated.", Arg("cond"), Arg("t"),
      Arg("f"), span);
  Def("tir.fma", static_cast<PrimExpr (*)(PrimExpr, PrimExpr, PrimExpr, Optional<Span>)>(&fma),
      "x * y + z, rounded once.", Arg("x"), Arg("y"), Arg("z"), span);
  using Limit = PrimExpr (*)(DataType, Optional<Span>);
  Def("tir.min_value", static_cast<Limit>(&min_value), "The smallest finite number of a type.",
      Arg("dtype"), span);
  Def("tir.max_value", static_cast<Limit>(&max_value), "The largest finite number of a type.",
      Arg("dtype"), span);
  Def("tir.infinity", static_cast<Limit>(&infinity), "Infinity in a type that has one.",
      Arg("dtype"), span);
  Def("tir.const", &Const, "A constant.", Arg("value"), Arg("dtype", nullptr), span);
}
}  // namespace
}  // namespace tvm
