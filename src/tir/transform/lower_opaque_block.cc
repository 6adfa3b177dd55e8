// SPDX-License-Identifier: Apache-2.0
// Turns blocks without iterators into allocations, conditions and plain statements.
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
bool IsPragma(const String& key) { return View(key).substr(0, 7) == "pragma_"; }

struct BlockLowerer : Mutator<BlockLowerer, VarObj, BlockRealizeObj, ForObj> {
  bool keep_trivial_loops = false;
  std::unordered_map<const VarObj*, PrimExpr> unit_loops;

  ObjectRef Rewrite(const VarObj* op) {
    auto it = unit_loops.find(op);
    return it == unit_loops.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  /// Annotations whose name begins with "pragma_" become attributes around the statement.
  Stmt WithPragmas(const ffi::Map<String, Any>& annotations, Stmt body, const Any& node) {
    std::vector<std::pair<String, Any>> pragmas;
    for (const auto& [key, value] : annotations) {
      if (IsPragma(key)) pragmas.emplace_back(key, value);
    }
    std::sort(pragmas.begin(), pragmas.end(),
              [](auto& a, auto& b) { return View(a.first) > View(b.first); });
    for (const auto& [key, value] : pragmas) {
      auto e = value.try_cast<PrimExpr>();
      if (!e) {
        TVM_FFI_THROW(TypeError) << "LowerOpaqueBlock: expected an expression as value of " << key
                                 << ", got " << value.GetTypeKey();
      }
      body = AttrStmt(node, key, *e, body);
    }
    return body;
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    if (!op->block->iter_vars.empty()) {
      TVM_FFI_THROW(ValueError) << "LowerOpaqueBlock: expected block " << op->block->name_hint
                                << " without iterators, run ConvertBlocksToOpaque first";
    }
    if (!op->block->match_buffers.empty()) {
      TVM_FFI_THROW(ValueError) << "LowerOpaqueBlock: expected block " << op->block->name_hint
                                << " without views, run LowerMatchBuffer first";
    }
    BlockRealize realize = Below<BlockRealize>(op);
    const BlockObj* block = realize->block.get();
    Stmt body = block->body;
    if (!IsTrue(realize->predicate)) body = IfThenElse(realize->predicate, body);
    for (size_t i = block->alloc_buffers.size(); i > 0; --i) {
      const Buffer& buffer = block->alloc_buffers[i - 1];
      Array<PrimExpr> extents = buffer->shape;
      if (!buffer->strides.empty() && !extents.empty()) {
        // Padded rows: all dimensions are one run of memory.
        extents = {buffer->shape[0] * buffer->strides[0]};
      }
      body = DeclBuffer(buffer, body);
      body = Allocate(buffer->data, buffer->dtype, extents, const_true(), body);
    }
    return WithPragmas(block->annotations, body, PrimExpr(0));
  }
  ObjectRef Rewrite(const ForObj* op) {
    ffi::Map<String, Any> kept;
    for (const auto& [key, value] : op->annotations) {
      if (!IsPragma(key)) kept.Set(key, value);
    }
    bool is_thread = op->kind == ForKind::kThreadBinding;
    bool trivial = IsOne(op->extent) && kept.empty() && !is_thread && !keep_trivial_loops;
    // A jump needs its loop; a begin that is read from memory is read once.
    trivial = trivial && !HasJumps(op->body) && SideEffect(op->min) <= CallEffectKind::kPure;
    if (trivial) {
      unit_loops[op->loop_var.get()] = Mutate(op->min);
      return WithPragmas(op->annotations, Mutate(op->body), PrimExpr(0));
    }
    For loop = Below<For>(op);
    if (is_thread) {
      const IterVar& binding = loop->thread_binding.value();
      IterVar iv(Range::FromMinExtent(loop->min, loop->extent), loop->loop_var,
                 IterVarType::kThreadIndex, binding->thread_tag);
      String key =
          binding->thread_tag == "vthread" || View(binding->thread_tag).substr(0, 8) == "vthread."
              ? attr::kVirtualThread
              : attr::kThreadExtent;
      return WithPragmas(op->annotations, AttrStmt(iv, key, loop->extent, loop->body),
                         loop->loop_var);
    }
    if (kept.size() != op->annotations.size()) Edit(&loop)->annotations = kept;
    return WithPragmas(op->annotations, loop, op->loop_var);
  }
};
}  // namespace

PrimFunc LowerOpaqueBlock(PrimFunc func) {
  BlockLowerer lower;
  lower.keep_trivial_loops =
      ::tvm::transform::PassContext::Current()->GetConfig<bool>("tir.debug_keep_trivial_loop");
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(
    tir, LowerOpaqueBlock,
    R"(Replaces blocks by allocations, conditions and their bodies; loops of one iteration and their variables go.

before(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block(""):
            T.where(i < 7)
            T.reads(A[i])
            T.writes(A[i])
            B = T.alloc_buffer((16,))
            B[0] = A[i]
            A[i] = B[0] + 1.0
after:
    for i in range(8):
        B = T.decl_buffer((16,), "float32")
        if i < 7:
            B[0] = A[i]
            A[i] = B[0] + T.float32(1))")
}  // namespace tvm::tir
