// SPDX-License-Identifier: Apache-2.0
// Copies of buffers: where the copying block goes and what it copies.
#include "schedule/primitive/cache.h"

#include <algorithm>

#include "tir/threads.h"

namespace tvm::tir {

Gap::Gap(const Focus& at, const std::vector<const Placed*>& blocks, bool outermost)
    : sequence(at.scope.block->body) {
  size_t depth = blocks[0]->path.size();
  for (const Placed* p : blocks) {
    size_t same = 0;
    while (same < std::min(depth, p->path.size()) && p->path[same].same_as(blocks[0]->path[same]))
      ++same;
    depth = same;
  }
  if (outermost) depth = std::min<size_t>(depth, 1);
  while (depth > 0 && !blocks[0]->path[depth - 1].as<SeqStmtObj>()) --depth;
  path.assign(blocks[0]->path.begin(), blocks[0]->path.begin() + depth);
  if (depth > 0) sequence = path.back();
  for (const Stmt& s : path) {
    if (auto loop = s.as<For>()) loops.push_back(*loop);
  }
  auto* seq = sequence.as<SeqStmtObj>();
  statements = seq ? seq->seq : Array<Stmt>{sequence};
}
int Gap::PositionOf(const Placed& block) const {
  for (size_t i = 0; i < statements.size(); ++i) {
    if (statements[i].same_as(block.realize) || block.IsBelow(statements[i].get()))
      return static_cast<int>(i);
  }
  return -1;
}
std::vector<For> Gap::LoopsBelow(const Placed& block) const {
  std::vector<For> all = block.Loops();
  return {all.begin() + loops.size(), all.end()};
}
Stmt Gap::Insert(const Focus& at, int position, const Stmt& stmt, StmtMap changes) const {
  Array<Stmt> seq;
  for (size_t i = 0; i <= statements.size(); ++i) {
    if (static_cast<int>(i) == position) seq.push_back(stmt);
    if (i < statements.size()) seq.push_back(ReplaceStmts(statements[i], changes));
  }
  changes[sequence.get()] = SeqStmt::Flatten(seq);
  return ReplaceStmts(at.scope.block->body, changes);
}

CopyNest CopyBlock(const Buffer& from, const Buffer& to, const String& name,
                   const Array<arith::IntSet>& box, const std::vector<For>& outer, bool exact) {
  Array<IterVar> iters;
  IterRanges ranges;
  for (size_t i = 0; i < from->shape.size(); ++i) {
    DataType t = from->shape[i].dtype();
    bool bounded = box[i].HasLowerBound() && box[i].HasUpperBound();
    // Outside of loops what is copied is known: the block runs for all values of its iterators.
    Range domain = Range::FromMinExtent(MakeZero(t), from->shape[i]);
    if (bounded && outer.empty()) {  // a region may reach beyond the buffer under a condition
      arith::Analyzer analyzer;
      PrimExpr begin = analyzer.Simplify(max(box[i].min(), MakeZero(t)));
      PrimExpr end = min(box[i].max() + MakeConst(t, 1), from->shape[i]);
      domain = Range::FromMinExtent(begin, analyzer.Simplify(end - begin));
    }
    iters.push_back(IterVar(domain, Var("v" + std::to_string(i), t), IterVarType::kDataPar));
    ranges.push_back(bounded ? std::optional(std::pair(box[i].min(), box[i].max())) : std::nullopt);
  }
  Array<PrimExpr> indices = ValuesOf(iters);
  Block block(iters, {BufferRegion::Point(from, indices)}, {BufferRegion::Point(to, indices)}, name,
              BufferStore(to, BufferLoad(from, indices), indices));
  NewNest nest = NestFor(block, ranges, outer, true, exact);
  return {block, InLoops(nest.loops, nest.Realize(block))};
}

BlockRealize CopyAt(const Buffer& from, const Buffer& to, const String& name,
                    const Array<arith::IntSet>& box, const std::vector<For>& outer) {
  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(outer));
  std::vector<For> loops;
  Array<PrimExpr> at;
  std::vector<PrimExpr> inside;
  for (size_t i = 0; i < from->shape.size(); ++i) {
    DataType t = from->shape[i].dtype();
    PrimExpr begin = MakeZero(t), extent = from->shape[i];
    if (box[i].HasLowerBound() && box[i].HasUpperBound()) {
      begin = analyzer.Simplify(cast(t, box[i].min()));
      extent = analyzer.Simplify(cast(t, box[i].max()) - begin + MakeConst(t, 1));
    }
    at.push_back(begin);
    if (!IsOne(extent)) {
      Var var("ax" + std::to_string(loops.size()), t);
      loops.push_back(For(var, MakeZero(t), extent, ForKind::kSerial, Evaluate::Nothing()));
      analyzer.Bind(var, Range::FromMinExtent(MakeZero(t), extent));
      at.Set(i, analyzer.Simplify(begin + var));
    }
    for (const PrimExpr& condition : {at[i] >= MakeZero(t), at[i] < from->shape[i]}) {
      if (!analyzer.CanProve(condition)) inside.push_back(condition);
    }
  }
  Stmt body = BufferStore(to, BufferLoad(from, at), at);
  if (!inside.empty()) body = IfThenElse(AllOf(inside), body);
  body = InLoops(loops, body);

