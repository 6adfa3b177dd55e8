// SPDX-License-Identifier: Apache-2.0
// Applying and inverting index maps.
#include "tvm/tir/index_map.h"

#include <cstring>
#include <unordered_map>

#include "tvm/expr/index_type.h"
#include "tvm/expr/substitute.h"
#include "tvm/runtime/tensor.h"

namespace tvm::tir {
namespace {

Map<Var, Range> RangesOf(const IndexMap& map, const Array<Range>& ranges) {
  if (ranges.size() != map->initial_indices.size()) {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected " << map->initial_indices.size()
                              << " dimensions, got " << ranges.size();
  }
  Map<Var, Range> result;
  for (size_t i = 0; i < ranges.size(); ++i) result.Set(map->initial_indices[i], ranges[i]);
  return result;
}

Array<Range> FromZero(const Array<PrimExpr>& shape) {
  return shape.Map([](const PrimExpr& e) { return Range::FromMinExtent(MakeZero(e.dtype()), e); });
}

/// Integer expressions over a few variables as a program for a stack, for running it a million
/// times.
class IndexProgram {
 public:
  IndexProgram(const Array<PrimExpr>& exprs, const Array<Var>& vars) {
    for (size_t i = 0; i < vars.size(); ++i) slots_[vars[i].get()] = static_cast<int64_t>(i);
    for (const PrimExpr& e : exprs) Compile(e);
  }
  /// The values of all expressions, in order.
  const std::vector<int64_t>& Run(const std::vector<int64_t>& vars) {
    stack_.clear();
    for (const Step& s : steps_) {
      switch (s.kind) {
        case Kind::kConst:
          stack_.push_back(s.value);
          break;
        case Kind::kVar:
          stack_.push_back(vars[s.value]);
          break;
        case Kind::kBinary: {
          int64_t b = stack_.back();
          stack_.pop_back();
          stack_.back() = s.apply(stack_.back(), b);
          break;
        }
        case Kind::kSelect: {
          int64_t f = stack_.back(), t = stack_[stack_.size() - 2];
          stack_.resize(stack_.size() - 2);
          stack_.back() = stack_.back() ? t : f;
          break;
        }
      }
    }
    return stack_;
  }

