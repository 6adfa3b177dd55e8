// SPDX-License-Identifier: Apache-2.0
// Removes assertions.
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct AssertSkipper : Mutator<AssertSkipper, AssertStmtObj> {
  ObjectRef Rewrite(const AssertStmtObj* op) { return Mutate(op->body); }
};
}  // namespace

PrimFunc SkipAssert(PrimFunc func) { return RewriteBody(std::move(func), AssertSkipper()); }
TVM_PASS(tir, SkipAssert,
         R"(Removes assertions.

before(A: T.Buffer((16,), "float32"), n: T.int32):
    assert n > 0, "n must be positive"
    A[0] = 1.0
after:
    A[0] = T.float32(1))")
}  // namespace tvm::tir
