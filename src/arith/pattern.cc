// SPDX-License-Identifier: Apache-2.0
// Forms of expressions: linear in variables, limits of variables, parts that occur often.
#include "tvm/arith/pattern.h"

#include "arith/impl.h"
#include "ir/once.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/structural.h"

namespace tvm::arith {
namespace {
struct LinearIn {
  std::vector<PrimExpr> coeffs;  // undefined: 0
  PrimExpr base;
};

class LinearDetector {
 public:
  explicit LinearDetector(const Array<Var>& vars) : size_(vars.size()) {
    for (size_t i = 0; i < vars.size(); ++i) numbers_[vars[i].get()] = i;
  }
  /// None when `e` is not linear.
  std::optional<LinearIn> Detect(const PrimExpr& e) {
    if (auto* known = known_.Find(e.get())) return *known;
    auto result = Compute(e);
    known_.Keep(e.get(), result);
    return result;
  }

 private:
  std::optional<LinearIn> Compute(const PrimExpr& e) {
    return Recurse([&]() -> std::optional<LinearIn> {
      LinearIn result{std::vector<PrimExpr>(size_), MakeZero(e.dtype())};
      if (!Uses(e)) {
        result.base = e;
        return result;
      }
      if (auto* var = e.as<VarObj>()) {
        result.coeffs[numbers_.at(var)] = MakeConst(e.dtype(), 1);
        return result;
      }
      if (auto* n = e.as<AddObj>()) return Combine(Detect(n->a), Detect(n->b), &add);
      if (auto* n = e.as<SubObj>()) return Combine(Detect(n->a), Detect(n->b), &sub);
      if (auto* n = e.as<MulObj>()) {
        if (Uses(n->a) && Uses(n->b)) return std::nullopt;
        auto part = Detect(Uses(n->a) ? n->a : n->b);
        if (!part) return std::nullopt;
        const PrimExpr& factor = Uses(n->a) ? n->b : n->a;
        for (PrimExpr& c : part->coeffs) {
          if (c.defined()) c = c * factor;
        }
        part->base = part->base * factor;
        return part;
      }
      return std::nullopt;
    });
  }
  bool Uses(const PrimExpr& e) {
    return UsesVar(e, [&](const VarObj* v) { return numbers_.count(v) != 0; });
  }
  static std::optional<LinearIn> Combine(std::optional<LinearIn> a,
                                         const std::optional<LinearIn>& b,
                                         PrimExpr (*op)(PrimExpr, PrimExpr, Optional<Span>)) {
    if (!a || !b) return std::nullopt;
    a->base = op(a->base, b->base, {});
    for (size_t i = 0; i < a->coeffs.size(); ++i) {
      if (!b->coeffs[i].defined()) continue;
      PrimExpr first = a->coeffs[i].defined() ? a->coeffs[i] : MakeZero(b->coeffs[i].dtype());
      a->coeffs[i] = op(first, b->coeffs[i], {});
    }
    return a;
  }
  size_t size_;  // of the result: a variable may be given twice, which the last one counts for
  std::unordered_map<const VarObj*, size_t> numbers_;
  SharedMemo<std::optional<LinearIn>> known_;
};
}  // namespace

Array<PrimExpr> DetectLinearEquation(const PrimExpr& e, const Array<Var>& vars) {
  auto linear = LinearDetector(vars).Detect(e);
  Array<PrimExpr> result;
  if (!linear) return result;
  Analyzer analyzer;
  for (size_t i = 0; i < vars.size(); ++i) {
    const PrimExpr& c = linear->coeffs[i];
    result.push_back(c.defined() ? analyzer.Simplify(c) : MakeZero(vars[i].dtype()));
  }
  result.push_back(analyzer.Simplify(linear->base));
  return result;
}

Array<Optional<PrimExpr>> DetectClipBound(const PrimExpr& cond, const Array<Var>& vars) {
  Analyzer analyzer;
  std::vector<PrimExpr> limits(2 * vars.size());
  bool ok = true;
  // a - b + slack <= 0
  auto compare = [&](const PrimExpr& a, const PrimExpr& b, int slack) {
    if (!a.dtype().is_integer()) return void(ok = false);
    Array<PrimExpr> linear = DetectLinearEquation(a - b, vars);
    if (linear.empty()) return void(ok = false);
    std::optional<size_t> which;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (IsZero(linear[i])) continue;
      if (which) return void(ok = false);
      which = i;
    }
    if (!which) return;
    auto coeff = AsConstInt(linear[*which]);
    if (!coeff || (*coeff != 1 && *coeff != -1)) return void(ok = false);
    DataType t = vars[*which].dtype();
    PrimExpr base = linear[vars.size()];
    bool upper = *coeff == 1;
    PrimExpr bound =
        analyzer.Simplify(upper ? -base - MakeConst(t, slack) : base + MakeConst(t, slack));
    PrimExpr& slot = limits[2 * *which + (upper ? 1 : 0)];
    slot = !slot.defined() ? bound : analyzer.Simplify(upper ? min(slot, bound) : max(slot, bound));
  };
  auto visit = [&](auto&& self, const PrimExpr& e) -> void {
    if (auto* n = e.as<AndObj>()) {
      self(self, n->a);
      return self(self, n->b);
    }
    if (auto* n = e.as<CallObj>(); n && n->Is(builtin::likely())) return self(self, n->args[0]);
    if (auto* n = e.as<LTObj>()) return compare(n->a, n->b, 1);
    if (auto* n = e.as<LEObj>()) return compare(n->a, n->b, 0);
    if (auto* n = e.as<GTObj>()) return compare(n->b, n->a, 1);
    if (auto* n = e.as<GEObj>()) return compare(n->b, n->a, 0);
    if (auto* n = e.as<EQObj>()) {
      compare(n->a, n->b, 0);
      return compare(n->b, n->a, 0);
    }
    ok = false;
  };
  visit(visit, cond);
  Array<Optional<PrimExpr>> result;
  if (!ok) return result;
  for (const PrimExpr& limit : limits) {
    result.push_back(limit.defined() ? Optional<PrimExpr>(limit) : Optional<PrimExpr>());
  }
  return result;
}

