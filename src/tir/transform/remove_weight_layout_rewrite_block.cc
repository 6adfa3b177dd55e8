// SPDX-License-Identifier: Apache-2.0
// Removes blocks that bring weights into another layout: the caller gives them in that layout.
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char* kPreprocessing = "meta_schedule.layout_rewrite_preproc";

struct RewriteRemover : Mutator<RewriteRemover, BlockObj, BlockRealizeObj, ForObj, SeqStmtObj> {
  bool skip_tensor_rewrite;
  std::unordered_map<const BufferObj*, Buffer> rewritten;  // from source to its new layout

  ObjectRef Rewrite(const BlockRealizeObj* op) {
    if (!op->block->annotations.count(kPreprocessing)) return MapChildren(op, *this);
    auto* store = op->block->body.as<BufferStoreObj>();
    auto* load = store ? store->value.as<BufferLoadObj>() : nullptr;
    if (!load) {
      TVM_FFI_THROW(ValueError) << "RemoveWeightLayoutRewriteBlock: expected block "
                                << op->block->name_hint
                                << " to copy elements of one buffer to another";
    }
    rewritten[load->buffer.get()] = store->buffer;
    return Evaluate::Nothing();
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    return IsNothing(loop->body) ? ObjectRef(loop->body) : ObjectRef(loop);
  }
  ObjectRef Rewrite(const SeqStmtObj* op) {
    ObjectRef seq = MapChildren(op, *this);
    return seq.get() == op ? seq : ObjectRef(SeqStmt::Flatten(seq.as<SeqStmtObj>()->seq));
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    Array<Buffer> kept;
    for (const Buffer& b : block->alloc_buffers) {
      bool is_target = false;
      for (const auto& [from, to] : rewritten) is_target |= to.same_as(b);
      if (!is_target) kept.push_back(b);
    }
    if (kept.size() != block->alloc_buffers.size()) Edit(&block)->alloc_buffers = kept;
    return block;
  }
};
}  // namespace

PrimFunc RemoveWeightLayoutRewriteBlock(PrimFunc func, bool skip_tensor_rewrite) {
  RewriteRemover remove;
  remove.skip_tensor_rewrite = skip_tensor_rewrite;
  func = RewriteBody(std::move(func), remove);
  if (remove.rewritten.empty()) return func;
  ffi::Map<Var, Buffer> buffer_map;
  for (const auto& [param, buffer] : func->buffer_map) {
    auto it = remove.rewritten.find(buffer.get());
    buffer_map.Set(param, it == remove.rewritten.end() ? buffer : it->second);
    if (it != remove.rewritten.end()) remove.rewritten.erase(it);
  }
  if (!remove.rewritten.empty() && !skip_tensor_rewrite) {
    TVM_FFI_THROW(ValueError) << "RemoveWeightLayoutRewriteBlock: expected weight "
                              << remove.rewritten.begin()->first->name
                              << " to be a parameter, whose layout the caller can change";
  }
  Edit(&func)->buffer_map = buffer_map;
  return func;
}
TVM_PASS(
    tir, RemoveWeightLayoutRewriteBlock,
    R"(Removes blocks with the annotation meta_schedule.layout_rewrite_preproc, which copy a parameter into another layout, and makes the parameter have that layout. With skip_tensor_rewrite weights that are no parameters are left to the caller as well.

before(W: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "float32")):
    with T.block("root"):
        R = T.alloc_buffer((8, 4))
        for i, j in T.grid(4, 8):
            with T.block("rewrite"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(W[vi, vj])
                T.writes(R[vj, vi])
                T.block_attr({"meta_schedule.layout_rewrite_preproc": True})
                R[vj, vi] = W[vi, vj]
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(R[vj, vi])
                T.writes(C[vi, vj])
                C[vi, vj] = R[vj, vi]
after(R: T.Buffer((8, 4), "float32"), C: T.Buffer((4, 8), "float32")):
    with T.block("root"):
        for i, j in T.grid(4, 8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(R[vj, vi])
                T.writes(C[vi, vj])
                C[vi, vj] = R[vj, vi])",
    Arg("skip_tensor_rewrite", false))
}  // namespace tvm::tir
