// SPDX-License-Identifier: Apache-2.0
// Which functions are attention, and in which tiles a kernel computes it.
//
// The stages are followed from the result back: those that compute element by element are put into
// one another, until the result is an expression of iterators, inputs and the four reductions (two
// products, the largest score, the sum of weights). Numbers between the stages are float32,
// whatever the stages rounded them to.
#include "schedule/rules/gpu_attention.h"

#include <algorithm>
#include <limits>

#include "schedule/rewrite.h"
#include "schedule/rules/gpu.h"
#include "schedule/rules/gpu_product_kernel.h"
#include "tir/analysis/reduction.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir::gpu {
namespace {
/// A block that gives every element of a buffer its value.
struct Stage {
  Array<IterVar> iters;
  Array<PrimExpr> at;  ///< Indices of the element: iterators, or 0.
  PrimExpr value;      ///< Undefined for a reduction.
  Reduction reduction;
  bool IsReduction() const { return !value.defined(); }
  template <class Combiner>
  bool Reduces() const {
    return IsReduction() && reduction.reducer->result[0].as<Combiner>();
  }
};
bool IsNumber(const PrimExpr& e, double value) {
  auto* number = e.as<FloatImmObj>();
  return number && number->value == value;
}
DataType Widened(DataType t) { return t.is_float() && t.bits() < 32 ? DataType::Float(32) : t; }

class AttentionFinder {
 public:
  AttentionFinder(const Schedule& sch, const BlockRV& root) : sch_(sch) {
    for (const BlockRV& block : sch.GetChildBlocks(root)) {
      last_ = LookAt(sch, block);
      if (auto stage = StageOf(last_)) stages_[last_.Store().buffer.get()] = *stage;
    }
  }
  std::optional<Attention> Find() {
    auto last = stages_.find(last_.Store().buffer.get());
    if (stages_.size() < 4 || last == stages_.end() || last->second.IsReduction())
      return std::nullopt;
    const Stage& stage = last->second;
    for (const IterVar& iter : stage.iters) Learn(iter);
    PrimExpr value = Expanded(stage.value);
    auto weighted = OnlyLoad(value, [](const Stage&, const BufferLoadObj*) { return true; });
    if (!weighted || !MatchWeighted(*weighted)) return std::nullopt;
    value = Replaced(value, *weighted, a_.result);
    const Buffer& out = last_.Store().buffer;
    a_.store = BufferStore(out, cast(out->dtype, value), stage.at);
    if (!DivideSides(stage.iters)) return std::nullopt;
    return a_;
  }
  /// Whether the kernel reads what a block computes.
  bool Reads(const Buffer& buffer) const {
    auto reads = [&](const ObjectRef& node) {
      bool found = false;
      PostOrderVisit(node, [&](const ObjectRef& n) {
        auto* load = n.as<BufferLoadObj>();
        found |= load && load->buffer.same_as(buffer);
      });
      return found;
    };
    return reads(a_.exponent) || reads(a_.store->value) ||
           std::any_of(a_.allowed.begin(), a_.allowed.end(), reads);
  }

 private:
  // ---- stages
  std::optional<Stage> StageOf(const BlockLook& look) const {
    const Block& block = look.block;
    if (!IsTrue(sch_.state().realize({sch_.IdOf(look.rv)})->predicate) ||
        !RunsThroughItsDomain(look) || block->writes.size() != 1)
      return std::nullopt;
    Stage stage;
    stage.iters = block->iter_vars;
    if (block->init) {
      if (!WhyNoReducer(block.get(), &stage.reduction).empty() ||
          stage.reduction.buffers.size() != 1)
        return std::nullopt;
      stage.at = stage.reduction.indices;
    } else {
      auto* store = block->body.as<BufferStoreObj>();
      if (!store || store->predicate || !store->value.dtype().is_scalar()) return std::nullopt;
      stage.at = store->indices;
      stage.value = store->value;
    }
    return WritesAll(block.get(), look.Store().buffer, stage.at) ? std::optional(stage)
                                                                 : std::nullopt;
  }
  const Stage* Find(const BufferLoadObj* load) const {
    auto it = stages_.find(load->buffer.get());
    return it == stages_.end() ? nullptr : &it->second;
  }
  /// Iterators of a stage for the element that is loaded.
  static Map<Var, PrimExpr> IteratorsAt(const Stage& stage, const Array<PrimExpr>& indices) {
    Map<Var, PrimExpr> values;
    for (const IterVar& iter : stage.iters) {
      if (iter->iter_type == IterVarType::kDataPar)
        values.Set(iter->var, MakeZero(iter->var.dtype()));
    }
    for (size_t i = 0; i < indices.size(); ++i) {
      if (auto var = stage.at[i].as<Var>()) values.Set(*var, cast(var->dtype(), indices[i]));
    }
    return values;
  }
  void Learn(const IterVar& iter) { analyzer_.Bind(iter->var, iter->dom.value()); }

