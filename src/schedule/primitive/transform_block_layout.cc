// SPDX-License-Identifier: Apache-2.0
// transform_block_layout: a block runs over other iterators, one to one with those it had.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/layout.h"
#include "tir/index_simplifier.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void TransformBlockLayout(State& state, BlockId id, IndexMapLike& index_map) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  std::string name = "block " + std::string(block->name_hint);
  Require(WhyNotStage(at.scope, p), {block});
  // The loops that stand for the iterators, and nothing else, are replaced.
  size_t rank = block->iter_vars.size();
  std::vector<For> loops;
  for (auto s = p.path.rbegin(); s != p.path.rend() && s->as<ForObj>() && loops.size() < rank; ++s)
    loops.insert(loops.begin(), *s->as<For>());
  bool plain = loops.size() == rank && IsTrue(p.realize->predicate) && rank > 0;
  for (size_t i = 0; plain && i < rank; ++i) {
    plain = p.realize->iter_values[i].same_as(loops[i]->loop_var) && IsZero(loops[i]->min) &&
            loops[i]->kind == ForKind::kSerial;
  }
  if (!plain) {
    Refuse("expected the iterators of " + name + " to be the loops around it, in their order",
           {block});
  }
  DataType t = block->iter_vars[0]->var.dtype();
  IndexMap map = ResolveIndexMap(index_map, rank, t);
  Array<Range> ranges = block->iter_vars.Map([](const IterVar& i) { return i->dom.value(); });
  arith::Analyzer analyzer;
  Array<Range> image = map.MapRanges(ranges, &analyzer);
  Array<PrimExpr> old = ValuesOf(block->iter_vars);
  Array<PrimExpr> mapped = map.MapIndices(old, &analyzer);

  Array<IterVar> iters;
  Array<PrimExpr> values, new_vars;
  std::vector<For> nest;
  for (size_t i = 0; i < mapped.size(); ++i) {
    int types = 0;
    for (const IterVar& iter : block->iter_vars) {
      if (UsesVar(mapped[i], [&](const VarObj* v) { return v == iter->var.get(); }))
        types |= 1 << static_cast<int>(iter->iter_type);
    }
    if (types & (types - 1)) {
      Refuse(
          "expected index_map not to mix spatial and reduction iterators, got " + Text(mapped[i]),
          {block});
    }
    auto type = IterVarType::kDataPar;
    if (types == 1 << static_cast<int>(IterVarType::kCommReduce)) type = IterVarType::kCommReduce;
    Range range = Range::FromMinExtent(cast(t, analyzer.Simplify(image[i]->min)),
                                       cast(t, analyzer.Simplify(image[i]->extent)));
    Var loop("ax" + std::to_string(i), t), v("v" + std::to_string(i), t);
    iters.push_back(IterVar(range, v, type));
    nest.push_back(For(loop, range->min, range->extent, ForKind::kSerial, Evaluate::Nothing()));
    values.push_back(loop);
    new_vars.push_back(v);
  }
  IndexMap inverse;
  try {
    inverse = map.Inverse(ranges, &analyzer);
  } catch (const ffi::Error&) {
    Refuse("expected index_map to be one to one, got " + Spelled(map), {block});
  }
  Array<PrimExpr> back = inverse.MapIndices(new_vars, &analyzer);
  Map<Var, PrimExpr> to_old;
  for (size_t i = 0; i < rank; ++i)
    to_old.Set(block->iter_vars[i]->var, cast(t, analyzer.Simplify(back[i])));
  Block bare = block;
  Edit(&bare)->iter_vars = {};
  Block with = Any(Substitute(Stmt(bare), to_old)).cast<Block>();
  Edit(&with)->iter_vars = iters;
  BlockRealize simpler = IndexSimplifier().Mutate(BlockRealize(values, const_true(), with));
  with = WithInferredRegions(simpler->block);
  Stmt body = InLoops(nest, BlockRealize(values, const_true(), with));
  Stmt replaced = ReplaceStmts(at.scope.block->body, {{loops[0].get(), body}});
  Commit(state, at.scope_id, WithBody(at.scope.block, replaced), {{with.get(), block}});
}

TVM_REGISTER() {
  DefPrimitive(
      "TransformBlockLayout", "transform_block_layout", &TransformBlockLayout,
      &Schedule::TransformBlockLayout,
      "Makes a block run over `index_map` of its iterators, which is one to one, with new loops.",
      {kWideGrid, R"(sch.transform_block_layout("B", lambda i, j: (i * 64 + j,)))"}, Arg("block"),
      Arg("index_map"));
}
}  // namespace
}  // namespace tvm::tir
