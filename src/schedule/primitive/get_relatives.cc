// SPDX-License-Identifier: Apache-2.0
// get_child_blocks, get_producers, get_consumers, get_output_blocks: blocks by how they relate.
#include <algorithm>
#include <unordered_set>

#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

std::vector<BlockId> GetChildBlocks(const State& self, BlockOrLoopId id) {
  return self.ChildBlocks(id);
}

std::vector<BlockId> Related(const State& self, BlockId block, bool producers) {
  BlockId scope_block = self.ScopeOf(block);
  if (scope_block == kNoNode) {
    Refuse("expected a block within another one, got a root block", {self.inner_stmt(block)});
  }
  const Scope& scope = self.scope(scope_block);
  std::vector<BlockId> found;
  for (const DepEdge& edge : producers ? scope.To(block) : scope.From(block)) {
    BlockId other = producers ? edge.src : edge.dst;
    bool known = std::find(found.begin(), found.end(), other) != found.end();
    if (edge.kind == DepKind::kRAW && !known) found.push_back(other);
  }
  return found;
}
std::vector<BlockId> GetProducers(const State& self, BlockId block) {
  return Related(self, block, true);
}
std::vector<BlockId> GetConsumers(const State& self, BlockId block) {
  return Related(self, block, false);
}

std::vector<BlockId> GetOutputBlocks(const State& self, BlockId scope_block) {
  std::unordered_set<const VarObj*> allocated;
  std::vector<BlockId> found;
  auto visit = [&](auto& self_, BlockId above) -> void {
    for (const Buffer& b : self.block(above)->alloc_buffers) allocated.insert(b->data.get());
    for (const MatchBufferRegion& m : self.block(above)->match_buffers) {
      if (allocated.count(m->source->buffer->data.get())) allocated.insert(m->buffer->data.get());
    }
    for (BlockId child : self.ChildBlocks(above)) {
      const auto& writes = self.block(child)->writes;
      if (std::any_of(writes.begin(), writes.end(), [&](const BufferRegion& write) {
            return !allocated.count(write->buffer->data.get());
          })) {
        found.push_back(child);
      }
      self_(self_, child);
    }
  };
  visit(visit, scope_block);
  return found;
}

TVM_REGISTER() {
  DefPrimitive("GetChildBlocks", "get_child_blocks", &GetChildBlocks, &Schedule::GetChildBlocks,
               "The blocks below a block or loop that no other block lies between, in the order of "
               "the program.",
               {kTwoStages, R"(b, c = sch.get_child_blocks(sch.get_block("root")))"},
               Arg("block_or_loop"));
  DefPrimitive("GetProducers", "get_producers", &GetProducers, &Schedule::GetProducers,
               "The blocks of the same scope that write what a block reads.",
               {kTwoStages, R"(b, = sch.get_producers("C"))"}, Arg("block"));
  DefPrimitive("GetConsumers", "get_consumers", &GetConsumers, &Schedule::GetConsumers,
               "The blocks of the same scope that read what a block writes.",
               {kTwoStages, R"(c, = sch.get_consumers("B"))"}, Arg("block"));
  DefPrimitive("GetOutputBlocks", "get_output_blocks", &GetOutputBlocks, &Schedule::GetOutputBlocks,
               "The blocks below a scope that write a buffer which lives on after it, an outer one "
               "before those inside of it.",
               {kTwoStages, R"(c, = sch.get_output_blocks("root"))"}, Arg("scope_block"));
}

}  // namespace
}  // namespace tvm::tir
