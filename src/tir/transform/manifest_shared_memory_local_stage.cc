// SPDX-License-Identifier: Apache-2.0
// Copies to shared memory go through registers.
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char* kLocalStage = "tir.manifest_shared_memory_local_stage";

struct StageInserter : Mutator<StageInserter, ForObj, BlockRealizeObj, BlockObj> {
  ffi::Map<Var, Buffer> buffer_of_data;

  ObjectRef Rewrite(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) buffer_of_data.Set(b->data, b);
    return MapChildren(op, *this);
  }
  static const BlockRealizeObj* Marked(const Stmt& stmt) {
    auto* realize = stmt.as<BlockRealizeObj>();
    return realize && realize->block->annotations.count(kLocalStage) ? realize : nullptr;
  }
  /// Loops of one thread, each with the next as its only statement, down to a marked block.
  ObjectRef Rewrite(const ForObj* op) {
    std::vector<For> chain;
    Stmt at = ffi::GetRef<Stmt>(op);
    while (auto* loop = at.as<ForObj>()) {
      if (loop->kind == ForKind::kThreadBinding) break;
      chain.push_back(ffi::GetRef<For>(loop));
      at = loop->body;
    }
    auto* realize = Marked(at);
    return realize ? ObjectRef(Insert(realize, chain)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    return Marked(ffi::GetRef<Stmt>(op)) ? ObjectRef(Insert(op, {})) : MapChildren(op, *this);
  }
  Stmt Insert(const BlockRealizeObj* op, const std::vector<For>& chain) {
    auto* store = op->block->body.as<BufferStoreObj>();
    if (!store || op->block->init.has_value()) {
      TVM_FFI_THROW(ValueError) << "ManifestSharedMemoryLocalStage: expected block "
                                << op->block->name_hint << " to be one store";
    }
    Array<PrimExpr> shape, indices;
    for (const For& loop : chain) {
      shape.push_back(loop->extent);
      indices.push_back(IsZero(loop->min) ? PrimExpr(loop->loop_var) : loop->loop_var - loop->min);
    }
    if (shape.empty()) {
      shape = {PrimExpr(1)};
      indices = {PrimExpr(0)};
    }
    Buffer local = Buffer::Decl(shape, store->buffer->dtype,
                                std::string(store->buffer->name) + "_local", "local");
    buffer_of_data.Set(local->data, local);
    // The indices of the local buffer are iterators of the two blocks, unless blocks have none (any
    // more).
    bool is_opaque = op->block->iter_vars.empty();
    auto stage = [&](const char* suffix, bool to_local) {
      ffi::Map<Var, PrimExpr> renamed;
      auto fresh = [&](const Var& v) {
        Var copy = v.CopyWithSuffix("");
        renamed.Set(v, copy);
        return copy;
      };
      std::vector<Stmt> nest;
      for (const For& loop : chain) {
        For copy = loop;
        Edit(&copy)->loop_var = fresh(loop->loop_var);
        nest.push_back(copy);
      }
      Array<IterVar> iter_vars;
      for (const IterVar& iv : op->block->iter_vars)
        iter_vars.push_back(IterVar(iv->dom, fresh(iv->var), iv->iter_type, iv->thread_tag));
      Array<PrimExpr> values = op->iter_values, at;
      for (size_t i = 0; i < indices.size(); ++i) {
        if (!indices[i].as<IntImmObj>() && !is_opaque) {
          Var v("v" + std::to_string(i), indices[i].dtype());
          iter_vars.push_back(IterVar(Range::FromMinExtent(MakeZero(shape[i].dtype()), shape[i]), v,
                                      IterVarType::kDataPar));
          values.push_back(indices[i]);
          at.push_back(v);
        } else {
          at.push_back(indices[i]);
        }
      }
      Stmt body = to_local ? BufferStore(local, store->value, at)
                           : BufferStore(store->buffer, BufferLoad(local, at), store->indices);
      Block block(iter_vars, {}, {}, op->block->name_hint + String(suffix),
                  Substitute(body, renamed));
      auto* n = Edit(&block);
      if (!to_local) {
        n->annotations = op->block->annotations;
        n->annotations.erase(kLocalStage);
      }
      Array<Array<BufferRegion>> access = GetBlockReadWriteRegion(block, buffer_of_data);
      n->reads = access[0];
      n->writes = access[1];
      Stmt result =
          BlockRealize(Substitute(values, renamed), Substitute(op->predicate, renamed), block);
      return MergeNest(nest, result);
    };
    Block around({}, {}, {}, "", SeqStmt::Flatten({stage("_local", true), stage("", false)}), {},
                 {local});
    Array<Array<BufferRegion>> access = GetBlockReadWriteRegion(around, buffer_of_data);
    auto* n = Edit(&around);
    n->reads = access[0];
    n->writes = access[1];
    return BlockRealize({}, const_true(), around);
  }
};
}  // namespace

PrimFunc ManifestSharedMemoryLocalStage(PrimFunc func) {
  auto marked = [](const BlockObj* op) { return op->annotations.count(kLocalStage) > 0; };
  if (!AnyStmt<BlockObj>(func->body, marked)) return func;
  StageInserter insert;
  for (const auto& [param, b] : func->buffer_map) insert.buffer_of_data.Set(b->data, b);
  return RewriteBody(std::move(func), insert);
}
TVM_PASS(
    tir, ManifestSharedMemoryLocalStage,
    R"(Splits copies to shared memory, in blocks with the annotation tir.manifest_shared_memory_local_stage, in loads into registers and stores from them, so that loads of a pipeline can run ahead.

before(A: T.Buffer((128,), "float32")):
    with T.block("root"):
        S = T.alloc_buffer((128,), scope="shared")
        for t in T.thread_binding(32, "threadIdx.x"):
            for i in range(4):
                with T.block("S"):
                    v = T.axis.spatial(128, i * 32 + t)
                    T.reads(A[v])
                    T.writes(S[v])
                    T.block_attr({"tir.manifest_shared_memory_local_stage": 1})
                    S[v] = A[v]
after:
    with T.block("root"):
        S = T.alloc_buffer((128,), scope="shared")
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block(""):
                T.reads(A[t:t + 97])
                T.writes(S[t:t + 97])
                L = T.alloc_buffer((4,), scope="local")
                for i in range(4):
                    with T.block("S_local"):
                        v = T.axis.spatial(128, i * 32 + t)
                        w = T.axis.spatial(4, i)
                        L[w] = A[v]
                for i in range(4):
                    with T.block("S"):
                        v = T.axis.spatial(128, i * 32 + t)
                        w = T.axis.spatial(4, i)
                        S[v] = L[w])")
}  // namespace tvm::tir
