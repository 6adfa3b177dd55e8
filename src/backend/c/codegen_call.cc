// SPDX-License-Identifier: Apache-2.0
// Calls: operators that lowering leaves (one row each), functions of the module, C functions.
#include <algorithm>

#include "backend/c/codegen.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::c {
namespace bi = tvm::tir::builtin;
namespace {
Value Nothing() { return Number(DataType::Int(32), int64_t{0}); }
}  // namespace

Value FunctionText::Emit(const CallObj* op) {
  if (auto* var = op->op.as<GlobalVarObj>()) return CallFunction(op, var);
  using Self = FunctionText*;
  using Call = const CallObj*;
  using Handler = Value (*)(Self, Call);
  static const auto* table = [] {
    auto* rows = new std::unordered_map<const Object*, Handler>();
    auto row = [&](const tvm::Op& o, Handler h) { rows->emplace(o.get(), h); };
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
    row(bi::bitwise_not(), [](Self g, Call o) {
      Value v = g->Gen(o->args[0]);
      v.text = (o->dtype.is_bool() ? "!" : "~") + v.At(kUnary);
      v.level = kUnary, v.index = v.nonnegative = v.literal = false;
      DataType t = o->dtype;
      bool exact = t.is_int() || t.is_bool() || (t.bits() >= 32 && t.bits() == HolderBits(t));
      return exact ? v : g->Wrap(v, t);
    });
    row(bi::shift_left(), [](Self g, Call o) { return g->Shift(o, true); });
    row(bi::shift_right(), [](Self g, Call o) { return g->Shift(o, false); });
    for (const auto& [which, name] : {std::pair{bi::popcount(), "popcount"}, {bi::clz(), "clz"}}) {
      row(which, [](Self g, Call o) {
        DataType t = o->args[0].dtype();
        Value v = g->Convert(g->Gen(o->args[0]), t, DataType::UInt(t.bits()));
        bool is_clz = o->Is(bi::clz());
        v = Apply(g->module_.Helper(is_clz ? "clz" : "popcount", t), {v});
        return g->Convert(v, DataType::Int(32), o->dtype);
      });
    }
    row(bi::isnan(), [](Self g, Call o) {
      DataType t = o->args[0].dtype();
      Value v = g->Gen(o->args[0]);
      if (!t.is_float()) return Number(DataType::Bool(), int64_t{0});
      v = Apply("isnan", {g->Convert(v, t, t.bits() == 16 ? DataType::Float(32) : t)});
      v.text += " != 0", v.level = kEqual;
      return v;
    });
    row(bi::reinterpret(), [](Self g, Call o) {
      DataType from = o->args[0].dtype(), to = o->dtype;
      Value v = g->Gen(o->args[0]);
      if (from.is_handle() || to.is_handle()) return g->Convert(v, from, to);
      // The bits of bool and float16 are numbers already.
      auto bits_of = [](DataType t) {
        return t.is_bool() || t.is_float16() || IsPacked(t) ? DataType::UInt(t.bits()) : t;
      };
      v = from.is_bool() ? g->Convert(v, from, DataType::UInt(8)) : v;
      DataType a = bits_of(from), b = bits_of(to);
      if (from.is_int() && IsPacked(from)) v = g->Convert(v, from, a);
      if (a.is_float() || b.is_float()) {
        if (!(a == b)) v = Apply(g->module_.Helper("bits", b, a), {v});
      } else {
        v = g->Convert(v, a, b);
      }
      if (to.is_int() && IsPacked(to)) v = g->Convert(v, b, to);
      if (to.is_bool()) v = g->Convert(v, b, to);
      v.index = v.nonnegative = false;
      return v;
    });
    row(bi::if_then_else(),
        [](Self g, Call o) { return g->Choose(o->args[0], o->args[1], o->args[2]); });
    for (const tvm::Op& same :
         {bi::likely(), bi::ignore_loop_partition(), bi::tvm_thread_invariant()}) {
      row(same, [](Self g, Call o) { return g->Gen(o->args[0]); });
    }
    row(bi::large_uint_imm(), [](Self, Call o) {
      auto *low = o->args[0].as<IntImmObj>(), *high = o->args[1].as<IntImmObj>();
      if (!low || !high) Unsupported("expected constants in large_uint_imm", o->span);
      return Number(o->dtype,
                    static_cast<int64_t>(static_cast<uint64_t>(high->value) << 32 |
                                         (static_cast<uint64_t>(low->value) & 0xffffffff)));
    });
    row(bi::undef(), [](Self, Call o) {
      if (o->dtype.is_handle()) return Value{"NULL"};
      return o->dtype.is_float() ? Number(o->dtype, 0.0) : Number(o->dtype, int64_t{0});
    });
    row(bi::assume(), [](Self, Call) { return Number(DataType::Bool(), int64_t{1}); });
    // ---- pointers ----
    row(bi::isnullptr(), [](Self g, Call o) {
      Value p = g->Gen(o->args[0]);
      p.text = p.At(kSum) + " == NULL", p.level = kEqual;
      return p;
    });
    row(bi::handle_add_byte_offset(), [](Self g, Call o) {
      std::vector<Value> v = g->GenAll({o->args[0], o->args[1]});
      Value p = v[0];
      p.reads |= v[1].reads;
      p.text = "(void*)((char*)" + v[0].At(kUnary) + " + " + v[1].At(kProduct) + ")";
      p.level = kUnary;
      return p;
    });
    row(bi::address_of(), [](Self g, Call o) {
      if (auto* load = o->args[0].as<BufferLoadObj>()) return g->AddressOf(load);
      Unsupported("expected an element of a buffer in address_of", o->span);
    });
    row(bi::tvm_struct_get(), [](Self g, Call o) { return g->StructField(o, false); });
    row(bi::tvm_struct_set(), [](Self g, Call o) { return g->StructField(o, true); });
    row(bi::tvm_stack_alloca(), [](Self g, Call o) { return g->StackAlloca(o); });
    row(bi::prefetch(), [](Self g, Call o) {
      auto* load = o->args[0].as<BufferLoadObj>();
      g->Line("TVM_PREFETCH(" + (load ? g->AddressOf(load) : g->Gen(o->args[0])).text + ");");
      return Nothing();
    });
    row(bi::atomic_add(), [](Self g, Call o) { return g->AtomicAdd(o); });
    row(bi::TVMBackendAllocWorkspace(), [](Self g, Call o) {
      Value v = Apply(g->module_.Helper("alloc_workspace"), {g->Gen(o->args[2])});
      v.reads = true;
      return v;
    });
    row(bi::TVMBackendFreeWorkspace(), [](Self g, Call o) {
      g->module_.Helper("alloc_workspace");
      std::string memory = g->Gen(o->args[2]).text;
      g->Line("tvm_free_workspace(" + memory + ");");
      ++g->effects_;
      std::erase(g->workspaces_, memory);
      return Nothing();
    });
    // ---- control ----
    row(bi::ret(), [](Self g, Call o) { return g->Return(o); });
    row(bi::break_loop(), [](Self g, Call o) { return g->Jump(o, "break;"); });
    row(bi::continue_loop(), [](Self g, Call o) { return g->Jump(o, "continue;"); });
    row(bi::tvm_raise_error(), [](Self g, Call o) {
      auto *cls = o->args[0].as<StringImmObj>(), *format = o->args[1].as<StringImmObj>();
      if (!cls || !format) Unsupported("expected texts as class and format of an error", o->span);
      std::vector<PrimExpr> shown(o->args.begin() + 2, o->args.end());
      std::vector<DataType> types;
      for (const PrimExpr& e : shown) types.push_back(e.dtype());
      g->Raise(std::string(cls->value), std::string(format->value), g->GenAll(shown), types);
      return Nothing();
    });
    row(bi::tvm_throw_last_error(), [](Self g, Call) {
      g->Leave("-1");
      return Nothing();
    });
    // ---- calls ----
    row(bi::call_extern(), [](Self g, Call o) { return g->CallExtern(o, false); });
    row(bi::call_pure_extern(), [](Self g, Call o) { return g->CallExtern(o, true); });
    row(bi::tvm_call_packed_lowered(),
        [](Self g, Call o) { return g->CallPackedLowered(o, false); });
    row(bi::tvm_call_cpacked_lowered(),
        [](Self g, Call o) { return g->CallPackedLowered(o, true); });
    row(bi::tvm_call_trace_packed_lowered(),
        [](Self g, Call o) { return g->CallPackedLowered(o, false); });
    for (const tvm::Op& none : {bi::start_profile_intrinsic(), bi::end_profile_intrinsic()}) {
      row(none, [](Self, Call) { return Nothing(); });
    }
    for (const tvm::Op& other : {bi::call_llvm_intrin(), bi::call_llvm_pure_intrin()}) {
      row(other, [](Self, Call o) -> Value {
        Unsupported("an LLVM intrinsic, which only target llvm has", o->span);
      });
    }
    return rows;
  }();
  auto it = table->find(op->op.get());
  if (it == table->end()) {
    auto* named = op->op.as<OpObj>();
    Unsupported("expected LowerIntrin to have lowered the call of " +
                    (named ? std::string(named->name) : std::string("?")),
                op->span);
  }
  return it->second(this, op);
}

