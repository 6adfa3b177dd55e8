// SPDX-License-Identifier: Apache-2.0
// Iterator maps: detection, normal form, division into subspaces, inversion.
#include "tvm/arith/iter_affine_map.h"

#include <algorithm>

#include "arith/iter_map.h"

namespace tvm::arith {
namespace {
void CheckIters(const Map<Var, Range>& input_iters, const char* name) {
  for (const auto& [var, range] : input_iters) {
    if (!var.dtype().is_index()) {
      TVM_FFI_THROW(TypeError) << name << ": expected iterators of type int32 or int64, got "
                               << var->name_hint << " of type " << var.dtype();
    }
  }
}
/// A space without iterations needs no care: extents are at least 1.
PrimExpr HasIterations(const Map<Var, Range>& input_iters) {
  PrimExpr result = const_true();
  for (const auto& [var, range] : input_iters) {
    if (!AsConstInt(range->extent)) {
      result = result && MakeConst(range->extent.dtype(), 1) <= range->extent;
    }
  }
  return result;
}
}  // namespace

// ---- detection --------------------------------------------------------------------------------
IterMapResult DetectIterMap(const Array<PrimExpr>& indices, const Map<Var, Range>& input_iters,
                            const PrimExpr& predicate, IterMapLevel level, Analyzer* analyzer,
                            bool simplify_trivial) {
  CheckIters(input_iters, "detect_iter_map");
  ConstraintScope scope(analyzer, HasIterations(input_iters));
  Array<IterSumExpr> sums;
  Array<String> errors;
  PrimExpr padding = const_false();
  try {
    IterMapRewriter rewriter(analyzer, input_iters, simplify_trivial,
                             level == IterMapLevel::kNoCheck);
    rewriter.AddPredicate(predicate);
    for (const PrimExpr& index : indices) {
      if (!index.dtype().is_integer())
        throw NotAnIterMap{"expected integer indices, got " + index.dtype().str()};
      IterSumExpr sum = rewriter.ToSum(index);
      // Without a check a sum whose pieces do not fit together is still a sum.
      try {
        sum = rewriter.Fused(sum);
      } catch (const NotAnIterMap&) {
        if (level != IterMapLevel::kNoCheck) throw;
      }
      sums.push_back(sum);
    }
    rewriter.Check(sums, level);
    padding = rewriter.padding_predicate();
  } catch (const NotAnIterMap& problem) {
    sums = {};
    errors.push_back(problem.message);
  }
  return New<IterMapResult>([&](IterMapResultObj* n) {
    n->indices = sums;
    n->errors = errors;
    n->padding_predicate = padding;
  });
}

// ---- normal form ------------------------------------------------------------------------------
namespace {
PrimExpr SourceExpr(const IterMark& mark) {
  auto* sum = mark->source.as<IterSumExprObj>();
  return sum ? NormalizeIterMapToExpr(mark->source) : mark->source;
}
PrimExpr SplitToExpr(const IterSplitExpr& s, Analyzer* analyzer) {
  PrimExpr e = SourceExpr(s->source);
  // The remainder is needed unless the piece reaches the iterator's end.
  bool whole = analyzer->CanProve(s->source->extent <= s->lower_factor * s->extent);
  e = floordiv(e, s->lower_factor);
  if (!whole) e = floormod(e, s->extent);
  return e * s->scale;
}
}  // namespace
PrimExpr NormalizeIterMapToExpr(const PrimExpr& expr) {
  Analyzer analyzer;
  if (auto* sum = expr.as<IterSumExprObj>()) {
    PrimExpr result = MakeZero(sum->dtype);
    for (const IterSplitExpr& s : sum->args) result = result + SplitToExpr(s, &analyzer);
    return result + sum->base;
  }
  if (auto* split = expr.as<IterSplitExprObj>()) {
    return SplitToExpr(ffi::GetRef<IterSplitExpr>(split), &analyzer);
  }
  // Maps inside a plain expression.
  struct Replace : Mutator<Replace, IterMapExprObj> {
    ObjectRef Rewrite(const IterMapExprObj* n) {
      return NormalizeIterMapToExpr(ffi::GetRef<PrimExpr>(n));
    }
  };
  return Replace().Mutate(expr);
}
Array<PrimExpr> IterMapSimplify(const Array<PrimExpr>& indices, const Map<Var, Range>& input_iters,
                                const PrimExpr& predicate, IterMapLevel level, Analyzer* analyzer,
                                bool simplify_trivial) {
  IterMapResult result =
      DetectIterMap(indices, input_iters, predicate, level, analyzer, simplify_trivial);
  Analyzer local;
  local.Bind(input_iters, true);
  ConstraintScope scope(&local, HasIterations(input_iters));
  // Also what is no map of iterators can be simpler.
  if (result->indices.empty()) {
    return indices.Map([&](const PrimExpr& e) { return local.Simplify(e); });
  }
  return result->indices.Map(
      [&](const IterSumExpr& s) -> PrimExpr { return local.Simplify(NormalizeIterMapToExpr(s)); });
}
IterSumExpr NormalizeToIterSum(const PrimExpr& index, const Map<Var, Range>& input_iters,
                               Analyzer* analyzer) {
  CheckIters(input_iters, "normalize_to_iter_sum");
  IterMapRewriter rewriter(analyzer, input_iters, true, false);
  DataType t = index.dtype();
  // Terms that are no pieces of iterators are iterators of their own.
  LinearForm form = analyzer->impl()->ToLinear(analyzer->Simplify(index));
  PrimExpr base = MakeConst(t, form.base);
  Array<IterSplitExpr> args;
  for (const LinearTerm& term : form.terms) {
    try {
      IterSumExpr part = rewriter.ToSum(term.atom * MakeConst(t, term.coeff));
      base = base + part->base;
      for (const IterSplitExpr& s : part->args) args.push_back(s);
    } catch (const NotAnIterMap&) {
      IntSet values = EvalSet(term.atom, input_iters);
      PrimExpr extent = values.HasUpperBound() ? analyzer->Simplify(values.max() + MakeConst(t, 1))
                                               : max_value(t);
      args.push_back(IterSplitExpr(IterMark(term.atom, extent), MakeConst(t, 1), extent,
                                   MakeConst(t, term.coeff)));
    }
  }
  std::vector<IterSplitExpr> ordered(args.begin(), args.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [&](const IterSplitExpr& a, const IterSplitExpr& b) {
                     auto x = AsConstInt(a->scale), y = AsConstInt(b->scale);
                     if (x && y) return *x > *y;
                     if (x || y) return !x;  // symbolic strides are the larger ones
                     return analyzer->CanProve(b->scale < a->scale);
                   });
  return IterSumExpr(Array<IterSplitExpr>(ordered.begin(), ordered.end()),
                     analyzer->Simplify(base));
}

// ---- subspaces --------------------------------------------------------------------------------
namespace {
class SubspaceDivider {
 public:
  SubspaceDivider(Analyzer* analyzer, const Map<Var, Range>& iters, const Array<Var>& sub_iters)
      : analyzer_(analyzer), iters_(iters) {
    for (const Var& v : sub_iters) inner_[v.get()] = true;
  }
  struct Division {
    IterMark outer, inner;  // whole = outer * inner extent + inner
  };
  Division Divide(const IterSumExpr& sum) {
    DataType t = sum.dtype();
    PrimExpr one = MakeConst(t, 1), zero = MakeZero(t);
    if (sum->args.empty())
      return {IterMark(IterSumExpr({}, sum->base), one), IterMark(IterSumExpr({}, zero), one)};
    if (sum->args.size() != 1) throw NotAnIterMap{"expected bindings that are one iterator each"};
    IterSplitExpr split = sum->args[0];
    if (!IsOne(split->scale)) throw NotAnIterMap{"expected bindings with scale 1"};
    auto [outer, inner] = DivideSplit(split);
    // The offset belongs to the part outside, where that can make it.
    bool is_outer =
        !IsOne(outer->extent) && analyzer_->CanProveEqual(floormod(sum->base, inner->extent), zero);
    auto with_base = [&](const IterMark& mark, const PrimExpr& base) {
      auto* source = mark->source.as<IterSumExprObj>();
      return IterMark(IterSumExpr(source->args, analyzer_->Simplify(source->base + base)),
                      mark->extent);
    };
    return {with_base(outer, is_outer ? floordiv(sum->base, inner->extent) : zero),
            with_base(inner, is_outer ? zero : sum->base)};
  }
  PrimExpr outer_predicate = const_true(), inner_predicate = const_true();

