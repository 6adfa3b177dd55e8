// SPDX-License-Identifier: Apache-2.0
// Whether iterations of loops may run in another order, or at the same time.
#include "dependence.h"

#include <algorithm>

#include "schedule/analysis.h"
#include "tvm/arith/iter_affine_map.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
using arith::Analyzer, arith::IntSet, arith::IterMapLevel;

/// One block below the loops in question.
struct Below {
  BlockId id;
  const BlockRealizeObj* realize;
  const BlockObj* block;
  Map<Var, Range> nest = {};   // the loops in question and all below them, to the block
  Map<Var, Range> all = {};    // and those above them
  Map<Var, Range> inner = {};  // those below the loops in question
  bool reduces = false;        // one of the loops in question runs over a reduction of it
  bool repeats = false;        // it may write an element again, with the same value

  std::string Name() const { return "block " + std::string(block->name_hint); }
};

/// Anything outside of blocks that writes or has an effect: it cannot be judged.
Stmt FindLoose(const Stmt& stmt) {
  if (stmt->IsInstance<BlockRealizeObj>()) return {};
  if (auto* e = stmt.as<EvaluateObj>()) return e->value->IsInstance<IntImmObj>() ? Stmt() : stmt;
  if (stmt->IsInstance<BufferStoreObj>() || stmt->IsInstance<WhileObj>()) return stmt;
  Stmt found;
  VisitChildren(stmt.get(), [&](const ObjectRef& child) {
    auto* below = child.as<StmtObj>();
    if (below && !found.defined()) {
      found = Recurse([&] { return FindLoose(ffi::GetRef<Stmt>(below)); });
    }
  });
  return found;
}

bool Uses(const ObjectRef& node, const Map<Var, Range>& vars) {
  return UsesVar(node, [&](const VarObj* v) { return vars.count(ffi::GetRef<Var>(v)) > 0; });
}

Array<Range> Bound(const Below& b, const Array<Range>& region) {
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < b.block->iter_vars.size(); ++i) {
    values.Set(b.block->iter_vars[i]->var, b.realize->iter_values[i]);
  }
  return Substitute(region, values);
}

/// Whether each iteration of the nest binds the iterators to other values.
bool HasDistinctBindings(const Below& b, Analyzer* analyzer) {
  // Mostly every iterator is one loop.
  Map<Var, Range> left = b.nest;
  bool plain = true;
  for (const PrimExpr& value : b.realize->iter_values) {
    if (!Uses(value, b.nest)) continue;
    auto var = value.as<Var>();
    plain &= var && left.count(*var);
    if (plain) left.erase(*var);
  }
  plain &= std::all_of(left.begin(), left.end(), [](auto kv) { return IsOne(kv.second->extent); });
  if (plain || AreDigits(b.realize->iter_values, b.all)) return true;
  auto is_one_to_one = [&](const Map<Var, Range>& loops, const PrimExpr& predicate) {
    auto map = arith::DetectIterMap(b.realize->iter_values, loops, predicate,
                                    IterMapLevel::kBijective, analyzer);
    return !map->indices.empty();
  };
  // One to one over all loops of the scope, or where no predicate limits them, is so over some. The
  // other way round, a loop further out that only repeats the block does not matter here.
  for (const auto& loops : {b.all, b.nest}) {
    if (is_one_to_one(loops, const_true())) return true;
    if (!IsTrue(b.realize->predicate) && is_one_to_one(loops, b.realize->predicate)) return true;
  }
  return false;
}