  // ---- expressions
  /// With stages put into one another, and numbers as float32.
  struct Expander : Mutator<Expander, BufferLoadObj, CastObj, FloatImmObj, CallObj> {
    AttentionFinder* finder;
    explicit Expander(AttentionFinder* finder) : finder(finder) {}
    ObjectRef Rewrite(const BufferLoadObj* op) {
      const Stage* stage = finder->Find(op);
      if (stage && !stage->IsReduction())
        return Mutate(Substitute(stage->value, IteratorsAt(*stage, op->indices)));
      Array<PrimExpr> at =
          op->indices.Map([&](const PrimExpr& e) { return finder->analyzer_.Simplify(Mutate(e)); });
      return cast(Widened(op->dtype), BufferLoad(op->buffer, at, op->predicate));
    }
    ObjectRef Rewrite(const CastObj* op) { return cast(Widened(op->dtype), Mutate(op->value)); }
    ObjectRef Rewrite(const FloatImmObj* op) { return FloatImm(Widened(op->dtype), op->value); }
    ObjectRef Rewrite(const CallObj* op) {
      Array<PrimExpr> args = op->args.Map([&](const PrimExpr& e) { return Mutate(e); });
      return Call(Widened(op->dtype), op->op, args);
    }
  };
  PrimExpr Expanded(const PrimExpr& e) { return Expander(this).Mutate(e); }
  /// The expression with a value in the place of a load.
  static PrimExpr Replaced(const PrimExpr& e, const BufferLoad& load, const Var& with) {
    struct Replacer : Mutator<Replacer, BufferLoadObj> {
      const BufferLoad& load;
      const Var& with;
      Replacer(const BufferLoad& load, const Var& with) : load(load), with(with) {}
      ObjectRef Rewrite(const BufferLoadObj* op) {
        return op->buffer.same_as(load->buffer) ? ObjectRef(cast(load.dtype(), with))
                                                : MapChildren(op, *this);
      }
    };
    return Replacer(load, with).Mutate(e);
  }
  /// The load of what a reduction gives, of those for which `is_it` holds, where there is but one.
  template <class F>
  std::optional<BufferLoad> OnlyLoad(const PrimExpr& e, F&& is_it) const {
    std::optional<BufferLoad> found;
    bool is_only = true;
    PostOrderVisit(e, [&](const ObjectRef& node) {
      auto* load = node.as<BufferLoadObj>();
      const Stage* stage = load ? Find(load) : nullptr;
      if (!stage || !stage->IsReduction() || !is_it(*stage, load)) return;
      is_only &= !found || ExprDeepEqual(*found, ffi::GetRef<BufferLoad>(load));
      found = ffi::GetRef<BufferLoad>(load);
    });
    return is_only ? found : std::nullopt;
  }
  /// What a reduction goes over, for the element that is loaded, in terms of one iterator: that of
  /// `side`, which it gets where there is none.
  template <class Combiner>
  std::optional<PrimExpr> SourceOf(const PrimExpr& e, Side* side) {
    PrimExpr plain = WithoutCast(e);
    auto* load = plain.as<BufferLoadObj>();
    const Stage* stage = load ? Find(load) : nullptr;
    if (!stage || !stage->Reduces<Combiner>()) return std::nullopt;
    Map<Var, PrimExpr> values = IteratorsAt(*stage, load->indices);
    bool has_one = false;
    for (const IterVar& iter : stage->iters) {
      if (iter->iter_type != IterVarType::kCommReduce) continue;
      if (side->iters.empty()) {
        side->iters.push_back(iter);
        Learn(iter);
      }
      const IterVar& known = side->iters[0];
      if (has_one || !IsZero(iter->dom.value()->min) ||
          !analyzer_.CanProveEqual(iter->dom.value()->extent, known->dom.value()->extent))
        return std::nullopt;
      has_one = true;
      values.Set(iter->var, cast(iter->var.dtype(), known->var));
    }
    if (!has_one) return std::nullopt;
    return Expanded(Substitute(stage->reduction.sources[0], values));
  }

