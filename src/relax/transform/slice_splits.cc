// SPDX-License-Identifier: Apache-2.0
// Parts of a split as slices.
#include "relax/transform/products.h"
#include "tvm/relax/dpl.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
Function SliceSplits(Function func, IRModule) {
  const Op split = Op::Get("relax.split");
  auto rule = [&](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    auto* item = value.as<TupleGetItemObj>();
    if (!item) return std::nullopt;
    PatternMatch match(bindings);
    Expr tuple = match.LookThrough(item->tuple_value);
    auto* call = tuple.as<CallObj>();
    if (!call || !call->Is(split)) return std::nullopt;
    auto* attrs = static_cast<const SplitAttrsObj*>(call->attrs.value().get());
    auto* parts = GetStructInfoAs<TupleStructInfoObj>(tuple);
    int64_t axis = attrs->axis < 0 ? attrs->axis + RankOf(call->args[0]) : attrs->axis;
    PrimExpr begin = IntImm::Int64(0), size;
    for (int64_t i = 0; i <= item->index; ++i) {
      auto* part = parts->fields[i].as<TensorStructInfoObj>();
      if (!part || !part->Dims()) return std::nullopt;
      if (i > 0) begin = begin + size;
      size = part->Dims().value()[axis];
    }
    Array<Any> axes{axis}, begins{begin}, ends{begin + size};
    return CallOperator("relax.strided_slice", {call->args[0], axes, begins, ends});
  };
  return RewriteValues(func, "SliceSplits", rule);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(SliceSplits, 1,
                        R"(Parts of a split become slices, which what uses them can take in.

lv = R.split(x, 2, axis=1)  # x: (2, 8)
gv = lv[1]
->
gv = R.strided_slice(x, axes=[1], begin=[4], end=[8]))");
}  // namespace tvm::relax