/// Whether different values of the spatial iterators write different elements.
bool WritesApart(const BlockObj* block, Analyzer* analyzer) {
  Map<Var, Range> spatial;
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type == IterVarType::kDataPar && !IsOne(iter->dom.value()->extent)) {
      spatial.Set(iter->var, iter->dom.value());
    }
  }
  for (const BufferRegion& write : block->writes) {
    Map<Var, Range> left = spatial;
    for (const Range& r : write->region) {
      if (auto var = r->min.as<Var>(); var && IsOne(r->extent)) left.erase(*var);
    }
    if (left.empty()) continue;
    auto map = arith::DetectIterMap(write->region.Map([](const Range& r) { return r->min; }),
                                    spatial, const_true(), IterMapLevel::kBijective, analyzer);
    if (map->indices.empty()) return false;
    for (size_t i = 0; i < map->indices.size(); ++i) {
      for (const auto& split : map->indices[i]->args) {
        if (!analyzer->CanProve(write->region[i]->extent <= split->scale)) return false;
      }
    }
  }
  return true;
}

void RequireOwnIndependence(const State& state, const std::vector<LoopId>& loops, bool reductions,
                            Below* b, Analyzer* analyzer) {
  auto about = ffi::GetRef<ObjectRef>(b->block);
  std::vector<ObjectRef> shown{about};
  for (LoopId loop : loops) shown.push_back(state.stmt(loop));
  Map<Var, Range> moved = b->nest;
  for (const auto& [var, range] : b->inner) moved.erase(var);
  for (size_t i = 0; i < b->block->iter_vars.size(); ++i) {
    const IterVar& iter = b->block->iter_vars[i];
    bool uses = Uses(b->realize->iter_values[i], moved);
    if (iter->iter_type == IterVarType::kCommReduce) {
      b->reduces |= uses;
      if (uses && !reductions) {
        Refuse(Text("expected a loop over independent iterations, but the reduction iterator ",
                    iter->var->name_hint, " of ", b->Name(), " runs over it"),
               shown);
      }
    } else if (iter->iter_type != IterVarType::kDataPar) {
      Refuse(Text("expected blocks with spatial and reduction iterators, got ", b->Name(), " with ",
                  iter->var->name_hint),
             shown);
    }
  }
  bool updates = b->block->init.has_value();
  for (const BufferRegion& write : b->block->writes) {
    for (const BufferRegion& read : b->block->reads) {
      if (!read->buffer->data.same_as(write->buffer->data)) continue;
      updates = true;
      bool same = read->buffer.same_as(write->buffer);
      for (size_t d = 0; same && d < read->region.size(); ++d) {
        same = analyzer->CanProveEqual(read->region[d]->min, write->region[d]->min) &&
               analyzer->CanProveEqual(read->region[d]->extent, write->region[d]->extent);
      }
      if (!same) {
        Refuse(Text(b->Name(), " reads elements of ", read->buffer->name,
                    " that other iterations write"),
               shown);
      }
    }
  }
  b->repeats = !HasDistinctBindings(*b, analyzer);
  if (b->repeats && (updates || loops.size() > 1)) {
    Refuse(Text("expected the iterators of ", b->Name(),
                " to be bound to the loops one to one (an affine binding)"),
           shown);
  }
  if (!WritesApart(b->block, analyzer)) {
    Refuse(Text("expected every iteration of ", b->Name(), " to write other elements"), shown);
  }
}

/// The box an access touches in one iteration of the loops in question.
Optional<Array<IntSet>> ExactBox(const Below& b, const BufferRegion& r, Analyzer* analyzer) {
  return arith::EstimateRegionLowerBound(Bound(b, r->region), b.inner, b.realize->predicate,
                                         analyzer);
}
bool IsWithin(const Array<IntSet>& inner, const Array<IntSet>& outer, Analyzer* analyzer) {
  if (inner.size() != outer.size()) return false;
  for (size_t i = 0; i < inner.size(); ++i) {
    for (const IntSet& set : {inner[i], outer[i]}) {
      if (set.IsNothing() || !set.HasLowerBound() || !set.HasUpperBound()) return false;
    }
    auto is_at_most = [&](const PrimExpr& a, const PrimExpr& b) {
      return ExprDeepEqual(a, b) || analyzer->CanProve(a <= b);
    };
    if (!is_at_most(outer[i].min(), inner[i].min()) || !is_at_most(inner[i].max(), outer[i].max()))
      return false;
  }
  return true;
}

