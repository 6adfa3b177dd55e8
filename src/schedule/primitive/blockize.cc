// SPDX-License-Identifier: Apache-2.0
// blockize: what is below a loop, or several blocks, become the inside of one block.
#include "schedule/primitive/blockize.h"

#include "schedule/primitive/cache.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {
using arith::Analyzer, arith::IterMark;

/// Divides the iterators of blocks into those of a block around them and their own.
class Divider {
 public:
  explicit Divider(bool preserve_unit_iters) : preserve_(preserve_unit_iters) {}

  Array<IterVar> outer_iters;
  Array<PrimExpr> outer_values;
  std::vector<PrimExpr> outer_predicate;
  Optional<Stmt> init;  // of the block around

  /// The block with its inner loops, in terms of the outer iterators. `take_init`: the block around
  /// starts the reduction.
  Stmt Inner(const Placed& p, const std::vector<For>& inner_loops, bool take_init, BlockMap* same) {
    const BlockRealize& realize = p.realize;
    Array<Var> inner_vars;
    for (const For& loop : inner_loops) inner_vars.push_back(loop->loop_var);
    Analyzer analyzer;
    Array<Array<IterMark>> parts =
        arith::SubspaceDivide(realize->iter_values, DomainsOf(p.Loops()), inner_vars,
                              realize->predicate, arith::IterMapLevel::kSurjective, &analyzer);
    if (parts.empty()) {
      Refuse("cannot divide the bindings of " + NameOf(p) +
                 " into a part of the loops outside and one of those inside",
             {realize->block});
    }
    analyzer.Bind(DomainsOf(p.Loops()));
    analyzer_ = &analyzer;
    Array<IterVar> iters;
    Array<PrimExpr> values;
    Map<Var, PrimExpr> whole;  // the old iterators
    taken_.clear();
    for (size_t i = 0; i < realize->iter_values.size(); ++i) {
      const IterVar& iter = realize->block->iter_vars[i];
      PrimExpr extent = parts[i][1]->extent;
      PrimExpr high = ExprOf(parts[i][0]), low = ExprOf(parts[i][1]);
      if (!analyzer.CanProveEqual(realize->iter_values[i], high * extent + low)) {
        Refuse("cannot divide the binding " + Text(realize->iter_values[i]) + " of " + NameOf(p),
               {realize->block});
      }
      if (!take_init && realize->block->init.has_value() &&
          iter->iter_type == IterVarType::kCommReduce && !IsOne(parts[i][0]->extent)) {
        Refuse("expected all of the reduction of " + NameOf(p) + " inside", {realize->block});
      }
      // Iterators start at 0.
      PrimExpr high_base = BaseOf(parts[i][0]), low_base = BaseOf(parts[i][1]);
      low = analyzer.Simplify(low - low_base);
      PrimExpr outer = Outer(iter, analyzer.Simplify(high - high_base), parts[i][0]->extent);
      PrimExpr inner = low;
      if (!IsOne(extent)) {
        Var var = iter->var.CopyWithSuffix("_i");
        iters.push_back(
            IterVar(Range::FromMinExtent(MakeZero(extent.dtype()), extent), var, iter->iter_type));
        values.push_back(low);
        inner = var;
      }
      if (IsOne(parts[i][0]->extent) && !IsOne(extent)) outer = MakeZero(outer.dtype());
      if (IsOne(extent)) inner = MakeZero(inner.dtype());
      whole.Set(iter->var, analyzer.Simplify((outer + high_base) * extent + inner + low_base));
    }
    PrimExpr predicate = DividePredicate(p, inner_loops, parts.back());

    Block block = Any(SubstituteInside(realize->block, whole)).cast<Block>();
    auto* n = Edit(&block);
    n->iter_vars = iters;
    Optional<Stmt> start = n->init;
    if (take_init && start.has_value()) {
      for (const For& loop : inner_loops) {
        if (UseOf(loop, realize) == kUnused && !IsOne(loop->extent)) {
          Refuse("expected loop " + std::string(loop->loop_var->name_hint) +
                     ", in which the reduction of " + NameOf(p) + " runs again, outside",
                 {loop});
        }
      }
      n->init = Optional<Stmt>();
      init = InitNest(block, start.value(), values, inner_loops, predicate);
    }
    block = WithInferredRegions(block);
    same->emplace(block.get(), realize->block);
    BlockRealize bound(values, predicate, block);
    return ReplaceRealize(p, inner_loops, bound);
  }

