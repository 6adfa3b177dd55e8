// SPDX-License-Identifier: Apache-2.0
// cache_inplace: a block that reads and writes a buffer works on a copy of it.
#include "schedule/primitive/cache.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

std::vector<BlockId> CacheInplace(State& state, BlockId id, BufferIndex& index,
                                  String storage_scope) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  Buffer buffer = BufferAt(p, block->reads, index, "reads");
  std::string name = "buffer " + std::string(buffer->name);
  BufferRegion read, write;  // arrays give values: no pointers into them
  for (const BufferRegion& r : block->reads) {
    if (r->buffer.same_as(buffer)) read = r;
  }
  for (const BufferRegion& w : block->writes) {
    if (w->buffer.same_as(buffer)) write = w;
  }
  if (!write.defined()) {
    Refuse("expected a buffer that block " + std::string(block->name_hint) +
               " reads and writes, got " + std::string(buffer->name),
           {block});
  }
  CheckPlainUse(p, buffer);
  Gap gap(at, {&p}, true);
  int position = gap.PositionOf(p);
  for (const Placed& other : at.scope.children) {
    if (other.order == p.order || gap.PositionOf(other) != position) continue;
    for (const auto& regions : {other.block()->reads, other.block()->writes}) {
      for (const BufferRegion& r : regions) {
        if (r->buffer->data.same_as(buffer->data)) {
          Refuse("block " + std::string(other.block()->name_hint) +
                     ", which shares loops with it, "
                     "also uses " +
                     name,
                 {other.realize->block});
        }
      }
    }
  }
  if (at.scope.IsLoose(buffer))
    Refuse("statements outside of blocks use " + name, {at.scope.block});
  arith::Analyzer analyzer;
  std::vector<For> loops = gap.LoopsBelow(p);
  auto relax = [&](const BufferRegion& r) {
    return Relax(BoundRegion(p.realize, r->region), loops, p.realize->predicate, &analyzer);
  };
  Relaxed in = relax(read), out = relax(write);
  if (!out.exact || p.IsConditional())
    Refuse("cannot tell exactly which part of " + name + " the block writes", {block});
  Buffer cache = NewCache(buffer, storage_scope);
  CopyNest before = CopyBlock(buffer, cache, cache->name, in.box, gap.loops, false);
  CopyNest after = CopyBlock(cache, buffer, buffer->name + "_back", out.box, gap.loops, true);
  BlockMap same;
  StmtMap changes{{p.realize.get(), ReplaceBuffer(p.realize, buffer, cache, &same)}};
  Stmt whole = gap.statements[position];
  Stmt with = Sequence({before.nest, ReplaceStmts(whole, changes), after.nest});
  Stmt body = ReplaceStmts(at.scope.block->body, {{whole.get(), with}});
  Commit(state, at.scope_id, WithAllocated(WithBody(at.scope.block, body), cache), same);
  return {state.Find(before.block.get()), state.Find(after.block.get())};
}

TVM_REGISTER() {
  DefPrimitive("CacheInplace", "cache_inplace", &CacheInplace, &Schedule::CacheInplace,
               "Makes a block that reads and writes a buffer work on a copy in another memory "
               "scope. Returns the block that copies to there and the one that copies back.",
               {R"(
def before(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = A[vi] + 1.0)",
                R"(sch.cache_inplace("A", 0, "local"))"},
               Arg("block"), Arg("read_buffer_index"), Arg("storage_scope"));
}
}  // namespace
}  // namespace tvm::tir
