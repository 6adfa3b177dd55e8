// SPDX-License-Identifier: Apache-2.0
// Guarded loads of words that nobody writes become instructions of PTX.
#include <cmath>

#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Memory that the function may write.
struct WrittenFinder : Visitor<WrittenFinder, BufferStoreObj, BufferLoadObj, VarObj> {
  std::unordered_set<const VarObj*> written;
  void Visit(const BufferStoreObj* op) {
    written.insert(op->buffer->data.get());
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const VarObj* op) { written.insert(op); }  // a pointer may be used for anything
};
struct CachedLoader : Mutator<CachedLoader, BufferStoreObj> {
  const std::unordered_set<const VarObj*>& written;
  explicit CachedLoader(const std::unordered_set<const VarObj*>& written) : written(written) {}

  ObjectRef Rewrite(const BufferStoreObj* op) {
    auto* call = op->value.as<CallObj>();
    bool is_guarded = call && call->Is(builtin::if_then_else());
    auto* load = is_guarded ? call->args[1].as<BufferLoadObj>() : nullptr;
    if (!load || load->predicate.has_value() || ScopeOf(op->buffer->data.get()) != "local" ||
        ScopeOf(load->buffer->data.get()) != "global" || written.count(load->buffer->data.get()))
      return ffi::GetRef<ObjectRef>(op);
    DataType t = load->dtype;
    auto* zero = call->args[2].as<FloatImmObj>();
    bool is_zero =
        zero ? zero->value == 0 && !std::signbit(zero->value) : IsConstInt(call->args[2], 0);
    bool is_word = t.is_scalar() && t.bits() == 32 && (t.is_float() || t.is_integer());
    if (!is_word || !is_zero) return ffi::GetRef<ObjectRef>(op);
    PrimExpr address =
        Call(DataType::Handle(), builtin::address_of(), {ffi::GetRef<PrimExpr>(load)});
    PrimExpr value = Call(t, builtin::ptx_ldg32(), {call->args[0], address}, op->span);
    return BufferStore(op->buffer, value, op->indices, op->predicate, op->span);
  }
};
}  // namespace

PrimFunc InjectPTXLDG32(PrimFunc func, bool enable_inject_ptx_intrin) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  bool has_it = !target.has_value() || Machine::Of(target.value())->Has("cached-loads");
  if (!enable_inject_ptx_intrin || !has_it || !HasAttr(func->body, attr::kThreadExtent))
    return func;
  WrittenFinder find;
  find(func->body);
  return RewriteBody(std::move(func), CachedLoader(find.written));
}
TVM_PASS(
    tir, InjectPTXLDG32,
    R"(Makes loads of 32 bits from global memory to registers under a condition, 0 where it does not hold, one instruction without a branch (ld.global.nc), where the function does not write that memory.

before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    i = T.launch_thread("threadIdx.x", 32)
    L_data = T.allocate([1], "float32", "local")
    L = T.decl_buffer((1,), data=L_data, scope="local")
    L[0] = T.if_then_else(i < 30, A[i], T.float32(0))
    B[i] = L[0]
after:
    i = T.launch_thread("threadIdx.x", 32)
    L_data = T.allocate([1], "float32", "local")
    L = T.decl_buffer((1,), data=L_data, scope="local")
    L[0] = T.ptx_ldg32("float32", i < 30, T.address_of(A[i]))
    B[i] = L[0])",
    Arg("enable_inject_ptx_intrin", true))
}  // namespace tvm::tir
