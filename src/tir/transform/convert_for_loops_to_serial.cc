// SPDX-License-Identifier: Apache-2.0
// Makes all loops serial.
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct LoopSerializer : Mutator<LoopSerializer, ForObj> {
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    if (op->kind == ForKind::kParallel) Edit(&loop)->kind = ForKind::kSerial;
    return loop;
  }
};
}  // namespace

PrimFunc ConvertForLoopsToSerial(PrimFunc func) {
  return RewriteBody(std::move(func), LoopSerializer());
}
TVM_PASS(tir, ConvertForLoopsToSerial,
         R"(Makes parallel loops serial.

before(A: T.Buffer((16,), "float32")):
    for i in T.parallel(16):
        A[i] = 1.0
after:
    for i in range(16):
        A[i] = T.float32(1))")
}  // namespace tvm::tir
