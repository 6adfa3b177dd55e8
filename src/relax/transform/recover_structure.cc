// SPDX-License-Identifier: Apache-2.0
// Operators re-formed from what exporters spell out.
#include <algorithm>

#include "relax/transform/spelled.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {

// ---- activations ------------------------------------------------------------------------------
namespace {
/// scale * x ** power
bool HasProduct(const Spelled& s, const Expr& expr, double scale, const Expr& x, size_t power) {
  Spelled::Product p = s.ProductOf(expr, x);
  if (!p.denominators.empty() || !Spelled::IsNear(p.scale, scale)) return false;
  size_t count = 0;
  for (const Expr& factor : p.factors) {
    auto call = s.CallOf(factor, s.ops.power);
    auto exponent = call ? s.Scalar((*call)->args[1]) : std::nullopt;
    auto square = s.OperandOf(factor, s.ops.square);
    if (s.Same(factor, x)) {
      ++count;
    } else if (exponent && s.Same((*call)->args[0], x)) {
      count += static_cast<size_t>(*exponent);
    } else if (square && s.Same(*square, x)) {
      count += 2;
    } else {
      return false;
    }
  }
  return count == power;
}
/// What a product with a number, or a negated value, is made of: candidates for x.
std::vector<Expr> PartsOf(const Spelled& s, const Expr& expr) {
  Expr value = s.Value(expr);
  auto* call = value.as<CallObj>();
  std::vector<Expr> parts{expr};
  if (call) parts.insert(parts.end(), call->args.begin(), call->args.end());
  return parts;
}
/// sqrt(2 / π) (x + 0.044715 x³), also as sqrt(2 / π) x (1 + 0.044715 x²)
bool IsTanhArgument(const Spelled& s, const Expr& expr, const Expr& x) {
  constexpr double kRoot = 0.7978845608028654, kCube = 0.044715;
  Spelled::Product p = s.ProductOf(expr, x);
  if (!p.denominators.empty() || !Spelled::IsNear(p.scale, kRoot)) return false;
  if (p.factors.size() == 1) {
    auto sum = s.CallOf(p.factors[0], s.ops.add);
    for (int i = 0; sum && i < 2; ++i) {
      if (s.Same((*sum)->args[i], x) && HasProduct(s, (*sum)->args[1 - i], kCube, x, 3))
        return true;
    }
    return false;
  }
  for (size_t i = 0; p.factors.size() == 2 && i < 2; ++i) {
    auto t = s.PlusOne(p.factors[1 - i]);
    if (s.Same(p.factors[i], x) && t && HasProduct(s, *t, kCube, x, 2)) return true;
  }
  return false;
}
/// Whether the value is scale * x * other.
bool IsTimes(const Spelled& s, const Call& value, double scale, const Expr& x, const Expr& other) {
  Spelled::Product p = s.ProductOf(value, x);
  return p.denominators.empty() && p.factors.size() == 2 && Spelled::IsNear(p.scale, scale) &&
         ((s.Same(p.factors[0], x) && s.Same(p.factors[1], other)) ||
          (s.Same(p.factors[1], x) && s.Same(p.factors[0], other)));
}
/// x / (1 + exp(-x)) and 1 / (1 + exp(-x))
Optional<Expr> RecoverLogistic(const Spelled& s, const Call& call, const Expr& denominator) {
  auto t = s.PlusOne(denominator);
  auto power = t ? s.OperandOf(*t, s.ops.exp) : std::nullopt;
  if (!power) return std::nullopt;
  for (const Expr& x : PartsOf(s, *power)) {
    if (s.Scalar(x) || !HasProduct(s, *power, -1, x, 1)) continue;
    Spelled::Product p = s.ProductOf(call, x);
    if (p.denominators.size() != 1 || !Spelled::IsNear(p.scale, 1)) continue;
    if (p.factors.empty()) return CallOperator("relax.sigmoid", {x});
    if (p.factors.size() == 1 && s.Same(p.factors[0], x)) return CallOperator("relax.nn.silu", {x});
  }
  return std::nullopt;
}
/// log(1 + exp(x)), which is 0 as it is written where 1 + exp(x) rounds to 1.
Optional<Expr> RecoverSoftplus(const Spelled& s, const Call& call) {
  auto sum = s.OperandOf(call, s.ops.log);
  auto terms = sum ? s.PlusNumber(*sum) : std::nullopt;
  auto x = terms && terms->second == 1 ? s.OperandOf(terms->first, s.ops.exp) : std::nullopt;
  if (!x) return std::nullopt;
  // Beyond 40 it is x in every type.
  return CallOperator("relax.nn.softplus", {*x, 1.0, 40.0});
}
}  // namespace

