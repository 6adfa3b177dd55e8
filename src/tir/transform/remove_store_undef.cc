// SPDX-License-Identifier: Apache-2.0
// Removes stores of values that may be anything.
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
bool IsUndef(const PrimExpr& e) {
  auto* call = e.as<CallObj>();
  return call && call->Is(builtin::undef());
}
struct UndefRemover : Mutator<UndefRemover, BufferStoreObj, SeqStmtObj, CallObj> {
  ObjectRef Rewrite(const BufferStoreObj* op) {
    if (IsUndef(op->value)) return Evaluate::Nothing();
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    ObjectRef seq = MapChildren(op, *this);
    return seq.get() == op ? seq : ObjectRef(SeqStmt::Flatten(seq.as<SeqStmtObj>()->seq));
  }
  ObjectRef Rewrite(const CallObj* op) {
    if (IsUndef(ffi::GetRef<PrimExpr>(op))) {
      TVM_FFI_THROW(ValueError)
          << "RemoveStoreUndef: expected T.undef only as a value that is stored, got another use";
    }
    return MapChildren(op, *this);
  }
};
}  // namespace

PrimFunc RemoveStoreUndef(PrimFunc func) { return RewriteBody(std::move(func), UndefRemover()); }
TVM_PASS(tir, RemoveStoreUndef,
         R"(Removes stores of T.undef().

before(A: T.Buffer((16,), "float32")):
    A[0] = T.call_intrin("float32", "tir.undef")
    A[1] = 1.0
after:
    A[1] = T.float32(1))")
}  // namespace tvm::tir
