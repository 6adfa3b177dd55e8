// SPDX-License-Identifier: Apache-2.0
// Products re-formed from those of rows that were joined and taken apart again.
#include <unordered_map>

#include "relax/transform/spelled.h"
#include "tvm/relax/analysis.h"
#include "tvm/relax/expr_functor.h"
#include "tvm/relax/transform.h"

namespace tvm::relax {

namespace {
/// reshape(reshape(x, (m, k)) @ w + b, (…, n))  ->  reshape(x, (…, k)) @ w + b, where the first
/// reshape is none if x has these axes. `is_shared` says of what others use that it must stay.
Optional<Expr> WithoutReshapes(const Spelled& s, const Call& call,
                               const std::function<bool(const Expr&)>& is_shared) {
  if (!call->Is(s.ops.reshape) || is_shared(call->args[0])) return std::nullopt;
  Expr inside = call->args[0];
  Optional<Expr> bias;
  if (auto sum = s.CallOf(inside, s.ops.add)) {
    int side = s.CallOf((*sum)->args[0], s.ops.matmul) ? 0 : 1;
    inside = (*sum)->args[side];
    bias = (*sum)->args[1 - side];
    if (RankOf(bias.value()) != 1 || is_shared(inside)) return std::nullopt;
  }
  auto product = s.CallOf(inside, s.ops.matmul);
  auto flat = product ? s.CallOf((*product)->args[0], s.ops.reshape) : std::nullopt;
  if (!flat || RankOf((*product)->args[0]) != 2 || RankOf((*product)->args[1]) != 2)
    return std::nullopt;
  Expr x = (*flat)->args[0];
  auto before = DimsOfTensor(x), after = DimsOfTensor(call),
       rows = DimsOfTensor((*product)->args[0]), columns = DimsOfTensor((*product)->args[1]);
  if (!before || !after || !rows || !columns || after.value().size() < 3) return std::nullopt;
  DimProver prover(nullptr);
  if (prover.Compare(after.value().back(), columns.value()[1]) != DimsAre::kEqual)
    return std::nullopt;
  Array<PrimExpr> wanted = after.value();
  wanted.Set(wanted.size() - 1, rows.value()[1]);
  if (before.value().size() != wanted.size() ||
      prover.Compare(before.value(), wanted) != DimsAre::kEqual) {
    // Of results without elements the other axes could be any.
    if (AsConstInt(columns.value()[1]).value_or(0) < 1) return std::nullopt;
    x = CallOperator("relax.reshape", {x, ShapeExpr(wanted)});
  }
  Expr result = Product(x, (*product)->args[1], OutTypeOf(product->get()));
  return bias ? CallOperator("relax.add", {result, bias.value()}) : result;
}
/// Whether the last two axes of tensors are the same, and the ones before them are joined in one.
bool JoinsBatches(const Expr& apart, const Expr& joined) {
  auto a = DimsOfTensor(apart), b = DimsOfTensor(joined);
  if (!a || !b || b.value().size() != 3 || a.value().size() < 4) return false;
  DimProver prover(nullptr);
  auto last = [](const Array<PrimExpr>& dims) {
    return Array<PrimExpr>(dims.end() - 2, dims.end());
  };
  return prover.Compare(last(a.value()), last(b.value())) == DimsAre::kEqual;
}
/// reshape(reshape(x, (b·h, m, k)) @ reshape(y, (b·h, k, n)), (b, h, m, n))  ->  x @ y
Optional<Expr> WithoutJoinedBatches(const Spelled& s, const Call& call,
                                    const std::function<bool(const Expr&)>& is_shared) {
  if (!call->Is(s.ops.reshape) || is_shared(call->args[0])) return std::nullopt;
  auto product = s.CallOf(call->args[0], s.ops.matmul);
  if (!product || !JoinsBatches(call, *product)) return std::nullopt;
  Array<Expr> apart;
  for (const Expr& factor : (*product)->args) {
    auto flat = s.CallOf(factor, s.ops.reshape);
    if (!flat || !JoinsBatches((*flat)->args[0], factor)) return std::nullopt;
    apart.push_back((*flat)->args[0]);
  }
  auto batches = [](const Expr& e) {
    Array<PrimExpr> dims = DimsOfTensor(e).value();
    return Array<PrimExpr>(dims.begin(), dims.end() - 2);
  };
  DimProver prover(nullptr);
  for (const Expr& factor : apart) {
    if (prover.Compare(batches(factor), batches(call)) != DimsAre::kEqual) return std::nullopt;
  }
  return Product(apart[0], apart[1], OutTypeOf(product->get()));
}
/// x @ broadcast_to(y, (b, k, n))  ->  x @ y, where x has those batches itself
Optional<Expr> WithoutSpreadMatrices(const Spelled& s, const Call& call) {
  if (!call->Is(s.ops.matmul)) return std::nullopt;
  auto result = DimsOfTensor(call);
  DimProver prover(nullptr);
  for (int side = 1; side >= 0; --side) {
    auto spread = s.CallOf(call->args[side], s.ops.broadcast_to);
    auto own = DimsOfTensor(call->args[1 - side]);
    if (!spread || !own || !result || own.value().size() != result.value().size()) continue;
    Expr y = (*spread)->args[0];
    auto narrow = DimsOfTensor(y), wide = DimsOfTensor(*spread);
    if (!narrow || !wide || narrow.value().size() < 2 || wide.value().size() < 3) continue;
    auto split = [](const Array<PrimExpr>& dims) {
      return std::pair(Array<PrimExpr>(dims.begin(), dims.end() - 2),
                       Array<PrimExpr>(dims.end() - 2, dims.end()));
    };
    if (prover.Compare(split(narrow.value()).second, split(wide.value()).second) !=
            DimsAre::kEqual ||
        prover.Compare(split(own.value()).first, split(result.value()).first) != DimsAre::kEqual)
      continue;
    return side == 1 ? Product(call->args[0], y, OutTypeOf(call.get()))
                     : Product(y, call->args[1], OutTypeOf(call.get()));
  }
  return std::nullopt;
}
Function RecoverLinear(Function func, IRModule) {
  std::unordered_map<const Object*, int> uses;
  PostOrderVisit(func, [&](const Expr& e) {
    if (auto* var = e.as<VarObj>()) ++uses[var->vid.get()];
  });
  // A product that somebody else needs would be computed twice.
  auto is_shared = [&](const Expr& e) {
    auto* var = e.as<VarObj>();
    return var && uses[var->vid.get()] > 2;  // its definition, and a use
  };
  auto rule = [&](const Expr& value, const Bindings& bindings) -> Optional<Expr> {
    auto* call = value.as<CallObj>();
    if (!call || !call->op.as<OpObj>()) return std::nullopt;
    Spelled spelled(bindings);
    auto found = WithoutReshapes(spelled, ffi::GetRef<Call>(call), is_shared);
    if (!found) found = WithoutJoinedBatches(spelled, ffi::GetRef<Call>(call), is_shared);
    return found ? found : WithoutSpreadMatrices(spelled, ffi::GetRef<Call>(call));
  };
  return RewriteValues(func, "RecoverLinear", rule);
}
}  // namespace

Optional<Expr> RecoverBetweenReshapes(const Spelled& s, const Call& call) {
  auto is_shared = [](const Expr&) { return false; };
  auto found = WithoutReshapes(s, call, is_shared);
  return found ? found : WithoutJoinedBatches(s, call, is_shared);
}

TVM_RELAX_FUNCTION_PASS(
    RecoverLinear, 1,
    R"(Products between reshapes become those of more axes, which what follows them can join; so do
products of batches that were joined, and matrices are not repeated for each of them.

lv = R.reshape(x, R.shape([8, 6]))  # x: (2, 4, 6)
lv1 = R.matmul(lv, w)
gv = R.reshape(lv1, R.shape([2, 4, 5]))
->
gv = R.matmul(x, w))");
}  // namespace tvm::relax
