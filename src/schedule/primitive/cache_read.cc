// SPDX-License-Identifier: Apache-2.0
// cache_read: a block copies what is read of a buffer, and readers use the copy.
#include "schedule/primitive/cache.h"
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

BlockId CacheRead(State& state, BlockId id, BufferIndex& index, String storage_scope,
                  std::vector<BlockId> consumer_blocks) {
  Focus at(state, id);
  Buffer buffer = BufferAt(*at.block, at.block->block()->reads, index, "reads");
  std::string name = "buffer " + std::string(buffer->name);
  std::vector<const Placed*> consumers =
      ChosenConsumers(at, state, consumer_blocks, at.scope.ReadersOf(buffer), buffer);
  if (consumers.empty())
    Refuse("expected a block that reads " + name + " from outside, got one that updates it",
           {at.block->realize->block});
  std::vector<const Placed*> writers = at.scope.WritersOf(buffer), involved = consumers;
  if (at.scope.IsLoose(buffer))
    Refuse("statements outside of blocks use " + name, {at.scope.block});
  involved.insert(involved.end(), writers.begin(), writers.end());
  Gap gap(at, involved, writers.empty());

  int position = gap.PositionOf(*consumers[0]), last = gap.PositionOf(*consumers.back());
  for (const Placed* writer : writers) {
    int at_writer = gap.PositionOf(*writer);
    bool before = at_writer<position, after = at_writer> last;
    if (!before && !after) {
      Refuse("block " + std::string(writer->block()->name_hint) + " writes " + name +
                 " between or together with the blocks that are to read the copy",
             {writer->realize->block});
    }
  }
  arith::Analyzer analyzer;
  analyzer.Bind(DomainsOf(gap.loops));
  Array<Array<arith::IntSet>> boxes;
  for (const Placed* consumer : consumers) {
    for (const Relaxed& read :
         Touched(*consumer, consumer->block()->reads, buffer, gap.LoopsBelow(*consumer), &analyzer))
      boxes.push_back(read.box);
  }
  Buffer cache = NewCache(buffer, storage_scope);
  CopyNest copy =
      CopyBlock(buffer, cache, cache->name, arith::UnionRegion(boxes), gap.loops, false);
  return InsertCopy(state, at, gap, position, copy, buffer, cache, consumers);
}

namespace {
TVM_REGISTER() {
  DefPrimitive(
      "CacheRead", "cache_read", &CacheRead, &Schedule::CacheRead,
      "Copies what is read of a buffer to one in another memory scope, which the consumers (all of "
      "the scope when none are given) read instead. Returns the block that copies.",
      {kTwoStages, R"(sch.cache_read("C", 0, "local"))"}, Arg("block"), Arg("read_buffer_index"),
      Arg("storage_scope"), Arg("consumer_blocks", nullptr));
}
}  // namespace

}  // namespace tvm::tir
