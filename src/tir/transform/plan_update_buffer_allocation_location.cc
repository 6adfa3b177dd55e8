// SPDX-License-Identifier: Apache-2.0
// Moves each allocation of a block to the innermost place that still encloses all accesses.
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct AllocationPlanner : Mutator<AllocationPlanner, ForObj, BlockObj> {
  std::unordered_map<const Object*, Array<Buffer>> placed;  // by loop or block
  std::unordered_map<const Object*, bool> is_moved;         // buffers with a place
  ffi::Map<Var, Buffer> buffer_of_data;

  explicit AllocationPlanner(const PrimFunc& func) {
    for (const auto& [param, buffer] : func->buffer_map) buffer_of_data.Set(buffer->data, buffer);
    ffi::Map<Buffer, Optional<Stmt>> lca = DetectAllocationPlace(func);
    struct Collector : Visitor<Collector, BlockObj> {
      std::vector<std::pair<const BlockObj*, Buffer>> found;
      void Visit(const BlockObj* op) {
        for (const Buffer& b : op->alloc_buffers) found.emplace_back(op, b);
        VisitChildren(op, *this);
      }
    } collect;
    collect(func->body);
    for (const auto& [block, buffer] : collect.found) {
      buffer_of_data.Set(buffer->data, buffer);
      is_moved[buffer.get()] = true;
      if (!lca.count(buffer)) continue;  // never used: no allocation
      Optional<Stmt> place = lca[buffer];
      placed[place.has_value() ? place.value().get() : block].push_back(buffer);
    }
  }
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    Array<Buffer> buffers;
    for (const Buffer& b : op->alloc_buffers) {
      if (!is_moved.count(b.get())) buffers.push_back(b);
    }
    if (auto it = placed.find(op); it != placed.end()) {
      for (const Buffer& b : it->second) buffers.push_back(b);
    }
    bool same = buffers.size() == op->alloc_buffers.size();
    for (size_t i = 0; same && i < buffers.size(); ++i)
      same = buffers[i].same_as(op->alloc_buffers[i]);
    if (!same) Edit(&block)->alloc_buffers = buffers;
    return block;
  }
  ObjectRef Rewrite(const ForObj* op) {
    For loop = Below<For>(op);
    auto it = placed.find(op);
    if (it == placed.end()) return loop;
    Block scope({}, {}, {}, "", loop->body, {}, it->second);
    Array<Array<BufferRegion>> access = GetBlockReadWriteRegion(scope, buffer_of_data);
    auto* n = Edit(&scope);
    n->reads = access[0];
    n->writes = access[1];
    Edit(&loop)->body = BlockRealize({}, const_true(), scope);
    return loop;
  }
};
}  // namespace

PrimFunc PlanAndUpdateBufferAllocationLocation(PrimFunc func) {
  auto allocates = [](const BlockObj* op) { return !op->alloc_buffers.empty(); };
  if (!AnyStmt<BlockObj>(func->body, allocates)) return func;
  AllocationPlanner plan(func);
  return plan.is_moved.empty() ? func : RewriteBody(std::move(func), plan);
}
TVM_PASS(tir, PlanAndUpdateBufferAllocationLocation,
         R"(Allocates each buffer in the innermost loop or block around all its accesses.

before(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    with T.block("root"):
        B = T.alloc_buffer((8, 8))
        for i in range(8):
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj]
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[vi, 7 - vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, 7 - vj]
after:
    # with T.block("root"):
    for i in range(8):
        with T.block(""):
            T.reads(A[i, 0:8])
            T.writes(C[i, 0:8])
            B = T.alloc_buffer((8, 8))
            for j in range(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(A[vi, vj])
                    T.writes(B[vi, vj])
                    B[vi, vj] = A[vi, vj]
            for j in range(8):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(B[vi, 7 - vj])
                    T.writes(C[vi, vj])
                    C[vi, vj] = B[vi, 7 - vj])")
}  // namespace tvm::tir
