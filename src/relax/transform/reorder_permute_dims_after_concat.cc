// SPDX-License-Identifier: Apache-2.0
// One transposition behind a concatenation instead of one for each part.
#include "relax/transform/products.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function ReorderPermuteDimsAfterConcat(Function func, IRModule) {
  if (!CallsOp(func, [](const OpObj* op) { return View(op->name) == "relax.concat"; })) return func;
  DFPattern parts = Wildcard(), concat = IsOp("relax.concat")(parts);
  auto rule = [&](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    PatternMatch match(bindings);
    if (!match.Find(concat, value)) return std::nullopt;
    Expr tuple = match.LookThrough(match[parts]);
    auto* fields = tuple.as<TupleObj>();
    auto* attrs = static_cast<const ConcatAttrsObj*>(value.as<CallObj>()->attrs.value().get());
    if (!fields || fields->fields.empty() || !attrs->axis) return std::nullopt;
    std::vector<int64_t> order;
    Array<Expr> before;
    for (const Expr& field : fields->fields) {
      static const Op& permute_dims = *new Op(Op::Get("relax.permute_dims"));
      Expr part = match.LookThrough(field);
      auto* permute = part.as<CallObj>();
      if (!permute || !permute->Is(permute_dims) || RankOf(permute->args[0]) < 0)
        return std::nullopt;
      auto own = PermutationOf(permute, RankOf(permute->args[0]));
      if (!before.empty() && own != order) return std::nullopt;
      order = own;
      before.push_back(permute->args[0]);
    }
    int64_t axis = attrs->axis.value();
    if (axis < 0) axis += static_cast<int64_t>(order.size());
    Ints axes;
    for (int64_t i : order) axes.push_back(IntImm::Int32(i));
    Expr whole = CallOperator("relax.concat", {before, order[axis]});
    return CallOperator("relax.permute_dims", {whole, axes});
  };
  return RewriteValues(func, "ReorderPermuteDimsAfterConcat", rule);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    ReorderPermuteDimsAfterConcat, 1,
    "concat((permute_dims(a), permute_dims(b)))  ->  permute_dims(concat((a, b)))");
}  // namespace tvm::relax
