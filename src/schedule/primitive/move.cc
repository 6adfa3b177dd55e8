// SPDX-License-Identifier: Apache-2.0
// Moving a block below a loop of other blocks.
#include "schedule/primitive/move.h"

#include <algorithm>

#include "tvm/arith/pattern.h"

namespace tvm::tir {
using arith::Analyzer;

std::vector<Relaxed> Touched(const Placed& block, const Array<BufferRegion>& regions,
                             const Buffer& buffer, const std::vector<For>& loops,
                             arith::Analyzer* analyzer) {
  std::vector<Relaxed> touched;
  for (const BufferRegion& part : regions) {
    if (!part->buffer.same_as(buffer)) continue;
    touched.push_back(
        Relax(BoundRegion(block.realize, part->region), loops, block.realize->predicate, analyzer));
  }
  return touched;
}
std::optional<LinearIndex> AsLinear(const PrimExpr& index, const Array<IterVar>& iters) {
  Array<Var> vars = iters.Map([](const IterVar& i) { return i->var; });
  Array<PrimExpr> parts = arith::DetectLinearEquation(index, vars);
  std::optional<LinearIndex> found;
  for (size_t i = 0; i < vars.size() && !parts.empty(); ++i) {
    if (IsZero(parts[i])) continue;
    std::optional<int64_t> scale = AsConstInt(parts[i]);
    if (found || !scale) return {};
    found = LinearIndex{i, *scale, parts[vars.size()]};
  }
  return found;
}
void LinearIndex::TurnUpward(const PrimExpr& extent, PrimExpr* min, PrimExpr* max) {
  if (scale > 0) return;
  scale = -scale;
  offset = MakeConst(extent.dtype(), 1) - extent - offset;
  PrimExpr zero = MakeZero(min->dtype());
  *min = zero - std::exchange(*max, zero - *min);
}

LoopPlace::LoopPlace(const Focus& at, const State& state, LoopId id)
    : loop(ffi::GetRef<For>(state.loop(id))) {
  if (state.ScopeOf(id) != at.scope_id) {
    Refuse("expected a loop of the same block scope as block " +
               std::string(at.block->block()->name_hint) + ", got loop " +
               std::string(loop->loop_var->name_hint),
           {loop, at.block->realize->block});
  }
  if (at.block->IsBelow(loop.get())) {
    Refuse("expected a loop that is no ancestor of block " +
               std::string(at.block->block()->name_hint) + ", got loop " +
               std::string(loop->loop_var->name_hint),
           {loop, at.block->realize->block});
  }
  for (const Placed& child : at.scope.children) {
    if (!child.IsBelow(loop.get())) continue;
    for (const Stmt& s : child.path) {
      path.push_back(s);
      if (s.same_as(loop)) break;
    }
    break;
  }
  for (const Stmt& s : path) {
    if (auto l = s.as<For>()) outer.push_back(*l);
  }
  auto* seq = loop->body.as<SeqStmtObj>();
  body = seq ? seq->seq : Array<Stmt>{loop->body};
  Require(WhyNotStage(at.scope, *at.block), {at.block->realize->block});
  Require(WhyNotCovering(*at.block), {at.block->realize->block});
  CheckNoOuterVars(*at.block);
}
int LoopPlace::PositionOf(const Placed& block) const {
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i].same_as(block.realize) || block.IsBelow(body[i].get())) return static_cast<int>(i);
  }
  return -1;
}
std::vector<For> LoopPlace::LoopsBelow(const Placed& block) const {
  std::vector<For> loops = block.Loops();
  return {loops.begin() + outer.size(), loops.end()};
}
Placed LoopPlace::AsPlaced(const Placed& block, int order) const {
  return {block.realize, path, order};
}

int ChoosePosition(int64_t index, int first, int last, const For& loop) {
  if (index == -1) return last;
  if (index == -2) return first;
  if (index < first || index > last) {
    Refuse(Text("expected index to be -1 (last), -2 (first) or from ", first, " to ", last,
                ", got ", index),
           {loop});
  }
  return static_cast<int>(index);
}

namespace {
/// The operands of nested max (or min), also below sums: max(a, b) + c is max(a + c, b + c).
std::vector<PrimExpr> Terms(const PrimExpr& e, bool of_max) {
  if (auto* sum = e.as<AddObj>()) {
    std::vector<PrimExpr> terms;
    for (const PrimExpr& a : Terms(sum->a, of_max)) {
      for (const PrimExpr& b : Terms(sum->b, of_max)) terms.push_back(a + b);
    }
    return terms;
  }
  const BinaryOpFields* op = nullptr;
  if (of_max) {
    op = e.as<MaxObj>();
  } else {
    op = e.as<MinObj>();
  }
  if (!op) return {e};
  std::vector<PrimExpr> terms = Terms(op->a, of_max);
  for (const PrimExpr& t : Terms(op->b, of_max)) terms.push_back(t);
  return terms;
}
}  // namespace

BlockRealize NewNest::Realize(const Block& block) const {
  return BlockRealize(values, AllOf(predicate), block);
}

