// SPDX-License-Identifier: Apache-2.0
// Lowers calls of packed functions, lists of values, structures on the stack, assertions and large
// allocations to what a code generator knows.
#include <algorithm>
#include <unordered_map>

#include "tvm/expr/op.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr DataType kInt32 = DataType::Int(32), kInt64 = DataType::Int(64),
                   kHandle = DataType::Handle();
/// Larger constant allocations come from the workspace: a thread's stack is small.
constexpr int64_t kMaxStackBytes = 16384;

PrimExpr StructSet(const PrimExpr& structure, const PrimExpr& index, int field,
                   const PrimExpr& value) {
  return Call(kInt32, builtin::tvm_struct_set(), {structure, index, PrimExpr(field), value});
}
PrimExpr StructSet(const PrimExpr& structure, int64_t index, int field, const PrimExpr& value) {
  return StructSet(structure, PrimExpr(static_cast<int>(index)), field, value);
}
PrimExpr StructGet(DataType dtype, const PrimExpr& structure, const PrimExpr& index, int field) {
  return Call(dtype, builtin::tvm_struct_get(), {structure, index, PrimExpr(field)});
}
bool StartsWithClass(const std::string& message) {
  size_t colon = message.find(": ");
  if (colon == std::string::npos || colon == 0) return false;
  return std::all_of(message.begin(), message.begin() + colon,
                     [](char c) { return std::isalnum(c) || c == '_' || c == '.'; }) &&
         (message.compare(colon - std::min<size_t>(colon, 5), std::min<size_t>(colon, 5),
                          "Error") == 0);
}

/// The largest item of each list of values that the code names.
struct ListSizes : Visitor<ListSizes, CallObj> {
  std::unordered_map<const VarObj*, int64_t> largest;
  void Visit(const CallObj* call) {
    if (call->Is(builtin::anylist_getitem()) || call->Is(builtin::anylist_resetitem()) ||
        call->Is(builtin::anylist_setitem_call_packed()) ||
        call->Is(builtin::anylist_setitem_call_cpacked())) {
      auto* list = call->args[0].as<VarObj>();
      auto item = AsConstInt(call->args[1]);
      if (list && item) {
        int64_t& known = largest.try_emplace(list, *item).first->second;
        known = std::max(known, *item);
      }
    }
    VisitChildren(call, *this);
  }
};

/// Memory on the stack that all calls of one body share.
struct StackSizes {
  int64_t packed_args = 0, shape_elements = 0, tensors = 0;
};

