// SPDX-License-Identifier: Apache-2.0
// storage_align: padding between the rows of a buffer.
#include "schedule/primitive/storage.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void StorageAlign(State& self, BlockId id, int64_t buffer_index, int64_t& axis, int64_t factor,
                  int64_t offset) {
  Block block = self.realize(id)->block;
  auto count = static_cast<int64_t>(block->writes.size());
  if (buffer_index < 0 || buffer_index >= count) {
    Refuse(Text("expected buffer_index in [0, ", count, "), the buffers the block writes, got ",
                buffer_index),
           {block});
  }
  const Buffer& buffer = block->writes[buffer_index]->buffer;
  auto rank = static_cast<int64_t>(buffer->shape.size());
  if (axis < -rank || axis >= rank) {
    Refuse(Text("expected axis in [", -rank, ", ", rank, ") for buffer ", buffer->name, ", got ",
                axis),
           {block});
  }
  if (axis < 0) axis += rank;
  if (factor <= 0) Refuse(Text("expected a positive factor, got ", factor), {block});
  for (auto [what, value] : {std::pair("a factor", factor), std::pair("an offset", offset)}) {
    if (value > INT32_MAX || value < -INT32_MAX)
      Refuse(Text("expected ", what, " of 32 bits, got ", value), {block});
  }
  RequireAllocated(self, id, buffer);
  Array<Any> entries, kept;
  if (auto it = block->annotations.find(attr::kStorageAlignment); it != block->annotations.end()) {
    entries = (*it).second.cast<Array<Any>>();
  }
  Array<Any> entry{buffer_index, axis, factor, offset};
  bool replaced = false;
  for (const Any& old : entries) {
    auto values = old.cast<Array<Any>>();
    bool same = values[0].cast<int64_t>() == buffer_index && values[1].cast<int64_t>() == axis;
    kept.push_back(same ? Any(entry) : old);
    replaced |= same;
  }
  if (!replaced) kept.push_back(entry);
  Edit(&block)->annotations.Set(attr::kStorageAlignment, kept);
  self.ReplaceBlock(id, block);
}

TVM_REGISTER() {
  DefPrimitive("StorageAlign", "storage_align", &StorageAlign, &Schedule::StorageAlign,
               "Makes the stride of an axis of a buffer that the block writes equal to offset "
               "modulo factor, by padding; it avoids bank conflicts. The buffer must be one that "
               "the program allocates.",
               {R"(
def before(A: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    B = T.alloc_buffer((16, 16))
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 16):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0)",
                R"(sch.storage_align("B", 0, axis=0, factor=32, offset=1))"},
               Arg("block"), Arg("buffer_index"), Arg("axis"), Arg("factor"), Arg("offset"));
}

}  // namespace
}  // namespace tvm::tir
