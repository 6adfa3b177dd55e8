// SPDX-License-Identifier: Apache-2.0
// Makes every 64-bit index 32 bits wide, whatever its bounds.
#include "../analyzed_mutator.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
constexpr DataType kInt32 = DataType::Int(32);
bool IsWide(DataType t) { return t.is_int() && t.bits() == 64; }

struct IndexNarrower : Mutator<IndexNarrower, VarObj, IntImmObj, CastObj, CallObj, BufferObj,
                               BufferStoreObj, IterVarObj, ForObj> {
  std::unordered_map<const VarObj*, Var> vars;
  arith::Analyzer analyzer;  // of the program as it was
  ObjectRef Rewrite(const VarObj* op) {
    if (!IsWide(op->dtype)) return ffi::GetRef<ObjectRef>(op);
    Var& var = vars.try_emplace(op, Var()).first->second;
    if (!var.defined()) var = ffi::GetRef<Var>(op).CopyWithDType(kInt32);
    return var;
  }
  ObjectRef Rewrite(const IntImmObj* op) {
    if (!IsWide(op->dtype)) return ffi::GetRef<ObjectRef>(op);
    if (op->value > INT32_MAX || op->value < INT32_MIN) {
      TVM_FFI_THROW(ValueError)
          << "ForceNarrowIndexToInt32: expected constants that fit int32, got " << op->value;
    }
    return IntImm(kInt32, op->value, op->span);
  }
  ObjectRef Rewrite(const CastObj* op) {
    PrimExpr value = Mutate(op->value);
    return cast(IsWide(op->dtype) ? op->dtype.with_bits(32) : op->dtype, value, op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
    if (IsWide(op->dtype)) Edit(&call)->dtype = op->dtype.with_bits(32);
    if (op->args.empty() || !IsWide(op->args[0].dtype())) return call;
    // What depends on the width of the argument: a negative one is extended by ones.
    bool is_clz = op->Is(builtin::clz());
    if (!is_clz && !op->Is(builtin::popcount())) return call;
    PrimExpr is_negative = less(call->args[0], MakeZero(call->args[0].dtype()));
    bool not_negative = analyzer.CanProveGreaterEqual(op->args[0], 0);
    PrimExpr more = call + MakeConst(call.dtype(), 32);
    if (is_clz) return not_negative ? more : Select(is_negative, MakeZero(call.dtype()), more);
    return not_negative ? PrimExpr(call) : Select(is_negative, more, call);
  }
  ObjectRef Rewrite(const ForObj* op) {
    RangeScope scope(&analyzer, op->loop_var, op->min, op->extent);
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const IterVarObj* op) {
    Optional<Range> dom = op->dom;
    if (dom.has_value()) dom = Mutate(dom.value());
    return IterVar(dom, Mutate(op->var), op->iter_type, op->thread_tag, op->span);
  }
  ObjectRef Rewrite(const BufferObj* op) {
    if (IsWide(op->dtype)) {
      TVM_FFI_THROW(ValueError) << "ForceNarrowIndexToInt32: expected no buffer of int64, got "
                                << op->name;
    }
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) { return MapChildren(op, *this); }
};
}  // namespace

PrimFunc ForceNarrowIndexToInt32(PrimFunc func) { return IndexNarrower().Mutate(func); }
TVM_PASS(
    tir, ForceNarrowIndexToInt32,
    R"(Makes all int64 variables, constants and indices int32. The caller promises that they fit.

before(A: T.Buffer((T.int64(16),), "float32")):
    for i in T.serial(T.int64(16)):
        A[i] = 1.0
after(A: T.Buffer((16,), "float32")):
    for i in range(16):
        A[i] = T.float32(1))")
}  // namespace tvm::tir