 private:
  enum Side { kOuter, kInner, kBoth };
  Side SideOf(const PrimExpr& source) {
    bool in = UsesVar(source, [&](const VarObj* v) { return inner_.count(v) != 0; });
    bool out = UsesVar(source, [&](const VarObj* v) {
      return inner_.count(v) == 0 && iters_.count(ffi::GetRef<Var>(v)) != 0;
    });
    return in && out ? kBoth : in ? kInner : kOuter;
  }
  IterMark Unit(DataType t) { return IterMark(IterSumExpr({}, MakeZero(t)), MakeConst(t, 1)); }
  Division DivideSplit(const IterSplitExpr& split) {
    DataType t = split.dtype();
    PrimExpr zero = MakeZero(t);
    IterMark whole(IterSumExpr({split}, zero), split->extent);
    Side side = SideOf(SourceOf(split->source));
    if (side == kOuter) return {whole, Unit(t)};
    if (side == kInner) return {Unit(t), whole};
    auto* source = split->source->source.as<IterSumExprObj>();
    bool entire = IsOne(split->lower_factor) &&
                  analyzer_->CanProveEqual(split->extent, split->source->extent);
    if (!source || !entire || !IsZero(source->base))
      throw NotAnIterMap{"a piece of an iterator mixes both spaces"};
    // Pieces with large scales must be outside, those with small ones inside; one may be mixed.
    Array<IterSplitExpr> outer_args, inner_args;
    PrimExpr outer_extent = MakeConst(t, 1), inner_extent = MakeConst(t, 1);
    bool inside = false;
    for (const IterSplitExpr& arg : source->args) {
      Side s = SideOf(SourceOf(arg->source));
      if (s == kBoth) throw NotAnIterMap{"a piece of an iterator mixes both spaces"};
      if (s == kOuter && inside) throw NotAnIterMap{"an outer iterator moves inside an inner one"};
      inside = s == kInner;
      (inside ? inner_args : outer_args).push_back(arg);
      PrimExpr& extent = inside ? inner_extent : outer_extent;
      extent = analyzer_->Simplify(extent * arg->extent);
    }
    // A predicate on the whole becomes one on the outer part where it leaves inner blocks whole.
    PrimExpr product = analyzer_->Simplify(outer_extent * inner_extent);
    if (!analyzer_->CanProveEqual(product, split->source->extent)) {
      if (!analyzer_->CanProveEqual(floormod(split->source->extent, inner_extent), zero)) {
        throw NotAnIterMap{"a predicate cuts through an inner block"};
      }
      PrimExpr limit = analyzer_->Simplify(floordiv(split->source->extent, inner_extent));
      outer_extent = limit;
    }
    Array<IterSplitExpr> scaled = outer_args.Map([&](const IterSplitExpr& s) {
      return IterSplitExpr(s->source, s->lower_factor, s->extent,
                           analyzer_->Simplify(floordiv(s->scale, inner_extent)));
    });
    IterMark outer(IterSumExpr(scaled, zero), outer_extent),
        inner(IterSumExpr(inner_args, zero), inner_extent);
    if (!analyzer_->CanProveEqual(product, split->source->extent)) {
      outer_predicate = outer_predicate && NormalizeIterMapToExpr(outer->source) < outer_extent;
    }
    return {outer, inner};
  }
  static PrimExpr SourceOf(const IterMark& mark) { return SourceExpr(mark); }

