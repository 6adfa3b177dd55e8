// SPDX-License-Identifier: Apache-2.0
// cache_write: a block writes to a copy of its buffer, and another block writes the copy back.
#include "schedule/primitive/cache.h"
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

BlockId CacheWrite(State& state, BlockId id, BufferIndex& index, String storage_scope,
                   std::vector<BlockId> consumer_blocks) {
  Focus at(state, id);
  const Placed& writer = *at.block;
  Block block = writer.realize->block;
  Buffer buffer = BufferAt(writer, block->writes, index, "writes");
  std::string name = "buffer " + std::string(buffer->name);
  RequireWritesOnly(at, buffer);
  std::vector<const Placed*> readers = at.scope.ReadersOf(buffer), involved = readers, cached;
  if (!consumer_blocks.empty())
    cached = ChosenConsumers(at, state, consumer_blocks, readers, buffer);
  involved.push_back(&writer);
  Gap gap(at, involved, readers.empty());

  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(gap.loops));
  Relaxed region = Touched(writer, block->writes, buffer, gap.LoopsBelow(writer), &analyzer).back();
  // What is copied back and was not written would destroy what is there.
  bool nothing_to_lose = gap.loops.empty() && at.scope.Owns(buffer);
  bool exact = region.exact && !writer.IsConditional();
  if (!exact && !nothing_to_lose) {
    Refuse("cannot tell exactly which part of " + name + " block " + std::string(block->name_hint) +
               " writes",
           {block});
  }
  Buffer cache = NewCache(buffer, storage_scope);
  CopyNest copy = CopyBlock(cache, buffer, cache->name, region.box, gap.loops, exact);
  for (const Placed* reader : cached) {
    if (reader->order < writer.order) {
      Refuse("expected consumers after block " + std::string(block->name_hint) + ", got block " +
                 std::string(reader->block()->name_hint),
             {reader->realize->block});
    }
  }
  for (const Placed* reader : readers) {
    bool is_cached = std::find(cached.begin(), cached.end(), reader) != cached.end();
    if (!is_cached && gap.PositionOf(*reader) == gap.PositionOf(writer)) {
      Refuse("block " + std::string(reader->block()->name_hint) + " reads " + name +
                 " before the copy can be made: it shares loops with block " +
                 std::string(block->name_hint) + ", and others read the buffer outside of them",
             {reader->realize->block});
    }
  }
  cached.push_back(&writer);
  return InsertCopy(state, at, gap, gap.PositionOf(writer) + 1, copy, buffer, cache, cached);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "CacheWrite", "cache_write", &CacheWrite, &Schedule::CacheWrite,
      "Makes a block write to a buffer in another memory scope; another block, which is returned, "
      "copies it to where it belongs. The consumers given read the copy.",
      {kTwoStages, R"(sch.cache_write("C", 0, "local"))"}, Arg("block"), Arg("write_buffer_index"),
      Arg("storage_scope"), Arg("consumer_blocks", nullptr));
}
}  // namespace

}  // namespace tvm::tir
