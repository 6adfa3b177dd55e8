// SPDX-License-Identifier: Apache-2.0
// Keeps small floating-point types as integers in memory.
#include "../contents.h"
#include "small_float.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct StorageLegalizer
    : Mutator<StorageLegalizer, VarObj, BufferObj, FloatImmObj, CastObj, CallObj, LetStmtObj,
              LetObj, AllocateObj, AllocateConstObj, PrimExprObj> {
  const char* pass;
  const char* before;         // the pass that leaves no arithmetic
  bool (*matches)(DataType);  // values kept as bits
  bool rounds = false;        // whether the machine rounds float32 to the type
  std::unordered_map<const VarObj*, Var> vars;

  DataType StoredType(DataType t) const { return matches(t) ? BitsType(t) : t; }
  Var Stored(const Var& var) {
    auto it = vars.find(var.get());
    if (it != vars.end()) return it->second;
    Var result = var;
    if (auto* pointer = var->type_annotation.as<PointerTypeObj>()) {
      auto* element = pointer->element_type.as<PrimTypeObj>();
      if (element && StoredType(element->dtype) != element->dtype) {
        result = Var(var->name_hint,
                     PointerType(PrimType(StoredType(element->dtype)), pointer->storage_scope),
                     var->span);
      }
    } else if (matches(var.dtype())) {
      result = Var(var->name_hint, BitsType(var.dtype()), var->span);
    }
    vars.emplace(var.get(), result);
    return result;
  }
  /// Operators would take bits for numbers.
  void RefuseArithmetic(const PrimExpr& operand) const {
    if (!matches(operand.dtype())) return;
    TVM_FFI_THROW(ValueError) << pass << ": expected no arithmetic of " << operand.dtype()
                              << ", run " << before << " first";
  }
  ObjectRef Rewrite(const PrimExprObj* op) {
    PrimExpr e = ffi::GetRef<PrimExpr>(op);
#define BINARY(Name, ...) \
  if (auto* n = e.as<Name##Obj>()) RefuseArithmetic(n->a)
    TVM_BINARY_NODES(BINARY);
#undef BINARY
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const VarObj* op) { return Stored(ffi::GetRef<Var>(op)); }
  ObjectRef Rewrite(const BufferObj* op) {
    Buffer buffer = Below<Buffer>(op);
    DataType t = StoredType(op->dtype);
    if (t == op->dtype) return buffer;
    Edit(&buffer)->dtype = t;
    return buffer;
  }
  ObjectRef Rewrite(const FloatImmObj* op) {
    if (!matches(op->dtype)) return ffi::GetRef<ObjectRef>(op);
    return IntImm(BitsType(op->dtype), ConstantBits(op->value, op->dtype), op->span);
  }
  /// Lets hold bits where their values do.
  template <class Ref>
  ObjectRef RewriteLet(const typename Ref::ContainerType* op) {
    return Ref(Stored(op->var), Mutate(op->value), Mutate(op->body), op->span);
  }
  ObjectRef Rewrite(const LetStmtObj* op) { return RewriteLet<LetStmt>(op); }
  ObjectRef Rewrite(const LetObj* op) { return RewriteLet<Let>(op); }

  ObjectRef Rewrite(const CastObj* op) {
    DataType from = op->value.dtype(), to = op->dtype;
    if (!matches(from) && !matches(to)) return MapChildren(op, *this);
    PrimExpr value = Mutate(op->value);
    if (matches(from)) value = BitsToFloat(value, from);
    if (!matches(to)) return cast(to, value, op->span);
    DataType t = value.dtype();
    if (!t.is_float())
      value = cast(DataType::Float(t.bits() > 16 ? 64 : 32, t.raw_lanes()), value);
    else if (t.bits() < 32)
      value = cast(DataType::Float(32, t.raw_lanes()), value);
    // Where that is an instruction, the bits of its result.
    if (rounds && value.dtype().bits() == 32) return reinterpret(BitsType(to), Cast(to, value));
    return FloatToBits(value, to);
  }
  ObjectRef Rewrite(const CallObj* op) {
    bool is_bits = matches(op->dtype);
    Array<PrimExpr> args = op->args.Map([&](const PrimExpr& e) { return Mutate(e); });
    DataType t = is_bits ? BitsType(op->dtype) : op->dtype;
    if (IsLaneWise(op->op) && !op->Is(builtin::reinterpret())) {
      for (const PrimExpr& e : op->args) RefuseArithmetic(e);
    }
    if (op->Is(builtin::reinterpret())) return reinterpret(t, args[0], op->span);
    if (args.same_as(op->args) && !is_bits) return ffi::GetRef<ObjectRef>(op);
    Call call = ffi::GetRef<Call>(op);
    auto* n = Edit(&call);
    n->args = args;
    n->dtype = t;
    return call;
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    Allocate allocate = Below<Allocate>(op);
    DataType t = StoredType(op->dtype);
    if (t != op->dtype) Edit(&allocate)->dtype = t;
    return allocate;
  }
  ObjectRef Rewrite(const AllocateConstObj* op) {
    AllocateConst allocate = Below<AllocateConst>(op);
    DataType t = StoredType(op->dtype);
    if (t != op->dtype) Edit(&allocate)->dtype = t;
    return allocate;
  }
};

/// Whether a type occurs in a function at all.
bool UsesType(const PrimFunc& func, bool (*matches)(DataType)) {
  auto is_of_type = [&](const Var& param) {
    auto* pointer = param->type_annotation.as<PointerTypeObj>();
    auto* element = pointer ? pointer->element_type.as<PrimTypeObj>() : nullptr;
    return matches(param.dtype()) || (element && matches(element->dtype));
  };
  for (const auto& [param, buffer] : func->buffer_map) {
    if (matches(buffer->dtype)) return true;
  }
  return std::any_of(func->params.begin(), func->params.end(), is_of_type) ||
         ContentsOf(func->body).HasType(matches);
}

PrimFunc Legalize(PrimFunc func, bool (*matches)(DataType), const char* pass, const char* before) {
  if (!UsesType(func, matches)) return func;
  if (!KeepsSmallFloatsAsBits(func->GetAttr<Target>(::tvm::attr::kTarget))) return func;
  StorageLegalizer legalize;
  legalize.matches = matches;
  legalize.pass = pass;
  legalize.before = before;
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  legalize.rounds =
      target && matches(DataType::BFloat16()) && Machine::Of(target.value())->Has("bf16-rounding");
  for (const auto& [param, buffer] : func->buffer_map) {
    if (legalize.StoredType(buffer->dtype) != buffer->dtype) {
      TVM_FFI_THROW(ValueError)
          << pass << ": expected a function without buffer_map, run MakePackedAPI first";
    }
  }
  Array<Var> params = func->params.Map([&](const Var& p) { return legalize.Stored(p); });
  Stmt body = legalize.Mutate(func->body);
  if (!params.same_as(func->params)) Edit(&func)->params = params;
  return WithBody(std::move(func), body);
}
}  // namespace

