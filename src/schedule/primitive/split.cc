// SPDX-License-Identifier: Apache-2.0
// split: one loop becomes a nest of loops.
#include "schedule/loops.h"

namespace tvm::tir {
namespace {

/// The factors as numbers, the one left out filled in, of a loop of constant extent. Empty where
/// that is not all there is to it: then Complete says what is wrong, or proves more.
std::vector<int64_t> AsNumbers(const ForObj* loop,
                               const std::vector<std::optional<PrimExpr>>& given) {
  auto extent = AsConstInt(loop->extent);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (!extent || *extent < 1 || *extent >= kMost) return {};
  std::vector<int64_t> factors;
  int64_t product = 1, missing = -1;
  for (size_t i = 0; i < given.size(); ++i) {
    auto factor = given[i] ? AsConstInt(*given[i]) : std::optional<int64_t>(1);
    if (given[i] && !given[i]->dtype().is_int() && !given[i]->dtype().is_uint()) return {};
    if (!factor || *factor < 1 || *factor >= kMost || product >= kMost) return {};
    if (!given[i] && missing >= 0) return {};
    if (!given[i]) missing = static_cast<int64_t>(i);
    product *= *factor;
    factors.push_back(*factor);
  }
  if (product >= kMost) return {};
  if (missing >= 0) factors[missing] = (*extent + product - 1) / product;
  if (missing < 0 && product < *extent) return {};
  return factors;
}

/// The factors with the one left out filled in.
std::vector<PrimExpr> Complete(const ForObj* loop,
                               const std::vector<std::optional<PrimExpr>>& given,
                               arith::Analyzer* analyzer) {
  auto about = ffi::GetRef<ObjectRef>(loop);
  DataType dtype = loop->loop_var.dtype();
  if (given.empty()) Refuse("expected at least one factor, got none", {about});
  std::vector<PrimExpr> factors(given.size());
  PrimExpr product = MakeConst(dtype, 1), known = IntImm::Int64(1);
  size_t missing = given.size();
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i]) {
      if (missing < given.size())
        Refuse("expected at most one factor to be None, got two", {about});
      missing = i;
      continue;
    }
    const PrimExpr& factor = *given[i];
    if (!factor.dtype().is_int() && !factor.dtype().is_uint()) {
      Refuse(Text("expected integers as factors, got ", factor), {about});
    }
    if (!analyzer->CanProveGreaterEqual(factor, 1) &&
        (AsConstInt(factor) || !analyzer->CanProve(factor > MakeZero(factor.dtype())))) {
      auto value = AsConstInt(factor);
      if (value || !analyzer->CanProveGreaterEqual(factor, 0)) {
        Refuse(Text("expected positive factors, got ", factor), {about});
      }
    }
    factors[i] = InTypeOf(loop, factor);
    product = product * factors[i];
    // An index up to the product of all factors has the type of the loop's variable.
    auto before = AsConstInt(analyzer->Simplify(known)), here = AsConstInt(factor);
    int64_t limit = dtype.bits() < 64 ? (int64_t{1} << (dtype.bits() - 1)) - 1 : INT64_MAX;
    if (before && here && *before > limit / *here) {
      Refuse(Text("expected factors with a product that ", dtype, " can hold, got ", *before, " * ",
                  *here),
             {about});
    }
    known = known * cast(DataType::Int(64), factors[i]);
  }
  product = analyzer->Simplify(product);
  if (missing < given.size()) {
    factors[missing] = analyzer->Simplify(ceildiv(loop->extent, product));
  } else if (!analyzer->CanProve(product >= loop->extent)) {
    std::string list;
    for (const PrimExpr& f : factors) list += (list.empty() ? "" : ", ") + Text(f);
    Refuse(
        Text("the product of factors is not larger than or equal to the extent of loop ",
             loop->loop_var->name_hint, ": expected at least ", loop->extent, ", got [", list, "]"),
        {about});
  }
  return factors;
}

