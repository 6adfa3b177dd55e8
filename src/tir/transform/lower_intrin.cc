// SPDX-License-Identifier: Apache-2.0
// Expands intrinsics into what the target's code generator knows.
#include "tvm/expr/op.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"
#if __has_include("tvm/expr/math.h")
#include "tvm/expr/math.h"
#endif

namespace tvm::tir {
namespace {
struct IntrinLowerer : Mutator<IntrinLowerer, CallObj, BufferObj> {
  Target target;
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const CallObj* op) {
    Call call = Below<Call>(op);
#if __has_include("tvm/expr/math.h")
    PrimExpr expanded = ExpandMath(call.get(), target);
    if (expanded.defined() && !expanded.same_as(call)) return Mutate(expanded);
#endif
    return call;
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
         "Expands mathematical functions into arithmetic for the function's target.\n\n"
         "    B[i] = T.exp(A[i])  ->  B[i] = (a polynomial in A[i])")
}  // namespace tvm::tir
