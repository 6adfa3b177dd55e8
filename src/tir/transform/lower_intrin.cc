// SPDX-License-Identifier: Apache-2.0
// Expands intrinsics into what the target's code generator knows.
#include "tvm/expr/math.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct IntrinLowerer : Mutator<IntrinLowerer, CallObj, BufferObj> {
  Target target;
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
    PrimExpr expanded = ExpandMath(call.get(), target);
    return expanded.same_as(call) ? ObjectRef(call) : ObjectRef(Mutate(expanded));
  }
};
}  // namespace

PrimFunc LowerIntrin(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value()) return func;
  IntrinLowerer lower;
  lower.target = target.value();
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(tir, LowerIntrin,
         R"(Expands mathematical functions into arithmetic for the function's target.

before(A: T.Buffer((16,), "float32")):
    T.func_attr({"target": T.target("c")})
    for i in range(16):
        A[i] = T.rsqrt(A[i])
after:
    T.func_attr({"target": T.target("c")})
    x = T.float32()
    for i in range(16):
        A[i] = T.Let(T.float32(1) / T.sqrt(x), where={x: A[i]}))")
}  // namespace tvm::tir
