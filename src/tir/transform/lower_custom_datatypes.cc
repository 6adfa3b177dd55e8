// SPDX-License-Identifier: Apache-2.0
// Types registered by users: there are none, and a program that names one is refused.
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

PrimFunc LowerCustomDatatypes(PrimFunc func) {
  // Codes from 129 on are for types that users define.
  constexpr int kFirstCustom = 129;
  PostOrderVisit(
      func->body, [&](const ObjectRef& node) {
        auto* e = node.as<PrimExprObj>();
        if (e && e->dtype.code() >= kFirstCustom) {
          TVM_FFI_THROW(TypeError)
              << "LowerCustomDatatypes: expected types that are built in, got the custom type code "
              << e->dtype.code();
        }
      });
  return func;
}
TVM_PASS(tir, LowerCustomDatatypes,
         R"(Refuses types defined by users: only built-in ones are supported.

before(A: T.Buffer((16,), "float32")):
    A[0] = 1.0
after:
    A[0] = T.float32(1))")
}  // namespace tvm::tir
