// SPDX-License-Identifier: Apache-2.0
// Inverting index maps that take iterators apart into digits and put digits together.
//
// Every final index is read as a sum of digits, scale * (iterator // lower % extent). The digits of
// an index come back from its value by division, an iterator from all its digits by a sum.
#include <algorithm>
#include <unordered_map>

#include "tvm/expr/substitute.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {
namespace {

/// scale * (iterator // lower % extent), extent being what the rest of the iterator needs when this
/// is its topmost digit.
struct Digit {
  size_t iterator;
  int64_t lower, scale;
  PrimExpr extent;
};
struct DigitSum {
  std::vector<Digit> digits;
  int64_t base = 0;
};
/// An index of the map, or a sum of digits that is itself taken apart (a reshape).
struct Iterator {
  Var var;
  PrimExpr min, extent;
  DigitSum fused;
  struct Known {
    int64_t lower;
    PrimExpr extent, value;
  };
  std::vector<Known> known;  // digits recovered from the final indices
};

class Inverter {
 public:
  Inverter(const IndexMap& map, const Array<Range>& ranges, arith::Analyzer* analyzer)
      : map_(map), analyzer_(analyzer) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      const Var& var = map->initial_indices[i];
      slots_[var.get()] = iterators_.size();
      iterators_.push_back({var, ranges[i]->min, ranges[i]->extent, {}, {}});
      local_.Bind(var, ranges[i]);
    }
  }

  /// The inverse; `padding` is when an index of the result has no origin.
  IndexMap Run(PrimExpr* padding) {
    Array<Var> vars;
    std::vector<DigitSum> sums;
    for (size_t i = 0; i < map_->final_indices.size(); ++i) {
      PrimExpr e = local_.Simplify(map_->final_indices[i]);
      sums.push_back(Parse(e));
      vars.push_back(Var(NameOf(e, i), e.dtype()));
    }
    *padding = const_false();
    for (size_t i = 0; i < sums.size(); ++i) Recover(sums[i], vars[i], padding);
    size_t count = map_->initial_indices.size();
    for (size_t i = iterators_.size(); i > count; --i) {
      PrimExpr value = Combine(iterators_[i - 1]);
      Recover(iterators_[i - 1].fused, value, padding);
    }
    Array<PrimExpr> result;
    for (size_t i = 0; i < count; ++i) {
      const Iterator& it = iterators_[i];
      PrimExpr value = Combine(it);
      if (!Covers(it)) *padding = logical_or(*padding, greater_equal(value, it.extent));
      result.push_back(Simplify(value + it.min));
    }
    *padding = Simplify(*padding);
    return IndexMap(vars, result);
  }

 private:
  [[noreturn]] void Fail(const std::string& why) const {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected a map that can be inverted: sums of quotients "
                              << "and remainders of the indices, one-to-one; got one where " << why;
    TVM_FFI_UNREACHABLE();
  }
  PrimExpr Simplify(const PrimExpr& e) { return analyzer_->Simplify(e); }
  PrimExpr Const(int64_t value, const PrimExpr& like) { return MakeConst(like.dtype(), value); }
  /// A name for a dimension of the other layout: that of the variable it is, else "axis0".
  static String NameOf(const PrimExpr& e, size_t i) {
    if (const auto* var = e.as<VarObj>()) return var->name_hint;
    return "axis" + std::to_string(i);
  }

  // ---- reading
  DigitSum Parse(const PrimExpr& e) {
    if (auto value = AsConstInt(e)) return {{}, *value};
    if (e.as<VarObj>()) {
      auto it = slots_.find(e.get());
      if (it == slots_.end()) Fail("an index depends on a variable that is none of the map");
      return Whole(it->second);
    }
    if (const auto* n = e.as<CastObj>()) return Parse(n->value);
    if (const auto* n = e.as<AddObj>()) return Sum(Parse(n->a), Parse(n->b));
    if (const auto* n = e.as<SubObj>()) {
      auto value = AsConstInt(n->b);
      if (value) return Sum(Parse(n->a), {{}, -*value});
    }
    if (const auto* n = e.as<MulObj>()) {
      if (auto value = AsConstInt(n->b); value && *value > 0) return Scaled(Parse(n->a), *value);
    }
    if (const auto* n = e.as<FloorDivObj>()) {
      if (auto c = AsConstInt(n->b); c && *c > 0) return Split(Parse(n->a), *c).first;
    }
    if (const auto* n = e.as<FloorModObj>()) {
      if (auto c = AsConstInt(n->b); c && *c > 0) return Split(Parse(n->a), *c).second;
    }
    Fail("an index is no such sum");
  }
  DigitSum Whole(size_t i) {
    auto low = AsConstInt(iterators_[i].min);
    if (!low) Fail("an index begins at a variable");
    return {{{i, 1, 1, iterators_[i].extent}}, *low};
  }
  static DigitSum Sum(DigitSum a, const DigitSum& b) {
    a.digits.insert(a.digits.end(), b.digits.begin(), b.digits.end());
    a.base += b.base;
    return a;
  }
  static DigitSum Scaled(DigitSum s, int64_t factor) {
    for (Digit& d : s.digits) d.scale *= factor;
    s.base *= factor;
    return s;
  }
  static void Sort(DigitSum* s) {
    std::sort(s->digits.begin(), s->digits.end(),
              [](const Digit& a, const Digit& b) { return a.scale < b.scale; });
  }
  /// {s // c, s % c}
  std::pair<DigitSum, DigitSum> Split(DigitSum s, int64_t c) {
    if (s.base % c != 0) s = Fused(std::move(s));
    Sort(&s);
    DigitSum high{{}, s.base / c}, low;
    for (const Digit& d : s.digits) {
      auto extent = AsConstInt(d.extent);
      if (d.scale % c == 0) {
        high.digits.push_back({d.iterator, d.lower, d.scale / c, d.extent});
      } else if (extent && d.scale * *extent <= c) {
        low.digits.push_back(d);
      } else {
        // The cut goes through this digit. It is a cut of the digit when nothing is carried into it
        // and both parts are digits of the iterator; otherwise of the sum as a whole.
        int64_t inside = c / d.scale;
        bool whole_parts = c % d.scale == 0 && (IsTop(d) || (extent && *extent % inside == 0));
        if (!whole_parts || !IsBelow(low, d.scale)) return Split(Fused(std::move(s)), c);
        PrimExpr upper = Simplify(ceildiv(d.extent, Const(inside, d.extent)));
        low.digits.push_back({d.iterator, d.lower, d.scale, Const(inside, d.extent)});
        high.digits.push_back({d.iterator, d.lower * inside, 1, upper});
      }
    }
    if (!IsBelow(low, c)) return Split(Fused(std::move(s)), c);
    return {high, low};
  }
  bool IsTop(const Digit& d) {
    const Iterator& it = iterators_[d.iterator];
    return analyzer_->CanProveGreaterEqual(
        Const(d.lower, d.extent) * d.extent - cast(d.extent.dtype(), it.extent), 0);
  }
  /// Whether the sum of the digits is below `end`.
  static bool IsBelow(const DigitSum& s, int64_t end) {
    int64_t largest = 0;
    for (const Digit& d : s.digits) largest += d.scale * (AsConstInt(d.extent).value_or(end) - 1);
    return largest < end;
  }
  /// The sum as an iterator of its own.
  DigitSum Fused(DigitSum s) {
    Sort(&s);
    if (s.digits.empty()) Fail("an index is constant");
    DigitSum lower{{s.digits.begin(), s.digits.end() - 1}, 0};
    const Digit& top = s.digits.back();
    if (s.digits[0].scale != 1 || s.base < 0) Fail("a reshape has gaps");
    if (!IsBelow(lower, top.scale)) Fail("digits overlap");
    PrimExpr extent = top.extent * Const(top.scale, top.extent);
    extent = Simplify(extent + Const(s.base, extent));
    iterators_.push_back({Var(), MakeZero(extent.dtype()), extent, s, {}});
    return {{{iterators_.size() - 1, 1, 1, extent}}, 0};
  }

  // ---- going back
  /// What the digits of `s` are, given the value of the sum.
  void Recover(DigitSum s, const PrimExpr& value, PrimExpr* padding) {
    Sort(&s);
    PrimExpr rest = s.base == 0 ? value : value - Const(s.base, value);
    int64_t filled = 1;
    for (size_t i = 0; i < s.digits.size(); ++i) {
      const Digit& d = s.digits[i];
      bool is_top = i + 1 == s.digits.size();
      if (d.scale < filled || d.scale % filled != 0) Fail("digits overlap");
      if (d.scale != filled) {  // a gap: only multiples have an origin
        PrimExpr gap = floordiv(floormod(rest, Const(d.scale, rest)), Const(filled, rest));
        *padding = logical_or(*padding, not_equal(gap, MakeZero(gap.dtype())));
      }
      PrimExpr digit = floordiv(rest, Const(d.scale, rest));
      auto extent = AsConstInt(d.extent);
      if (!is_top) {
        if (!extent) Fail("the number of a digit's values is not known");
        // Up to the next digit, so that a gap above this one is seen.
        digit = floormod(digit, Const(s.digits[i + 1].scale / d.scale, rest));
        filled = d.scale * *extent;
      }
      iterators_[d.iterator].known.push_back({d.lower, d.extent, digit});
    }
    if (s.digits.empty()) {
      *padding = logical_or(*padding, not_equal(rest, MakeZero(rest.dtype())));
    }
  }
  /// The iterator from its digits.
  PrimExpr Combine(const Iterator& it) {
    std::vector<Iterator::Known> known = it.known;
    std::sort(known.begin(), known.end(),
              [](const auto& a, const auto& b) { return a.lower < b.lower; });
    int64_t lower = 1;
    PrimExpr value = MakeZero(it.extent.dtype());
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].lower != lower) Fail("a digit is missing or occurs twice");
      value = value + cast(value.dtype(), known[i].value) * Const(lower, value);
      auto extent = AsConstInt(known[i].extent);
      if (i + 1 < known.size() && !extent) Fail("the number of a digit's values is not known");
      if (extent) lower *= *extent;
    }
    bool complete = known.empty() ? IsOne(it.extent) : true;
    if (!complete) Fail("an index is lost");
    if (!known.empty()) {
      const auto& top = known.back();
      PrimExpr reach = Const(top.lower, it.extent) * cast(it.extent.dtype(), top.extent);
      if (!analyzer_->CanProveGreaterEqual(reach - it.extent, 0)) Fail("the upper digits are lost");
    }
    return Simplify(value);
  }
  /// Whether all combinations of its digits are values of the iterator.
  bool Covers(const Iterator& it) {
    if (it.known.empty()) return true;
    const auto& top =
        *std::max_element(it.known.begin(), it.known.end(),
                          [](const auto& a, const auto& b) { return a.lower < b.lower; });
    PrimExpr reach = Const(top.lower, it.extent) * cast(it.extent.dtype(), top.extent);
    if (!analyzer_->CanProveEqual(reach, it.extent)) return false;
    // An iterator that comes out of a padded reshape has too large values there.
    return std::none_of(iterators_.begin() + map_->initial_indices.size(), iterators_.end(),
                        [&](const Iterator& fused) { return !Covers(fused); });
  }

  const IndexMap& map_;
  arith::Analyzer* analyzer_;
  arith::Analyzer local_;
  std::unordered_map<const Object*, size_t> slots_;
  std::vector<Iterator> iterators_;
};

}  // namespace

