// SPDX-License-Identifier: Apache-2.0
// Splits each function into a packed entry, which checks its arguments, and an inner function with
// plain arguments, which does the work.
#include <set>
#include <unordered_set>

#include "../contents.h"
#include "ir/each_function.h"
#include "packed_arguments.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"
#include "tvm/tir/unoptimized.h"

namespace tvm::tir {
namespace {
constexpr DataType kInt32 = DataType::Int(32), kHandle = DataType::Handle();
Stmt Return(const PrimExpr& value) { return Evaluate(Call(kInt32, builtin::ret(), {value})); }

// ---- functions that raise ---------------------------------------------------------------------
/// A chain of comparisons: the name that belongs to `key`, as a C string.
PrimExpr NameOf(const PrimExpr& key, const std::vector<std::pair<int, const char*>>& names,
                const char* fallback) {
  PrimExpr result = StringImm(fallback);
  for (auto it = names.rbegin(); it != names.rend(); ++it) {
    result = Call(kHandle, builtin::if_then_else(),
                  {equal(key, PrimExpr(it->first)), StringImm(it->second), result});
  }
  return result;
}
PrimFunc RaisingFunction(const Array<Var>& params, const char* format,
                         const Array<PrimExpr>& values) {
  Array<PrimExpr> args{StringImm("TypeError"), StringImm(format)};
  for (const PrimExpr& v : values) args.push_back(v);
  Stmt body = Evaluate(Call(kInt32, builtin::tvm_raise_error(), args));
  return PrimFunc(params, SeqStmt::Flatten({body, Return(-1)}), PrimType(kInt32));
}
/// (function, parameter, expected, code, bits, lanes): the types of DLPack by their names.
PrimFunc RaiseWrongDtype() {
  Var func("func", kHandle), param("param", kHandle), expected("expected", kHandle);
  Var code("code", kInt32), bits("bits", kInt32), lanes("lanes", kInt32), name("name", kHandle);
  // Beyond complex numbers a code says the width as well.
  constexpr int kFirstWithWidth = kDLBool;
  PrimExpr names = NameOf(code,
                          {{kDLInt, "int"},
                           {kDLUInt, "uint"},
                           {kDLFloat, "float"},
                           {kDLOpaqueHandle, "handle"},
                           {kDLBfloat, "bfloat"},
                           {kDLComplex, "complex"},
                           {kDLBool, "bool"},
                           {kDLFloat8_e3m4, "float8_e3m4"},
                           {kDLFloat8_e4m3, "float8_e4m3"},
                           {kDLFloat8_e4m3b11fnuz, "float8_e4m3b11fnuz"},
                           {kDLFloat8_e4m3fn, "float8_e4m3fn"},
                           {kDLFloat8_e4m3fnuz, "float8_e4m3fnuz"},
                           {kDLFloat8_e5m2, "float8_e5m2"},
                           {kDLFloat8_e5m2fnuz, "float8_e5m2fnuz"},
                           {kDLFloat8_e8m0fnu, "float8_e8m0fnu"},
                           {kDLFloat6_e2m3fn, "float6_e2m3fn"},
                           {kDLFloat6_e3m2fn, "float6_e3m2fn"},
                           {kDLFloat4_e2m1fn, "float4_e2m1fn"}},
                          "an unknown type");
  auto raise = [&](const char* got, const Array<PrimExpr>& values) {
    Array<PrimExpr> args{StringImm("TypeError"),
                         StringImm(std::string("%s: expected argument %s of type %s, got ") + got),
                         func, param, expected};
    for (const PrimExpr& v : values) args.push_back(v);
    return Evaluate(Call(kInt32, builtin::tvm_raise_error(), args));
  };
  Stmt scalar = IfThenElse(code >= PrimExpr(kFirstWithWidth), raise("%s", {name}),
                           raise("%s%d", {name, bits}));
  Stmt body = IfThenElse(equal(lanes, PrimExpr(1)), scalar, raise("%s%dx%d", {name, bits, lanes}));
  body = LetStmt(name, names, SeqStmt::Flatten({body, Return(-1)}));
  return PrimFunc({func, param, expected, code, bits, lanes}, body, PrimType(kInt32));
}
/// (function, parameter, expected, type index): what kind of value came, by the name Python has for
/// it.
PrimFunc RaiseWrongKind() {
  Var func("func", kHandle), param("param", kHandle), expected("expected", kHandle),
      type("type_index", kInt32);
  PrimExpr name = NameOf(type,
                         {{kTVMFFINone, "None"},
                          {kTVMFFIInt, "int"},
                          {kTVMFFIBool, "bool"},
                          {kTVMFFIFloat, "float"},
                          {kTVMFFIOpaquePtr, "a pointer"},
                          {kTVMFFIDataType, "dtype"},
                          {kTVMFFIDevice, "Device"},
                          {kTVMFFIDLTensorPtr, "Tensor"},
                          {kTVMFFIRawStr, "str"},
                          {kTVMFFISmallStr, "str"},
                          {kTVMFFIStr, "str"},
                          {kTVMFFIByteArrayPtr, "bytes"},
                          {kTVMFFISmallBytes, "bytes"},
                          {kTVMFFIBytes, "bytes"},
                          {kTVMFFIFunction, "Function"},
                          {kTVMFFIShape, "Shape"},
                          {kTVMFFITensor, "Tensor"},
                          {kTVMFFIArray, "Array"},
                          {kTVMFFIMap, "Map"},
                          {kTVMFFIModule, "Module"}},
                         "an object");
  return RaisingFunction({func, param, expected, type}, "%s: expected argument %s to be %s, got %s",
                         {func, param, expected, name});
}

// ---- the two functions ------------------------------------------------------------------------
/// Stores what `ret` gives in the result of the packed call.
struct ReturnRewriter : Mutator<ReturnRewriter, EvaluateObj> {
  PrimExpr result;
  bool used = false;
  ObjectRef Rewrite(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    if (!call || !call->Is(builtin::ret())) return MapChildren(op, *this);
    used = true;
    PrimExpr value = call->args[0];
    DataType t = value.dtype();
    int type = t.is_bool()      ? kTVMFFIBool
               : t.is_integer() ? kTVMFFIInt
               : t.is_float()   ? kTVMFFIFloat
                                : kTVMFFIOpaquePtr;
    if (t.is_integer() || t.is_bool()) value = cast(DataType::Int(64), value);
    if (t.is_float()) value = cast(DataType::Float(64), value);
    auto set = [&](int field, const PrimExpr& v) {
      return Evaluate(
          Call(kInt32, builtin::tvm_struct_set(), {result, PrimExpr(0), PrimExpr(field), v}));
    };
    return SeqStmt::Flatten({set(builtin::kFFIAnyTypeIndex, PrimExpr(type)),
                             set(builtin::kFFIAnyZeroPadding, PrimExpr(0)),
                             set(builtin::kFFIAnyUnionValue, value), Return(0)});
  }
};

/// How a function is called after this pass.
struct Plain {
  GlobalVar var;
  std::vector<Var> params;     // of the original function, in the order of the plain arguments
  std::vector<int> positions;  // of those among the original parameters; -1: a symbolic size
  bool has_status = true;      // returns 0 or -1; else it returns a value of its own
};

/// The kind of device that the tensors of a function are on.
int64_t DeviceTypeOf(const PrimFunc& func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  return target.has_value() ? target.value()->DeviceType() : int64_t{kDLCPU};
}
/// The function as one of the host of its target.
PrimFunc OnHost(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value() || !target.value().Host().has_value()) return func;
  return WithAttr(std::move(func), ::tvm::attr::kTarget, target.value().Host().value());
}
/// Memory that a function for a device allocates is that of the device it runs on.
Stmt OnCurrentDevice(int64_t device_type, Stmt body) {
  if (device_type == kDLCPU) return body;
  body = AttrStmt(PrimExpr(0), attr::kDeviceId, PrimExpr(-1), body);
  return AttrStmt(PrimExpr(0), attr::kDeviceType, PrimExpr(static_cast<int>(device_type)), body);
}

/// What a function becomes.
struct Halves {
  Plain plain;
  PrimFunc inner, entry;  // entry: undefined for a function that only others of the module call
  std::set<int> unpacked_dims;  // of the helpers that the entry calls
  bool calls = false;           // other functions
};

struct Splitter {
  EntryHelpers helpers;

