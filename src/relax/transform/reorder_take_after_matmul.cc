// SPDX-License-Identifier: Apache-2.0
// Columns taken of a product instead of a matrix before it.
#include "relax/transform/products.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function ReorderTakeAfterMatmul(Function func, IRModule) {
  if (!CallsMatmul(func)) return func;
  DFPattern x = Wildcard(), weights = Wildcard(), indices = Wildcard();
  DFPattern taken = IsOp("relax.take")(weights, indices);
  DFPattern product = IsOp("relax.matmul")(x, taken);
  auto rule = [&](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    PatternMatch match(bindings);
    if (!match.Find(product, value)) return std::nullopt;
    Expr take = match.LookThrough(match[taken]);
    auto* attrs = static_cast<const TakeAttrsObj*>(take.as<CallObj>()->attrs.value().get());
    int64_t rank = RankOf(match[weights]), result = RankOf(value);
    if (rank < 2 || result < 1 || RankOf(match[indices]) != 1 || !attrs->axis) return std::nullopt;
    int64_t axis = attrs->axis.value() < 0 ? attrs->axis.value() + rank : attrs->axis.value();
    if (axis != rank - 1) return std::nullopt;
    Expr whole = Product(match[x], match[weights], OutTypeOf(value.as<CallObj>()));
    return CallOperator("relax.take", {whole, match[indices], result - 1, attrs->mode});
  };
  return RewriteValues(func, "ReorderTakeAfterMatmul", rule);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(ReorderTakeAfterMatmul, 1,
                        "matmul(x, take(weights, indices, axis=-1))  ->  take(matmul(x, weights), "
                        "indices, axis=-1)");
}  // namespace tvm::relax
