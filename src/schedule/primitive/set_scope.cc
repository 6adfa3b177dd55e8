// SPDX-License-Identifier: Apache-2.0
// set_scope: the memory that a buffer lives in.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/storage.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {

BlockId RequireAllocated(const State& state, BlockId block, const Buffer& buffer) {
  for (NodeId up = block; up != kNoNode; up = state.parent(up)) {
    if (!state.IsBlock(up)) continue;
    for (const Buffer& b : state.block({up})->alloc_buffers) {
      if (b.same_as(buffer)) return {up};
    }
  }
  Refuse(Text("expected a buffer that the program allocates, got ", buffer->name),
         {state.inner_stmt(block)});
}

namespace {

void SetScope(State& self, BlockId id, BufferIndex& buffer_index, String storage_scope) {
  Focus at(self, id);
  Buffer buffer = BufferAt(*at.block, at.block->block()->writes, buffer_index, "writes");
  BlockId owner = RequireAllocated(self, id, buffer);
  String name = CacheName(buffer, storage_scope);
  if (buffer.scope() == storage_scope) return;
  Block block = self.realize(owner)->block;
  Buffer moved(Var(name, PointerType(PrimType(buffer->dtype), storage_scope)), buffer->dtype,
               buffer->shape, buffer->strides, buffer->elem_offset, name, buffer->data_alignment,
               buffer->offset_factor, buffer->buffer_type, buffer->axis_separators, buffer->span);
  BlockMap same;
  auto changed = ReplaceBuffer(block, buffer, moved, &same).as<Block>().value();
  Commit(self, owner, changed, same);
}

TVM_REGISTER() {
  DefPrimitive("SetScope", "set_scope", &SetScope, &Schedule::SetScope,
               "Puts a buffer that the block writes in another memory, such as shared or local. "
               "The buffer must be one that the program allocates.",
               {kTwoStages, R"(sch.set_scope("B", 0, "shared"))"}, Arg("block"),
               Arg("buffer_index"), Arg("storage_scope"));
}

}  // namespace
}  // namespace tvm::tir
