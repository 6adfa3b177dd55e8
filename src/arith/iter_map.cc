// SPDX-License-Identifier: Apache-2.0
// Rewriting of index expressions into iterator maps.
#include "arith/iter_map.h"

#include "tvm/ir/structural.h"

namespace tvm::arith {

IterMark::IterMark(PrimExpr source, PrimExpr extent) {
  *this = New<IterMark>([&](IterMarkObj* n) { n->source = source, n->extent = extent; });
}
IterSplitExpr::IterSplitExpr(IterMark source)
    : IterSplitExpr(source, MakeConst(source->source.dtype(), 1), source->extent,
                    MakeConst(source->source.dtype(), 1)) {}
IterSplitExpr::IterSplitExpr(IterMark source, PrimExpr lower_factor, PrimExpr extent,
                             PrimExpr scale) {
  *this = New<IterSplitExpr>([&](IterSplitExprObj* n) {
    n->source = source;
    n->lower_factor = lower_factor;
    n->extent = extent;
    n->scale = scale;
  });
}
IterSumExpr::IterSumExpr(Array<IterSplitExpr> args, PrimExpr base) {
  *this = New<IterSumExpr>([&](IterSumExprObj* n) { n->args = args, n->base = base; });
}
bool SameMark(const IterMark& a, const IterMark& b) {
  if (a.same_as(b)) return true;
  auto *x = a->source.as<VarObj>(), *y = b->source.as<VarObj>();
  if (x || y) return x == y && ExprDeepEqual(a->extent, b->extent);
  return StructuralEqual(a, b);
}

namespace {
PrimExpr One(DataType t) { return MakeConst(t, 1); }
IterSplitExpr WithScale(const IterSplitExpr& s, const PrimExpr& scale) {
  return IterSplitExpr(s->source, s->lower_factor, s->extent, scale);
}
}  // namespace

IterMapRewriter::IterMapRewriter(Analyzer* analyzer, const Map<Var, Range>& input_iters,
                                 bool simplify_trivial, bool allow_padding)
    : analyzer_(analyzer), allow_padding_(allow_padding), padding_(const_false()) {
  for (const auto& [var, range] : input_iters) LearnSizes(range->extent);
  for (const auto& [var, range] : input_iters) {
    DataType t = var.dtype();
    PrimExpr min = cast(t, range->min), extent = cast(t, range->extent);
    if (simplify_trivial && IsOne(extent)) {
      vars_.insert({var.get(), IterSumExpr({}, min)});
      continue;
    }
    IterMark mark(IsZero(min) ? PrimExpr(var) : Simple(var - min), extent);
    inputs_.push_back(mark);
    vars_.insert({var.get(), IterSumExpr({IterSplitExpr(mark)}, min)});
  }
}
bool IterMapRewriter::UsesIter(const PrimExpr& e) {
  return UsesVar(e, [&](const VarObj* v) { return vars_.count(v) != 0; });
}
bool IterMapRewriter::Divides(const PrimExpr& divisor, const PrimExpr& e) {
  auto a = AsConstInt(e), b = AsConstInt(divisor);
  if (a && b) return *b != 0 && *a % *b == 0;
  return Equal(floormod(e, divisor), MakeZero(e.dtype()));
}

/// Where there are iterations at all, the sizes that an extent is the product of are positive.
void IterMapRewriter::LearnSizes(const PrimExpr& extent) {
  if (auto* product = extent.as<MulObj>()) {
    LearnSizes(product->a);
    LearnSizes(product->b);
  } else if (auto* blocks = extent.as<FloorDivObj>()) {  // (e + c) // d of at least 1, with c < d
    auto* sum = blocks->a.as<AddObj>();
    auto more = sum ? AsConstInt(sum->b) : std::nullopt, size = AsConstInt(blocks->b);
    if (more && size && *more < *size) LearnSizes(sum->a);
  } else if (extent.as<VarObj>() && !analyzer_->CanProveGreaterEqual(extent, 1)) {
    PrimExpr is_positive = extent >= MakeConst(extent.dtype(), 1);
    sizes_.push_back(std::make_unique<ConstraintScope>(analyzer_, is_positive));
  }
}

// ---- sums -------------------------------------------------------------------------------------
IterSumExpr IterMapRewriter::Sum(Array<IterSplitExpr> args, PrimExpr base) {
  return IterSumExpr(std::move(args), Simple(base));
}
IterSumExpr IterMapRewriter::Plus(const IterSumExpr& a, const IterSumExpr& b, int sign) {
  Array<IterSplitExpr> args = a->args;
  for (const IterSplitExpr& split : b->args) {
    PrimExpr scale = sign > 0 ? split->scale : Simple(-split->scale);
    bool found = false;
    for (size_t i = 0; i < args.size() && !found; ++i) {
      IterSplitExpr other = args[i];
      if (!SameMark(other->source, split->source) ||
          !Equal(other->lower_factor, split->lower_factor) ||
          !Equal(other->extent, split->extent)) {
        continue;
      }
      found = true;
      PrimExpr total = Simple(other->scale + scale);
      if (IsZero(total))
        args.erase(args.begin() + static_cast<int64_t>(i));
      else
        args.Set(static_cast<int64_t>(i), WithScale(other, total));
    }
    if (!found) args.push_back(WithScale(split, scale));
  }
  return Sum(args, sign > 0 ? a->base + b->base : a->base - b->base);
}
IterSumExpr IterMapRewriter::Times(const IterSumExpr& a, const PrimExpr& factor) {
  if (IsZero(factor)) return IterSumExpr({}, MakeZero(a.dtype()));
  return Sum(
      a->args.Map([&](const IterSplitExpr& s) { return WithScale(s, Simple(s->scale * factor)); }),
      a->base * factor);
}

IterSumExpr IterMapRewriter::ToSum(const PrimExpr& e) {
  return Recurse([&]() -> IterSumExpr {
    if (auto* var = e.as<VarObj>()) {
      auto it = vars_.find(var);
      if (it != vars_.end()) return it->second;
    }
    if (!UsesIter(e)) return IterSumExpr({}, e);
    if (auto* n = e.as<IterSumExprObj>()) return ffi::GetRef<IterSumExpr>(n);
    if (auto* n = e.as<AddObj>()) return Plus(ToSum(n->a), ToSum(n->b), 1);
    if (auto* n = e.as<SubObj>()) return Plus(ToSum(n->a), ToSum(n->b), -1);
    if (auto* n = e.as<MulObj>()) {
      if (!UsesIter(n->b)) return Times(ToSum(n->a), n->b);
      if (!UsesIter(n->a)) return Times(ToSum(n->b), n->a);
      Fail("a product of two iterators is not affine");
    }
    if (auto* n = e.as<FloorDivObj>(); n && !UsesIter(n->b)) return Divide(ToSum(n->a), n->b, true);
    if (auto* n = e.as<FloorModObj>(); n && !UsesIter(n->b))
      return Divide(ToSum(n->a), n->b, false);
    if (auto* n = e.as<CastObj>(); n && n->value.dtype().is_index() && e.dtype().is_index()) {
      DataType t = e.dtype();
      IterSumExpr inner = ToSum(n->value);
      return Sum(inner->args.Map([&](const IterSplitExpr& s) {
        IterMark mark(cast(t, s->source->source), cast(t, s->source->extent));
        return IterSplitExpr(mark, cast(t, s->lower_factor), cast(t, s->extent), cast(t, s->scale));
      }),
                 cast(t, inner->base));
    }
    Fail("expected sums, products, quotients and remainders of iterators, got " +
         std::string(e->GetTypeKey()));
  });
}

// ---- fusion -----------------------------------------------------------------------------------
/// Replaces pieces that a predicate limits together by the limited iterator.
void IterMapRewriter::UseLimits(std::vector<IterSplitExpr>* args) {
  for (const Limit& limit : limits_) {
    std::vector<size_t> found;
    PrimExpr factor;
    for (const IterSplitExpr& part : limit.sum->args) {
      for (size_t i = 0; i < args->size(); ++i) {
        const IterSplitExpr& arg = (*args)[i];
        if (!SameMark(arg->source, part->source) || !Equal(arg->lower_factor, part->lower_factor) ||
            !Equal(arg->extent, part->extent))
          continue;
        if (!Divides(part->scale, arg->scale)) continue;
        PrimExpr ratio = Simple(floordiv(arg->scale, part->scale));
        if (factor.defined() && !Equal(factor, ratio)) continue;
        factor = ratio;
        found.push_back(i);
        break;
      }
    }
    if (found.size() != limit.sum->args.size()) continue;
    std::sort(found.begin(), found.end(), std::greater<>());
    for (size_t i : found) args->erase(args->begin() + static_cast<int64_t>(i));
    args->push_back(WithScale(IterSplitExpr(limit.mark), factor));
  }
}

/// The pieces from the least scale `next` on, each beginning where the one before ends; empty when
/// one does not fit. `next` becomes the end of the last.
std::vector<IterSplitExpr> IterMapRewriter::Chain(std::vector<IterSplitExpr> args, PrimExpr* next) {
  std::vector<IterSplitExpr> ordered;
  while (!args.empty()) {
    size_t best = args.size();
    for (size_t i = 0; i < args.size(); ++i) {
      // A piece of extent 1 may have any scale.
      if (IsOne(args[i]->extent))
        best = i;
      else if (best == args.size() && Equal(args[i]->scale, *next))
        best = i;
    }
    if (best == args.size()) return {};
    if (!IsOne(args[best]->extent)) *next = Simple(*next * args[best]->extent);
    ordered.push_back(args[best]);
    args.erase(args.begin() + static_cast<int64_t>(best));
  }
  return ordered;
}

IterSumExpr IterMapRewriter::Fused(const IterSumExpr& sum) {
  std::vector<IterSplitExpr> args(sum->args.begin(), sum->args.end());
  UseLimits(&args);
  if (args.empty()) return IterSumExpr({}, sum->base);
  if (args.size() == 1) return IterSumExpr({args[0]}, sum->base);
  // From the piece that moves the index least to the one that moves it most: each continues where
  // the one below ends. Which one is the least is not always known: constants are tried first.
  std::stable_partition(args.begin(), args.end(),
                        [](const IterSplitExpr& s) { return AsConstInt(s->scale).has_value(); });
  std::vector<IterSplitExpr> ordered;
  PrimExpr scale, next;
  for (const IterSplitExpr& start : args) {
    if (!analyzer_->CanProveGreaterEqual(start->scale, 1)) continue;
    scale = start->scale;
    ordered = Chain(args, &(next = scale));
    if (!ordered.empty()) break;
  }
  if (ordered.empty()) Fail("the scales of a sum of iterators do not continue each other");
  Array<IterSplitExpr> parts;
  for (size_t i = ordered.size(); i > 0; --i) {
    const IterSplitExpr& s = ordered[i - 1];
    parts.push_back(WithScale(s, Simple(floordiv(s->scale, scale))));
  }
  DataType t = sum.dtype();
  IterMark mark(IterSumExpr(parts, MakeZero(t)), Simple(floordiv(next, scale)));
  return IterSumExpr({IterSplitExpr(mark, One(t), mark->extent, scale)}, sum->base);
}

// ---- quotients and remainders -----------------------------------------------------------------
/// The iterator of `split` (scale 1) moved by base % divisor and padded to a multiple of the
/// divisor; base becomes a multiple of it.
IterSplitExpr IterMapRewriter::Aligned(const IterSplitExpr& split, PrimExpr* base,
                                       const PrimExpr& divisor) {
  DataType t = split.dtype();
  PrimExpr left = Simple(floormod(*base, divisor));
  bool fits = IsZero(left) && Divides(divisor, split->extent);
  bool inside = IsZero(left) && Divides(split->extent, divisor);
  if (fits || inside) return split;
  PrimExpr total = Simple(ceildiv(split->extent + left, divisor) * divisor);
  IterMark mark(IterSumExpr({split}, left), total);
  for (const IterMark& known : padded_) {
    if (SameMark(known, mark)) mark = known;
  }
  bool is_new = std::none_of(padded_.begin(), padded_.end(),
                             [&](const IterMark& m) { return m.same_as(mark); });
  if (is_new) padded_.push_back(mark);
  if (allow_padding_ && is_new) {
    PrimExpr value = NormalizeIterMapToExpr(IterSplitExpr(split)) + left;
    PrimExpr last = split->extent + left;
    padding_ = analyzer_->Simplify(padding_ ||
                                   (IsZero(left) ? last <= value : value < left || last <= value));
  }
  *base = Simple(*base - left);
  return IterSplitExpr(mark, One(t), total, One(t));
}

/// Quotient and remainder where the divisor divides some scales and the rest of the sum stays below
/// it: then no iterator need be taken apart.
std::optional<std::pair<IterSumExpr, IterSumExpr>> IterMapRewriter::DivideApart(
    const IterSumExpr& a, const PrimExpr& divisor) {
  // What a predicate limits together must stay together.
  if (!limits_.empty() || !Divides(divisor, a->base)) return std::nullopt;
  DataType t = a.dtype();
  Array<IterSplitExpr> upper, lower;
  PrimExpr reach = MakeZero(t);
  for (const IterSplitExpr& s : a->args) {
    if (Divides(divisor, s->scale)) {
      upper.push_back(WithScale(s, Simple(floordiv(s->scale, divisor))));
      continue;
    }
    if (!analyzer_->CanProveGreaterEqual(s->scale, 1)) return std::nullopt;
    lower.push_back(s);
    reach = reach + s->scale * (s->extent - One(t));
  }
  if (upper.empty() || !analyzer_->CanProve(reach < divisor)) return std::nullopt;
  return std::pair(Sum(upper, floordiv(a->base, divisor)), Sum(lower, MakeZero(t)));
}

IterSumExpr IterMapRewriter::Divide(const IterSumExpr& a, const PrimExpr& divisor, bool is_div) {
  DataType t = a.dtype();
  if (!analyzer_->CanProveGreaterEqual(divisor, 1))
    Fail("expected a positive divisor of an iterator");
  if (IsOne(divisor)) return is_div ? a : IterSumExpr({}, MakeZero(t));
  // What the divisor divides needs no fusion.
  bool all = Divides(divisor, a->base);
  for (const IterSplitExpr& s : a->args) all = all && Divides(divisor, s->scale);
  if (all) {
    if (!is_div) return IterSumExpr({}, MakeZero(t));
    return Sum(a->args.Map([&](const IterSplitExpr& s) {
      return WithScale(s, Simple(floordiv(s->scale, divisor)));
    }),
               floordiv(a->base, divisor));
  }
  if (auto apart = DivideApart(a, divisor)) return is_div ? apart->first : apart->second;
  IterSumExpr fused = Fused(a);
  if (fused->args.empty())
    return Sum({}, is_div ? floordiv(fused->base, divisor) : floormod(fused->base, divisor));
  IterSplitExpr s = fused->args[0];
  PrimExpr base = fused->base;
  if (!IsOne(s->scale)) {
    // (k * i + k * b) // (k * d) = (i + b) // d
    if (!Divides(s->scale, divisor) || !Divides(s->scale, base) ||
        !analyzer_->CanProveGreaterEqual(s->scale, 1)) {
      Fail("the divisor of an iterator is no multiple of its scale");
    }
    PrimExpr scale = s->scale;
    IterSumExpr unit({WithScale(s, One(t))}, Simple(floordiv(base, scale)));
    IterSumExpr result = Divide(unit, Simple(floordiv(divisor, scale)), is_div);
    return is_div ? result : Times(result, scale);
  }
  s = Aligned(s, &base, divisor);
  if (Divides(s->extent, divisor) && !Equal(s->extent, divisor)) {
    // The iterator stays within one block.
    if (is_div) return Sum({}, floordiv(base, divisor));
    return Sum({s}, floormod(base, divisor));
  }
  if (Equal(s->extent, divisor)) {
    if (is_div) return Sum({}, floordiv(base, divisor));
    return Sum({s}, floormod(base, divisor));
  }
  if (is_div) {
    IterSplitExpr quotient(s->source, Simple(s->lower_factor * divisor),
                           Simple(floordiv(s->extent, divisor)), One(t));
    return Sum({quotient}, floordiv(base, divisor));
  }
  IterSplitExpr remainder(s->source, s->lower_factor, divisor, One(t));
  return Sum({remainder}, floormod(base, divisor));
}

// ---- predicates -------------------------------------------------------------------------------
void IterMapRewriter::AddLimit(const IterSumExpr& sum, const PrimExpr& low, const PrimExpr& high) {
  DataType t = sum.dtype();
  PrimExpr zero = MakeZero(t);
  IterSumExpr pure(sum->args, zero);
  IterSumExpr fused = Fused(pure);
  if (fused->args.empty()) return;
  IterSplitExpr s = fused->args[0];
  if (!IsOne(s->scale)) Fail("a predicate limits an iterator that moves in steps");
  PrimExpr lo = low.defined() ? Simple(max(low - sum->base, zero)) : zero;
  PrimExpr hi = high.defined() ? Simple(min(high - sum->base, s->extent)) : s->extent;
  if (analyzer_->CanProveEqual(lo, zero) && analyzer_->CanProveEqual(hi, s->extent)) return;
  if (!analyzer_->CanProve(lo < hi)) {
    // An empty space, or one of which that is not known.
    if (!analyzer_->CanProve(lo <= hi)) Fail("the extent that a predicate leaves may be negative");
  }
  PrimExpr extent = Simple(hi - lo);
  bool whole = IsOne(s->lower_factor) && Equal(s->extent, s->source->extent);
  auto* parts = s->source->source.as<IterSumExprObj>();
  // A limit on one variable is a smaller range of it.
  if (whole && !parts) {
    IterMark mark(IsZero(lo) ? s->source->source : Simple(s->source->source - lo), extent);
    for (auto& [var, value] : vars_) {
      if (value->args.size() != 1 || !SameMark(value->args[0]->source, s->source)) continue;
      value = Sum({IterSplitExpr(mark)}, value->base + lo);
    }
    std::replace_if(
        inputs_.begin(), inputs_.end(), [&](const IterMark& m) { return SameMark(m, s->source); },
        mark);
    return;
  }
  if (!IsZero(lo)) Fail("a predicate moves the start of a sum of iterators");
  auto same = std::find_if(limits_.begin(), limits_.end(),
                           [&](const Limit& l) { return SameMark(l.mark, s->source); });
  if (whole && same != limits_.end()) {
    same->mark = IterMark(same->mark->source, extent);
  } else {
    // Of a part, such as i % 8 < 3, the others are as they were.
    auto limited = whole ? parts->args : Array<IterSplitExpr>{s};
    limits_.push_back({pure, IterMark(IterSumExpr(limited, zero), extent)});
  }
}
void IterMapRewriter::AddPredicate(const PrimExpr& predicate) {
  std::vector<PrimExpr> conditions;
  auto collect = [&](auto&& self, const PrimExpr& e) -> void {
    if (auto* n = e.as<AndObj>()) {
      self(self, n->a);
      return self(self, n->b);
    }
    if (auto* n = e.as<CallObj>(); n && n->Is(builtin::likely())) return self(self, n->args[0]);
    if (!IsTrue(e)) conditions.push_back(e);
  };
  collect(collect, predicate);
  // Limits on one variable first: sums are made of what they leave.
  auto variables = [&](const PrimExpr& e) {
    std::unordered_map<const Object*, bool> seen;
    PostOrderVisit(e, [&](const ObjectRef& n) {
      if (auto* v = n.as<VarObj>(); v && vars_.count(v)) seen[v] = true;
    });
    return seen.size();
  };
  std::stable_sort(conditions.begin(), conditions.end(), [&](const PrimExpr& a, const PrimExpr& b) {
    return variables(a) < variables(b);
  });
  for (const PrimExpr& condition : conditions) AddCondition(condition);
}
void IterMapRewriter::AddCondition(const PrimExpr& predicate) {
  // a - b < 0, a - b <= 0
  auto compare = [&](const PrimExpr& a, const PrimExpr& b, int64_t slack) {
    if (!UsesIter(a) && !UsesIter(b)) return;
    IterSumExpr difference = Plus(ToSum(a), ToSum(b), -1);
    DataType t = difference.dtype();
    bool negative =
        !difference->args.empty() &&
        std::all_of(difference->args.begin(), difference->args.end(),
                    [&](const IterSplitExpr& s) { return analyzer_->CanProveLess(s->scale, 0); });
    if (negative)
      AddLimit(Times(difference, MakeConst(t, -1)), MakeConst(t, slack), PrimExpr());
    else
      AddLimit(difference, PrimExpr(), MakeConst(t, 1 - slack));
  };
  if (auto* n = predicate.as<LTObj>()) return compare(n->a, n->b, 1);
  if (auto* n = predicate.as<LEObj>()) return compare(n->a, n->b, 0);
  if (auto* n = predicate.as<GTObj>()) return compare(n->b, n->a, 1);
  if (auto* n = predicate.as<GEObj>()) return compare(n->b, n->a, 0);
  if (auto* n = predicate.as<EQObj>(); n && n->a.dtype().is_index()) {
    compare(n->a, n->b, 0);
    return compare(n->b, n->a, 0);
  }
  Fail("expected a predicate of comparisons, got " + std::string(predicate->GetTypeKey()));
}

// ---- checks -----------------------------------------------------------------------------------
namespace {
struct Use {
  IterMark mark;
  std::vector<IterSplitExpr> splits;
};
void AddUse(std::vector<Use>* uses, const IterSplitExpr& split) {
  for (Use& use : *uses) {
    if (SameMark(use.mark, split->source)) return use.splits.push_back(split);
  }
  uses->push_back({split->source, {split}});
}
}  // namespace

void IterMapRewriter::Check(const Array<IterSumExpr>& indices, IterMapLevel level) {
  if (level == IterMapLevel::kNoCheck) return;
  std::vector<Use> uses;
  for (const IterSumExpr& sum : indices) {
    for (const IterSplitExpr& s : sum->args) AddUse(&uses, s);
  }
  // The iterators a fused one is made of are used as a whole. All uses are known before any is
  // checked: one part of an iterator may be used directly and another one in a fused iterator.
  for (size_t i = 0; i < uses.size(); ++i) {
    if (auto* source = uses[i].mark->source.as<IterSumExprObj>()) {
      for (const IterSplitExpr& s : source->args) AddUse(&uses, s);
    }
  }
  // Pieces of one iterator must not overlap.
  for (const Use& use : uses) {
    DataType t = use.mark->source.dtype();
    PrimExpr next = One(t);
    std::vector<IterSplitExpr> rest = use.splits;
    bool padded = std::any_of(padded_.begin(), padded_.end(),
                              [&](const IterMark& m) { return SameMark(m, use.mark); });
    if (padded && rest.size() > 1) Fail("a split that does not divide its extent leaves gaps");
    while (!rest.empty()) {
      auto it = std::find_if(rest.begin(), rest.end(),
                             [&](const IterSplitExpr& s) { return Equal(s->lower_factor, next); });
      if (it == rest.end()) {
        if (level == IterMapLevel::kBijective) Fail("a part of an iterator is not used");
        // Unused parts between are no harm as long as pieces do not overlap.
        it = rest.begin();
        for (auto other = rest.begin(); other != rest.end(); ++other) {
          if (analyzer_->CanProve((*other)->lower_factor < (*it)->lower_factor)) it = other;
        }
        if (!Divides(next, (*it)->lower_factor)) Fail("two pieces of an iterator overlap");
      }
      next = Simple((*it)->lower_factor * (*it)->extent);
      rest.erase(it);
    }
    if (level == IterMapLevel::kBijective && (padded || !Equal(next, use.mark->extent))) {
      Fail("a part of an iterator is not used");
    }
  }
  if (level == IterMapLevel::kBijective) {
    for (const IterMark& input : inputs_) {
      bool used = std::any_of(uses.begin(), uses.end(),
                              [&](const Use& u) { return SameMark(u.mark, input); });
      if (!used && !IsOne(input->extent)) Fail("an iterator is not used");
    }
  }
  // A limit on iterators holds for the indices only where they use the limited iterator itself.
  for (const Limit& limit : limits_) {
    const IterMark& mark = limit.mark;
    bool used =
        std::any_of(uses.begin(), uses.end(), [&](const Use& u) { return SameMark(u.mark, mark); });
    auto* source = mark->source.as<IterSumExprObj>();
    bool parts_used = std::any_of(uses.begin(), uses.end(), [&](const Use& u) {
      return std::any_of(source->args.begin(), source->args.end(),
                         [&](const IterSplitExpr& s) { return SameMark(s->source, u.mark); });
    });
    if (!used && parts_used) Fail("a predicate limits iterators that the indices use apart");
  }
}

}  // namespace tvm::arith
