// SPDX-License-Identifier: Apache-2.0
// Computes on small floating-point types in a larger one, rounding after each operation.
#include "../contents.h"
#include "small_float.h"
#include "tvm/expr/math.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Every expression keeps its type: an operation becomes a cast of the operation on casts.
struct ComputeLegalizer
    : Mutator<ComputeLegalizer, AddObj, SubObj, MulObj, DivObj, ModObj, FloorDivObj, FloorModObj,
              MinObj, MaxObj, EQObj, NEObj, LTObj, LEObj, GTObj, GEObj, CallObj, BufferObj> {
  bool (*matches)(DataType);
  DataType wide;

  /// Whether rounding `e`, which is in the wide type, to type `t` changes nothing.
  bool IsExact(const PrimExpr& e, DataType t) {
    if (auto* c = e.as<CastObj>()) return c->value.dtype() == t;
    if (auto* m = e.as<MinObj>()) return IsExact(m->a, t) && IsExact(m->b, t);
    if (auto* m = e.as<MaxObj>()) return IsExact(m->a, t) && IsExact(m->b, t);
    if (auto* s = e.as<SelectObj>()) return IsExact(s->true_value, t) && IsExact(s->false_value, t);
    if (auto* c = e.as<CallObj>()) return c->Is(builtin::fabs()) && IsExact(c->args[0], t);
    if (auto* i = e.as<FloatImmObj>()) return RoundToFloatType(i->value, t.element()) == i->value;
    if (auto* b = e.as<BroadcastObj>()) return IsExact(b->value, t);
    return false;
  }
  PrimExpr Widen(const PrimExpr& e) {
    if (!matches(e.dtype())) return e;
    if (auto* c = e.as<CastObj>(); c &&
                                   c->value.dtype() == wide.with_lanes(e.dtype().raw_lanes()) &&
                                   IsExact(c->value, e.dtype())) {
      return c->value;
    }
    return cast(wide.with_lanes(e.dtype().raw_lanes()), e);
  }
  PrimExpr Narrow(const PrimExpr& e, DataType t) {
    if (auto* c = e.as<CastObj>(); c && c->value.dtype() == t) return c->value;
    return cast(t, e);
  }
  template <class Ref, class N>
  ObjectRef Binary(const N* op) {
    if (!matches(op->a.dtype())) return MapChildren(op, *this);
    PrimExpr a = Widen(Mutate(op->a)), b = Widen(Mutate(op->b));
    if (std::is_same_v<Ref, FloorDiv> && op->dtype.is_float16()) {
      // As on machines that divide float16: the quotient is rounded before it is taken down.
      PrimExpr quotient = Widen(Narrow(Div(a, b, op->span), op->dtype));
      return Narrow(Call(quotient.dtype(), builtin::floor(), {quotient}), op->dtype);
    }
    Ref result(a, b, op->span);
    return op->dtype.is_bool() ? PrimExpr(result) : Narrow(result, op->dtype);
  }
  // clang-format off
#define HANDLER(Name) \
  ObjectRef Rewrite(const Name##Obj* op) { return Binary<Name>(op); }
  HANDLER(Add) HANDLER(Sub) HANDLER(Mul) HANDLER(Div) HANDLER(Mod)
  HANDLER(FloorDiv) HANDLER(FloorMod) HANDLER(Min) HANDLER(Max)
  HANDLER(EQ) HANDLER(NE) HANDLER(LT) HANDLER(LE) HANDLER(GT) HANDLER(GE)
  // clang-format on
#undef HANDLER
      /// Functions computed lane by lane take and give the wide type; what moves values does not
      /// care.
      ObjectRef Rewrite(const CallObj* op) {
    bool moves =
        op->Is(builtin::reinterpret()) || op->Is(builtin::if_then_else()) || !IsLaneWise(op->op);
    bool involved = matches(op->dtype);
    for (const PrimExpr& a : op->args) involved |= matches(a.dtype());
    if (moves || !involved) return MapChildren(op, *this);
    // The next number of the wide type rounds to the one it comes from.
    if (op->Is(builtin::nextafter())) return Mutate(ExpandMath(op, Target()));
    Call call = ffi::GetRef<Call>(op);
    auto* n = Edit(&call);
    n->args = op->args.Map([&](const PrimExpr& a) { return Widen(Mutate(a)); });
    if (!matches(op->dtype)) return call;
    n->dtype = wide.with_lanes(op->dtype.raw_lanes());
    return Narrow(call, op->dtype);
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
};

PrimFunc Legalize(PrimFunc func, bool (*matches)(DataType), DataType wide) {
  if (!KeepsSmallFloatsAsBits(func->GetAttr<Target>(::tvm::attr::kTarget)) ||
      !ContentsOf(func->body).HasType(matches))
    return func;
  ComputeLegalizer legalize;
  legalize.matches = matches;
  legalize.wide = wide;
  return RewriteBody(std::move(func), legalize);
}
}  // namespace

PrimFunc BF16ComputeLegalize(PrimFunc func) {
  return Legalize(std::move(func), [](DataType t) { return t.is_bfloat16(); }, DataType::Float(32));
}
TVM_PASS(tir, BF16ComputeLegalize,
         R"(Computes on bfloat16 in float32, rounding each result.

before(A: T.Buffer((16,), "bfloat16"), B: T.Buffer((16,), "bfloat16")):
    for i in range(16):
        B[i] = A[i] + T.bfloat16(1)
after:
    for i in range(16):
        B[i] = T.Cast("bfloat16", T.Cast("float32", A[i]) + T.float32(1)))")

PrimFunc FP16ComputeLegalize(PrimFunc func) {
  return Legalize(std::move(func), [](DataType t) { return t.is_float16(); }, DataType::Float(32));
}
TVM_PASS(
    tir, FP16ComputeLegalize,
    R"(Computes on float16 in float32, rounding each result, for code generators that have only the storage of float16.

before(A: T.Buffer((16,), "float16"), B: T.Buffer((16,), "float16")):
    T.func_attr({"target": T.target("c")})
    for i in range(16):
        B[i] = A[i] + T.float16(1)
after:
    T.func_attr({"target": T.target("c")})
    for i in range(16):
        B[i] = T.Cast("float16", T.Cast("float32", A[i]) + T.float32(1)))")

PrimFunc FP8ComputeLegalize(PrimFunc func, String promote_dtype) {
  DataType wide(promote_dtype);
  if (!wide.is_ieee_float() || !wide.is_scalar()) {
    TVM_FFI_THROW(ValueError)
        << "FP8ComputeLegalize: expected float16, float32 or float64 as promote_dtype, got "
        << promote_dtype;
  }
  return Legalize(
      std::move(func), [](DataType t) { return IsSmallFloat(t) && !t.is_bfloat16(); }, wide);
}
TVM_PASS(tir, FP8ComputeLegalize,
         R"(Computes on the 8-, 6- and 4-bit floats in promote_dtype, rounding each result.

before(A: T.Buffer((16,), "float8_e5m2"), B: T.Buffer((16,), "float8_e5m2")):
    for i in range(16):
        B[i] = A[i] + A[i]
after:
    for i in range(16):
        B[i] = T.Cast("float8_e5m2", T.Cast("float32", A[i]) + T.Cast("float32", A[i])))",
         Arg("promote_dtype", String("float32")))
}  // namespace tvm::tir
