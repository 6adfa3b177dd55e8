// SPDX-License-Identifier: Apache-2.0
// Removes statements of what is known, once nothing uses them any more.
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct AssumeRemover : Mutator<AssumeRemover, EvaluateObj, SeqStmtObj, IfThenElseObj, ForObj> {
  ObjectRef Rewrite(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    return call && call->Is(builtin::assume()) ? ObjectRef(Evaluate::Nothing())
                                               : ffi::GetRef<ObjectRef>(op);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    ObjectRef seq = MapChildren(op, *this);
    return seq.get() == op ? seq : ObjectRef(SeqStmt::Flatten(seq.as<SeqStmtObj>()->seq));
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    IfThenElse branch = Below<IfThenElse>(op);
    bool changed = branch.get() != op;
    bool is_empty = IsNothing(branch->then_case) &&
                    (!branch->else_case.has_value() || IsNothing(branch->else_case.value()));
    return changed && is_empty ? ObjectRef(Evaluate::Nothing()) : ObjectRef(branch);
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    return loop.get() != op && IsNothing(loop->body) ? ObjectRef(loop->body) : ObjectRef(loop);
  }
};
}  // namespace

PrimFunc RemoveAssume(PrimFunc func) { return RewriteBody(std::move(func), AssumeRemover()); }
TVM_PASS(tir, RemoveAssume,
         R"(Removes T.assume and what becomes empty with it.

before(A: T.Buffer((16,), "float32")):
    T.evaluate(T.assume(A[0] == T.float32(0)))
    A[1] = 1.0
after:
    A[1] = T.float32(1))")
}  // namespace tvm::tir