/// What several blocks do to one buffer must stay in the iteration: all of it lies in what one of
/// them, which writes other elements in every iteration, writes.
void RequireNoCrossing(const State& state, const std::vector<LoopId>& loops,
                       const std::vector<Below>& blocks, Analyzer* analyzer) {
  struct Use {
    const Below* block;
    BufferRegion region;
    bool write;
  };
  std::unordered_map<const Object*, std::vector<Use>> uses;
  for (const Below& b : blocks) {
    for (const BufferRegion& r : b.block->reads)
      uses[r->buffer->data.get()].push_back({&b, r, false});
    for (const BufferRegion& r : b.block->writes)
      uses[r->buffer->data.get()].push_back({&b, r, true});
  }
  for (const auto& [data, all] : uses) {
    bool shared = false, settled = false, repeats = false;
    const Below* writer_of = nullptr;
    bool several = false;
    for (const Use& use : all) {
      shared |= use.block != all[0].block;
      if (!use.write) continue;
      several |= writer_of && writer_of != use.block;
      writer_of = use.block;
      repeats |= use.block->repeats;
    }
    if (!writer_of || !shared) continue;
    for (const Use& writer : all) {
      if (!writer.write || writer.block->reduces || settled || (repeats && several)) continue;
      auto covered = ExactBox(*writer.block, writer.region, analyzer);
      settled = covered && std::all_of(all.begin(), all.end(), [&](const Use& use) {
                  if (!use.region->buffer.same_as(writer.region->buffer)) return false;
                  return IsWithin(arith::EstimateRegionUpperBound(
                                      Bound(*use.block, use.region->region), use.block->inner,
                                      use.block->realize->predicate, analyzer),
                                  *covered, analyzer);
                });
    }
    if (settled) continue;
    std::vector<ObjectRef> about;
    for (LoopId loop : loops) about.push_back(state.stmt(loop));
    for (const Use& use : all) about.push_back(ffi::GetRef<ObjectRef>(use.block->block));
    Refuse(Text("expected values of ", all[0].region->buffer->name,
                " to be used in the iteration that computes them, which cannot be shown"),
           about);
  }
}

}  // namespace

void RequireIndependent(const State& state, const std::vector<LoopId>& loops, bool reductions) {
  if (state.is_trusted) return;
  LoopId top = loops.front();
  if (Stmt loose = FindLoose(state.loop(top)->body); loose.defined()) {
    Refuse("expected all statements below the loop to be in blocks", {state.stmt(top), loose});
  }
  Analyzer analyzer;
  Map<Var, Range> above;
  for (LoopId id : state.LoopsAbove(top)) {
    const ForObj* loop = state.loop(id);
    above.Set(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent));
    analyzer.Bind(loop->loop_var, above[loop->loop_var]);
  }
  std::vector<Below> blocks;
  for (BlockId id : state.ChildBlocks(top)) {
    Below b{id, state.realize(id), state.block(id)};
    for (NodeId n = state.parent(id);; n = state.parent(n)) {
      const ForObj* loop = state.loop({n});
      Range range = Range::FromMinExtent(loop->min, loop->extent);
      analyzer.Bind(loop->loop_var, range, true);
      bool moved = std::find(loops.begin(), loops.end(), n) != loops.end();
      b.nest.Set(loop->loop_var, range);
      if (!moved) b.inner.Set(loop->loop_var, range);
      if (n == top) break;
    }
    b.all = b.nest;
    for (const auto& [var, range] : above) b.all.Set(var, range);
    blocks.push_back(std::move(b));
  }
  for (Below& b : blocks) RequireOwnIndependence(state, loops, reductions, &b, &analyzer);
  if (blocks.size() > 1) RequireNoCrossing(state, loops, blocks, &analyzer);
}

}  // namespace tvm::tir