 private:
  static PrimExpr ExprOf(const IterMark& mark) {
    return arith::NormalizeIterMapToExpr(mark->source);
  }
  static PrimExpr BaseOf(const IterMark& mark) {
    auto* sum = mark->source.as<arith::IterSumExprObj>();
    return sum ? sum->base : MakeZero(mark->source.dtype());
  }
  /// What the block's predicate says of the loops inside; what it says of those outside is added to
  /// the predicate of the block around.
  PrimExpr DividePredicate(const Placed& p, const std::vector<For>& inner_loops,
                           const Array<IterMark>& found) {
    std::unordered_set<const VarObj*> inner_vars, outer_vars;
    for (const For& loop : p.Loops()) outer_vars.insert(loop->loop_var.get());
    for (const For& loop : inner_loops) {
      inner_vars.insert(loop->loop_var.get());
      outer_vars.erase(loop->loop_var.get());
    }
    std::vector<PrimExpr> outside = Conjuncts(found[0]->source);
    std::vector<PrimExpr> inside = Conjuncts(found[1]->source);
    for (bool mixed : {false, true}) {  // what is about both must follow from the others
      for (const PrimExpr& condition : Conjuncts(p.realize->predicate)) {
        PrimExpr rest = analyzer_->Simplify(condition);
        bool in = UsesAny(rest, inner_vars), out = UsesAny(rest, outer_vars);
        if ((in && out) != mixed) continue;
        arith::ConstraintScope known(analyzer_, AllOf(outside) && AllOf(inside));
        if (analyzer_->CanProve(rest)) continue;
        if (mixed) {
          Refuse("cannot divide the predicate " + Text(rest) + " of " + NameOf(p) +
                     " into a part of the loops outside and one of those inside",
                 {p.realize->block});
        }
        (in ? inside : outside).push_back(rest);
      }
    }
    if (started_ && !ExprDeepEqual(AllOf(outside), AllOf(outer_predicate))) {
      Refuse("expected blocks that run under one condition on the loops outside, got " +
                 Text(AllOf(outside)) + " for " + NameOf(p),
             {p.realize->block});
    }
    started_ = true;
    outer_predicate = outside;
    return AllOf(inside);
  }
  /// The outer iterator with this value: one for all blocks, each its own within a block.
  PrimExpr Outer(const IterVar& iter, const PrimExpr& value, const PrimExpr& extent) {
    if (!preserve_ && IsOne(extent)) return value;
    for (size_t i = 0; i < outer_values.size(); ++i) {
      if (!taken_.count(i) && ExprDeepEqual(outer_values[i], value) &&
          outer_iters[i]->iter_type == iter->iter_type &&
          analyzer_->CanProveEqual(outer_iters[i]->dom.value()->extent, extent)) {
        taken_.insert(i);
        return outer_iters[i]->var;
      }
    }
    taken_.insert(outer_iters.size());
    Var var = iter->var.CopyWithSuffix("_o");
    outer_iters.push_back(
        IterVar(Range::FromMinExtent(MakeZero(extent.dtype()), extent), var, iter->iter_type));
    outer_values.push_back(value);
    return var;
  }
  static Stmt SubstituteInside(const Block& block, const Map<Var, PrimExpr>& map) {
    Block bare = block;
    auto* n = Edit(&bare);
    n->iter_vars = {};
    return Substitute(Stmt(bare), map);
  }
  /// The loops below the loop (or statement) that is blockized, around another realize.
  static Stmt ReplaceRealize(const Placed& p, const std::vector<For>& loops,
                             const BlockRealize& bound) {
    return loops.empty() ? Stmt(bound) : ReplaceStmts(loops[0], {{p.realize.get(), bound}});
  }
  /// Loops over the spatial inner iterators around the init.
  static Stmt InitNest(const Block& block, const Stmt& start, const Array<PrimExpr>& values,
                       const std::vector<For>& loops, const PrimExpr& predicate) {
    std::unordered_set<const VarObj*> gone;
    std::vector<For> kept;
    Map<Var, PrimExpr> new_vars, new_iters;
    BlockRealize bound(values, predicate, block);
    for (const For& loop : loops) {
      int use = UseOf(loop, bound);
      if (use & ~kSpatial) {
        if (use & kSpatial)
          Refuse("loop " + std::string(loop->loop_var->name_hint) +
                     " is used by spatial and by reduction iterators",
                 {loop});
        gone.insert(loop->loop_var.get());
        continue;
      }
      For copy = loop;
      Var var = loop->loop_var.CopyWithSuffix("_init");
      new_vars.Set(loop->loop_var, var);
      Edit(&copy)->loop_var = var;
      kept.push_back(copy);
    }
    Array<IterVar> iters;
    Array<PrimExpr> init_values;
    for (size_t i = 0; i < values.size(); ++i) {
      const IterVar& iter = block->iter_vars[i];
      if (iter->iter_type != IterVarType::kDataPar) continue;
      Var var = iter->var.CopyWithSuffix("_init");
      iters.push_back(IterVar(iter->dom, var, iter->iter_type));
      new_iters.Set(iter->var, var);
      init_values.push_back(Substitute(values[i], new_vars));
    }
    std::vector<PrimExpr> conditions;
    for (const PrimExpr& c : Conjuncts(predicate)) {
      if (!UsesAny(c, gone)) conditions.push_back(Substitute(c, new_vars));
    }
    Block init = WithInferredRegions(
        Block(iters, {}, {}, block->name_hint + "_init", Substitute(start, new_iters)));
    return InLoops(kept, BlockRealize(init_values, AllOf(conditions), init));
  }