  // ---- attention
  /// weights · value
  bool MatchWeighted(const BufferLoad& load) {
    auto source = SourceOf<AddObj>(load, &a_.keys);
    auto* times = source ? source->as<MulObj>() : nullptr;
    if (!times) return false;
    if (MatchFactor(times->b, &a_.value)) return MatchWeights(times->a);
    return MatchFactor(times->a, &a_.value) && MatchWeights(times->b);
  }
  /// weight / sum of weights, maybe 0 where that is NaN
  bool MatchWeights(const PrimExpr& e) {
    if (auto* choice = e.as<SelectObj>()) {
      auto* test = choice->condition.as<CallObj>();
      a_.zero_nan = test && test->Is(builtin::isnan()) && IsNumber(choice->true_value, 0) &&
                    ExprDeepEqual(test->args[0], choice->false_value);
      return a_.zero_nan && MatchWeights(choice->false_value);
    }
    if (auto* over = e.as<DivObj>()) return MatchNormalized(over->a, over->b);
    auto* times = e.as<MulObj>();
    if (!times) return false;
    auto* by = times->b.as<DivObj>();
    return by && IsNumber(by->a, 1) && MatchNormalized(times->a, by->b);
  }
  /// The sum of weights behind one that is 1 where it would be 0.
  static PrimExpr WithZero(const PrimExpr& total) {
    auto* choice = total.as<SelectObj>();
    auto* is_zero = choice ? choice->condition.as<EQObj>() : nullptr;
    bool is_it = is_zero && IsNumber(is_zero->b, 0) && IsNumber(choice->true_value, 1) &&
                 ExprDeepEqual(is_zero->a, choice->false_value);
    return is_it ? PrimExpr(choice->false_value) : total;
  }
  /// The weight is exp(exponent - the largest one) where it is allowed.
  bool MatchNormalized(PrimExpr weight, const PrimExpr& total) {
    auto summed = SourceOf<AddObj>(WithZero(total), &a_.keys);
    if (!summed || !ExprDeepEqual(*summed, weight)) return false;
    PrimExpr condition;
    if (auto* choice = weight.as<SelectObj>()) {
      if (!IsNumber(choice->false_value, 0)) return false;
      condition = choice->condition;
      weight = PrimExpr(choice->true_value);
    }
    auto* exp = weight.as<CallObj>();
    auto* less = exp && exp->Is(builtin::exp()) ? exp->args[0].as<SubObj>() : nullptr;
    if (!less) return false;
    PrimExpr exponent = less->a;
    // Where all scores are -inf they are shifted by the lowest number.
    auto* shift = less->b.as<MaxObj>();
    bool has_bound = shift && IsNumber(shift->b, std::numeric_limits<float>::lowest());
    auto largest = SourceOf<MaxObj>(has_bound ? shift->a : less->b, &a_.keys);
    // Where the condition does not hold, the exponent does not matter.
    auto where_allowed = [&](const PrimExpr& e) {
      auto* choice = e.as<SelectObj>();
      bool is_same = condition.defined() && choice && ExprDeepEqual(choice->condition, condition);
      return is_same ? choice->true_value : e;
    };
    if (!largest || !ExprDeepEqual(where_allowed(*largest), where_allowed(exponent))) return false;
    if (condition.defined()) a_.allowed = Conjuncts(condition);
    return MatchExponent(where_allowed(exponent));
  }
  bool MatchExponent(PrimExpr e) {
    // Factors that do not change the order.
    for (;;) {
      auto* times = e.as<MulObj>();
      auto* over = e.as<DivObj>();
      auto* by = times ? times->b.as<FloatImmObj>() : over ? over->b.as<FloatImmObj>() : nullptr;
      if (!by || !(by->value > 0)) break;
      a_.scale *= times ? by->value : 1 / by->value;
      e = times ? times->a : over->a;
    }
    const Var& key = a_.keys.iters[0]->var;
    auto score = OnlyLoad(e, [&](const Stage&, const BufferLoadObj* load) {
      return UsesVar(ffi::GetRef<BufferLoad>(load),
                     [&](const VarObj* v) { return v == key.get(); });
    });
    if (!score) return false;
    auto source = SourceOf<AddObj>(*score, &a_.depth);
    auto* times = source ? source->as<MulObj>() : nullptr;
    if (!times || !MatchFactor(times->a, &a_.query) || !MatchFactor(times->b, &a_.key))
      return false;
    if (Uses(a_.query, key)) std::swap(a_.query, a_.key);
    if (Uses(a_.query, key)) return false;
    a_.exponent = Replaced(e, *score, a_.score);
    return true;
  }
  /// Which iterators of the result are rows, which columns.
  bool DivideSides(const Array<IterVar>& iters) {
    a_.type = FindProductType(a_.query.load.dtype(), DataType::Float(32));
    if (!a_.type || !a_.type->IsMma() || a_.type->Bytes() != 2) return false;
    for (const Factor* factor : {&a_.query, &a_.key, &a_.value}) {
      if (factor->load.dtype() != a_.type->factor || Find(factor->load.get())) return false;
    }
    for (const IterVar& iter : iters) {
      if (!IsZero(iter->dom.value()->min)) return false;
      bool query = Uses(a_.query, iter->var), key = Uses(a_.key, iter->var),
           value = Uses(a_.value, iter->var);
      bool is_one = IsOne(iter->dom.value()->extent);
      Side& side = is_one || key || query == value ? a_.batch : query ? a_.rows : a_.columns;
      side.iters.push_back(iter);
    }
    PackHeads();
    constexpr int64_t kMostColumns = 256;
    for (const Side* side : {&a_.columns, &a_.depth}) {
      auto size = AsConstInt(side->Extent());
      if (side->iters.size() != 1 || !size || *size > kMostColumns || *size == 0) return false;
    }
    const Var &column = a_.columns.iters[0]->var, &deep = a_.depth.iters[0]->var;
    auto is_other = [&](const VarObj* v) { return v == column.get() || v == deep.get(); };
    std::vector<PrimExpr> weights = a_.allowed;
    weights.push_back(a_.exponent);
    if (std::any_of(weights.begin(), weights.end(),
                    [&](const PrimExpr& e) { return UsesVar(e, is_other); }))
      return false;
    int64_t most = SharedMatrix::kChunkBytes / a_.type->Bytes();
    LayOut(&a_.query, &a_.rows, &a_.depth, true, most);
    LayOut(&a_.key, &a_.keys, &a_.depth, true, most);
    LayOut(&a_.value, &a_.columns, &a_.keys, true, most);
    for (Factor* factor : {&a_.query, &a_.key, &a_.value}) {
      if (factor->along_depth != (factor != &a_.value)) {
        factor->lanes = 1;
        factor->demands.clear();
      }
    }
    return true;
  }