Optional<Expr> RecoverActivation(const Spelled& s, const Call& call) {
  if (call->Is(s.ops.log)) return RecoverSoftplus(s, call);
  if (!call->Is(s.ops.multiply) && !call->Is(s.ops.divide)) return std::nullopt;
  Spelled::Product p = s.ProductOf(call);
  if (p.denominators.size() == 1) {
    if (Optional<Expr> found = RecoverLogistic(s, call, p.denominators[0])) return found;
  }
  for (const Expr& factor : p.factors) {
    if (auto x = s.OperandOf(factor, s.ops.sigmoid); x && IsTimes(s, call, 1, *x, factor))
      return CallOperator("relax.nn.silu", {*x});
    auto t = s.PlusOne(factor);
    if (!t) continue;
    if (auto u = s.OperandOf(*t, s.ops.erf)) {
      for (const Expr& x : PartsOf(s, *u)) {
        if (HasProduct(s, *u, std::sqrt(0.5), x, 1) && IsTimes(s, call, 0.5, x, factor))
          return CallOperator("relax.nn.gelu", {x});
      }
    }
    auto u = s.OperandOf(*t, s.ops.tanh);
    if (!u) continue;
    std::vector<Expr> candidates;
    for (const Expr& part : s.ProductOf(*u).factors) {
      for (const Expr& x : PartsOf(s, part)) candidates.push_back(x);
    }
    for (const Expr& x : candidates) {
      if (IsTanhArgument(s, *u, x) && IsTimes(s, call, 0.5, x, factor))
        return CallOperator("relax.nn.gelu_tanh", {x});
    }
  }
  return std::nullopt;
}