  static bool IsLowered(const PrimFunc& func) {
    return func->GetAttr<int64_t>(::tvm::attr::kCallingConv, 0) != 0 ||
           func->HasNonzeroAttr("tir.private") || func->HasNonzeroAttr("tir.is_global_func");
  }
  static bool CallsFunctions(const PrimFunc& func) {
    return ContentsOf(func->body).Calls([](const Object* op) {
      return op->IsInstance<GlobalVarObj>();
    });
  }
  /// The function with plain parameters: data pointers, scalars, then sizes that its body uses.
  static PrimFunc MakePlain(const GlobalVar& var, const PrimFunc& func, bool is_public,
                            Plain* plain) {
    Plain& info = *plain;
    Array<Var> params;
    std::vector<int64_t> alignments;
    auto add = [&](const Var& v, int position, int64_t alignment) {
      params.push_back(v);
      alignments.push_back(alignment);
      info.params.push_back(v);
      info.positions.push_back(position);
    };
    int n = static_cast<int>(func->params.size());
    Stmt body = func->body;
    for (int i = 0; i < n; ++i) {
      if (Buffer b = func.BufferOf(func->params[i]); b.defined()) {
        add(b->data, i, PackedArguments::CheckedAlignment(b));
      }
    }
    for (int i = 0; i < n; ++i) {
      if (!func.BufferOf(func->params[i]).defined()) add(func->params[i], i, 0);
    }
    struct Buffers : Visitor<Buffers, BufferObj> {
      std::unordered_set<const Object*> used;
      void Visit(const BufferObj* buffer) { used.insert(buffer); }
    } buffers;
    buffers(body);
    for (int i = n; i > 0; --i) {
      Buffer b = func.BufferOf(func->params[i - 1]);
      if (b.defined() && buffers.used.count(b.get())) body = DeclBuffer(b, body);
    }
    for (const Var& v : UndefinedVars(body, params)) {
      bool is_handle = false;
      for (int i = 0; i < n; ++i) is_handle |= func->params[i].same_as(v);
      if (is_handle) {
        TVM_FFI_THROW(ValueError) << "MakePackedAPI: expected " << var->name_hint
                                  << " to use parameter " << v->name_hint
                                  << " through its buffer only";
      }
      add(v, -1, 0);
    }
    ReturnRewriter returns;
    Type ret_type = func->ret_type;
    if (is_public) {
      Var result("result", kHandle);
      returns.result = result;
      if (ContentsOf(func->body).Calls(builtin::ret())) body = returns.Mutate(body);
      if (returns.used) {
        params.push_back(result);
        alignments.push_back(0);
      }
      ret_type = PrimType(kInt32);
      body = SeqStmt::Flatten({body, Return(0)});
    } else if (IsVoidType(ret_type)) {
      ret_type = PrimType(kInt32);
      body = SeqStmt::Flatten({body, Return(0)});
    } else {
      info.has_status = false;
    }
    body = OnCurrentDevice(DeviceTypeOf(func), body);
    info.var = is_public ? GlobalVar(std::string(var->name_hint) + "_compute_") : var;
    PrimFunc inner = func;
    auto* f = Edit(&inner);
    f->params = params;
    f->buffer_map = {};
    f->body = body;
    f->ret_type = ret_type;
    inner = WithoutAttr(WithoutAttr(inner, ::tvm::attr::kGlobalSymbol), attr::kIsEntryFunc);
    inner = OnHost(WithAttr(inner, "tir.private", true));
    return WithAttr(inner, "tir.param_alignment",
                    Array<int64_t>(alignments.begin(), alignments.end()));
  }
  Halves Split(const GlobalVar& var, const PrimFunc& func) const {
    Halves halves;
    halves.calls = CallsFunctions(func);
    auto symbol = func->GetAttr<String>(::tvm::attr::kGlobalSymbol);
    const Plain& info = halves.plain;
    halves.inner = MakePlain(var, func, symbol.has_value(), &halves.plain);
    if (!symbol.has_value()) return halves;
    PackedArguments arguments(func, std::string(symbol.value()), helpers);
    halves.unpacked_dims = arguments.unpacked_dims();
    Array<PrimExpr> args;
    for (const Var& v : info.params) {
      PrimExpr value = arguments.ValueOf(v);
      if (!value.defined()) {
        TVM_FFI_THROW(ValueError) << "MakePackedAPI: expected variable " << v->name_hint << " of "
                                  << symbol.value() << " to be defined in it or by its arguments";
      }
      args.push_back(value);
    }
    if (halves.inner->params.size() > info.params.size()) args.push_back(arguments.result());
    Stmt run = Return(Call(kInt32, info.var, args));
    if (PrimExpr id = arguments.device_id(); id.defined()) {
      PrimExpr type = PrimExpr(static_cast<int>(DeviceTypeOf(func)));
      Stmt set = Evaluate(
          Call(kInt32, builtin::tvm_call_packed(), {StringImm("__tvm_set_device"), type, id}));
      run = SeqStmt::Flatten({set, run});
    }
    PrimFunc entry(arguments.params(), arguments.Wrap(run), PrimType(kInt32), {}, func->attrs,
                   func->span);
    halves.entry = WithAttr(OnHost(entry), ::tvm::attr::kCallingConv,
                            static_cast<int64_t>(CallingConv::kCPackedFunc));
    return halves;
  }
};

/// Calls of functions of the module: plain arguments, and errors handed on.
struct CallRewriter : Mutator<CallRewriter, EvaluateObj, CallObj> {
  const std::unordered_map<const GlobalVarObj*, Plain>& plain;
  explicit CallRewriter(const std::unordered_map<const GlobalVarObj*, Plain>& plain)
      : plain(plain) {}

