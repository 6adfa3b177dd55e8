// SPDX-License-Identifier: Apache-2.0
// write_at: what a block writes to a buffer in one iteration of a loop is copied to it there.
#include "schedule/primitive/cache.h"
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

BlockId WriteAt(State& state, LoopId loop_id, BlockId id, BufferIndex& index,
                String storage_scope) {
  Focus at(state, id);
  const Placed& p = *at.block;
  Block block = p.realize->block;
  LoopBody place(at, state, loop_id, storage_scope);
  Buffer buffer = BufferAt(p, block->writes, index, "writes");
  RequireWritesOnly(at, buffer);
  std::string name = "buffer " + std::string(buffer->name);
  for (const IterVar& iter : block->iter_vars) {
    if (iter->iter_type == IterVarType::kOpaque) {
      Refuse("expected a block that writes all it covers, but block " +
                 std::string(block->name_hint) + " leaves to its opaque iterator " +
                 std::string(iter->var->name_hint) + " which part it writes",
             {block});
    }
  }
  const Stmt& own = place.statements[place.position];
  for (const Placed* reader : at.scope.ReadersOf(buffer)) {
    if (reader->realize.same_as(own) || reader->IsBelow(own.get())) {
      Refuse("block " + std::string(reader->block()->name_hint) + " reads " + name +
                 " before it is copied",
             {reader->realize->block, place.loop});
    }
  }
  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(place.outer));
  Relaxed region = Touched(p, block->writes, buffer, place.inner, &analyzer).back();
  // What is copied and was not written would destroy what is there.
  if (!region.exact || p.IsConditional()) {
    Refuse("cannot tell exactly which part of " + name + " block " + std::string(block->name_hint) +
               " writes in one iteration of loop " + std::string(place.loop->loop_var->name_hint),
           {block, place.loop});
  }
  Buffer cache = NewCache(buffer, storage_scope);
  BlockRealize copy = CopyAt(cache, buffer, cache->name, region.box, place.outer);
  BlockMap same;
  Stmt writes =
      ReplaceStmts(own, {{p.realize.get(), ReplaceBuffer(p.realize, buffer, cache, &same)}});
  Stmt body =
      ReplaceStmts(at.scope.block->body, {{place.loop.get(), place.With({}, writes, copy)}});
  Commit(state, at.scope_id, WithAllocated(WithBody(at.scope.block, body), cache), same);
  return state.Find(copy->block.get());
}

TVM_REGISTER() {
  DefPrimitive(
      "WriteAt", "write_at", &WriteAt, &Schedule::WriteAt,
      "Makes a block write to a buffer in another memory scope. In each iteration of `loop` one "
      "block, which is marked `auto_copy` and returned, copies what was written to where it "
      "belongs.",
      {kWideGrid,
       R"(i, j = sch.get_loops("B")
sch.write_at(i, "B", 0, "shared"))"},
      Arg("loop"), Arg("block"), Arg("write_buffer_index"), Arg("storage_scope"));
}

}  // namespace
}  // namespace tvm::tir
