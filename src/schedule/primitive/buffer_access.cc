// SPDX-License-Identifier: Apache-2.0
// annotate_buffer_access and unsafe_hide_buffer_access: what a block says it reads and writes.
#include <algorithm>

#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

/// The regions that `buf_type` names.
Array<BufferRegion>* Regions(Block* block, const String& buf_type) {
  if (buf_type != "read" && buf_type != "write") {
    Refuse(Text("expected \"read\" or \"write\" as buf_type, got \"", buf_type, "\""), {*block});
  }
  auto* n = Edit(block);
  return buf_type == "read" ? &n->reads : &n->writes;
}
void CheckIndex(int64_t index, const Array<BufferRegion>& regions, const Block& block) {
  auto count = static_cast<int64_t>(regions.size());
  if (index < 0 || index >= count) {
    Refuse(Text("expected the index of a buffer in [0, ", count, "), got ", index), {block});
  }
}

void AnnotateBufferAccess(State& self, BlockId id, int64_t buffer_index, String buf_type,
                          IndexMap gen_new_ranges) {
  Block block = self.realize(id)->block;
  Array<BufferRegion>* regions = Regions(&block, buf_type);
  CheckIndex(buffer_index, *regions, block);
  BufferRegion old = (*regions)[buffer_index];
  size_t rank = old->region.size();
  if (gen_new_ranges->initial_indices.size() != block->iter_vars.size() ||
      gen_new_ranges->final_indices.size() != 2 * rank) {
    Refuse(Text("expected ranges of ", block->iter_vars.size(), " iterators with ", rank,
                " pairs (begin, end), got ", gen_new_ranges->initial_indices.size(),
                " iterators and ", gen_new_ranges->final_indices.size(), " values"),
           {block});
  }
  arith::Analyzer analyzer;
  Array<PrimExpr> iters;
  for (const IterVar& iter : block->iter_vars) {
    iters.push_back(iter->var);
    analyzer.Bind(iter->var, iter->dom.value());
  }
  Array<PrimExpr> ends = gen_new_ranges.MapIndices(iters, &analyzer);
  Array<Range> region;
  for (size_t i = 0; i < rank; ++i) {
    PrimExpr extent = analyzer.Simplify(ends[2 * i + 1] - ends[2 * i]);
    region.push_back(Range::FromMinExtent(ends[2 * i], extent));
  }
  regions->Set(buffer_index, BufferRegion(old->buffer, region));
  auto* n = Edit(&block);
  String key = "explicit_" + std::string(buf_type) + "_region";
  Array<Any> listed;
  if (auto it = n->annotations.find(key); it != n->annotations.end()) {
    listed = (*it).second.cast<Array<Any>>();
  }
  bool known = std::any_of(listed.begin(), listed.end(),
                           [&](const Any& i) { return i.cast<int64_t>() == buffer_index; });
  if (!known) listed.push_back(buffer_index);
  n->annotations.Set(key, listed);
  self.ReplaceBlock(id, block);
}

void UnsafeHideBufferAccess(State& self, BlockId id, String buf_type,
                            Array<int64_t> buf_index_array) {
  Block block = self.realize(id)->block;
  Array<BufferRegion>* regions = Regions(&block, buf_type);
  Array<BufferRegion> kept;
  for (int64_t index : buf_index_array) CheckIndex(index, *regions, block);
  for (size_t i = 0; i < regions->size(); ++i) {
    bool hidden = std::find(buf_index_array.begin(), buf_index_array.end(),
                            static_cast<int64_t>(i)) != buf_index_array.end();
    if (!hidden) kept.push_back((*regions)[i]);
  }
  *regions = kept;
  self.ReplaceBlock(id, block);
}

constexpr const char* kProgram = R"(
def before(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    for i, j in T.grid(16, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0)";

TVM_REGISTER() {
  DefPrimitive(
      "AnnotateBufferAccess", "annotate_buffer_access", &AnnotateBufferAccess,
      &Schedule::AnnotateBufferAccess,
      "Sets the region of a buffer that a block reads or writes: gen_new_ranges maps the "
      "block's iterators to (begin, end) for each dimension. The annotation explicit_read_region "
      "or explicit_write_region lists the buffers whose region was given.",
      {kProgram,
       R"(sch.annotate_buffer_access(sch.get_block("B"), 0, "read",
    lambda vi, vj: [(vi, vi + 1), (0, 16)]))"},
      Arg("block"), Arg("buffer_index"), Arg("buf_type"), Arg("gen_new_ranges"));
  DefPrimitive("UnsafeHideBufferAccess", "unsafe_hide_buffer_access", &UnsafeHideBufferAccess,
               &Schedule::UnsafeHideBufferAccess,
               "Takes buffers out of what a block says it reads or writes. Later primitives trust "
               "what is left: the program may become wrong.",
               {kProgram, R"(sch.unsafe_hide_buffer_access(sch.get_block("B"), "read", [0]))"},
               Arg("block"), Arg("buf_type"), Arg("buf_index_array"));
}

}  // namespace
}  // namespace tvm::tir
