// SPDX-License-Identifier: Apache-2.0
// read_at: what a block reads of a buffer in one iteration of a loop is copied there.
#include "schedule/primitive/cache.h"
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

namespace {

BlockId ReadAt(State& state, LoopId loop_id, BlockId id, BufferIndex& index, String storage_scope) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  LoopBody place(at, state, loop_id, storage_scope);
  Buffer buffer = BufferAt(p, block->reads, index, "reads");
  std::string name = "buffer " + std::string(buffer->name);
  if (at.scope.IsLoose(buffer))
    Refuse("statements outside of blocks use " + name, {at.scope.block});
  // Between the copy and the block the buffer must stay as it is.
  for (const Placed* writer : at.scope.WritersOf(buffer)) {
    const Stmt& own = place.statements[place.position];
    if (writer->realize.same_as(own) || writer->IsBelow(own.get())) {
      Refuse("block " + std::string(writer->block()->name_hint) + " writes " + name +
                 " where block " + std::string(block->name_hint) + " is to read the copy",
             {writer->realize->block, place.loop});
    }
  }
  CheckPlainUse(p, buffer);
  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(place.outer));
  Array<Array<arith::IntSet>> boxes;
  for (const Relaxed& read : Touched(p, block->reads, buffer, place.inner, &analyzer))
    boxes.push_back(read.box);
  Buffer cache = NewCache(buffer, storage_scope);
  BlockRealize copy = CopyAt(buffer, cache, cache->name, arith::UnionRegion(boxes), place.outer);
  BlockMap same;
  Stmt reads = ReplaceStmts(place.statements[place.position],
                            {{p.realize.get(), ReplaceBuffer(p.realize, buffer, cache, &same)}});
  Stmt body = ReplaceStmts(at.scope.block->body, {{place.loop.get(), place.With(copy, reads, {})}});
  Commit(state, at.scope_id, WithAllocated(WithBody(at.scope.block, body), cache), same);
  return state.Find(copy->block.get());
}

TVM_REGISTER() {
  DefPrimitive(
      "ReadAt", "read_at", &ReadAt, &Schedule::ReadAt,
      "Copies what a block reads of a buffer in one iteration of `loop` to another memory scope, "
      "in one block that is marked `auto_copy`, which is returned. The block reads the copy.",
      {kWideGrid,
       R"(i, j = sch.get_loops("B")
sch.read_at(i, "B", 0, "shared"))"},
      Arg("loop"), Arg("block"), Arg("read_buffer_index"), Arg("storage_scope"));
}

}  // namespace
}  // namespace tvm::tir