PrimFunc BF16StorageLegalize(PrimFunc func) {
  return Legalize(
      std::move(func), [](DataType t) { return t.is_bfloat16(); }, "BF16StorageLegalize",
      "BF16ComputeLegalize");
}
TVM_PASS(tir, BF16StorageLegalize,
         R"(Keeps bfloat16 as uint16; casts become operations on bits.

before(A_data: T.handle("bfloat16"), B_data: T.handle("float32")):
    A = T.decl_buffer((16,), "bfloat16", data=A_data)
    B = T.decl_buffer((16,), "float32", data=B_data)
    for i in range(16):
        B[i] = T.Cast("float32", A[i])
after(A_data: T.handle("uint16"), B_data: T.handle("float32")):
    A = T.decl_buffer((16,), "uint16", data=A_data)
    B = T.decl_buffer((16,), "float32", data=B_data)
    for i in range(16):
        B[i] = T.reinterpret("float32", T.shift_left(T.Cast("uint32", A[i]), T.uint32(16))))")

PrimFunc FP8StorageLegalize(PrimFunc func) {
  return Legalize(
      std::move(func), [](DataType t) { return IsSmallFloat(t) && !t.is_bfloat16(); },
      "FP8StorageLegalize", "FP8ComputeLegalize");
}
TVM_PASS(
    tir, FP8StorageLegalize,
    R"(Keeps the 8-, 6- and 4-bit floats as unsigned integers of their width; casts become operations on bits.

before(A_data: T.handle("float8_e5m2"), B_data: T.handle("float8_e5m2")):
    A = T.decl_buffer((16,), "float8_e5m2", data=A_data)
    B = T.decl_buffer((16,), "float8_e5m2", data=B_data)
    for i in range(16):
        B[i] = A[i]
after(A_data: T.handle("uint8"), B_data: T.handle("uint8")):
    A = T.decl_buffer((16,), "uint8", data=A_data)
    B = T.decl_buffer((16,), "uint8", data=B_data)
    for i in range(16):
        B[i] = A[i])")
}  // namespace tvm::tir