  Array<IterVar> iters;
  Array<PrimExpr> values;
  Map<Var, PrimExpr> map;
  for (const For& loop : outer) {
    if (!UsesAny(body, {loop->loop_var.get()})) continue;
    Var v("v" + std::to_string(iters.size()), loop->loop_var.dtype());
    iters.push_back(
        IterVar(Range::FromMinExtent(loop->min, loop->extent), v, IterVarType::kDataPar));
    values.push_back(loop->loop_var);
    map.Set(loop->loop_var, v);
  }
  Block block(iters, {}, {}, name, Substitute(body, map));
  Edit(&block)->annotations = {{"auto_copy", true}};
  return BlockRealize(values, const_true(), WithInferredRegions(block));
}

LoopBody::LoopBody(const Focus& at, const State& state, LoopId id, const String& storage_scope)
    : loop(ffi::GetRef<For>(state.loop(id))) {
  const Placed& p = *at.block;
  std::string block = "block " + std::string(p.block()->name_hint);
  if (!p.IsBelow(loop.get())) {
    Refuse(
        "expected a loop around " + block + ", got loop " + std::string(loop->loop_var->name_hint),
        {loop, p.realize->block});
  }
  bool below = false;
  for (const Stmt& s : p.path) {
    if (auto l = s.as<For>()) {
      const IterVarObj* thread = LaunchedThread(l->get());
      bool is_shared = thread && IsSharedScope(storage_scope) &&
                       ThreadTag(thread->thread_tag).kind == ThreadTag::kThread;
      (below || is_shared ? inner : outer).push_back(*l);
    }
    below |= s.same_as(loop);
  }
  auto* seq = loop->body.as<SeqStmtObj>();
  statements = seq ? seq->seq : Array<Stmt>{loop->body};
  while (!statements[position].same_as(p.realize) && !p.IsBelow(statements[position].get()))
    ++position;
}
Stmt LoopBody::With(const Stmt& before, const Stmt& changed, const Stmt& after) const {
  Array<Stmt> all;
  for (size_t i = 0; i < statements.size(); ++i) {
    if (i != position) {
      all.push_back(statements[i]);
      continue;
    }
    if (before.defined()) all.push_back(before);
    all.push_back(changed);
    if (after.defined()) all.push_back(after);
  }
  For with = loop;
  Edit(&with)->body = SeqStmt::Flatten(all);
  return with;
}

