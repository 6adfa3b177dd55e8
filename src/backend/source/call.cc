// SPDX-License-Identifier: Apache-2.0
// Calls that all languages write alike: one row each.
#include "backend/calls.h"
#include "backend/source/function.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::source {
namespace bi = tvm::tir::builtin;

Value FunctionWriter::Emit(const CallObj* op) {
  using Self = FunctionWriter*;
  using Call = const CallObj*;
  static const auto* table = [] {
    auto* rows = new CallTable<FunctionWriter, Value>();
    rows->AddCommon();
    auto row = [&](const tvm::Op& o, auto h) { rows->Add(o, h); };
#define UNARY(name, function) \
  row(bi::name(), [](Self g, Call o) { return g->UnaryMath(o, function); })
    UNARY(sqrt, "sqrt");
    UNARY(floor, "floor");
    UNARY(ceil, "ceil");
    UNARY(trunc, "trunc");
    UNARY(round, "nearbyint");
    UNARY(nearbyint, "nearbyint");
    UNARY(fabs, "fabs");
    UNARY(fma, "fma");
    UNARY(copysign, "copysign");
    UNARY(fmod, "fmod");
#undef UNARY
    row(bi::bitwise_and(), [](Self g, Call o) { return g->Bitwise(o, "&"); });
    row(bi::bitwise_or(), [](Self g, Call o) { return g->Bitwise(o, "|"); });
    row(bi::bitwise_xor(), [](Self g, Call o) { return g->Bitwise(o, "^"); });
    row(bi::bitwise_not(), [](Self g, Call o) { return g->BitwiseNot(o); });
    row(bi::popcount(), [](Self g, Call o) { return g->CountBits(o, "popcount"); });
    row(bi::clz(), [](Self g, Call o) { return g->CountBits(o, "clz"); });
    row(bi::isnan(), [](Self g, Call o) { return g->IsNaN(o); });
    row(bi::if_then_else(),
        [](Self g, Call o) { return g->Choose(o->args[0], o->args[1], o->args[2]); });
    row(bi::large_uint_imm(), [](Self g, Call o) {
      auto value = LargeUint(o);
      if (!value) g->Unsupported("expected constants in large_uint_imm", o->span);
      return Number(o->dtype, static_cast<int64_t>(*value));
    });
    row(bi::undef(), [](Self, Call o) {
      if (o->dtype.is_handle()) return Value{"NULL"};
      return o->dtype.is_float() ? Number(o->dtype, 0.0) : Number(o->dtype, int64_t{0});
    });
    row(bi::assume(), [](Self, Call) { return Number(DataType::Bool(), int64_t{1}); });
    // ---- pointers ----
    row(bi::isnullptr(), [](Self g, Call o) {
      Value p = g->Gen(o->args[0]);
      p.text = p.At(kSum) + " == NULL";
      p.level = kEqual;
      return p;
    });
    row(bi::handle_add_byte_offset(), [](Self g, Call o) {
      std::vector<Value> v = g->GenAll({o->args[0], o->args[1]});
      return Made("(void*)((char*)" + v[0].At(kUnary) + " + " + v[1].At(kProduct) + ")", kUnary, v);
    });
    row(bi::address_of(), [](Self g, Call o) {
      if (auto* load = o->args[0].as<BufferLoadObj>()) return g->AddressOf(load);
      g->Unsupported("expected an element of a buffer in address_of", o->span);
    });
    for (const tvm::Op& other : {bi::call_llvm_intrin(), bi::call_llvm_pure_intrin()}) {
      row(other, [](Self g, Call o) -> Value {
        g->Unsupported("an LLVM intrinsic, which only target llvm has", o->span);
      });
    }
    return rows;
  }();
  if (auto handler = table->Find(op)) return handler(this, op);
  Unsupported(NotLowered(op), op->span);
}