NewNest NestFor(const Block& block, const IterRanges& ranges, const std::vector<For>& outer,
                bool preserve_unit_loops, bool exact) {
  Analyzer analyzer;
  analyzer.Bind(DomainsOf(outer));
  std::unordered_set<const VarObj*> outer_vars;
  for (const For& l : outer) outer_vars.insert(l->loop_var.get());
  NewNest nest;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& dom = block->iter_vars[i]->dom.value();
    PrimExpr one = MakeConst(dom->extent.dtype(), 1);
    PrimExpr low = dom->min, extent = dom->extent;
    std::vector<PrimExpr> limits;  // on the value
    Var value_var = block->iter_vars[i]->var;
    if (ranges[i]) {
      // The largest of several beginnings and the smallest of several ends: one gives the loop,
      // the others limit it.
      auto choose = [&](const PrimExpr& bound, bool is_begin) {
        std::vector<PrimExpr> terms = Terms(analyzer.Simplify(cast(low.dtype(), bound)), is_begin);
        for (PrimExpr& term : terms) term = analyzer.Simplify(term);
        size_t chosen = 0;
        for (size_t k = 0; k < terms.size() && !UsesAny(terms[chosen], outer_vars); ++k) chosen = k;
        for (size_t k = 0; k < terms.size(); ++k) {
          if (k != chosen && exact)
            limits.push_back(is_begin ? terms[k] <= value_var : value_var <= terms[k]);
        }
        return terms[chosen];
      };
      PrimExpr from = choose(ranges[i]->first, true), to = choose(ranges[i]->second, false);
      PrimExpr count = analyzer.Simplify(to - from + one);
      bool whole = analyzer.CanProveEqual(from, low) && analyzer.CanProveEqual(count, extent);
      // How often the new loop runs must not depend on the loops outside: a bound, and a predicate.
      if (UsesAny(count, outer_vars)) {
        int64_t most = analyzer.const_int_bound(count)->max_value;
        if (exact) limits.push_back(value_var <= to);
        if (most == arith::ConstIntBoundObj::kPosInf) {
          whole = true;
          if (exact) limits.push_back(from <= value_var);
        } else {
          count = MakeConst(count.dtype(), most);
        }
      }
      whole |= !exact && analyzer.CanProve(count >= extent);
      if (!whole) {
        low = from;
        extent = count;
        limits.push_back(dom->min <= value_var);
        limits.push_back(value_var < dom->min + dom->extent);
      }
    }
    bool unit = IsOne(extent) && !preserve_unit_loops;
    PrimExpr value = low;
    if (!unit) {
      Var var("ax" + std::to_string(nest.loops.size()), extent.dtype());
      nest.loops.push_back(
          For(var, MakeZero(extent.dtype()), extent, ForKind::kSerial, Evaluate::Nothing()));
      analyzer.Bind(var, Range::FromMinExtent(MakeZero(extent.dtype()), extent));
      // The variable of a loop that runs once stays written.
      value =
          IsOne(extent) ? (IsZero(low) ? PrimExpr(var) : low + var) : analyzer.Simplify(low + var);
    }
    nest.values.push_back(value);
    for (const PrimExpr& limit : limits) {
      PrimExpr condition =
          analyzer.Simplify(Substitute(limit, Map<Var, PrimExpr>{{value_var, value}}));
      bool known = std::any_of(nest.predicate.begin(), nest.predicate.end(),
                               [&](const PrimExpr& p) { return ExprDeepEqual(p, condition); });
      if (!known && !analyzer.CanProve(condition)) nest.predicate.push_back(condition);
    }
  }
  return nest;
}

void CheckNoOuterVars(const Placed& block) {
  std::unordered_set<const VarObj*> around;
  for (const Stmt& s : block.path) {
    if (auto* loop = s.as<ForObj>()) around.insert(loop->loop_var.get());
    if (auto* let = s.as<LetStmtObj>()) around.insert(let->var.get());
  }
  for (const Var& var : UndefinedVars(block.realize->block)) {
    if (around.count(var.get())) {
      Refuse("block " + std::string(block.block()->name_hint) + " uses variable " +
                 std::string(var->name_hint) + " of the statements around it",
             {block.realize->block});
    }
  }
}

void MoveBlock(State& state, const Focus& at, const LoopPlace& place, int position,
               const NewNest& nest) {
  Block block = at.block->realize->block;
  Stmt moved = InLoops(nest.loops, nest.Realize(block));
  Array<Stmt> body;
  for (size_t i = 0; i <= place.body.size(); ++i) {
    if (static_cast<int>(i) == position) body.push_back(moved);
    if (i < place.body.size()) body.push_back(place.body[i]);
  }
  For loop = place.loop;
  Edit(&loop)->body = SeqStmt::Flatten(body);
  Stmt with = ReplaceStmts(at.scope.block->body, {{at.block->realize.get(), Evaluate::Nothing()},
                                                  {place.loop.get(), loop}});
  Commit(state, at.scope_id, WithBody(at.scope.block, with));
}

}  // namespace tvm::tir
