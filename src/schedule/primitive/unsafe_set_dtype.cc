// SPDX-License-Identifier: Apache-2.0
// unsafe_set_dtype: the type of the elements of a buffer.
#include "schedule/primitive/examples.h"
#include "schedule/primitive/storage.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void UnsafeSetDType(State& self, BlockId id, BufferIndex& buffer_index, String name) {
  DataType dtype(name);
  Focus at(self, id);
  Buffer buffer = BufferAt(*at.block, at.block->block()->writes, buffer_index, "writes");
  BlockId owner = RequireAllocated(self, id, buffer);
  if (buffer->dtype == dtype) return;
  if (dtype.is_void() || dtype.is_handle() || dtype.lanes() != 1) {
    Refuse(Text("expected a scalar type of numbers, got ", dtype), {at.block->realize->block});
  }
  Block block = self.realize(owner)->block;
  if (IsUsedThroughPointer(block->body, buffer)) {
    Refuse(Text("expected buffer ", buffer->name,
                " to be used by loads and stores only, not through its pointer"),
           {at.block->realize->block});
  }
  Buffer typed(Var(buffer->name, PointerType(PrimType(dtype), buffer.scope())), dtype,
               buffer->shape, buffer->strides, buffer->elem_offset, buffer->name,
               buffer->data_alignment, buffer->offset_factor, buffer->buffer_type,
               buffer->axis_separators, buffer->span);
  BlockMap same;
  Commit(self, owner, ReplaceBuffer(block, buffer, typed, &same).as<Block>().value(), same);
}

TVM_REGISTER() {
  DefPrimitive("UnsafeSetDType", "unsafe_set_dtype", &UnsafeSetDType, &Schedule::UnsafeSetDType,
               "Gives a buffer that the block writes elements of another type; values are "
               "converted when they are stored and loaded. Results may change by the rounding. "
               "The buffer must be one that the program allocates.",
               {kTwoStages, R"(sch.unsafe_set_dtype("B", 0, "float16"))"}, Arg("block"),
               Arg("buffer_index"), Arg("dtype"));
}

}  // namespace
}  // namespace tvm::tir
