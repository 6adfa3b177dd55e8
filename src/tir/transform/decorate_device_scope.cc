// SPDX-License-Identifier: Apache-2.0
// Says that a whole function runs on the device.
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

PrimFunc DecorateDeviceScope(PrimFunc func) {
  Stmt body = AttrStmt(0, attr::kDeviceScope, PrimExpr(0), func->body);
  return WithBody(std::move(func), body);
}
TVM_PASS(tir, DecorateDeviceScope, R"(Marks all of a function as a region of the device.

before(A: T.Buffer((1,), "float32")):
    A[0] = 1.0
after:
    with T.attr(0, "device_scope", 0):
        A[0] = 1.0)")
}  // namespace tvm::tir
