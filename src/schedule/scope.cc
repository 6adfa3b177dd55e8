// SPDX-License-Identifier: Apache-2.0
// Dependences between the child blocks of a block, from the regions they say they touch.
#include <algorithm>

#include "tvm/schedule/state.h"

namespace tvm::tir {
namespace {

struct Access {
  std::vector<BlockId> writers, readers;
};

const Scope* Compute(const State& state, BlockId scope_block) {
  auto* scope = new Scope;
  scope->blocks = state.ChildBlocks(scope_block);
  std::unordered_map<const Object*, Access> accesses;
  auto link = [&](const std::vector<BlockId>& sources, BlockId dst, DepKind kind) {
    for (BlockId src : sources) {
      if (src == dst) continue;
      scope->by_src[src].push_back({src, dst, kind});
      scope->by_dst[dst].push_back({src, dst, kind});
    }
  };
  auto add = [](std::vector<BlockId>* to, BlockId block) {
    if (to->empty() || to->back() != block) to->push_back(block);
  };
  for (BlockId id : scope->blocks) {
    const BlockObj* block = state.block(id);
    std::vector<const Object*> reads, writes;  // each buffer once
    auto collect = [](const Array<BufferRegion>& regions, std::vector<const Object*>* to) {
      for (const BufferRegion& r : regions) {
        const Object* data = r->buffer->data.get();
        if (std::find(to->begin(), to->end(), data) == to->end()) to->push_back(data);
      }
    };
    collect(block->reads, &reads);
    collect(block->writes, &writes);
    for (const Object* data : reads) link(accesses[data].writers, id, DepKind::kRAW);
    for (const Object* data : writes) {
      link(accesses[data].writers, id, DepKind::kWAW);
      link(accesses[data].readers, id, DepKind::kWAR);
    }
    for (const Object* data : reads) add(&accesses[data].readers, id);
    for (const Object* data : writes) add(&accesses[data].writers, id);
  }
  for (auto& [data, access] : accesses) {
    if (!access.writers.empty()) scope->writers[data] = std::move(access.writers);
  }
  return scope;
}

}  // namespace

const Scope& State::scope(BlockId block) const {
  ScopeCell& cell = *entry(block).scope;
  const Scope* known = cell.value.load(std::memory_order_acquire);
  if (known) return *known;
  const Scope* made = Compute(*this, block);
  if (cell.value.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return *made;
  delete made;  // another thread's copy of the state was faster
  return *known;
}

}  // namespace tvm::tir