  /// Where heads share their keys and have few rows, all rows of such heads are those of one tile:
  /// keys are read once for them. Head c is number c % g of group c / g.
  void PackHeads() {
    constexpr int64_t kFewRows = 64;
    auto rows = AsConstInt(a_.rows.Extent());
    for (size_t i = 0; rows && i < a_.batch.iters.size(); ++i) {
      const IterVar head = a_.batch.iters[i];
      auto heads = AsConstInt(head->dom.value()->extent);
      int64_t shared = 1;
      PostOrderVisit(a_.key.load, [&](const ObjectRef& node) {
        auto* quotient = node.as<FloorDivObj>();
        if (quotient && quotient->a.same_as(head->var))
          shared = AsConstInt(quotient->b).value_or(1);
      });
      if (!heads || shared < 2 || *heads % shared != 0 || *rows * shared > kFewRows) continue;
      DataType t = head->var.dtype();
      auto part = [&](const char* name, int64_t extent) {
        return IterVar(Range::FromMinExtent(MakeZero(t), MakeConst(t, extent)), Var(name, t),
                       IterVarType::kDataPar);
      };
      IterVar group = part("group", *heads / shared), member = part("member", shared);
      Learn(group);
      Learn(member);
      Attention before = a_;
      Map<Var, PrimExpr> values{{head->var, group->var * MakeConst(t, shared) + member->var}};
      for (Factor* factor : {&a_.query, &a_.key, &a_.value}) {
        BufferLoad load = Substitute(factor->load, values);
        Array<PrimExpr> at =
            load->indices.Map([&](const PrimExpr& e) { return analyzer_.Simplify(e); });
        factor->load = BufferLoad(load->buffer, at);
        if (factor->condition.defined()) factor->condition = Substitute(factor->condition, values);
      }
      a_.exponent = Substitute(a_.exponent, values);
      for (PrimExpr& condition : a_.allowed) condition = Substitute(condition, values);
      a_.store = Substitute(a_.store, values);
      a_.batch.iters[i] = group;
      a_.rows.iters.insert(a_.rows.iters.begin(), member);
      if (!Uses(a_.key, member->var) && !Uses(a_.value, member->var)) return;
      a_ = before;
    }
  }