  Analyzer* analyzer_;
  const Map<Var, Range>& iters_;
  std::unordered_map<const VarObj*, bool> inner_;
};
}  // namespace

Array<Array<IterMark>> SubspaceDivide(const Array<PrimExpr>& bindings,
                                      const Map<Var, Range>& input_iters,
                                      const Array<Var>& sub_iters, const PrimExpr& predicate,
                                      IterMapLevel level, Analyzer* analyzer,
                                      bool simplify_trivial) {
  CheckIters(input_iters, "subspace_divide");
  IterMapResult maps =
      DetectIterMap(bindings, input_iters, predicate, level, analyzer, simplify_trivial);
  Array<Array<IterMark>> result;
  if (maps->indices.empty() && !bindings.empty()) return result;
  SubspaceDivider divider(analyzer, input_iters, sub_iters);
  try {
    for (const IterSumExpr& sum : maps->indices) {
      auto [outer, inner] = divider.Divide(sum);
      result.push_back({outer, inner});
    }
  } catch (const NotAnIterMap&) {
    return {};
  }
  PrimExpr zero = PrimExpr(0);
  result.push_back(
      {IterMark(divider.outer_predicate, zero), IterMark(divider.inner_predicate, zero)});
  return result;
}

// ---- inversion --------------------------------------------------------------------------------
namespace {
class Inverter {
 public:
  Map<Var, PrimExpr> result;
  /// The pieces of marks found so far, to be put together when all are known.
  struct Known {
    IterMark mark;
    PrimExpr value;
  };
  void AddSplit(const IterSplitExpr& split, const PrimExpr& value) {
    // value is that of the piece without its scale
    PrimExpr part = value * split->lower_factor;
    for (Known& known : known_) {
      if (SameMark(known.mark, split->source)) {
        known.value = analyzer_.Simplify(known.value + part);
        return;
      }
    }
    known_.push_back({split->source, analyzer_.Simplify(part)});
  }
  void Finish() {
    // Marks that are made of others come before those: sources are taken apart until variables
    // remain.
    while (!known_.empty()) {
      size_t next = 0;
      for (size_t i = 0; i < known_.size(); ++i) {
        bool inside_another = std::any_of(known_.begin(), known_.end(), [&](const Known& other) {
          return Contains(other.mark, known_[i].mark);
        });
        if (!inside_another) next = i;
      }
      Known known = known_[next];
      known_.erase(known_.begin() + static_cast<int64_t>(next));
      auto* sum = known.mark->source.as<IterSumExprObj>();
      if (!sum) {
        SetVar(known.mark->source, known.value);
        continue;
      }
      PrimExpr value = known.value - sum->base;
      for (const IterSplitExpr& arg : sum->args) {
        PrimExpr part = floordiv(value, arg->scale);
        bool first = arg.same_as(sum->args[0]);
        if (!first) part = floormod(part, arg->extent);
        AddSplit(arg, analyzer_.Simplify(part));
      }
    }
  }