  const Plain* Callee(const PrimExpr& e) const {
    auto* call = e.as<CallObj>();
    auto* var = call ? call->op.as<GlobalVarObj>() : nullptr;
    if (!var) return nullptr;
    auto it = plain.find(var);
    return it == plain.end() ? nullptr : &it->second;
  }
  PrimExpr PlainCall(const CallObj* op, const Plain& callee, DataType t) {
    Array<PrimExpr> args;
    for (size_t i = 0; i < callee.params.size(); ++i) {
      int position = callee.positions[i];
      if (position < 0 || position >= static_cast<int>(op->args.size())) {
        TVM_FFI_THROW(TypeError)
            << "MakePackedAPI: expected a call of " << callee.var->name_hint << " to give "
            << callee.params[i]->name_hint
            << ": shapes of a function that is called must be constants or scalar parameters";
      }
      PrimExpr arg = Mutate(op->args[position]);
      if (callee.params[i].dtype().is_handle() && arg.as<BufferLoadObj>()) {
        arg = Call(kHandle, builtin::address_of(), {arg});
      }
      args.push_back(arg);
    }
    return Call(t, callee.var, args, op->span);
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    const Plain* callee = Callee(op->value);
    if (!callee || !callee->has_status) return MapChildren(op, *this);
    PrimExpr status = PlainCall(op->value.as<CallObj>(), *callee, kInt32);
    return IfThenElse(not_equal(status, PrimExpr(0)), Return(-1));
  }
  ObjectRef Rewrite(const CallObj* op) {
    const Plain* callee = Callee(ffi::GetRef<PrimExpr>(op));
    if (!callee) return MapChildren(op, *this);
    if (callee->has_status) {
      TVM_FFI_THROW(TypeError)
          << "MakePackedAPI: expected the call of " << callee->var->name_hint
          << " to be a statement of its own: only private functions return values to others";
    }
    return PlainCall(op, *callee, op->dtype);
  }
};
}  // namespace

