// SPDX-License-Identifier: Apache-2.0
// Kinds of blocks: affine, covering, dominant, complete, reduction.
#include "schedule/analysis.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {
using arith::Analyzer, arith::IterMapLevel, arith::IterMapResult;

std::string Name(const BlockObj* block) { return "block " + std::string(block->name_hint); }

IterMapResult Bindings(const Placed& p, Analyzer* analyzer) {
  return arith::DetectIterMap(p.realize->iter_values, DomainsOf(p.Loops()), p.realize->predicate,
                              IterMapLevel::kSurjective, analyzer);
}
/// Whether it is plain that the bindings take all values of the block's domain.
bool RunsForAll(const Placed& p) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (!IsTrue(p.realize->predicate) ||
      !AreDigits(p.realize->iter_values, DomainsOf(p.Loops()), &ranges)) {
    return false;
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& dom = p.block()->iter_vars[i]->dom.value();
    if (AsConstInt(dom->min) != ranges[i].first || AsConstInt(dom->extent) != ranges[i].second)
      return false;
  }
  return true;
}
bool IsAffine(const Placed& p, const IterMapResult& map) {
  return p.realize->iter_values.empty() || !map->indices.empty();
}
}  // namespace

std::string WhyNotAffine(const Placed& p) {
  if (IsTrue(p.realize->predicate) && AreDigits(p.realize->iter_values, DomainsOf(p.Loops())))
    return "";
  Analyzer analyzer;
  IterMapResult map = Bindings(p, &analyzer);
  if (IsAffine(p, map)) return "";
  std::string why = Name(p.block()) + " has bindings that are not affine in the loops around it";
  if (!map->errors.empty()) why += " (" + std::string(map->errors[0]) + ")";
  return why;
}

std::string WhyNotCovering(const Placed& p) {
  if (p.IsConditional()) return Name(p.block()) + " runs only where a condition around it holds";
  if (RunsForAll(p)) return "";
  Analyzer analyzer;
  IterMapResult map = Bindings(p, &analyzer);
  if (!IsAffine(p, map)) return WhyNotAffine(p);
  for (size_t i = 0; i < map->indices.size(); ++i) {
    const arith::IterSumExpr& sum = map->indices[i];
    const IterVar& iter = p.block()->iter_vars[i];
    bool covers = analyzer.CanProveEqual(sum->base, iter->dom.value()->min);
    PrimExpr extent = iter->dom.value()->extent;
    if (sum->args.empty()) {
      covers &= analyzer.CanProveEqual(extent, MakeConst(extent.dtype(), 1));
    } else {
      covers &= sum->args.size() == 1 && IsOne(sum->args[0]->scale) &&
                analyzer.CanProveEqual(sum->args[0]->extent, extent);
    }
    if (!covers) {
      return Name(p.block()) + " does not run for all values of its iterator " +
             std::string(iter->var->name_hint);
    }
  }
  return "";
}

std::string WhyNotDominant(const ScopeInfo& scope, const Placed& p) {
  for (const BufferRegion& w : p.block()->writes) {
    std::string buffer(w->buffer->name);
    if (scope.IsLoose(w->buffer)) return "statements outside of blocks use buffer " + buffer;
    for (const Placed* other : scope.WritersOf(w->buffer)) {
      if (other->order != p.order) {
        return Name(p.block()) + " is not the only block that writes buffer " + buffer + ": " +
               Name(other->block()) + " does, too";
      }
    }
  }
  return "";
}

namespace {
std::string WhyNotOfIterTypes(const BlockObj* block, bool with_reduce) {
  for (const IterVar& iter : block->iter_vars) {
    bool fits = iter->iter_type == IterVarType::kDataPar ||
                (with_reduce && iter->iter_type == IterVarType::kCommReduce);
    if (!fits) {
      return Name(block) + " has the iterator " + std::string(iter->var->name_hint) +
             (with_reduce ? ", which is neither spatial nor a reduction"
                          : ", which is not spatial");
    }
  }
  return "";
}
}  // namespace

std::string WhyNotComplete(const ScopeInfo& scope, const Placed& p) {
  const BlockObj* block = p.block();
  const std::string expected = "expected a complete block, but ";
  if (std::string why = WhyNotDominant(scope, p); !why.empty()) return expected + why;
  if (block->init.has_value()) return expected + Name(block) + " has an init";
  if (std::string why = WhyNotOfIterTypes(block, false); !why.empty()) return expected + why;
  for (const BufferRegion& w : block->writes) {
    for (const BufferRegion& r : block->reads) {
      if (r->buffer->data.same_as(w->buffer->data)) {
        return expected + Name(block) + " reads buffer " + std::string(w->buffer->name) +
               ", which it also writes";
      }
    }
  }
  return "";
}

