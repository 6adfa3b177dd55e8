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
         "Makes parallel loops serial.\n\n"
         "    for i in T.parallel(8): A[i] = x  ->  for i in range(8): A[i] = x")
}  // namespace tvm::tir