Buffer BufferAt(const Placed& block, const Array<BufferRegion>& regions, BufferIndex& index,
                const char* what) {
  std::string given, names;
  int64_t found = -1;
  auto count = static_cast<int64_t>(regions.size());
  for (int64_t i = 0; i < count; ++i) {
    const Buffer& b = regions[i]->buffer;
    names += (i ? ", " : "") + std::string(b->name);
    if (auto name = index.as<String>(); name && *name == b->name && found < 0) found = i;
    if (auto buffer = index.as<Buffer>(); buffer && buffer->same_as(b)) found = i;
  }
  if (auto position = index.as<int64_t>()) {
    given = std::to_string(*position);
    if (*position >= 0 && *position < count) found = *position;
  } else if (auto name = index.as<String>()) {
    given = "'" + std::string(*name) + "'";
  } else {
    given = "another buffer named " + std::string(index.get<Buffer>()->name);
  }
  if (found < 0) {
    Refuse(Text("expected the position (from 0) or name of a buffer that block ",
                block.block()->name_hint, " ", what, " (", names, "), got ", given),
           {block.realize->block});
  }
  index = found;
  return regions[found]->buffer;
}

void CheckPlainUse(const Placed& block, const Buffer& buffer) {
  if (IsUsedOtherwise(block.realize->block, buffer)) {
    Refuse("block " + std::string(block.block()->name_hint) + " uses buffer " +
               std::string(buffer->name) + " through its pointer or another view",
           {block.realize->block});
  }
}

void RequireWritesOnly(const Focus& at, const Buffer& buffer) {
  const Placed& writer = *at.block;
  Block block = writer.realize->block;
  Require(WhyNotDominant(at.scope, writer), {block});
  for (const BufferRegion& read : ReadsOf(block.get())) {
    if (read->buffer->data.same_as(buffer->data)) {
      Refuse("expected a block that only writes buffer " + std::string(buffer->name) +
                 ", but block " + std::string(block->name_hint) + " also reads it",
             {block});
    }
  }
}

namespace {
bool IsScope(std::string_view scope) {
  // rank and an optional tag: "shared.dyn", "wmma.accumulator", "global.vtcm"
  for (std::string_view rank : {"global", "shared", "warp", "local", "wmma", "texture", "m16n8k8",
                                "metal", "amx", "vtcm"}) {
    if (scope == rank || scope.starts_with(std::string(rank) + ".")) return true;
  }
  return false;
}
}  // namespace

String CacheName(const Buffer& buffer, const String& scope) {
  if (!scope.empty() && !IsScope(View(scope)))
    Refuse(
        Text("expected a memory scope such as 'global', 'shared' or 'local', got '", scope, "'"));
  std::string suffix(scope.empty() ? String("global") : scope);
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  return std::string(buffer->name) + "_" + suffix;
}
Buffer NewCache(const Buffer& buffer, const String& scope) {
  return NewBufferLike(buffer, buffer->shape, CacheName(buffer, scope), scope);
}
BlockId InsertCopy(State& state, const Focus& at, const Gap& gap, int position,
                   const CopyNest& copy, const Buffer& buffer, const Buffer& cache,
                   const std::vector<const Placed*>& users) {
  StmtMap changes;
  BlockMap same;
  for (const Placed* user : users)
    changes[user->realize.get()] = ReplaceBuffer(user->realize, buffer, cache, &same);
  Stmt body = gap.Insert(at, position, copy.nest, changes);
  Commit(state, at.scope_id, WithAllocated(WithBody(at.scope.block, body), cache), same);
  return state.Find(copy.block.get());
}

std::vector<const Placed*> ChosenConsumers(const Focus& at, const State& state,
                                           const std::vector<BlockId>& given,
                                           const std::vector<const Placed*>& candidates,
                                           const Buffer& buffer) {
  if (given.empty()) return candidates;
  std::vector<const Placed*> chosen;
  for (BlockId id : given) {
    const Placed* found = nullptr;
    for (const Placed* p : candidates) {
      if (p->block() == state.block(id)) found = p;
    }
    if (!found) {
      Refuse("expected consumers that read buffer " + std::string(buffer->name) +
                 " in the same scope, got block " + std::string(state.block(id)->name_hint),
             {state.inner_stmt(id)});
    }
    chosen.push_back(found);
  }
  std::sort(chosen.begin(), chosen.end(), [](auto* a, auto* b) { return a->order < b->order; });
  return chosen;
}

}  // namespace tvm::tir