// ---- the pass ---------------------------------------------------------------------------------
namespace {
/// exp(x - max(x)) / sum of it
Optional<Expr> RecoverSoftmax(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.divide)) return std::nullopt;
  auto total = s.ReductionOf(call->args[1], s.ops.sum);
  if (!total || total->axes != 1 || !s.Same(total->operand, call->args[0])) return std::nullopt;
  auto power = s.OperandOf(call->args[0], s.ops.exp);
  auto shifted = power ? s.CallOf(*power, s.ops.subtract) : std::nullopt;
  auto top = shifted ? s.ReductionOf((*shifted)->args[1], s.ops.max) : std::nullopt;
  if (!top || top->axes != 1 || !s.Same(top->operand, (*shifted)->args[0])) return std::nullopt;
  return CallOperator("relax.nn.softmax", {(*shifted)->args[0], -1});
}
/// Two transpositions are one, or none.
Optional<Expr> MergePermutations(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.permute_dims)) return std::nullopt;
  int64_t ndim = RankOf(call->args[0]);
  auto inner = s.CallOf(call->args[0], s.ops.permute_dims);
  if (!inner || ndim < 0) return std::nullopt;
  std::vector<int64_t> second = PermutationOf(call.get(), ndim),
                       first = PermutationOf(inner->get(), ndim);
  Ints axes;
  bool is_same = true;
  for (int64_t i = 0; i < ndim; ++i) {
    axes.push_back(IntImm::Int32(first[second[i]]));
    is_same = is_same && first[second[i]] == i;
  }
  if (is_same) return (*inner)->args[0];
  return CallOperator("relax.permute_dims", {(*inner)->args[0], axes});
}
/// A tensor that is spread to the shape it has.
Optional<Expr> SkipBroadcast(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.broadcast_to)) return std::nullopt;
  auto before = DimsOfTensor(call->args[0]), after = DimsOfTensor(call);
  bool is_same = before && after &&
                 DimProver(nullptr).Compare(before.value(), after.value()) == DimsAre::kEqual;
  return is_same ? Optional<Expr>(call->args[0]) : std::nullopt;
}
/// reshape(permute_dims(reshape(x, (b·h, s, d)), [0, 2, 1]), (b, h, d, s))  ->  the last two axes
/// of x, as (b, h, s, d), swapped
Optional<Expr> RecoverTransposition(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.reshape)) return std::nullopt;
  auto turned = s.CallOf(call->args[0], s.ops.permute_dims);
  if (!turned || !SwapsLastTwo(turned->get())) return std::nullopt;
  auto joined = s.CallOf((*turned)->args[0], s.ops.reshape);
  if (!joined) return std::nullopt;
  Expr x = (*joined)->args[0];
  auto before = DimsOfTensor(x), between = DimsOfTensor(*turned), after = DimsOfTensor(call);
  if (!before || !between || !after || after.value().size() < 3) return std::nullopt;
  Array<PrimExpr> swapped = after.value();
  size_t ndim = swapped.size(), inner = between.value().size();
  DimProver prover(nullptr);
  for (size_t i = 1; i <= 2; ++i) {
    if (prover.Compare(swapped[ndim - i], between.value()[inner - i]) != DimsAre::kEqual)
      return std::nullopt;
  }
  Ints axes;
  for (size_t i = 0; i < ndim; ++i)
    axes.push_back(IntImm::Int32(i < ndim - 2 ? i : 2 * ndim - 3 - i));
  swapped.Set(ndim - 1, after.value()[ndim - 2]);
  swapped.Set(ndim - 2, after.value()[ndim - 1]);
  if (before.value().size() != ndim || prover.Compare(swapped, before.value()) != DimsAre::kEqual)
    x = CallOperator("relax.reshape", {x, ShapeExpr(swapped)});
  return CallOperator("relax.permute_dims", {x, axes});
}
/// Whether attention is one kernel of a target that has one for these types. Processors compute
/// that of few queries faster as products.
bool IsInOneKernel(const Call& call, const Array<String>& types) {
  constexpr int64_t kFewQueries = 8;
  auto dims = DimsOfTensor(call);  // of its last product: (batch, heads, queries, size)
  auto* info = GetStructInfoAs<TensorStructInfoObj>(call);
  if (!dims || dims.value().size() < 2) return false;
  if (std::find(types.begin(), types.end(), info->dtype.str()) == types.end()) return false;
  bool has_many = AsConstInt(dims.value()[dims.value().size() - 2]).value_or(0) >= kFewQueries;
  return has_many || info->dtype.bits() < 32;
}
Function RecoverStructure(Function func, IRModule, bool products, Array<String> attention) {
  auto rule = [=](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    auto* node = value.as<CallObj>();
    if (!node || !node->op.as<OpObj>()) return std::nullopt;
    auto call = ffi::GetRef<Call>(node);
    Spelled spelled(bindings);
    for (auto recover : {&RecoverActivation, &RecoverSoftmax, &RecoverNorm, &RecoverAttention,
                         &GuardInPlace, &RecoverProduct, &RecoverBetweenReshapes,
                         &RecoverTransposition, &MergePermutations, &SkipBroadcast}) {
      bool is_attention = recover == &RecoverAttention;
      bool is_kept =
          is_attention ? IsInOneKernel(call, attention) : recover != &RecoverBetweenReshapes;
      if (!products && !is_kept) continue;
      if (Optional<Expr> result = recover(spelled, call)) return result;
    }
    return std::nullopt;
  };
  return RewriteValues(func, "RecoverStructure", rule);
}
}  // namespace
TVM_RELAX_FUNCTION_PASS(
    RecoverStructure, 1,
    R"(Operators in the place of what exporters spell out: gelu, silu, sigmoid, softplus, softmax,
layer, RMS and group norm, products written as einsum, transpositions one behind the other, no
broadcasts to the same shape, and unless told otherwise products: attention
(with masks, causal, with shared heads) and those between reshapes. Without products, `attention`
lists the types of which a target computes it in one kernel.

lv = R.sigmoid(x)
gv = R.multiply(x, lv)
->
gv = R.nn.silu(x))",
    Arg("products", true), Arg("attention", Array<String>()));
}  // namespace tvm::relax
