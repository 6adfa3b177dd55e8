// SPDX-License-Identifier: Apache-2.0
// Says of each function what it is compiled for.
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {

PrimFunc BindTarget(PrimFunc func, Target target) {
  if (func->attrs.Has(::tvm::attr::kTarget)) return func;
  auto host = target.Host();
  if (func->HasNonzeroAttr(attr::kIsHostFunc) && host.has_value()) {
    return WithoutAttr(WithAttr(func, ::tvm::attr::kTarget, host.value()), attr::kIsHostFunc);
  }
  return WithAttr(func, ::tvm::attr::kTarget, target);
}
TVM_PASS(
    tir, BindTarget,
    R"(Gives functions without one the attribute target; those marked tir.is_host_func get its host.

options: target=tvm.target.Target("c")
before(A: T.Buffer((1,), "float32")):
    A[0] = 1.0
after:
    T.func_attr({"target": T.target("c")})
    A[0] = T.float32(1))",
    Arg("target"))
}  // namespace tvm::tir
