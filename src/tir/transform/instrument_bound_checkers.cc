// SPDX-License-Identifier: Apache-2.0
// Checks every index of a buffer when the program runs.
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct BoundInstrumenter
    : Mutator<BoundInstrumenter, BufferStoreObj, EvaluateObj, LetStmtObj, IfThenElseObj,
              BufferLoadObj, CallObj, SelectObj, LetObj, BufferObj> {
  std::vector<Stmt> checks;  // for the statement being rewritten
  PrimExpr when = const_true();

  void Check(const Buffer& buffer, const Array<PrimExpr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) {
      PrimExpr index = indices[d];
      PrimExpr first = index, last = index;
      if (auto* ramp = index.as<RampObj>()) {
        auto stride = AsConstInt(ramp->stride);
        if (index.dtype().is_scalable() || !stride || *stride < 0) continue;
        PrimExpr steps = MakeConst(ramp->stride.dtype(), index.dtype().lanes() - 1);
        first = ramp->base;
        last = ramp->base + ramp->stride * steps;
      } else if (!index.dtype().is_scalar()) {
        continue;
      }
      PrimExpr extent = cast(last.dtype(), buffer->shape[d]);
      PrimExpr ok = first >= MakeZero(first.dtype()) && last < extent;
      if (IsTrue(ok)) continue;
      std::string text = "expected index " + std::to_string(d) + " of buffer " +
                         std::string(buffer->name) + " below %lld, got %lld";
      PrimExpr raise = Call(DataType::Int(32), builtin::tvm_raise_error(),
                            {StringImm("IndexError"), StringImm(text),
                             cast(DataType::Int(64), extent), cast(DataType::Int(64), last)});
      checks.push_back(IfThenElse(when && logical_not(likely(ok)), Evaluate(raise)));
    }
  }
  template <class F>
  Stmt Guarded(F&& rewrite) {
    std::vector<Stmt> outer = std::exchange(checks, {});
    Stmt stmt = rewrite();
    Array<Stmt> seq(checks.begin(), checks.end());
    checks = std::move(outer);
    if (seq.empty()) return stmt;
    seq.push_back(stmt);
    return SeqStmt::Flatten(seq);
  }
  template <class F>
  void Under(const PrimExpr& cond, F&& body) {
    PrimExpr outer = std::exchange(when, when && cond);
    body();
    when = outer;
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    for (const PrimExpr& i : op->indices) Mutate(i);  // indices that are read must be checked first
    Check(op->buffer, op->indices);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::address_of())) return ffi::GetRef<ObjectRef>(op);
    if (!op->Is(builtin::if_then_else())) return MapChildren(op, *this);
    Mutate(op->args[0]);
    Under(op->args[0], [&] { Mutate(op->args[1]); });
    Under(logical_not(op->args[0]), [&] { Mutate(op->args[2]); });
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const LetObj* op) {
    Mutate(op->value);
    size_t begin = checks.size();
    Mutate(op->body);
    // The checks run before the statement, where the variable is not known.
    Map<Var, PrimExpr> value{{op->var, op->value}};
    for (size_t i = begin; i < checks.size(); ++i) checks[i] = Substitute(checks[i], value);
    return ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const SelectObj* op) { return MapChildren(op, *this); }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    return Guarded([&] {
      Mutate(op->value);
      for (const PrimExpr& i : op->indices) Mutate(i);
      Check(op->buffer, op->indices);
      return ffi::GetRef<Stmt>(op);
    });
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    return Guarded([&] { return Any(MapChildren(op, *this)).cast<Stmt>(); });
  }
  ObjectRef Rewrite(const LetStmtObj* op) {
    Stmt body = Mutate(op->body);
    return Guarded([&] {
      Mutate(op->value);
      return Stmt(LetStmt(op->var, op->value, body, op->span));
    });
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    Stmt then_case = Mutate(op->then_case);
    Optional<Stmt> else_case = op->else_case;
    if (else_case.has_value()) else_case = Mutate(else_case.value());
    return Guarded([&] {
      Mutate(op->condition);
      return Stmt(IfThenElse(op->condition, then_case, else_case, op->span));
    });
  }
};
}  // namespace

PrimFunc InstrumentBoundCheckers(PrimFunc func) {
  return RewriteBody(std::move(func), BoundInstrumenter());
}
TVM_PASS(tir, InstrumentBoundCheckers,
         R"(Raises IndexError where an index is outside of its buffer.

before(A: T.Buffer((16,), "float32"), i: T.int32):
    A[i] = 1.0
after:
    if not T.likely(i >= 0 and i < 16):
        T.call_intrin("int32", "tir.tvm_raise_error", "IndexError", "expected index 0 of buffer A below %lld, got %lld", T.int64(16), T.Cast("int64", i))
    A[i] = T.float32(1))")
}  // namespace tvm::tir