Value FunctionText::UnaryMath(const CallObj* op, const char* function) {
  std::vector<Value> v = GenAll({op->args.begin(), op->args.end()});
  if (!op->dtype.is_float()) return v[0];  // rounding functions of integers
  return Apply(std::string(function) + (op->dtype.bits() == 32 ? "f" : ""), v);
}
Value FunctionText::Bitwise(const CallObj* op, const char* symbol) {
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  Value result;
  result.text = v[0].At(kProduct) + " " + symbol + " " + v[1].At(kProduct);
  result.level = kBits, result.reads = v[0].reads || v[1].reads;
  result.nonnegative = *symbol == '&' && (v[0].nonnegative || v[1].nonnegative);
  return result;
}
Value FunctionText::Shift(const CallObj* op, bool left) {
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
    result.level = kBits, result.nonnegative = v[0].nonnegative;
    return result;
  }
  result = Apply(module_.Helper(left ? "shl" : "shr", t), v);
  return left && t.bits() != HolderBits(t) ? Wrap(result, t) : result;
}
Value FunctionText::AtomicAdd(const CallObj* op) {
  DataType t = op->args[1].dtype();
  if (t.bits() < 32 && t.is_float()) Unsupported("atomic_add of " + t.str(), op->span);
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  Value p = v[0];
  p.text = "(" + MemoryName(t) + "*)" + v[0].At(kUnary);
  Value old = Keep(Apply(module_.Helper("atomic_add", t), {p, v[1]}), t, "old", true);
  ++effects_;
  return old;
}