Value FunctionWriter::UnaryMath(const CallObj* op, const char* function) {
  std::vector<Value> v = GenAll({op->args.begin(), op->args.end()});
  if (!op->dtype.is_float()) return v[0];  // rounding functions of integers
  return Apply(std::string(function) + (op->dtype.bits() == 32 ? "f" : ""), v);
}
Value FunctionWriter::Bitwise(const CallObj* op, const char* symbol) {
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  Value result;
  result.text = v[0].At(kProduct) + " " + symbol + " " + v[1].At(kProduct);
  result.level = kBits;
  result.reads = v[0].reads || v[1].reads;
  result.nonnegative = *symbol == '&' && (v[0].nonnegative || v[1].nonnegative);
  return result;
}
Value FunctionWriter::Shift(const CallObj* op, bool left) {
  DataType t = op->dtype;
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  auto* amount = op->args[1].as<IntImmObj>();
  bool inside = amount && amount->value >= 0 && amount->value < t.bits();
  Value result;
  result.reads = v[0].reads || v[1].reads;
  if (inside && left) {
    std::string wide = HolderBits(t) == 64 ? "uint64_t" : "uint32_t";
    result.text = "(" + wide + ")" + v[0].At(kUnary) + " << " + std::to_string(amount->value);
    result.level = kBits;
    bool exact = t.is_uint() && t.bits() >= 32 && t.bits() == HolderBits(t);
    return exact ? result : Wrap(result, t);
  }
  if (inside && (t.is_uint() || v[0].nonnegative)) {
    result.text = v[0].At(kUnary) + " >> " + std::to_string(amount->value);
    result.level = kBits;
    result.nonnegative = v[0].nonnegative;
    return result;
  }
  result = Apply(file_.Helper(left ? "shl" : "shr", t), v);
  return left && t.bits() != HolderBits(t) ? Wrap(result, t) : result;
}
Value FunctionWriter::BitwiseNot(const CallObj* op) {
  Value v = Gen(op->args[0]);
  DataType t = op->dtype;
  v.text = (t.is_bool() ? "!" : "~") + v.At(kUnary);
  v.level = kUnary;
  v.index = v.nonnegative = v.literal = false;
  bool exact = t.is_int() || t.is_bool() || (t.bits() >= 32 && t.bits() == HolderBits(t));
  return exact ? v : Wrap(v, t);
}
Value FunctionWriter::CountBits(const CallObj* op, const char* helper) {
  DataType t = op->args[0].dtype();
  Value v = Convert(Gen(op->args[0]), t, DataType::UInt(t.bits()));
  return Convert(Apply(file_.Helper(helper, t), {v}), DataType::Int(32), op->dtype);
}
Value FunctionWriter::IsNaN(const CallObj* op) {
  DataType t = op->args[0].dtype();
  Value v = Gen(op->args[0]);
  if (!t.is_float()) return Number(DataType::Bool(), int64_t{0});
  v = Apply("isnan", {Convert(v, t, t.bits() == 16 ? DataType::Float(32) : t)});
  v.text += " != 0";
  v.level = kEqual;
  return v;
}
Value FunctionWriter::Reinterpret(const CallObj* op) {
  DataType from = op->args[0].dtype(), to = op->dtype;
  Value v = Gen(op->args[0]);
  if (from.is_handle() || to.is_handle()) return Convert(v, from, to);
  // The bits of bool and float16 are numbers already.
  auto bits_of = [](DataType t) {
    return t.is_bool() || t.is_float16() || t.is_bfloat16() || IsPacked(t)
               ? DataType::UInt(t.bits())
               : t;
  };
  v = from.is_bool() ? Convert(v, from, DataType::UInt(8)) : v;
  DataType a = bits_of(from), b = bits_of(to);
  if (from.is_int() && IsPacked(from)) v = Convert(v, from, a);
  if (a.is_float() || b.is_float()) {
    if (!(a == b)) v = Apply(file_.Helper("bits", b, a), {v});
  } else {
    v = Convert(v, a, b);
  }
  if (to.is_int() && IsPacked(to)) v = Convert(v, b, to);
  if (to.is_bool()) v = Convert(v, b, to);
  v.index = v.nonnegative = false;
  return v;
}
Value FunctionWriter::Jump(const CallObj* op, bool leave) {
  if (loops_.empty()) Unsupported("break or continue outside of a loop", op->span);
  CheckJump(op, leave);
  Release(loops_.back());
  Line(leave ? "break;" : "continue;");
  ended_ = true;
  return Nothing();
}

}  // namespace tvm::codegen::source
