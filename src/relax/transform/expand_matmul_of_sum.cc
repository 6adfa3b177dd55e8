// SPDX-License-Identifier: Apache-2.0
// A product with a sum as the sum of two products.
#include "relax/analysis/dims.h"
#include "relax/transform/products.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function ExpandMatmulOfSum(Function func, IRModule) {
  if (!CallsMatmul(func)) return func;
  DFPattern x = Wildcard(), a = Wildcard(), b = Wildcard();
  DFPattern sum = IsOp("relax.add")(a, b), turned = IsOp("relax.permute_dims")(sum);
  DFPattern product = IsOp("relax.matmul")(x, sum | turned);
  CompileTime compile_time(func);
  auto rule = [&](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    PatternMatch match(bindings);
    if (!match.Find(product, value)) return std::nullopt;
    // What is summed once, before the program runs, is better left so.
    if (compile_time.Knows(match[a]) && compile_time.Knows(match[b])) return std::nullopt;
    auto dims = DimsOfTensor(match[sum]);
    for (const DFPattern& part : {a, b}) {
      auto own = DimsOfTensor(match[part]);
      bool same =
          dims && own && DimProver(nullptr).Compare(dims.value(), own.value()) == DimsAre::kEqual;
      if (!same) return std::nullopt;
    }
    Optional<Attrs> order;
    Expr permute = match.Has(turned) ? match.LookThrough(match[turned]) : Expr();
    auto operand = [&](const DFPattern& part) -> Expr {
      auto* call = permute.defined() ? permute.as<CallObj>() : nullptr;
      return call ? Expr(Call(call->op, {match[part]}, call->attrs)) : match[part];
    };
    DataType type = OutTypeOf(value.as<CallObj>());
    return CallOperator("relax.add",
                        {Product(match[x], operand(a), type), Product(match[x], operand(b), type)});
  };
  return RewriteValues(func, "ExpandMatmulOfSum", rule);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    ExpandMatmulOfSum, 1,
    "matmul(x, a + b)  ->  matmul(x, a) + matmul(x, b), also with a permute_dims "
    "of the sum, unless the sum is of weights only (attribute num_input).");
}  // namespace tvm::relax