// ---- control ------------------------------------------------------------------------------------
Value FunctionText::Jump(const CallObj* op, const char* statement) {
  if (loops_.empty()) Unsupported("break or continue outside of a loop", op->span);
  if (in_parallel_ && loops_.size() == 1 && *statement == 'b')
    Unsupported("break in a parallel loop", op->span);
  FreeWorkspaces(loops_.back());
  Line(statement);
  ended_ = true;
  return Nothing();
}
Value FunctionText::Return(const CallObj* op) {
  auto* constant = op->args.empty() ? nullptr : op->args[0].as<IntImmObj>();
  if (in_parallel_ && !(constant && constant->value == -1)) {
    Unsupported("ret in a parallel loop", op->span);
  }
  Value v = op->args.empty() ? Nothing() : Gen(op->args[0]);
  DataType t = op->args.empty() ? DataType::Int(32) : op->args[0].dtype();
  if (info_.packed || info_.result.is_void() || in_parallel_) {
    bool is_status = t == DataType::Int(32);
    if (is_status && !v.literal && !workspaces_.empty()) v = Keep(v, t, "status");
    Leave(is_status ? v.text : "0");
  } else {
    v = Convert(v, t, info_.result);
    if (info_.internal) {
      Line("*tvm_result = " + v.text + ";");
      Leave("0");
    } else {
      if (!workspaces_.empty()) v = Keep(v, info_.result, "result");
      FreeWorkspaces(0);
      Line("return " + v.text + ";");
      ended_ = true;
    }
  }
  return Nothing();
}
void FunctionText::Raise(const std::string& cls, const std::string& format,
                         const std::vector<Value>& values, const std::vector<DataType>& types) {
  std::string call = module_.Helper("raise") + "(" + Quoted(cls) + ", " + Quoted(format);
  for (size_t i = 0; i < values.size(); ++i) {
    DataType t = types[i];
    // As printf's %lld, %s, %f and %d take them.
    std::string type = t.is_handle()    ? "(const char*)"
                       : t.is_float()   ? "(double)"
                       : t.bits() == 64 ? "(long long)"
                                        : "(int)";
    Value v = t.is_float16() ? Convert(values[i], t, DataType::Float(32)) : values[i];
    call += ", " + type + v.At(kUnary);
  }
  call += ")";
  ++effects_;
  if (workspaces_.empty() && (info_.packed || info_.internal || info_.result.is_void())) {
    Leave(call);
  } else {
    Line(call + ";");
    Leave("-1");
  }
}

