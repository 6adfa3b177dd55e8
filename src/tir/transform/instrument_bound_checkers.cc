// SPDX-License-Identifier: Apache-2.0
// Checks every index of a buffer when the program runs.
#include "index_checker.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
PrimFunc InstrumentBoundCheckers(PrimFunc func) {
  IndexChecker checker(func, true);
  return RewriteBody(std::move(func), checker);
}
TVM_PASS(tir, InstrumentBoundCheckers,
         R"(Raises IndexError before an index is used that is not provably inside of its buffer.

before(A: T.Buffer((16,), "float32"), i: T.int32):
    A[i] = 1.0
after:
    if not T.likely(0 <= i and i < 16):
        T.call_intrin("int32", "tir.tvm_raise_error", "IndexError", "expected index 0 of buffer A from 0 to below %lld, got %lld", T.int64(16), T.Cast("int64", i))
    A[i] = T.float32(1))")
}  // namespace tvm::tir