std::pair<IndexMap, PrimExpr> IndexMap::NonSurjectiveInverse(const Array<Range>& ranges,
                                                             arith::Analyzer* analyzer) const {
  if (ranges.size() != get()->initial_indices.size()) {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected " << get()->initial_indices.size()
                              << " dimensions, got " << ranges.size();
  }
  if (auto given = get()->inverse_index_map) {
    return {Any(given.value()).cast<IndexMap>(), const_false()};
  }
  PrimExpr padding;
  IndexMap inverse = Inverter(*this, ranges, analyzer).Run(&padding);
  // Within the box of the other layout the condition is often simpler.
  arith::Analyzer local;
  Array<Range> box = MapRanges(ranges, analyzer);
  for (size_t i = 0; i < box.size(); ++i) local.Bind(inverse->initial_indices[i], box[i]);
  Array<PrimExpr> indices =
      inverse->final_indices.Map([&](const PrimExpr& e) { return local.Simplify(e); });
  return {IndexMap(inverse->initial_indices, indices), local.Simplify(padding)};
}

IndexMap IndexMap::Inverse(const Array<Range>& ranges, arith::Analyzer* analyzer) const {
  auto [inverse, padding] = NonSurjectiveInverse(ranges, analyzer);
  if (!IsFalse(padding) && !analyzer->CanProve(logical_not(padding))) {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected a map onto all indices of its result, got one "
                              << "with gaps; non_surjective_inverse also gives where they are";
  }
  return inverse;
}

}  // namespace tvm::tir