struct BuiltinLowerer
    : Mutator<BuiltinLowerer, CallObj, EvaluateObj, LetStmtObj, BufferStoreObj, IfThenElseObj,
              ForObj, WhileObj, AssertStmtObj, AllocateObj, AttrStmtObj> {
  int64_t device_type = kDLCPU;
  PrimExpr device_id = 0;
  ListSizes lists;
  // Of the function or parallel loop body being rewritten.
  Var args{"stack_args", kHandle}, shapes{"stack_shapes", kHandle},
      tensors{"stack_tensors", kHandle};
  StackSizes used, now;
  std::vector<Stmt> before;  // statements that the expression being rewritten needs first
  std::vector<Stmt> frees;   // of the workspaces alive here, outermost first

  // ---- scopes ---------------------------------------------------------------------------------
  /// A body that may run in a thread of its own gets its own memory.
  Stmt Body(const Stmt& body) {
    StackSizes outer_used = std::exchange(used, {}), outer_now = std::exchange(now, {});
    std::vector<Stmt> outer_frees = std::exchange(frees, {});
    Var outer_args = std::exchange(args, Var("stack_args", kHandle));
    Var outer_shapes = std::exchange(shapes, Var("stack_shapes", kHandle));
    Var outer_tensors = std::exchange(tensors, Var("stack_tensors", kHandle));
    Stmt result = Mutate(body);
    auto alloc = [&](const Var& var, const char* kind, int64_t count) {
      if (count == 0) return;
      PrimExpr memory = Call(kHandle, builtin::tvm_stack_alloca(),
                             {StringImm(kind), PrimExpr(static_cast<int>(count))});
      result = LetStmt(var, memory, result);
    };
    alloc(args, "tvm_ffi_any", used.packed_args);
    alloc(shapes, "shape", used.shape_elements);
    alloc(tensors, "array", used.tensors);
    used = outer_used;
    now = outer_now;
    frees = std::move(outer_frees);
    args = outer_args;
    shapes = outer_shapes;
    tensors = outer_tensors;
    return result;
  }
  /// `rewrite()` with what its expressions need done first in front of it.
  template <class F>
  Stmt WithPreparation(F&& rewrite) {
    std::vector<Stmt> outer = std::exchange(before, {});
    StackSizes saved = now;
    Stmt stmt = rewrite();
    now = saved;
    Array<Stmt> seq(before.begin(), before.end());
    before = std::move(outer);
    if (seq.empty()) return stmt;
    seq.push_back(stmt);
    return SeqStmt::Flatten(seq);
  }
  void Keep() {
    used.packed_args = std::max(used.packed_args, now.packed_args);
    used.shape_elements = std::max(used.shape_elements, now.shape_elements);
    used.tensors = std::max(used.tensors, now.tensors);
  }

  // ---- statements -----------------------------------------------------------------------------
  ObjectRef Rewrite(const EvaluateObj* op) {
    return WithPreparation([&] { return Leaving(Any(MapChildren(op, *this)).cast<Stmt>()); });
  }
  /// A statement that leaves the function gives the workspaces back first.
  Stmt Leaving(const Stmt& stmt) {
    auto* call = stmt.as<EvaluateObj>()->value.as<CallObj>();
    bool returns = call && call->Is(builtin::ret());
    if (!call || frees.empty() || (!returns && !call->Is(builtin::tvm_raise_error()))) return stmt;
    // What is returned, or shown, may be in the memory that goes.
    std::vector<std::pair<Var, PrimExpr>> lets;
    Array<PrimExpr> values = call->args.Map([&](const PrimExpr& e) -> PrimExpr {
      if (e.as<StringImmObj>() || e.as<IntImmObj>()) return e;
      lets.emplace_back(Var("value", e.dtype()), e);
      return lets.back().first;
    });
    Array<Stmt> seq(frees.rbegin(), frees.rend());
    seq.push_back(Evaluate(Call(call->dtype, call->op, values, call->span)));
    Stmt result = SeqStmt::Flatten(seq);
    for (const auto& [var, value] : lets) result = LetStmt(var, value, result);
    return result;
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    return WithPreparation([&] { return Any(MapChildren(op, *this)).cast<Stmt>(); });
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    PrimExpr value;
    Stmt body;
    return WithPreparation([&] {
      value = Mutate(op->value);
      std::vector<Stmt> own = std::exchange(before, {});
      body = WithListCheck(op->var, Mutate(op->body));
      before = std::move(own);
      if (value.same_as(op->value) && body.same_as(op->body)) return ffi::GetRef<Stmt>(op);
      return Stmt(LetStmt(op->var, value, body, op->span));
    });
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    return WithPreparation([&] {
      PrimExpr cond = Mutate(op->condition);
      std::vector<Stmt> own = std::exchange(before, {});
      Stmt then_case = Mutate(op->then_case);
      Optional<Stmt> else_case = op->else_case;
      if (else_case.has_value()) else_case = Mutate(else_case.value());
      before = std::move(own);
      bool same_else = !else_case.has_value() || else_case.value().same_as(op->else_case.value());
      if (cond.same_as(op->condition) && then_case.same_as(op->then_case) && same_else)
        return ffi::GetRef<Stmt>(op);
      return Stmt(IfThenElse(cond, then_case, else_case, op->span));
    });
  }
  ObjectRef Rewrite(const ForObj* op) {
    return WithPreparation([&] {
      PrimExpr min = Mutate(op->min), extent = Mutate(op->extent);
      std::vector<Stmt> own = std::exchange(before, {});
      Stmt body = op->kind == ForKind::kParallel ? Body(op->body) : Mutate(op->body);
      before = std::move(own);
      if (min.same_as(op->min) && extent.same_as(op->extent) && body.same_as(op->body))
        return ffi::GetRef<Stmt>(op);
      For loop = ffi::GetRef<For>(op);
      auto* n = Edit(&loop);
      n->min = min;
      n->extent = extent;
      n->body = body;
      return Stmt(loop);
    });
  }
  ObjectRef Rewrite(const WhileObj* op) {
    std::vector<Stmt> outer = std::exchange(before, {});
    PrimExpr cond = Mutate(op->condition);
    if (!before.empty()) {
      TVM_FFI_THROW(ValueError)
          << "LowerTVMBuiltin: expected the condition of a while loop without packed calls";
    }
    before = std::move(outer);
    Stmt body = Mutate(op->body);
    if (cond.same_as(op->condition) && body.same_as(op->body)) return ffi::GetRef<ObjectRef>(op);
    return While(cond, body, op->span);
  }
  /// assert cond, message  ->  if not cond: raise
  ObjectRef Rewrite(const AssertStmtObj* op) {
    return WithPreparation([&] {
      PrimExpr cond = Mutate(op->condition);
      std::string text = "the assertion failed", error = "RuntimeError";
      if (auto* message = op->message.as<StringImmObj>()) text = message->value;
      if (StartsWithClass(text)) {
        size_t colon = text.find(": ");
        error = text.substr(0, colon);
        text = text.substr(colon + 2);
      }
      Stmt raise = Evaluate(Call(kInt32, builtin::tvm_raise_error(),
                                 {StringImm(error), StringImm("%s"), StringImm(text)}));
      std::vector<Stmt> own = std::exchange(before, {});
      Stmt body = Mutate(op->body);
      before = std::move(own);
      return SeqStmt::Flatten(
          {IfThenElse(logical_not(likely(cond)), Leaving(raise), {}, op->span), body});
    });
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key == attr::kDeviceId) {
      PrimExpr outer = std::exchange(device_id, Mutate(op->value));
      Stmt body = Mutate(op->body);
      device_id = outer;
      return body;
    }
    if (op->attr_key == attr::kDeviceType) {
      int64_t outer = std::exchange(device_type, AsConstInt(op->value).value_or(device_type));
      Stmt body = Mutate(op->body);
      device_type = outer;
      return body;
    }
    return MapChildren(op, *this);
  }
  /// Memory that is large, or whose size is not known, comes from the workspace and is given back.
  ObjectRef Rewrite(const AllocateObj* op) {
    const String& scope = op->buffer_var->type_annotation.as<PointerTypeObj>()->storage_scope;
    int64_t bytes_per_element = (int64_t{op->dtype.bits()} * op->dtype.lanes() + 7) / 8;
    int64_t count = op->ConstantSize();
    bool is_small = count > 0 && count <= kMaxStackBytes / bytes_per_element;
    bool on_stack = device_type == kDLCPU && is_small;
    if (on_stack || (scope != "global" && (scope != "local" || device_type != kDLCPU)))
      return MapChildren(op, *this);
    PrimExpr bytes = MakeConst(DataType::UInt(64), bytes_per_element);
    for (const PrimExpr& e : op->extents) bytes = bytes * cast(DataType::UInt(64), Mutate(e));
    PrimExpr device = PrimExpr(static_cast<int>(device_type));
    PrimExpr memory =
        Call(kHandle, builtin::TVMBackendAllocWorkspace(),
             {device, device_id, bytes, PrimExpr(op->dtype.code()), PrimExpr(op->dtype.bits())});
    Stmt failed = Leaving(Evaluate(
        Call(kInt32, builtin::tvm_raise_error(),
             {StringImm("MemoryError"), StringImm("expected %lld bytes of workspace, got none"),
              cast(kInt64, bytes)})));
    PrimExpr is_null = Call(DataType::Bool(), builtin::isnullptr(), {op->buffer_var});
    // Size 0 needs no memory, and may get none.
    PrimExpr needed = not_equal(bytes, MakeConst(DataType::UInt(64), 0));
    Stmt free = Evaluate(
        Call(kInt32, builtin::TVMBackendFreeWorkspace(), {device, device_id, op->buffer_var}));
    frees.push_back(free);
    Stmt body = Mutate(op->body);
    frees.pop_back();
    body = SeqStmt::Flatten({IfThenElse(is_null && needed, failed), body, free});
    return LetStmt(op->buffer_var, memory, body, op->span);
  }

  // ---- calls ----------------------------------------------------------------------------------
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::tvm_call_packed())) return Packed(op, builtin::tvm_call_packed_lowered());
    if (op->Is(builtin::tvm_call_trace_packed()))
      return Packed(op, builtin::tvm_call_trace_packed_lowered());
    if (op->Is(builtin::tvm_call_cpacked())) return Packed(op, builtin::tvm_call_cpacked_lowered());
    if (op->Is(builtin::anylist_setitem_call_packed()))
      return SetItem(op, builtin::tvm_call_packed_lowered());
    if (op->Is(builtin::anylist_setitem_call_cpacked()))
      return SetItem(op, builtin::tvm_call_cpacked_lowered());
    if (op->Is(builtin::anylist_resetitem())) return ResetItem(op);
    if (op->Is(builtin::tvm_stack_make_shape())) return MakeShape(op);
    if (op->Is(builtin::tvm_stack_make_array())) return MakeTensor(op);
    if (op->Is(builtin::tvm_context_id())) return cast(op->dtype, device_id);
    if (op->Is(builtin::start_profile_intrinsic())) return ProfileMark(op, true);
    if (op->Is(builtin::end_profile_intrinsic())) return ProfileMark(op, false);
    if (op->Is(builtin::if_then_else())) {
      PrimExpr cond = Mutate(op->args[0]);
      size_t prepared = before.size();
      PrimExpr t = Mutate(op->args[1]), f = Mutate(op->args[2]);
      if (before.size() != prepared) {
        // What one side needs must not be done when the other one is chosen.
        TVM_FFI_THROW(ValueError)
            << "LowerTVMBuiltin: expected the values of if_then_else without packed calls";
      }
      if (cond.same_as(op->args[0]) && t.same_as(op->args[1]) && f.same_as(op->args[2]))
        return ffi::GetRef<ObjectRef>(op);
      return Call(op->dtype, op->op, {cond, t, f}, op->span);
    }
    return MapChildren(op, *this);
  }
  /// f(name, a, b)  ->  args[0] = a; args[1] = b; f_lowered(name, args, 0, 2)
  ObjectRef Packed(const CallObj* op, const Op& lowered) {
    int64_t base = now.packed_args;
    int64_t shape_base = now.shape_elements, tensor_base = now.tensors;
    size_t n = op->args.size() - 1;
    now.packed_args += static_cast<int64_t>(n) + 1;  // one more for the result
    Keep();
    std::vector<PrimExpr> values;
    for (size_t i = 1; i <= n; ++i) values.push_back(Mutate(op->args[i]));
    for (size_t i = 0; i < n; ++i) {
      const PrimExpr& arg = values[i];
      DataType t = arg.dtype();
      int type = kTVMFFIOpaquePtr;
      PrimExpr value = arg;
      auto* call = op->args[i + 1].as<CallObj>();
      if (call && call->Is(builtin::anylist_getitem())) {
        auto* item = arg.as<CallObj>();
        CopyAny(args, PrimExpr(static_cast<int>(base + static_cast<int64_t>(i))), item->args[0],
                item->args[1]);
        continue;
      }
      if (arg.as<StringImmObj>())
        type = kTVMFFIRawStr;
      else if (call && call->Is(builtin::tvm_stack_make_array()))
        type = kTVMFFIDLTensorPtr;
      else if (IsNullHandle(arg))
        type = kTVMFFINone;
      else if (t.is_bool()) {
        type = kTVMFFIBool;
        value = cast(kInt64, arg);
      } else if (t.is_integer()) {
        type = kTVMFFIInt;
        value = cast(kInt64, arg);
      } else if (t.is_float()) {
        type = kTVMFFIFloat;
        value = cast(DataType::Float(64), arg);
      }
      auto set = [&](int field, const PrimExpr& v) {
        before.push_back(Evaluate(StructSet(args, base + static_cast<int64_t>(i), field, v)));
      };
      set(builtin::kFFIAnyTypeIndex, PrimExpr(type));
      set(builtin::kFFIAnyZeroPadding, PrimExpr(0));
      set(builtin::kFFIAnyUnionValue, value);
    }
    now.shape_elements = shape_base;
    now.tensors = tensor_base;
    Array<PrimExpr> lowered_args{op->args[0], args, PrimExpr(static_cast<int>(base)),
                                 PrimExpr(static_cast<int>(base + static_cast<int64_t>(n)))};
    return Call(op->dtype, lowered, lowered_args, op->span);
  }
  ObjectRef ProfileMark(const CallObj* op, bool begins) {
    Call mark(kInt32, builtin::tvm_call_packed(),
              {StringImm("tir._profile_mark"), op->args[0], PrimExpr(IntImm::Bool(begins))},
              op->span);
    return Packed(mark.get(), builtin::tvm_call_packed_lowered());
  }
  // ---- lists of values ------------------------------------------------------------------------
  /// A list has its length in front of its first item. Lengths come from files that may be damaged,
  /// apart from the code: each list is asked once whether it has all items that the code names.
  Stmt WithListCheck(const Var& list, const Stmt& body) {
    auto it = lists.largest.find(list.get());
    if (it == lists.largest.end()) return body;
    PrimExpr length = StructGet(kInt64, list, PrimExpr(-1), builtin::kFFIAnyUnionValue);
    PrimExpr needed = IntImm::Int64(it->second + 1);
    Stmt raise = Leaving(
        Evaluate(Call(kInt32, builtin::tvm_raise_error(),
                      {StringImm("ValueError"),
                       StringImm("expected a list '" + list->name_hint +
                                 "' of at least %lld values, got %lld: it was made for other code"),
                       needed, length})));
    return SeqStmt::Flatten({IfThenElse(length < needed, raise), body});
  }
  /// to[i] = from[j], whose owner stays the same.
  void CopyAny(const PrimExpr& to, const PrimExpr& i, const PrimExpr& from, const PrimExpr& j) {
    for (auto [field, type] : {std::pair(builtin::kFFIAnyTypeIndex, kInt32),
                               std::pair(builtin::kFFIAnyZeroPadding, kInt32),
                               std::pair(builtin::kFFIAnyUnionValue, kInt64)}) {
      before.push_back(Evaluate(StructSet(to, i, field, StructGet(type, from, j, field))));
    }
  }
  /// An item that is an object is no longer the list's.
  void Release(const PrimExpr& list, const PrimExpr& i) {
    PrimExpr type = StructGet(kInt32, list, i, builtin::kFFIAnyTypeIndex);
    PrimExpr object = StructGet(kHandle, list, i, builtin::kFFIAnyUnionValue);
    PrimExpr release =
        Call(kInt32, builtin::call_extern(), {StringImm("TVMFFIObjectDecRef"), object});
    before.push_back(IfThenElse(type >= PrimExpr(static_cast<int>(kTVMFFIStaticObjectBegin)),
                                Evaluate(release)));
  }
  /// f(list, i, name, a)  ->  f_lowered(name, args, …); list[i] = what it returned
  ObjectRef SetItem(const CallObj* op, const Op& lowered) {
    PrimExpr list = Mutate(op->args[0]), i = Mutate(op->args[1]);
    Call call(DataType::Void(), op->op, Array<PrimExpr>(op->args.begin() + 2, op->args.end()));
    int64_t result = now.packed_args + static_cast<int64_t>(call->args.size()) - 1;
    before.push_back(Evaluate(Any(Packed(call.get(), lowered)).cast<PrimExpr>()));
    Release(list, i);
    CopyAny(list, i, args, PrimExpr(static_cast<int>(result)));
    return PrimExpr(0);
  }
  ObjectRef ResetItem(const CallObj* op) {
    PrimExpr list = Mutate(op->args[0]), i = Mutate(op->args[1]);
    Release(list, i);
    before.push_back(Evaluate(
        StructSet(list, i, builtin::kFFIAnyTypeIndex, PrimExpr(static_cast<int>(kTVMFFINone)))));
    before.push_back(Evaluate(StructSet(list, i, builtin::kFFIAnyZeroPadding, PrimExpr(0))));
    before.push_back(
        Evaluate(StructSet(list, i, builtin::kFFIAnyUnionValue, MakeConst(kInt64, 0))));
    return PrimExpr(0);
  }
  static bool IsNullHandle(const PrimExpr& e) {
    auto* call = e.as<CallObj>();
    return e.dtype().is_handle() && call && call->Is(builtin::reinterpret()) &&
           IsConstInt(call->args[0], 0);
  }
  PrimExpr Offset(const Var& memory, int64_t index, int64_t bytes) {
    if (index == 0) return memory;
    return Call(kHandle, builtin::handle_add_byte_offset(),
                {memory, PrimExpr(static_cast<int>(index * bytes))});
  }
  ObjectRef MakeShape(const CallObj* op) {
    int64_t base = now.shape_elements;
    now.shape_elements += static_cast<int64_t>(op->args.size());
    Keep();
    for (size_t i = 0; i < op->args.size(); ++i) {
      before.push_back(
          Evaluate(StructSet(shapes, base + static_cast<int64_t>(i), builtin::kInt64ArrayElem,
                             cast(kInt64, Mutate(op->args[i])))));
    }
    return Offset(shapes, base, 8);
  }
  /// (data, shape, strides or 0, ndim, a value of the element type, element offset)
  ObjectRef MakeTensor(const CallObj* op) {
    int64_t index = now.tensors++;
    Keep();
    PrimExpr data = Mutate(op->args[0]), shape = Mutate(op->args[1]), strides = Mutate(op->args[2]);
    DataType t = op->args[4].dtype();
    PrimExpr offset = Mutate(op->args[5]);
    if (!strides.dtype().is_handle()) strides = MakeConst(kHandle, 0);
    auto set = [&](int field, const PrimExpr& v) {
      before.push_back(Evaluate(StructSet(tensors, index, field, v)));
    };
    int64_t bits = int64_t{t.bits()} * t.lanes();
    PrimExpr bytes =
        floordiv(cast(DataType::UInt(64), offset) * MakeConst(DataType::UInt(64), bits),
                 MakeConst(DataType::UInt(64), 8));
    set(builtin::kDLTensorData, data);
    set(builtin::kDLTensorShape, shape);
    set(builtin::kDLTensorStrides, strides);
    set(builtin::kDLTensorNDim, Mutate(op->args[3]));
    set(builtin::kDLTensorTypeCode, MakeConst(DataType::UInt(8), t.code()));
    set(builtin::kDLTensorTypeBits, MakeConst(DataType::UInt(8), t.bits()));
    set(builtin::kDLTensorTypeLanes, MakeConst(DataType::UInt(16), t.lanes()));
    set(builtin::kDLTensorByteOffset, bytes);
    set(builtin::kDLTensorDeviceId, cast(kInt32, device_id));
    set(builtin::kDLTensorDeviceType, PrimExpr(static_cast<int>(device_type)));
    return Call(kHandle, builtin::tvm_struct_get(),
                {tensors, PrimExpr(static_cast<int>(index)),
                 PrimExpr(static_cast<int>(builtin::kDLTensorAddr))});
  }
};
}  // namespace

PrimFunc LowerTVMBuiltin(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (target.has_value() && target.value()->DeviceType() != kDLCPU) return func;
  BuiltinLowerer lower;
  lower.lists(func->body);
  Stmt body = lower.Body(func->body);
  for (const Var& param : func->params) body = lower.WithListCheck(param, body);
  return WithBody(std::move(func), body);
}
TVM_PASS(tir, LowerTVMBuiltin,
         R"(Lowers packed calls, shapes and tensors on the stack, assertions and large allocations.

before(n: T.int32):
    T.call_packed("f", n)
after:
    stack_args: T.handle = T.tvm_stack_alloca("tvm_ffi_any", 2)
    T.tvm_struct_set(stack_args, 0, 11, 1)
    T.tvm_struct_set(stack_args, 0, 12, 0)
    T.tvm_struct_set(stack_args, 0, 13, T.Cast("int64", n))
    T.tvm_call_packed_lowered("f", stack_args, 0, 1))")
}  // namespace tvm::tir
