// SPDX-License-Identifier: Apache-2.0
// Functions among the operators that are several of them.
#include "tvm/relax/operator.h"

namespace tvm::relax {
namespace {

Expr Linear(Expr data, Expr weight, Optional<Expr> bias, Any out_dtype) {
  Expr transposed = CallOperator("relax.permute_dims", {weight});
  Expr product = CallOperator("relax.matmul", {data, transposed, out_dtype});
  return bias.has_value() ? CallOperator("relax.add", {product, *bias}) : product;
}
Expr MaskedFill(Expr x, Expr mask, Any value) {
  Expr values = CallOperator("relax.full_like", {x, value});
  return CallOperator("relax.where", {mask, values, x});
}
Expr Relu6(Expr data) { return CallOperator("relax.clip", {data, 0, 6}); }

TVM_REGISTER() {
  Def("relax.op.linear", &Linear, "data times the transposed weight, plus bias.", Arg("data"),
      Arg("weight"), Arg("bias", nullptr), Arg("out_dtype", nullptr));
  Def("relax.op.masked_fill", &MaskedFill, "x with the value where the mask holds.", Arg("x"),
      Arg("mask"), Arg("value"));
  Def("relax.op.nn.relu6", &Relu6, "data brought into [0, 6].", Arg("data"));
}

}  // namespace
}  // namespace tvm::relax