 private:
  static bool Contains(const IterMark& outer, const IterMark& mark) {
    auto* sum = outer->source.as<IterSumExprObj>();
    if (!sum) return false;
    return std::any_of(sum->args.begin(), sum->args.end(), [&](const IterSplitExpr& s) {
      return SameMark(s->source, mark) || Contains(s->source, mark);
    });
  }
  /// The source of a variable's mark is the variable less the start of its range.
  void SetVar(const PrimExpr& source, const PrimExpr& value) {
    LinearForm form = analyzer_.impl()->ToLinear(source);
    for (const LinearTerm& t : form.terms) {
      auto* var = t.atom.as<VarObj>();
      if (!var || t.coeff != 1) continue;
      Var v = ffi::GetRef<Var>(var);
      result.Set(v, analyzer_.Simplify(value - (source - v)));
      return;
    }
    TVM_FFI_THROW(ValueError) << "inverse_affine_iter_map: expected iterators that are variables";
  }
  Analyzer analyzer_;
  std::vector<Known> known_;
};
}  // namespace

Map<Var, PrimExpr> InverseAffineIterMap(const Array<IterSumExpr>& iter_map,
                                        const Array<PrimExpr>& outputs) {
  if (iter_map.size() != outputs.size()) {
    TVM_FFI_THROW(ValueError) << "inverse_affine_iter_map: expected " << iter_map.size()
                              << " outputs, one per index, got " << outputs.size();
  }
  Inverter inverter;
  for (size_t i = 0; i < iter_map.size(); ++i) {
    const IterSumExpr& sum = iter_map[i];
    if (sum->args.empty()) continue;
    if (sum->args.size() != 1) {
      TVM_FFI_THROW(ValueError) << "inverse_affine_iter_map: expected one iterator per index, got "
                                << sum->args.size();
    }
    IterSplitExpr split = sum->args[0];
    PrimExpr value = outputs[i] - sum->base;
    inverter.AddSplit(split, floordiv(value, split->scale));
  }
  inverter.Finish();
  return inverter.result;
}

// ---- registration -----------------------------------------------------------------------------
namespace {
/// A level, or its name in any case.
using LevelLike = Variant<int64_t, String>;
IterMapLevel Level(const LevelLike& given) {
  static const std::pair<const char*, int64_t> kLevels[] = {
      {"bijective", 0}, {"surjective", 1}, {"nocheck", 3}};
  auto number = given.as<int64_t>();
  std::string name = number ? std::to_string(*number) : std::string(given.get<String>());
  std::transform(name.begin(), name.end(), name.begin(), ::tolower);
  for (const auto& [text, value] : kLevels) {
    if (number ? *number == value : name == text) return static_cast<IterMapLevel>(value);
  }
  TVM_FFI_THROW(ValueError)
      << "check_level: expected 0 (bijective), 1 (surjective) or 3 (no check), got " << name;
}
TVM_REGISTER() {
  RegisterNode<IterMarkObj>("An iterator over [0, extent).");
  RegisterBase<IterMapExprObj>("An expression of iterators.");
  RegisterNode<IterSplitExprObj>("(source // lower_factor) % extent * scale");
  RegisterNode<IterSumExprObj>("The sum of args and base.");
  RegisterNode<IterMapResultObj>("The result of detect_iter_map.");
  Arg level("check_level", 1), trivial("simplify_trivial_iterators", true), iters("input_iters"),
      predicate("predicate", PrimExpr(IntImm::Bool(true)));
  Def(
      "arith.detect_iter_map",
      [](Array<PrimExpr> indices, Map<Var, Range> iters, PrimExpr predicate, LevelLike level,
         bool trivial) {
        Analyzer analyzer;
        return DetectIterMap(indices, iters, predicate, Level(level), &analyzer, trivial);
      },
      "The indices as iterator maps of the variables where the predicate holds; `errors` says why "
      "not.",
      Arg("indices"), iters, predicate, level, trivial);
  Def(
      "arith.iter_map_simplify",
      [](Array<PrimExpr> indices, Map<Var, Range> iters, PrimExpr predicate, LevelLike level,
         bool trivial) {
        Analyzer analyzer;
        return IterMapSimplify(indices, iters, predicate, Level(level), &analyzer, trivial);
      },
      "The indices simplified as iterator maps.", Arg("indices"), iters, predicate, level, trivial);
  Def("arith.normalize_iter_map_to_expr", &NormalizeIterMapToExpr,
      "The plain expression of an iterator map.", Arg("expr"));
  Def(
      "arith.normalize_to_iter_sum",
      [](PrimExpr index, Map<Var, Range> iters) {
        Analyzer analyzer;
        return NormalizeToIterSum(index, iters, &analyzer);
      },
      "The index as a sum of pieces of iterators, the largest scale first.", Arg("index"), iters);
  Def(
      "arith.subspace_divide",
      [](Array<PrimExpr> bindings, Map<Var, Range> iters, Array<Var> sub, PrimExpr predicate,
         LevelLike level, bool trivial) {
        Analyzer analyzer;
        return SubspaceDivide(bindings, iters, sub, predicate, Level(level), &analyzer, trivial);
      },
      "Divides each binding in an outer and an inner part; empty when there is no division.",
      Arg("bindings"), iters, Arg("sub_iters"), predicate, level, trivial);
  Def("arith.inverse_affine_iter_map", &InverseAffineIterMap,
      "The variables as functions of the values of the map.", Arg("iter_map"), Arg("outputs"));
}
}  // namespace
}  // namespace tvm::arith