IRModule MakePackedAPI(IRModule mod) {
  std::vector<std::pair<GlobalVar, BaseFunc>> all(mod->functions.begin(), mod->functions.end());
  std::vector<Halves> halves(all.size());
  Splitter split;
  transform::ForEachFunction(all.size(), [&](size_t i) {
    auto* f = all[i].second.as<PrimFuncObj>();
    if (!f) return;
    PrimFunc func = ffi::GetRef<PrimFunc>(f);
    if (Splitter::IsLowered(func))
      halves[i].calls = Splitter::CallsFunctions(func);
    else
      halves[i] = split.Split(all[i].first, func);
  });
  std::unordered_map<const GlobalVarObj*, Plain> plain;
  for (size_t i = 0; i < all.size(); ++i) {
    if (halves[i].inner.defined()) plain.emplace(all[i].first.get(), halves[i].plain);
  }
  if (plain.empty()) return mod;
  CallRewriter rewrite(plain);
  Map<GlobalVar, BaseFunc> functions;
  bool raises = false;
  std::set<int> unpacked_dims;
  Optional<ObjectRef> target;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [var, func] = all[i];
    const PrimFunc& entry = halves[i].entry;
    if (auto t =
            (entry.defined() ? BaseFunc(entry) : func)->GetAttr<ObjectRef>(::tvm::attr::kTarget);
        t && (entry.defined() || !raises)) {
      target = t;
    }
    auto with_calls = [&](const PrimFunc& f) {
      return halves[i].calls ? RewriteBody(f, rewrite) : f;
    };
    auto* f = func.as<PrimFuncObj>();
    if (halves[i].inner.defined()) {
      functions.Set(halves[i].plain.var, with_calls(halves[i].inner));
      if (halves[i].entry.defined()) {
        functions.Set(var, halves[i].entry);
        raises = true;
        unpacked_dims.insert(halves[i].unpacked_dims.begin(), halves[i].unpacked_dims.end());
      }
    } else if (f && f->GetAttr<int64_t>(::tvm::attr::kCallingConv, 0) == 0) {
      functions.Set(var, with_calls(ffi::GetRef<PrimFunc>(f)));
    } else {
      functions.Set(var, func);
    }
  }
  if (raises) {
    auto add = [&](const GlobalVar& var, PrimFunc func, const char* role) {
      func = WithAttr(WithAttr(func, "tir.private", true), role, true);
      // Errors are raised where the functions run: on the same target.
      if (target.has_value()) func = WithAttr(func, ::tvm::attr::kTarget, target.value());
      functions.Set(var, func);
    };
    add(split.helpers.wrong_dtype, RaiseWrongDtype(), "tir.cold");
    add(split.helpers.wrong_kind, RaiseWrongKind(), "tir.cold");
    for (int ndim : unpacked_dims)
      add(split.helpers.unpack_tensor[ndim], PackedArguments::TensorUnpacker(ndim, split.helpers),
          attr::kUnpacksArgument);
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
TVM_PASS(
    tir, MakePackedAPI,
    "Splits each function with a global symbol into a packed entry and an inner function.\n\n"
    "    def main(A: T.Buffer((n,)), x: T.float32)   ->   def main(self, args, num_args, result) "
    "-> int32:\n"
    "                                                        check and unpack the arguments\n"
    "                                                        return main_compute_(A.data, x, n)\n"
    "                                                      def main_compute_(A, x, n) -> int32\n\n"
    "The inner function takes data pointers, scalars, then the symbolic sizes it uses; its "
    "attribute "
    "tir.param_alignment has the alignment in bytes known of each parameter (0: none). It returns "
    "0, or -1 with an "
    "error raised. Functions for a device become functions of its host, which set the device that "
    "their tensors are on. Private functions get plain parameters and calls hand errors on.")
}  // namespace tvm::tir