  bool preserve_, started_ = false;
  std::unordered_set<size_t> taken_;  // outer iterators that stand for one of the block at hand
  Analyzer* analyzer_ = nullptr;
};

BlockRealize Around(const Divider& d, const String& name, const Stmt& body) {
  Block block = WithInferredRegions(Block(d.outer_iters, {}, {}, name, body, d.init));
  return BlockRealize(d.outer_values, AllOf(d.outer_predicate), block);
}

BlockId BlockizeBlocks(State& state, const std::vector<BlockId>& ids, bool preserve_unit_iters) {
  if (ids.empty()) Refuse("expected at least one block, got none");
  Focus at(state, ids[0]);
  std::vector<const Placed*> blocks;
  for (BlockId id : ids) {
    const Placed* p = state.ScopeOf(id) == at.scope_id ? at.scope.Find(state.block(id)) : nullptr;
    if (!p)
      Refuse("expected blocks of one scope", {state.inner_stmt(ids[0]), state.inner_stmt(id)});
    blocks.push_back(p);
  }
  Gap gap(at, blocks, false);
  int first = INT_MAX, last = -1;
  for (const Placed* p : blocks) {
    first = std::min(first, gap.PositionOf(*p));
    last = std::max(last, gap.PositionOf(*p));
  }
  for (const Placed& child : at.scope.children) {
    int position = gap.PositionOf(child);
    bool inside = position >= first && position <= last;
    if (inside && std::none_of(blocks.begin(), blocks.end(),
                               [&](const Placed* p) { return p->order == child.order; })) {
      Refuse("expected blocks one after the other, but " + NameOf(child) + " is among them",
             {child.realize->block});
    }
  }
  // One block alone takes its loops along only when it is given by a loop.
  Divider divider(preserve_unit_iters);
  BlockMap same;
  StmtMap changes;
  bool alone = blocks.size() == 1;
  for (const Placed* p : blocks) {
    std::vector<For> inner = alone ? std::vector<For>{} : gap.LoopsBelow(*p);
    if (!inner.empty() && (p->path.size() < inner.size() ||
                           !p->path[p->path.size() - inner.size()].same_as(inner[0]))) {
      Refuse("expected only loops between " + NameOf(*p) + " and what surrounds all blocks",
             {p->realize->block});
    }
    Stmt with = divider.Inner(*p, inner, alone, &same);
    changes[inner.empty() ? static_cast<const StmtObj*>(p->realize.get()) : inner[0].get()] = with;
  }
  Stmt body;
  if (alone) {
    body = changes.begin()->second;
    Stmt with = Around(divider, blocks[0]->block()->name_hint + "_o", body);
    Stmt replaced = ReplaceStmts(at.scope.block->body, {{blocks[0]->realize.get(), with}});
    Commit(state, at.scope_id, WithBody(at.scope.block, replaced), same);
    return state.Find(with.as<BlockRealizeObj>()->block.get());
  }
  Array<Stmt> inside, all;
  for (int i = first; i <= last; ++i) inside.push_back(ReplaceStmts(gap.statements[i], changes));
  std::string name = "outer_";
  for (const Placed* p : blocks) name += std::string(p->block()->name_hint) + "_";
  BlockRealize with = Around(divider, name, SeqStmt::Flatten(inside));
  for (int i = 0; i < static_cast<int>(gap.statements.size()); ++i) {
    if (i < first || i > last) all.push_back(gap.statements[i]);
    if (i == first) all.push_back(with);
  }
  Stmt replaced = ReplaceStmts(at.scope.block->body, {{gap.sequence.get(), SeqStmt::Flatten(all)}});
  Commit(state, at.scope_id, WithBody(at.scope.block, replaced), same);
  return state.Find(with->block.get());
}
}  // namespace

