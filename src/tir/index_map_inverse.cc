// SPDX-License-Identifier: Apache-2.0
// Inverting index maps.
#include "tvm/arith/iter_affine_map.h"
#include "tvm/expr/substitute.h"
#include "tvm/tir/index_map.h"

namespace tvm::tir {
namespace {

/// A name for a dimension of the other layout: that of the variable it is, else "axis0".
String NameOf(const PrimExpr& e, size_t i) {
  const auto* var = e.as<VarObj>();
  return var ? var->name_hint : String("axis" + std::to_string(i));
}

[[noreturn]] void ThrowNotInvertible(bool onto, const String& why) {
  TVM_FFI_THROW(ValueError)
      << "IndexMap: expected a map that can be inverted: sums of quotients and remainders of the "
      << "indices, one-to-one"
      << (onto ? " and onto (non_surjective_inverse takes one with gaps)" : "")
      << "; got one where " << why;
  TVM_FFI_UNREACHABLE();
}

/// The inverse, for indices of the result that have an origin.
IndexMap InverseWhereDefined(const IndexMap& map, const Array<Range>& ranges,
                             arith::IterMapLevel level, arith::Analyzer* analyzer) {
  const auto& initial = map->initial_indices;
  if (ranges.size() != initial.size()) {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected " << initial.size() << " dimensions, got "
                              << ranges.size();
  }
  Map<Var, Range> iters;
  for (size_t i = 0; i < initial.size(); ++i) iters.Set(initial[i], ranges[i]);
  arith::IterMapResult found = arith::DetectIterMap(map->final_indices, iters, const_true(), level,
                                                    analyzer, /*simplify_trivial_iterators=*/false);
  if (found->indices.empty() && !map->final_indices.empty()) {
    ThrowNotInvertible(level == arith::IterMapLevel::kBijective,
                       found->errors.empty() ? String("it is not so") : found->errors[0]);
  }
  Array<Var> vars;
  for (size_t i = 0; i < map->final_indices.size(); ++i) {
    vars.push_back(Var(NameOf(map->final_indices[i], i), map->final_indices[i].dtype()));
  }
  Map<Var, PrimExpr> values =
      arith::InverseAffineIterMap(found->indices, Array<PrimExpr>(vars.begin(), vars.end()));
  Array<PrimExpr> result;
  for (size_t i = 0; i < initial.size(); ++i) {
    auto it = values.find(initial[i]);
    if (it == values.end() && !IsOne(ranges[i]->extent)) {
      ThrowNotInvertible(false, "the index " + std::string(initial[i]->name_hint) + " is lost");
    }
    result.push_back(it == values.end() ? ranges[i]->min : analyzer->Simplify((*it).second));
  }
  return IndexMap(vars, result);
}

}  // namespace

std::pair<IndexMap, PrimExpr> IndexMap::NonSurjectiveInverse(const Array<Range>& ranges,
                                                             arith::Analyzer* analyzer) const {
  if (auto given = get()->inverse_index_map) {
    return {Any(given.value()).cast<IndexMap>(), const_false()};
  }
  IndexMap inverse = InverseWhereDefined(*this, ranges, arith::IterMapLevel::kNoCheck, analyzer);
  // An index has no origin when going back leads out of the ranges, or elsewhere when going forth
  // again. Within the box of the result most of this is known.
  arith::Analyzer local;
  Array<Range> box = MapRanges(ranges, analyzer);
  const auto& vars = inverse->initial_indices;
  for (size_t i = 0; i < box.size(); ++i) local.Bind(vars[i], box[i]);
  Array<PrimExpr> back =
      inverse->final_indices.Map([&](const PrimExpr& e) { return local.Simplify(e); });
  PrimExpr padding = const_false();
  for (size_t i = 0; i < back.size(); ++i) {
    padding = padding || back[i] < ranges[i]->min || back[i] >= ranges[i]->min + ranges[i]->extent;
  }
  Array<PrimExpr> forth = MapIndices(back, &local);
  for (size_t i = 0; i < forth.size(); ++i) padding = padding || not_equal(forth[i], vars[i]);
  return {IndexMap(vars, back), local.Simplify(padding)};
}

IndexMap IndexMap::Inverse(const Array<Range>& ranges, arith::Analyzer* analyzer) const {
  if (auto given = get()->inverse_index_map) return Any(given.value()).cast<IndexMap>();
  IndexMap inverse = InverseWhereDefined(*this, ranges, arith::IterMapLevel::kBijective, analyzer);
  // As many indices as there are places for them: multiples such as i * 2 leave gaps.
  PrimExpr size = IntImm::Int64(1), box = IntImm::Int64(1);
  for (const Range& r : ranges) size = size * cast(size.dtype(), r->extent);
  for (const Range& r : MapRanges(ranges, analyzer)) box = box * cast(box.dtype(), r->extent);
  if (!analyzer->CanProveEqual(size, box)) ThrowNotInvertible(true, "it leaves gaps");
  return inverse;
}

}  // namespace tvm::tir
