// SPDX-License-Identifier: Apache-2.0
// Operands whose dimensions may or may not be 1, or equal: only running tells.
//
//   add(a: (n,), b: (m,))  ->  k = where(n == 1, m, n)
//                              a1 = match_cast(repeat(a, where(n == 1, k, n)), (k,))
//                              b1 = match_cast(repeat(b, where(m == 1, k, m)), (k,))
//                              add(a1, b1)
#include "frontend/onnx/importer.h"
#include "topi/shape.h"
#include "tvm/expr/substitute.h"

namespace tvm::frontend::onnx {
namespace {
PrimExpr EqualsOne(const PrimExpr& d) { return equal(d, IntImm::Int64(1)); }
/// The size of a result. Sizes that are not 1 are equal, so that a variable is it where the other
/// is 1 whenever the variable is, such as n of n and min(n, 512).
PrimExpr CommonSize(arith::Analyzer* analyzer, const PrimExpr& a, const PrimExpr& b) {
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (AsConstInt(one)) return one;
    auto var = one.as<tir::Var>();
    if (!var) continue;
    Map<tir::Var, PrimExpr> is_one{{*var, IntImm::Int64(1)}};
    if (AsConstInt(analyzer->Simplify(tir::Substitute(other, is_one))) == 1) return one;
  }
  return tir::Select(EqualsOne(a), b, a);
}
/// The operand with its dimensions of 1 repeated where `common` has a size: at least its own.
Expr Repeated(Importer* importer, const Expr& operand, const Dims& common) {
  Dims own = Node::Shape(operand);
  auto args = relax::TEArguments::Create();
  te::Tensor t = args->Tensor(operand);
  Dims shape;
  for (size_t i = 0; i < own.size(); ++i) {
    PrimExpr inside = args->Inside(own[i]);
    shape.push_back(common[i].defined()
                        ? PrimExpr(tir::Select(EqualsOne(inside), args->Inside(common[i]), inside))
                        : inside);
  }
  auto element = [&](const topi::Index& i) {
    topi::Index from = i;
    for (size_t k = 0; k < own.size(); ++k) {
      if (common[k].defined())
        from[k] = tir::Select(EqualsOne(args->Inside(own[k])), MakeZero(i[k].dtype()), i[k]);
    }
    return topi::At(t, from);
  };
  te::Tensor result = topi::Compute(shape, element, "repeat");
  return importer->builder()->Emit(args->CallTIR(importer->builder(), "repeat", {result}), "lv");
}
}  // namespace

std::optional<relax::Call> Importer::Aligned(const relax::Call& call, size_t own_axes) {
  size_t rank = 0;
  std::vector<size_t> operands;
  for (size_t k = 0; k < call->args.size(); ++k) {
    auto* tensor = relax::GetStructInfoAs<relax::TensorStructInfoObj>(call->args[k]);
    if (!tensor || !tensor->Dims()) continue;
    operands.push_back(k);
    rank = std::max(rank, tensor->Dims()->size());
  }
  // By axes from the last: the common size where the operands' are not known to fit.
  auto analyzer = builder_->analyzer();
  std::vector<PrimExpr> common(rank), sizes(rank);
  for (size_t axis = own_axes + 1; axis <= rank; ++axis) {
    PrimExpr size;
    bool fits = true;
    for (size_t k : operands) {
      Dims dims = Node::Shape(call->args[k]);
      if (axis > dims.size()) continue;
      PrimExpr d = dims[dims.size() - axis];
      if (AsConstInt(d) == 1) continue;
      if (!size.defined()) {
        size = d;
      } else if (!analyzer->CanProveEqual(size, d)) {
        fits = false;
        size = CommonSize(analyzer, size, d);
      }
    }
    if (fits) continue;
    common[rank - axis] = size;
    bool is_plain = AsConstInt(size) || size.as<tir::VarObj>();
    sizes[rank - axis] = is_plain ? size : PrimExpr(FreshDim());
  }
  Array<Expr> args = call->args;
  bool changed = false;
  for (size_t k : operands) {
    Dims dims = Node::Shape(args[k]), own, cast;
    bool needs = false;
    for (size_t i = 0; i < dims.size(); ++i) {
      size_t axis = rank - dims.size() + i;
      bool open = common[axis].defined() && AsConstInt(dims[i]) != 1 &&
                  !analyzer->CanProveEqual(dims[i], sizes[axis]);
      own.push_back(open ? common[axis] : PrimExpr());
      cast.push_back(open ? sizes[axis] : dims[i]);
      needs |= open;
    }
    if (!needs) continue;
    changed = true;
    args.Set(k,
             builder_->EmitMatchCast(Repeated(this, args[k], own),
                                     relax::TensorStructInfo(cast, Node::TypeOf(args[k])), "lv"));
  }
  if (!changed) return std::nullopt;
  return relax::Call(call->op, args, call->attrs, call->sinfo_args);
}

}  // namespace tvm::frontend::onnx
