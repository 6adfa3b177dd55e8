// SPDX-License-Identifier: Apache-2.0
// Undoes a form of quotients that simplification prefers and machines do not.
#include "../contents.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct SplitRenormalizer : Mutator<SplitRenormalizer, FloorDivObj, BufferObj> {
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const FloorDivObj* op) {
    FloorDiv div = Below<FloorDiv>(op);
    auto* mod = div->a.as<FloorModObj>();
    int64_t divisor = AsConstInt(div->b).value_or(0);
    int64_t period = mod ? AsConstInt(mod->b).value_or(0) : 0;
    if (divisor <= 0 || period <= 0 || period % divisor != 0) return div;
    return floormod(floordiv(mod->a, div->b), MakeConst(div->dtype, period / divisor));
  }
};
}  // namespace

PrimFunc RenormalizeSplitPattern(PrimFunc func) {
  if (!ContentsOf(func->body).Has<FloorDivObj>()) return func;
  return RewriteBody(std::move(func), SplitRenormalizer());
}
TVM_PASS(tir, RenormalizeSplitPattern,
         R"(Divides before taking the remainder, so that quotients can be shared.

before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        A[i // 8 * 8 + i % 8 // 4 * 4] = 1.0
after:
    for i in range(16):
        A[i // 8 * 8 + i // 4 % 2 * 4] = T.float32(1))")
}  // namespace tvm::tir