std::string WhyNotReduction(const ScopeInfo& scope, const Placed& p) {
  const BlockObj* block = p.block();
  if (!block->init.has_value()) return Name(block) + " has no init, so it is no reduction block";
  if (std::string why = WhyNotDominant(scope, p); !why.empty()) return why;
  if (std::string why = WhyNotOfIterTypes(block, true); !why.empty()) return why;
  std::unordered_set<const VarObj*> reduce;
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type == IterVarType::kCommReduce) reduce.insert(iter->var.get());
  }
  for (const BufferRegion& w : block->writes) {
    for (const Range& range : w->region) {
      if (UsesVar(range, [&](const VarObj* v) { return reduce.count(v) > 0; })) {
        return Name(block) + " uses a reduction iterator in the indices of buffer " +
               std::string(w->buffer->name) + ", which it writes";
      }
    }
  }
  return "";
}

std::string WhyNotStage(const ScopeInfo& scope, const Placed& p) {
  return p.block()->init.has_value() ? WhyNotReduction(scope, p) : WhyNotComplete(scope, p);
}
bool IsComplete(const ScopeInfo& scope, const Placed& p) {
  return WhyNotComplete(scope, p).empty();
}
bool IsReduction(const ScopeInfo& scope, const Placed& p) {
  return WhyNotReduction(scope, p).empty();
}

std::string WhyOverwrites(const Placed& p, const std::vector<For>& loops) {
  std::string again =
      Name(p.block()) + " may write the same element again in another iteration of ";
  Map<Var, Range> domains;
  for (const For& loop : p.Loops()) {
    if (UseOf(loop, p.realize) == kSpatial)
      domains.Set(loop->loop_var, Range::FromMinExtent(loop->min, loop->extent));
  }
  for (const For& loop : loops) {
    if (!domains.count(loop->loop_var) && !IsOne(loop->extent))
      return again + "loop " + std::string(loop->loop_var->name_hint);
  }
  if (loops.empty()) return "";
  Analyzer analyzer;
  for (const BufferRegion& write : p.block()->writes) {
    Array<Range> region = BoundRegion(p.realize, write->region);
    IterMapResult map =
        arith::DetectIterMap(region.Map([](const Range& r) { return r->min; }), domains,
                             p.realize->predicate, IterMapLevel::kBijective, &analyzer);
    bool distinct = region.empty() ? domains.empty() : !map->indices.empty();
    for (size_t i = 0; distinct && i < region.size(); ++i) {
      for (const arith::IterSplitExpr& split : map->indices[i]->args) {
        distinct &= analyzer.CanProve(region[i]->extent <= split->scale);
      }
    }
    if (!distinct) return again + "the loops around it";
  }
  return "";
}

std::string WhyNotStable(const ScopeInfo& scope, const Placed& block, const Placed& later) {
  auto contains = [](const Placed& p, const For& loop) { return p.IsBelow(loop.get()); };
  for (const BufferRegion& read : ReadsOf(block.block())) {
    std::string buffer =
        "buffer " + std::string(read->buffer->name) + ", which " + Name(block.block()) + " reads, ";
    if (scope.IsLoose(read->buffer)) return buffer + "is used by statements outside of blocks";
    for (const Placed* writer : scope.WritersOf(read->buffer)) {
      if (writer->order == block.order) continue;
      bool between = writer->order > block.order && writer->order < later.order;
      std::string why = between ? "is in between" : "";
      if (writer->order > block.order) {
        for (const For& loop : CommonLoops(*writer, later)) {
          if (!contains(block, loop)) why = "shares a loop with the new place";
        }
      } else {
        std::vector<For> left;  // loops that run on before the new place is reached
        for (const For& loop : CommonLoops(*writer, block)) {
          if (!contains(later, loop)) left.push_back(loop);
        }
        why = WhyOverwrites(*writer, left);
      }
      if (!why.empty()) {
        return buffer +
               "may be overwritten before the new place is reached: " + Name(writer->block()) +
               " writes it (" + why + ")";
      }
    }
  }
  return "";
}

}  // namespace tvm::tir
