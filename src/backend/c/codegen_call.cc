// SPDX-License-Identifier: Apache-2.0
// Calls that need the runtime, return, raise, or go to other functions (one row each).
#include <algorithm>

#include "backend/c/codegen.h"
#include "backend/calls.h"
#include "tvm/expr/op.h"

namespace tvm::codegen::c {
namespace bi = tvm::tir::builtin;

Value FunctionText::Emit(const CallObj* op) {
  if (auto* var = op->op.as<GlobalVarObj>()) return CallFunction(op, var);
  using Self = FunctionText*;
  using Call = const CallObj*;
  static const auto* table = [] {
    auto* rows = new CallTable<FunctionText, Value>();
    rows->AddHost();
    auto row = [&](const tvm::Op& o, auto h) { rows->Add(o, h); };
    row(bi::prefetch(), [](Self g, Call o) {
      auto* load = o->args[0].as<BufferLoadObj>();
      g->Line("TVM_PREFETCH(" + (load ? g->AddressOf(load) : g->Gen(o->args[0])).text + ");");
      return Nothing();
    });
    row(bi::atomic_add(), [](Self g, Call o) { return g->AtomicAdd(o); });
    row(bi::TVMBackendAllocWorkspace(), [](Self g, Call o) {
      bool on_cpu = IsConstInt(o->args[0], kDLCPU);
      std::vector<Value> v =
          on_cpu ? g->GenAll({o->args[2]}) : g->GenAll({o->args[0], o->args[1], o->args[2]});
      const char* helper = on_cpu ? "alloc_workspace" : "alloc_device_workspace";
      Value memory = Apply(g->module_.Helper(helper), v);
      memory.reads = true;
      return memory;
    });
    row(bi::TVMBackendFreeWorkspace(), [](Self g, Call o) {
      g->module_.Helper("alloc_workspace");
      std::string memory = g->Gen(o->args[2]).text;
      g->Line("tvm_free_workspace(" + memory + ");");
      ++g->effects_;
      std::erase(g->workspaces_, memory);
      return Nothing();
    });
    row(bi::ret(), [](Self g, Call o) { return g->Return(o); });
    row(bi::tvm_raise_error(), [](Self g, Call o) {
      auto *cls = o->args[0].as<StringImmObj>(), *format = o->args[1].as<StringImmObj>();
      if (!cls || !format)
        g->Unsupported("expected texts as class and format of an error", o->span);
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
    return rows;
  }();
  if (auto handler = table->Find(op)) return handler(this, op);
  return FunctionWriter::Emit(op);
}

Value FunctionText::AtomicAdd(const CallObj* op) {
  DataType t = op->args[1].dtype();
  if (t.bits() < 32 && t.is_float()) Unsupported("atomic_add of " + t.str(), op->span);
  std::vector<Value> v = GenAll({op->args[0], op->args[1]});
  Value p = source::CastTo(MemoryName(t) + "*", v[0]);
  Value old = Keep(Apply(module_.Helper("atomic_add", t), {p, v[1]}), t, "old", true);
  ++effects_;
  return old;
}

// ---- control ------------------------------------------------------------------------------------
void FunctionText::CheckJump(const CallObj* op, bool leaves) {
  if (in_parallel_ && loops_.size() == 1 && leaves)
    Unsupported("break in a parallel loop", op->span);
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
      Release(0);
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
    std::string list = types.empty() ? "void" : source::Joined(types);
    function = "((" + result + " (*)(" + list + "))" + function + ")";
  } else {
    module_.DeclareExtern(function, result, types);
  }
  Value call = Apply(function, v);
  call.reads = true;
  if (op->dtype.is_bool()) {
    call.text += " != 0";
    call.level = kEqual;
  }
  if (pure && !op->dtype.is_void()) return call;
  ++effects_;
  if (!op->dtype.is_void()) return Keep(call, op->dtype, "result", true);
  Line(call.text + ";");
  return Nothing();
}

}  // namespace tvm::codegen::c
