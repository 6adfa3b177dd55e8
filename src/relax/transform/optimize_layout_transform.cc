// SPDX-License-Identifier: Apache-2.0
// Changes of layout that others undo.
#include "tvm/expr/op.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/attrs.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/operator.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {
namespace {
class LayoutTransformRemover : public ExprMutator {
 public:
  Expr VisitExpr_(const CallObj* op) final {
    static const Op& layout_transform = *new Op(Op::Get("relax.layout_transform"));
    static const Op& strided_slice = *new Op(Op::Get("relax.strided_slice"));
    Expr visited = ExprMutator::VisitExpr_(op);
    auto* second = visited.as<CallObj>();
    if (!second || !second->Is(layout_transform)) return visited;
    const CallObj* first = BoundCall(second->args[0]);
    // What is cut off between the two is padding of which nothing is said, so it may stay.
    bool is_cut =
        first && first->Is(strided_slice) && !AttrsOf(second)->pad_value && BeginsAtZero(first);
    if (is_cut) first = BoundCall(first->args[0]);
    if (!first || !first->Is(layout_transform)) return visited;
    auto joined = Joined(first, second, is_cut);
    return joined ? *joined : visited;
  }

 private:
  static const LayoutTransformAttrsObj* AttrsOf(const CallObj* call) {
    return static_cast<const LayoutTransformAttrsObj*>(call->attrs.value().get());
  }
  const CallObj* BoundCall(const Expr& data) const {
    Optional<Expr> value = data;
    while (value && value.value().as<VarObj>())
      value = LookupBinding(Any(value.value()).cast<Var>());
    return value ? value.value().as<CallObj>() : nullptr;
  }
  /// Whether a slice keeps the first elements along its axes.
  static bool BeginsAtZero(const CallObj* slice) {
    auto all = [](const Expr& numbers, int64_t wanted) {
      auto* tuple = numbers.as<TupleObj>();
      return tuple && std::all_of(tuple->fields.begin(), tuple->fields.end(), [&](const Expr& e) {
               auto* value = e.as<PrimValueObj>();
               return value && IsConstInt(value->value, wanted);
             });
    };
    return all(slice->args[2], 0) && (slice->args.size() < 5 || all(slice->args[4], 1));
  }
  static PrimExpr Elements(const Array<PrimExpr>& dims) {
    PrimExpr count = IntImm::Int64(1);
    for (const PrimExpr& dim : dims) count = count * dim;
    return count;
  }
  /// Both in one, or what there was before them.
  std::optional<Expr> Joined(const CallObj* first, const CallObj* second, bool is_cut) {
    Expr data = first->args[0];
    auto before = GetStructInfoAs<TensorStructInfoObj>(data)->Dims();
    auto between = GetStructInfoAs<TensorStructInfoObj>(second->args[0])->Dims();
    auto* result = GetStructInfoAs<TensorStructInfoObj>(ffi::GetRef<Call>(second));
    auto after = result ? result->Dims() : Optional<Array<PrimExpr>>();
    if (!before || !between || !after) return std::nullopt;
    arith::Analyzer analyzer;
    Array<tir::Var> indices = AttrsOf(first)->index_map->initial_indices;
    Array<PrimExpr> initial(indices.begin(), indices.end());
    for (size_t i = 0; i < indices.size(); ++i) {
      analyzer.Bind(indices[i],
                    Range::FromMinExtent(MakeZero(indices[i].dtype()), before.value()[i]));
    }
    Array<PrimExpr> last = AttrsOf(second)->index_map.MapIndices(
        AttrsOf(first)->index_map.MapIndices(initial, &analyzer), &analyzer);
    if (AllEqual(last, initial, &analyzer) && AllEqual(before.value(), after.value(), &analyzer))
      return data;
    bool is_padded = is_cut ||
                     !analyzer.CanProveEqual(Elements(before.value()), Elements(between.value())) ||
                     !analyzer.CanProveEqual(Elements(between.value()), Elements(after.value()));
    if (is_padded || HasSeparators(first) || HasSeparators(second)) return std::nullopt;
    return CallOperator("relax.layout_transform", {data, tir::IndexMap(indices, last)});
  }
  static bool HasSeparators(const CallObj* call) {
    auto some = [](const Optional<Ints>& list) { return list && !list.value().empty(); };
    return some(AttrsOf(call)->axis_separators) || some(AttrsOf(call)->input_axis_separators);
  }
  static bool AllEqual(const Array<PrimExpr>& a, const Array<PrimExpr>& b,
                       arith::Analyzer* analyzer) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!analyzer->CanProveEqual(a[i], b[i])) return false;
    }
    return true;
  }
};
Function OptimizeLayoutTransform(Function func, IRModule) {
  return RemoveAllUnused(As<Function>(LayoutTransformRemover().VisitExpr(func)));
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    OptimizeLayoutTransform, 0,
    "y = layout_transform(layout_transform(x, f), g)  ->  x where g undoes f, else y = "
    "layout_transform(x, g of f). Padding that is cut off and added again stays, unless it has a "
    "value.");
}  // namespace tvm::relax