BlockId BlockizeLoop(State& state, LoopId id, bool preserve_unit_iters) {
  For loop = ffi::GetRef<For>(state.loop(id));
  std::vector<BlockId> below = state.ChildBlocks(id);
  if (below.size() != 1) {
    Refuse("expected a loop with one block below it, got " + std::to_string(below.size()), {loop});
  }
  Focus at(state, below[0]);
  const Placed& p = *at.block;
  std::vector<For> inner;
  for (auto s = p.path.rbegin(); s != p.path.rend() && s->as<ForObj>(); ++s) {
    inner.insert(inner.begin(), *s->as<For>());
    if (s->same_as(loop)) break;
  }
  if (inner.empty() || !inner[0].same_as(loop)) {
    Refuse("expected only loops between loop " + std::string(loop->loop_var->name_hint) + " and " +
               NameOf(p),
           {loop});
  }
  Divider divider(preserve_unit_iters);
  BlockMap same;
  Stmt body = divider.Inner(p, inner, true, &same);
  BlockRealize with = Around(divider, p.block()->name_hint + "_o", body);
  Stmt replaced = ReplaceStmts(at.scope.block->body, {{loop.get(), with}});
  Commit(state, at.scope_id, WithBody(at.scope.block, replaced), same);
  return state.Find(with->block.get());
}

namespace {
BlockId Blockize(State& state, std::variant<LoopId, std::vector<BlockId>> target,
                 bool preserve_unit_iters) {
  if (auto* loop = std::get_if<LoopId>(&target))
    return BlockizeLoop(state, *loop, preserve_unit_iters);
  return BlockizeBlocks(state, std::get<1>(target), preserve_unit_iters);
}

TVM_REGISTER() {
  DefPrimitive(
      "Blockize", "blockize", &Blockize, &Schedule::Blockize,
      "Makes what is below a loop the inside of a new block, whose iterators stand for the loops "
      "outside; returns that block. With a list of blocks, these become the inside. A reduction is "
      "started by the new block.",
      {R"(
def before(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")):
    for io, jo, ii, ji in T.grid(4, 4, 16, 16):
        with T.block("B"):
            vi = T.axis.spatial(64, io * 16 + ii)
            vj = T.axis.spatial(64, jo * 16 + ji)
            B[vi, vj] = A[vi, vj] * 2.0)",
       R"(io, jo, ii, ji = sch.get_loops("B")
sch.blockize(ii))"},
      Arg("target"), Arg("preserve_unit_iters", true));
}
}  // namespace
}  // namespace tvm::tir