 private:
  enum class Kind { kConst, kVar, kBinary, kSelect };
  using Apply = int64_t (*)(int64_t, int64_t);
  struct Step {
    Kind kind;
    int64_t value;
    Apply apply;
  };
  template <class Obj>
  bool Binary(const PrimExpr& e, Apply apply) {
    const auto* n = e.as<Obj>();
    if (!n) return false;
    Compile(n->a);
    Compile(n->b);
    steps_.push_back({Kind::kBinary, 0, apply});
    return true;
  }
  void Compile(const PrimExpr& e) {
    using I = int64_t;
    if (auto value = AsConstInt(e)) return steps_.push_back({Kind::kConst, *value, nullptr});
    if (e.as<VarObj>()) {
      auto it = slots_.find(e.get());
      if (it != slots_.end()) return steps_.push_back({Kind::kVar, it->second, nullptr});
    }
    if (const auto* c = e.as<CastObj>(); c && c->dtype.is_integer()) return Compile(c->value);
    if (const auto* s = e.as<SelectObj>()) {
      Compile(s->condition);
      Compile(s->true_value);
      Compile(s->false_value);
      return steps_.push_back({Kind::kSelect, 0, nullptr});
    }
    bool known =
        Binary<AddObj>(e, [](I a, I b) { return a + b; }) ||
        Binary<SubObj>(e, [](I a, I b) { return a - b; }) ||
        Binary<MulObj>(e, [](I a, I b) { return a * b; }) ||
        Binary<DivObj>(e, [](I a, I b) { return b ? a / b : 0; }) ||
        Binary<ModObj>(e, [](I a, I b) { return b ? a % b : 0; }) ||
        Binary<FloorDivObj>(e, [](I a, I b) { return b ? FloorDiv64(a, b) : 0; }) ||
        Binary<FloorModObj>(e, [](I a, I b) { return b ? a - FloorDiv64(a, b) * b : 0; }) ||
        Binary<MinObj>(e, [](I a, I b) { return std::min(a, b); }) ||
        Binary<MaxObj>(e, [](I a, I b) { return std::max(a, b); }) ||
        Binary<EQObj>(e, [](I a, I b) { return I{a == b}; }) ||
        Binary<NEObj>(e, [](I a, I b) { return I{a != b}; }) ||
        Binary<LTObj>(e, [](I a, I b) { return I{a < b}; }) ||
        Binary<LEObj>(e, [](I a, I b) { return I{a <= b}; }) ||
        Binary<GTObj>(e, [](I a, I b) { return I{a > b}; }) ||
        Binary<GEObj>(e, [](I a, I b) { return I{a >= b}; });
    if (!known) {
      TVM_FFI_THROW(ValueError) << "IndexMap: expected integer arithmetic of the indices, got "
                                << e->GetTypeKey();
    }
  }
  static int64_t FloorDiv64(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
  }
  std::unordered_map<const Object*, int64_t> slots_;
  std::vector<Step> steps_;
  std::vector<int64_t> stack_;
};

}  // namespace

IndexMap::IndexMap(Array<Var> initial_indices, Array<PrimExpr> final_indices,
                   Optional<IndexMap> inverse_index_map) {
  *this = New<IndexMap>([&](IndexMapObj* n) {
    n->initial_indices = std::move(initial_indices);
    n->final_indices = std::move(final_indices);
    if (inverse_index_map.has_value()) n->inverse_index_map = inverse_index_map.value();
  });
}
void IndexMapObj::Init() {
  for (const PrimExpr& e : final_indices) {
    if (!e.dtype().is_integer()) {
      TVM_FFI_THROW(TypeError) << "IndexMap: expected integers as indices, got " << e.dtype();
    }
  }
  if (inverse_index_map.has_value() && !inverse_index_map.value().as<IndexMapObj>()) {
    TVM_FFI_THROW(TypeError) << "IndexMap: expected an IndexMap as inverse, got "
                             << inverse_index_map.value()->GetTypeKey();
  }
}
IndexMap IndexMap::Identity(size_t ndim, DataType dtype) {
  Array<Var> vars;
  for (size_t i = 0; i < ndim; ++i) vars.push_back(Var("i" + std::to_string(i), dtype));
  return IndexMap(vars, Array<PrimExpr>(vars.begin(), vars.end()));
}

Array<PrimExpr> IndexMap::MapIndices(const Array<PrimExpr>& indices,
                                     arith::Analyzer* analyzer) const {
  const auto& vars = get()->initial_indices;
  if (indices.size() != vars.size()) {
    TVM_FFI_THROW(ValueError) << "IndexMap: expected " << vars.size() << " indices, got "
                              << indices.size();
  }
  // The type of the indices wins over the one the map was written in.
  DataType t = vars.empty() ? DataType::Int(32) : indices[0].dtype();
  Map<Var, PrimExpr> map;
  for (size_t i = 0; i < vars.size(); ++i) {
    if (indices[i].dtype().bits() > t.bits()) t = indices[i].dtype();
    map.Set(vars[i], cast(vars[i].dtype(), indices[i]));
  }
  return get()->final_indices.Map([&](const PrimExpr& e) {
    PrimExpr mapped = Substitute(e, map);
    return analyzer->Simplify(vars.empty() ? mapped : ToIndexType(mapped, t));
  });
}

Array<Range> IndexMap::MapRanges(const Array<Range>& ranges, arith::Analyzer* analyzer) const {
  Map<Var, Range> known = RangesOf(*this, ranges);
  arith::DomMap sets = arith::AsIntSets(known);
  // Digits of one iterator (i // 4, i % 4) cover their box exactly; the bounds of each index alone
  // are enough to find it.
  arith::Analyzer local;
  for (const auto& [var, range] : known) local.Bind(var, range);
  return get()->final_indices.Map([&](const PrimExpr& e) {
    auto has_no_values = [&](const VarObj* var) {
      auto range = known.Get(ffi::GetRef<Var>(var));
      return range && AsConstInt(range.value()->extent) == 0;
    };
    if (UsesVar(e, has_no_values))
      return Range::FromMinExtent(MakeConst(e.dtype(), 0), MakeConst(e.dtype(), 0));
    arith::IntSet set = arith::EvalSet(local.Simplify(e), sets);
    if (!set.HasLowerBound() || !set.HasUpperBound()) {
      TVM_FFI_THROW(ValueError) << "IndexMap: expected indices with bounds, got one without";
    }
    PrimExpr low = analyzer->Simplify(set.min());
    return Range::FromMinExtent(low,
                                analyzer->Simplify(set.max() - low + MakeConst(low.dtype(), 1)));
  });
}
Array<PrimExpr> IndexMap::MapShape(const Array<PrimExpr>& shape, arith::Analyzer* analyzer) const {
  Array<Range> ranges = MapRanges(FromZero(shape), analyzer);
  for (const Range& range : ranges) {
    if (auto low = AsConstInt(range->min); low && *low < 0) {
      TVM_FFI_THROW(ValueError) << "IndexMap: expected indices from 0, got " << *low;
    }
  }
  // The other buffer begins at 0, where ever the first index is.
  return ranges.Map([&](const Range& r) { return analyzer->Simplify(r->min + r->extent); });
}

ffi::Tensor IndexMap::MapTensor(const ffi::Tensor& source) const {
  if (source.device().device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << "map_tensor: expected a tensor in host memory";
  }
  if (!source.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << "map_tensor: expected a contiguous tensor";
  }
  DataType dtype = source.dtype();
  int64_t bits = int64_t{dtype.bits()} * dtype.lanes();
  if (bits % 8 != 0) {
    TVM_FFI_THROW(TypeError) << "map_tensor: expected elements of whole bytes, got " << dtype;
  }
  size_t bytes = static_cast<size_t>(bits / 8);
  Array<PrimExpr> shape;
  std::vector<int64_t> extents, index;
  const auto& vars = get()->initial_indices;
  for (int64_t extent : source.shape()) {
    DataType t = shape.size() < vars.size() ? vars[shape.size()].dtype() : DataType::Int(64);
    shape.push_back(MakeConst(t, extent));
    extents.push_back(extent);
  }
  arith::Analyzer analyzer;
  std::vector<int64_t> target;
  for (const PrimExpr& e : MapShape(shape, &analyzer)) target.push_back(*AsConstInt(e));
  ffi::Tensor result =
      runtime::Empty(ffi::ShapeView(target.data(), target.size()), dtype, DLDevice{kDLCPU, 0});
  std::memset(result.data_ptr(), 0, result.numel() * bytes);

  IndexProgram program(get()->final_indices, vars);
  const char* from = static_cast<const char*>(source.data_ptr());
  char* to = static_cast<char*>(result.data_ptr());
  index.assign(extents.size(), 0);
  for (int64_t n = source.numel(), i = 0; i < n; ++i) {
    int64_t flat = 0;
    const std::vector<int64_t>& at = program.Run(index);
    for (size_t d = 0; d < target.size(); ++d) flat = flat * target[d] + at[d];
    std::memcpy(to + flat * bytes, from + i * bytes, bytes);
    for (size_t d = extents.size(); d > 0 && ++index[d - 1] == extents[d - 1]; --d)
      index[d - 1] = 0;
  }
  return result;
}

bool IndexMap::IsEquivalentTo(const IndexMap& other) const {
  const auto& vars = get()->initial_indices;
  if (vars.size() != other->initial_indices.size() ||
      get()->final_indices.size() != other->final_indices.size()) {
    return false;
  }
  // Both in 64 bits: the types of the indices say nothing about where they lead.
  DataType wide = DataType::Int(64);
  arith::Analyzer analyzer;
  Map<Var, PrimExpr> to_common;
  for (size_t i = 0; i < vars.size(); ++i) {
    Var common(vars[i]->name_hint, wide);
    for (const Var& var : {vars[i], other->initial_indices[i]})
      to_common.Set(var, cast(var.dtype(), common));
  }
  auto normal = [&](const PrimExpr& e) { return ToIndexType(Substitute(e, to_common), wide); };
  for (size_t i = 0; i < get()->final_indices.size(); ++i) {
    if (!analyzer.CanProveEqual(normal(get()->final_indices[i]), normal(other->final_indices[i])))
      return false;
  }
  return true;
}

namespace {
/// Extents and ranges in one list, as Python gives them.
Array<Range> AsRanges(const Array<Any>& shape) {
  Array<Range> ranges;
  for (const Any& e : shape) {
    auto range = e.try_cast<Range>();
    ranges.push_back(range ? *range : FromZero({e.cast<PrimExpr>()})[0]);
  }
  return ranges;
}

TVM_REGISTER() {
  RegisterNode<IndexMapObj>("lambda initial_indices: final_indices");
  Def(
      "tir.IndexMap.map_indices",
      [](IndexMap self, Array<PrimExpr> indices) {
        arith::Analyzer analyzer;
        return self.MapIndices(indices, &analyzer);
      },
      "Where indices go.", Arg("self"), Arg("indices"));
  Def(
      "tir.IndexMap.map_shape",
      [](IndexMap self, Array<PrimExpr> shape) {
        arith::Analyzer analyzer;
        return self.MapShape(shape, &analyzer);
      },
      "The shape in the other layout.", Arg("self"), Arg("shape"));
  Def(
      "tir.IndexMap.map_ranges",
      [](IndexMap self, Array<Range> ranges) {
        arith::Analyzer analyzer;
        return self.MapRanges(ranges, &analyzer);
      },
      "The box that covers where a box goes.", Arg("self"), Arg("ranges"));
  Def(
      "tir.IndexMap.map_tensor",
      [](IndexMap self, ffi::Tensor arr_src) { return self.MapTensor(arr_src); },
      "A tensor in host memory in the other layout.", Arg("self"), Arg("arr_src"));
  Def(
      "tir.IndexMap.is_equivalent_to",
      [](IndexMap self, IndexMap other_map) { return self.IsEquivalentTo(other_map); },
      "Whether both map all indices alike.", Arg("self"), Arg("other_map"));
  Def(
      "tir.IndexMap.inverse",
      [](IndexMap self, Array<Any> shape) {
        arith::Analyzer analyzer;
        return self.Inverse(AsRanges(shape), &analyzer);
      },
      "The map back, when this one is one-to-one from the shape onto a box.", Arg("self"),
      Arg("shape"));
  Def(
      "tir.IndexMap.non_surjective_inverse",
      [](IndexMap self, Array<Any> shape) {
        arith::Analyzer analyzer;
        auto [inverse, padding] = self.NonSurjectiveInverse(AsRanges(shape), &analyzer);
        return Array<ObjectRef>{inverse, padding};
      },
      "The map back, and the condition for indices where nothing maps to.", Arg("self"),
      Arg("shape"));
}
}  // namespace
}  // namespace tvm::tir
