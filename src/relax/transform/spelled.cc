// SPDX-License-Identifier: Apache-2.0
// Reading what exporters spell out.
#include "relax/transform/spelled.h"

#include "relax/legalize/lowering.h"

namespace tvm::relax {

std::optional<double> Spelled::Scalar(const Expr& expr) const {
  Expr value = Value(expr);
  if (auto* constant = value.as<ConstantObj>()) {
    for (int64_t i = 0; i < constant->data.ndim(); ++i) {
      if (constant->data.size(i) != 1) return std::nullopt;
    }
  }
  PrimExpr scalar = ScalarOf(value);
  if (!scalar.defined()) return std::nullopt;
  if (auto* number = scalar.as<FloatImmObj>()) return number->value;
  if (auto* number = scalar.as<IntImmObj>()) return static_cast<double>(number->value);
  return std::nullopt;
}
Expr Spelled::WithoutAxes(const Expr& expr, const Expr& beside) const {
  Expr value = Value(expr);
  auto* constant = value.as<ConstantObj>();
  bool is_number = constant && constant->data.ndim() > 0 && constant->data.numel() == 1 &&
                   constant->data.ndim() <= RankOf(beside);
  return is_number ? Constant(runtime::CreateView(constant->data, {}, constant->data.dtype()))
                   : expr;
}
std::optional<std::pair<Expr, double>> Spelled::PlusNumber(const Expr& expr) const {
  auto sum = CallOf(expr, ops.add);
  for (int i = 0; sum && i < 2; ++i) {
    if (auto number = Scalar((*sum)->args[i])) return std::pair(Expr((*sum)->args[1 - i]), *number);
  }
  return std::nullopt;
}
std::optional<Expr> Spelled::PlusOne(const Expr& expr) const {
  auto sum = PlusNumber(expr);
  return sum && IsNear(sum->second, 1) ? std::optional(sum->first) : std::nullopt;
}
std::optional<Expr> Spelled::SquareOf(const Expr& expr) const {
  if (auto operand = OperandOf(expr, ops.square)) return operand;
  if (auto call = CallOf(expr, ops.multiply); call && Same((*call)->args[0], (*call)->args[1]))
    return (*call)->args[0];
  if (auto call = CallOf(expr, ops.power); call && IsNumber((*call)->args[1], 2))
    return (*call)->args[0];
  return std::nullopt;
}

Spelled::Product Spelled::ProductOf(const Expr& expr, const Optional<Expr>& whole) const {
  Product product;
  Multiply(expr, whole, false, 0, &product);
  return product;
}
void Spelled::Multiply(const Expr& expr, const Optional<Expr>& whole, bool inverted, int depth,
                       Product* product) const {
  constexpr int kMostDepth = 6;  // nobody spells out longer products
  auto& list = inverted ? product->denominators : product->factors;
  if (depth == kMostDepth || (whole && Same(expr, whole.value()))) return list.push_back(expr);
  if (auto number = Scalar(expr)) {
    product->scale = inverted ? product->scale / *number : product->scale * *number;
    return;
  }
  auto factor = [&](const Call& call, int i, bool is_below) {
    Multiply(WithoutAxes(call->args[i], call->args[1 - i]), whole, is_below, depth + 1, product);
  };
  auto both = [&](const Call& call, bool second_inverted) {
    factor(call, 0, inverted);
    factor(call, 1, second_inverted);
  };
  if (auto call = CallOf(expr, ops.multiply)) return both(*call, inverted);
  if (auto call = CallOf(expr, ops.divide)) return both(*call, !inverted);
  if (auto operand = OperandOf(expr, ops.negative)) {
    product->scale = -product->scale;
    return Multiply(*operand, whole, inverted, depth + 1, product);
  }
  list.push_back(expr);
}

std::optional<Spelled::Reduction> Spelled::ReductionOf(const Expr& expr, const Op& op) const {
  auto call = CallOf(expr, op);
  if (!call) return std::nullopt;
  auto* attrs = AttrsOf<StatisticalAttrsObj>(*call);
  int64_t ndim = RankOf((*call)->args[0]);
  if (!attrs->keepdims || !attrs->axis || ndim < 0) return std::nullopt;
  int64_t count = static_cast<int64_t>(attrs->axis.value().size());
  std::vector<bool> reduced(ndim);
  for (const IntImm& axis : attrs->axis.value())
    reduced[axis->value < 0 ? axis->value + ndim : axis->value] = true;
  for (int64_t i = ndim - count; i < ndim; ++i) {
    if (!reduced[i]) return std::nullopt;
  }
  return Reduction{(*call)->args[0], count};
}
bool Spelled::HasLastDims(const Expr& expr, const Expr& like, int64_t count) {
  auto dims = DimsOfTensor(expr), all = DimsOfTensor(like);
  if (!dims || !all || static_cast<int64_t>(dims.value().size()) != count) return false;
  Array<PrimExpr> last(all.value().end() - count, all.value().end());
  return DimProver(nullptr).Compare(dims.value(), last) == DimsAre::kEqual;
}

}  // namespace tvm::relax