Map<PrimExpr, int64_t> DetectCommonSubExpr(const PrimExpr& e, int64_t threshold) {
  if (threshold < 1) {
    TVM_FFI_THROW(ValueError) << "detect_common_subexpr: expected a positive threshold, got "
                              << threshold;
  }
  struct Equals {
    bool operator()(const PrimExpr& a, const PrimExpr& b) const { return ExprDeepEqual(a, b); }
  };
  using Table = std::unordered_map<PrimExpr, int64_t, StructuralHasher, Equals>;
  Table counts;
  auto is_part = [](const PrimExpr& n) {
    return !n.as<VarObj>() && !n.as<IntImmObj>() && !n.as<FloatImmObj>() && !n.as<StringImmObj>();
  };
  PostOrderVisit(e, [&](const ObjectRef& n) {
    if (auto part = n.as<PrimExpr>(); part && is_part(*part)) ++counts[*part];
  });
  // How often a part is a child of a larger one that is listed as often as the part itself.
  Table covered;
  for (const auto& [part, count] : counts) {
    if (count < threshold) continue;
    VisitChildren(part.get(), [&, count = count](const ObjectRef& child) {
      auto inner = child.as<PrimExpr>();
      if (inner && counts.count(*inner)) covered[*inner] += count;
    });
  }
  Map<PrimExpr, int64_t> result;
  for (const auto& [part, count] : counts) {
    auto it = covered.find(part);
    if (count >= threshold && (it == covered.end() || it->second < count)) result.Set(part, count);
  }
  return result;
}

namespace {
TVM_REGISTER() {
  Def("arith.detect_linear_equation", &DetectLinearEquation,
      "The coefficients of the variables in a linear expression, then its base; empty when it is "
      "not linear.",
      Arg("expr"), Arg("var_list"));
  Def("arith.detect_clip_bound", &DetectClipBound,
      "[least, largest] for each variable that a conjunction of comparisons limits; empty when it "
      "is something else.",
      Arg("expr"), Arg("var_list"));
  Def("arith.detect_common_subexpr", &DetectCommonSubExpr,
      "Parts that occur at least `threshold` times, with their counts.", Arg("expr"),
      Arg("threshold"));
}
}  // namespace
}  // namespace tvm::arith
