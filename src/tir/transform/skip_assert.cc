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
         "Removes assertions.\n\n"
         "    assert n > 0, \"n\"      A[0] = x\n"
         "    A[0] = x           ->")
}  // namespace tvm::tir
