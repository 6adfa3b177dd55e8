// SPDX-License-Identifier: Apache-2.0
// Regions over loops, and whether producers wrote what consumers read.
#include "schedule/analysis.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
using arith::Analyzer, arith::IntSet;

Array<Range> BoundRegion(const BlockRealize& realize, const Array<Range>& region) {
  Map<Var, PrimExpr> values;
  for (size_t i = 0; i < realize->iter_values.size(); ++i)
    values.Set(realize->block->iter_vars[i]->var, realize->iter_values[i]);
  return Substitute(region, values);
}

Relaxed Relax(const Array<Range>& region, const std::vector<For>& loops, const PrimExpr& predicate,
              Analyzer* analyzer) {
  Map<Var, Range> domains = DomainsOf(loops);
  if (auto exact = arith::EstimateRegionStrictBound(region, domains, predicate, analyzer))
    return {exact.value(), true};
  return {arith::EstimateRegionUpperBound(region, domains, predicate, analyzer), false};
}

namespace {
std::vector<For> Without(const std::vector<For>& loops, const std::vector<For>& common) {
  return {loops.begin() + common.size(), loops.end()};
}
bool Covers(const Relaxed& produced, const Relaxed& read, const Buffer& buffer,
            Analyzer* analyzer) {
  if (!produced.exact) return false;
  for (size_t i = 0; i < read.box.size(); ++i) {
    // What lies outside of the buffer is never read.
    PrimExpr extent = buffer->shape[i], one = MakeConst(extent.dtype(), 1);
    PrimExpr low = max(read.box[i].min(), MakeZero(extent.dtype()));
    PrimExpr high = min(read.box[i].max(), extent - one);
    if (!analyzer->CanProve(produced.box[i].min() <= low) ||
        !analyzer->CanProve(high <= produced.box[i].max()))
      return false;
  }
  return true;
}
}  // namespace

std::string WhyNotRegionCover(const ScopeInfo& scope, const Placed& consumer) {
  for (const BufferRegion& read : ReadsOf(consumer.block())) {
    bool produced = false, covered = false;
    for (const Placed* producer : scope.WritersOf(read->buffer)) {
      if (producer->order >= consumer.order) continue;
      produced = true;
      std::vector<For> common = CommonLoops(*producer, consumer);
      Analyzer analyzer;
      analyzer.Bind(DomainsOf(common));
      Relaxed read_box =
          Relax(BoundRegion(consumer.realize, read->region), Without(consumer.Loops(), common),
                consumer.realize->predicate, &analyzer);
      for (const BufferRegion& write : producer->block()->writes) {
        if (!write->buffer.same_as(read->buffer) || producer->IsConditional()) continue;
        Relaxed written =
            Relax(BoundRegion(producer->realize, write->region), Without(producer->Loops(), common),
                  producer->realize->predicate, &analyzer);
        covered |= Covers(written, read_box, read->buffer, &analyzer);
      }
    }
    if (produced && !covered) {
      return "block " + std::string(consumer.block()->name_hint) + " may read parts of buffer " +
             std::string(read->buffer->name) + " that were not written before";
    }
  }
  return "";
}

bool IsStagePipeline(const ScopeInfo& scope) {
  for (const Placed& child : scope.children) {
    if (!WhyNotStage(scope, child).empty() || !WhyNotRegionCover(scope, child).empty())
      return false;
  }
  return true;
}

bool IsOutputBlock(const ScopeInfo& scope, const Placed& block) {
  for (const BufferRegion& w : block.block()->writes) {
    if (!scope.Owns(w->buffer)) return true;
  }
  return false;
}

bool IsElementwiseStore(const BlockObj* block) {
  const auto* store = block->body.as<BufferStoreObj>();
  if (!store || block->init.has_value()) return false;
  std::unordered_set<const Object*> seen;
  for (const PrimExpr& index : store->indices) {
    if (!index.as<VarObj>() || !seen.insert(index.get()).second) return false;
  }
  return true;
}

}  // namespace tvm::tir