// ---- functions ----------------------------------------------------------------------------------
Value FunctionText::CallFunction(const CallObj* op, const GlobalVarObj* var) {
  const FunctionInfo* callee = module_.Find(std::string(var->name_hint));
  if (!callee) {
    TVM_FFI_THROW(ValueError) << "C code generation: expected " << View(var->name_hint)
                              << " to be a function of the module that is compiled";
  }
  const Array<Var>& params = callee->func->params;
  if (op->args.size() != params.size()) {
    TVM_FFI_THROW(ValueError) << "C code generation: expected " << params.size()
                              << " arguments in the call of " << View(var->name_hint) << ", got "
                              << op->args.size();
  }
  std::vector<Value> values = GenAll({op->args.begin(), op->args.end()});
  std::string args;
  for (size_t i = 0; i < params.size(); ++i) {
    DataType t = op->args[i].dtype();
    if (!(t == params[i].dtype())) {
      TVM_FFI_THROW(TypeError) << "C code generation: expected argument " << i << " of "
                               << View(var->name_hint) << " to be of type " << params[i].dtype()
                               << ", got " << t;
    }
    std::string type =
        callee->packed ? (i == 1 || i == 3 ? "TVMFFIAny*" : "") : PointerType(params[i]);
    bool cast = t.is_handle() && !type.empty() && type != "void*";
    args += (i ? ", " : "") + (cast ? "(" + type + ")" + values[i].At(kUnary) : values[i].text);
  }
  std::string call = module_.SymbolOf(*callee) + "(" + args;
  ++effects_;
  if (callee->packed || callee->result.is_void()) {
    Propagate(call + ")");
    return Nothing();
  }
  Value result;
  result.text = Name("result");
  std::string declaration = TypeName(callee->result) + " " + result.text;
  if (callee->internal) {
    Line(declaration + ";");
    Propagate(call + (args.empty() ? "&" : ", &") + result.text + ")");
  } else {
    Line(declaration + " = " + call + ");");
  }
  return result;
}
Value FunctionText::CallExtern(const CallObj* op, bool pure) {
  auto* name = op->args[0].as<StringImmObj>();
  if (!name) Unsupported("expected the name of the external function first", op->span);
  std::string function(name->value);
  if (function != Identifier(function)) {
    TVM_FFI_THROW(ValueError) << "C code generation: expected the name of an external function to "
                                 "be an identifier of C, got '"
                              << function << "'";
  }
  std::vector<Value> v = GenAll({op->args.begin() + 1, op->args.end()});
  std::vector<std::string> types;
  for (size_t i = 1; i < op->args.size(); ++i) {
    // C passes bool as a byte.
    types.push_back(MemoryName(op->args[i].dtype()));
  }
  std::string result = op->dtype.is_void() ? "void" : MemoryName(op->dtype);
  // These are declared by the headers the file includes; another declaration would clash.
  static const std::unordered_set<std::string> declared = {
      "memcpy", "memmove", "memset",  "memcmp", "strlen", "strcmp", "malloc", "calloc", "realloc",
      "free",   "abort",   "exit",    "abs",    "labs",   "getenv", "atoi",   "printf", "snprintf",
      "puts",   "putchar", "fprintf", "fflush", "rand",   "srand",  "qsort",  "sprintf"};
  if (declared.count(function)) {
    std::string list;
    for (const std::string& t : types) list += (list.empty() ? "" : ", ") + t;
    function = "((" + result + " (*)(" + (list.empty() ? "void" : list) + "))" + function + ")";
  } else {
    module_.DeclareExtern(function, result, types);
  }
  Value call = Apply(function, v);
  call.reads = true;
  if (op->dtype.is_bool()) call.text += " != 0", call.level = kEqual;
  if (pure && !op->dtype.is_void()) return call;
  ++effects_;
  if (!op->dtype.is_void()) return Keep(call, op->dtype, "result", true);
  Line(call.text + ";");
  return Nothing();
}

}  // namespace tvm::codegen::c