std::vector<LoopId> Split(State& self, LoopId id, const std::vector<std::optional<PrimExpr>>& given,
                          bool preserve_unit_iters, bool disable_predication) {
  For loop = ffi::GetRef<For>(self.loop(id));
  RequirePlain(loop.get(), true);
  arith::Analyzer analyzer;
  std::vector<LoopId> around = self.LoopsAbove(id);
  LoopVarRewrite rewrite;
  rewrite.domains = DomainsOf(self, around);
  std::vector<int64_t> numbers = AsNumbers(loop.get(), given);
  if (numbers.empty()) analyzer.Bind(rewrite.domains);
  DataType dtype = loop->loop_var.dtype();
  std::vector<PrimExpr> factors;
  for (int64_t number : numbers) factors.push_back(MakeConst(dtype, number));
  if (numbers.empty()) factors = Complete(loop.get(), given, &analyzer);

  PrimExpr index = MakeZero(dtype);
  arith::Analyzer simplifier;
  std::vector<Var> vars;
  for (size_t i = 0; i < factors.size(); ++i) {
    vars.push_back(loop->loop_var.CopyWithSuffix("_" + std::to_string(i)));
    Range domain = Range::FromMinExtent(MakeZero(dtype), factors[i]);
    rewrite.domains.Set(vars[i], domain);
    if (!numbers.empty()) continue;
    analyzer.Bind(vars[i], domain);
    // Iterators of one value that shall stay in the bindings must not be known to be 0 there.
    if (!preserve_unit_iters || !IsOne(factors[i])) simplifier.Bind(vars[i], domain);
    PrimExpr part = !preserve_unit_iters && IsOne(factors[i]) ? MakeZero(dtype) : PrimExpr(vars[i]);
    index = i == 0 ? part : index * factors[i] + part;
  }
  // For numbers the sum is written as the simplifier would.
  int64_t product = 1;
  for (int64_t number : numbers) product *= number;
  bool all_inside = !numbers.empty() && product == *AsConstInt(loop->extent);
  for (size_t i = 0; i < numbers.size(); ++i) {
    product /= numbers[i];
    if (!preserve_unit_iters && numbers[i] == 1) continue;
    PrimExpr part = product == 1 ? PrimExpr(vars[i]) : vars[i] * MakeConst(dtype, product);
    index = IsZero(index) ? part : index + part;
  }
  if (numbers.empty()) index = simplifier.Simplify(index);
  PrimExpr value = IsZero(loop->min) ? index : simplifier.Simplify(index + loop->min);
  rewrite.values.Set(loop->loop_var, value);
  rewrite.simplify_unit_loops = !preserve_unit_iters;
  // The condition keeps the nesting, as scripts compare with it: (i_0 * 6 + i_1) * 3 + i_2 < n.
  PrimExpr nested = index;
  if (numbers.size() > 2) {
    nested = PrimExpr();
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!preserve_unit_iters && numbers[i] == 1) continue;
      nested = nested.defined() ? nested * factors[i] + vars[i] : PrimExpr(vars[i]);
    }
    if (!nested.defined()) nested = index;
  }
  PrimExpr inside = nested < loop->extent;
  if (!all_inside && numbers.empty()) all_inside = analyzer.CanProve(inside);
  if (!all_inside && !disable_predication) rewrite.predicate = inside;
  Stmt body = rewrite(loop->body);
  if (rewrite.predicate.defined()) body = AddPredicate(body, inside);
  for (size_t i = factors.size(); i-- > 0;) {
    body = For(vars[i], MakeZero(dtype), factors[i], ForKind::kSerial, body);
  }
  self.Replace(id, body, rewrite.reuse);
  std::vector<LoopId> result;
  for (const Var& var : vars) result.push_back(self.FindLoop(var));
  return result;
}

TVM_REGISTER() {
  DefPrimitive(
      "Split", "split", &Split, &Schedule::Split,
      "Makes a nest of one loop, with the factors as extents from the outermost in. At most one "
      "factor is None: it becomes what is needed to cover the loop. Where the product is more than "
      "the extent, the blocks below run only inside of it, unless disable_predication is set (then "
      "the program must be right for the iterations beyond). Without preserve_unit_iters, loops of "
      "extent 1 are left out of the bindings of blocks. The new loops are serial.",
      {R"(
def before(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] * 2.0)",
       R"(i, = sch.get_loops("B")
i0, i1 = sch.split(i, factors=[None, 16]))"},
      Arg("loop"), Arg("factors"), Arg("preserve_unit_iters", true),
      Arg("disable_predication", false));
}

}  // namespace
}  // namespace tvm::tir