  const Schedule& sch_;
  std::unordered_map<const Object*, Stage> stages_;  // by what they write
  BlockLook last_;
  arith::Analyzer analyzer_;
  Attention a_;
};

// ---- tiles --------------------------------------------------------------------------------------
/// Warps of 32 rows read half as much of the keys; those of 16 have registers for wider values, and
/// reach more multiprocessors. The last one is for where nothing is known of addresses.
constexpr AttentionTile kTiles[] = {
    {128, 64, 32}, {64, 64, 16}, {32, 64, 16}, {16, 64, 16}, {64, 32, 16}};

std::optional<AttentionTile> ChooseAttentionTile(const Attention& a, const Machine& machine) {
  constexpr int64_t kReserved = 1 << 10, kMostWide = 128;
  auto size = [](const Side& side) { return AsConstInt(side.Extent()).value_or(4096); };
  int64_t rows = size(a.rows), batch = size(a.batch);
  auto blocks = [&](const AttentionTile& tile) {
    return batch * ((rows + tile.rows - 1) / tile.rows);
  };
  std::optional<AttentionTile> best;
  for (const AttentionTile& tile : kTiles) {
    if (SharedBytes(a, tile) > machine->l1_bytes - kReserved) continue;
    if (tile.warp_rows > 16 && size(a.columns) > kMostWide) continue;
    if (best && best->keys > tile.keys) break;
    // As large as leaves no multiprocessor without work, and no row empty.
    if (!best || blocks(*best) < machine->cores || best->rows / 2 >= rows) best = tile;
  }
  // Few rows, as when a model writes word by word: parts of the keys make more blocks.
  constexpr int64_t kFewTiles = 4, kMostParts = 16;
  if (best && AsConstInt(a.rows.Extent()) && AsConstInt(a.batch.Extent()) && blocks(*best) > 0) {
    int64_t tiles = size(a.keys) / best->keys;
    best->parts = std::clamp<int64_t>(
        std::min(2 * machine->cores / blocks(*best), tiles / kFewTiles), 1, kMostParts);
  }
  return best;
}
}  // namespace

bool ScheduleAttention(const Schedule& sch, BlockRV root, const Machine& machine) {
  if (!machine->Has("async-copy")) return false;
  AttentionFinder finder(sch, root);
  std::optional<Attention> found = finder.Find();
  if (!found) return false;
  const Attention& a = *found;
  std::optional<AttentionTile> tile = ChooseAttentionTile(a, machine);
  if (!tile) return false;
  Array<Buffer> memory;
  Stmt kernel = AttentionKernel(a, *tile, &memory);
  Attention plain = a;
  std::vector<PrimExpr> demands;
  for (Factor* factor : {&plain.query, &plain.key, &plain.value}) TakeDemands(factor, &demands);
  if (!demands.empty()) {
    AttentionTile any = std::end(kTiles)[-1];
    kernel = IfThenElse(AllOf(demands), kernel, AttentionKernel(plain, any, &memory));
  }
  // Only what the kernel reads is computed before it.
  State& state = sch.state();
  BlockId scope{sch.IdOf(root)};
  Block block = ffi::GetRef<Block>(state.block(scope));
  StmtMap with;
  Array<BlockRV> stages = sch.GetChildBlocks(root), left;
  std::vector<Buffer> wanted;
  for (size_t i = stages.size(); i-- > 0;) {
    Block stage = sch.Get(stages[i]);
    const Buffer& written = stage->writes[0]->buffer;
    bool is_last = i + 1 == stages.size();
    auto is_it = [&](const Buffer& b) { return b.same_as(written); };
    if (!is_last && std::none_of(block->alloc_buffers.begin(), block->alloc_buffers.end(), is_it))
      return false;  // a result of its own
    bool is_read = finder.Reads(written) || std::any_of(wanted.begin(), wanted.end(), is_it);
    if (!is_last && is_read) {
      for (const BufferRegion& region : stage->reads) wanted.push_back(region->buffer);
      left.push_back(stages[i]);
      continue;
    }
    with[NestOf(state, {sch.IdOf(stages[i])})] = is_last ? kernel : Evaluate::Nothing();
    if (!is_last) block = WithoutAllocated(block, written);
  }
  for (const Buffer& buffer : memory) Edit(&block)->alloc_buffers.push_back(buffer);
  Commit(state, scope, WithBody(block, ReplaceStmts(block->body, with)));
  for (const BlockRV& stage : left) ScheduleBlock(sch, stage, machine);
  return true;
}

}  // namespace tvm::tir::gpu
