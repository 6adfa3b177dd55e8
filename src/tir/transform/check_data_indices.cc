// SPDX-License-Identifier: Apache-2.0
// Indices that come from data are checked before they are used.
#include "index_checker.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
PrimFunc CheckDataIndices(PrimFunc func) {
  IndexChecker checker(func);
  return RewriteBody(std::move(func), checker);
}
TVM_PASS(
    tir, CheckDataIndices,
    R"(Raises IndexError before an index that is data, and not provably inside, is used. A kernel goes on without what uses it, and the error is raised by the next synchronisation.

before(A: T.Buffer((16,), "float32"), I: T.Buffer((4,), "int32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[I[i]]
after:
    for i in range(4):
        if not T.likely(0 <= I[i] and I[i] < 16):
            T.call_intrin("int32", "tir.tvm_raise_error", "IndexError", "expected index 0 of buffer A from 0 to below %lld, got %lld", T.int64(16), T.Cast("int64", I[i]))
        B[i] = A[I[i]])")
}  // namespace tvm::tir
