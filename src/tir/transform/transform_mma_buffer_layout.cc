// SPDX-License-Identifier: Apache-2.0
// Matrices that a warp multiplies with mma of m16n8k8, and sums of warpgroups, become registers of
// threads.
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr std::string_view kScopes = "m16n8k8.matrix", kSums = "wgmma.accumulator";

bool IsMatrix(const VarObj* data) {
  String scope = ScopeOf(data);
  return View(scope).substr(0, kScopes.size()) == kScopes || View(scope) == kSums;
}
struct RegisterMaker
    : Mutator<RegisterMaker, BlockObj, BufferLoadObj, BufferStoreObj, BufferRegionObj, VarObj> {
  struct Registers {
    char part;     // 'A', 'B' or 'C'
    int64_t rows;  // that are held at once
    Buffer buffer;
  };
  std::unordered_map<const VarObj*, Registers> made;

  /// A warp holds 32 x 8 elements of the first factor, 8 x 32 of the second, 16 x 8 sums at once, a
  /// warpgroup 64 x 8 sums; a thread has 8, 8 and 4 of them.
  void Make(const Buffer& b) {
    bool is_group = View(b.scope()) == kSums;
    char part = is_group ? 'C' : View(b.scope()).back();
    int64_t tile[2] = {is_group      ? 64
                       : part == 'A' ? 32
                       : part == 'B' ? 8
                                     : 16,
                       part == 'B' ? 32 : 8};
    Array<PrimExpr> shape;
    for (size_t i = 0; i < 2; ++i) {
      auto size = b->shape.size() == 2 ? AsConstInt(b->shape[i]) : std::nullopt;
      if (!size || *size % tile[i] != 0) {
        TVM_FFI_THROW(ValueError) << "TransformMmaBufferLayout: expected buffer " << b->name
                                  << " of scope " << b.scope() << " with two dimensions, multiples "
                                  << "of " << tile[0] << " and " << tile[1];
      }
      shape.push_back(MakeConst(b->shape[i].dtype(), *size / tile[i]));
    }
    for (int64_t n : {part == 'A' ? 4 : part == 'B' ? 1 : 2, part == 'B' ? 8 : 2})
      shape.push_back(PrimExpr(static_cast<int>(n)));
    made[b->data.get()] = {part, tile[0], Buffer::Decl(shape, b->dtype, b->name, "local")};
  }
  ObjectRef Rewrite(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) {
      if (IsMatrix(b->data.get())) Make(b);
    }
    Block block = Below<Block>(op);
    auto* n = Edit(&block);
    n->alloc_buffers = op->alloc_buffers.Map([&](const Buffer& b) {
      auto it = made.find(b->data.get());
      return it == made.end() ? b : it->second.buffer;
    });
    return block;
  }
  /// The thread of a sum is 4 * (row % 8) + column % 8 / 2, in a warpgroup of the warp
  /// row % 64 / 16; what is left are its registers.
  Array<PrimExpr> Place(const Registers& r, const Array<PrimExpr>& at) {
    if (r.part != 'C') {
      TVM_FFI_THROW(ValueError) << "TransformMmaBufferLayout: expected buffer " << r.buffer->name
                                << " to be loaded by ptx_ldmatrix and used by ptx_mma, got an "
                                   "access of an element";
    }
    PrimExpr row = at[0], column = at[1];
    auto number = [](const PrimExpr& like, int64_t v) { return MakeConst(like.dtype(), v); };
    return {floordiv(row, number(row, r.rows)), floordiv(column, number(column, 8)),
            floordiv(floormod(row, number(row, 16)), number(row, 8)),
            floormod(column, number(column, 2))};
  }
  const Registers* Find(const Buffer& b) const {
    auto it = made.find(b->data.get());
    return it == made.end() ? nullptr : &it->second;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    const Registers* r = Find(op->buffer);
    if (!r) return MapChildren(op, *this);
    Array<PrimExpr> at = op->indices.Map([&](const PrimExpr& e) { return Mutate(e); });
    return BufferLoad(r->buffer, Place(*r, at), op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    const Registers* r = Find(op->buffer);
    if (!r) return MapChildren(op, *this);
    Array<PrimExpr> at = op->indices.Map([&](const PrimExpr& e) { return Mutate(e); });
    return BufferStore(r->buffer, Mutate(op->value), Place(*r, at), op->predicate, op->span);
  }
  /// Which registers belong to a part of a matrix matters to nobody any more.
  ObjectRef Rewrite(const BufferRegionObj* op) {
    const Registers* r = Find(op->buffer);
    return r ? ObjectRef(BufferRegion::Full(r->buffer)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const VarObj* op) {
    auto it = made.find(op);
    return it == made.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second.buffer->data);
  }
};
}  // namespace

PrimFunc TransformMmaBufferLayout(PrimFunc func) {
  auto has_matrix = [](const BlockObj* op) {
    return std::any_of(op->alloc_buffers.begin(), op->alloc_buffers.end(),
                       [](const Buffer& b) { return IsMatrix(b->data.get()); });
  };
  if (!AnyStmt<BlockObj>(func->body, has_matrix)) return func;
  return RewriteBody(std::move(func), RegisterMaker());
}
TVM_PASS(
    tir, TransformMmaBufferLayout,
    R"(Makes matrices of the scopes m16n8k8.matrixA, m16n8k8.matrixB and m16n8k8.matrixC, which a warp holds together, and of wgmma.accumulator, which a warpgroup does, registers of its threads. An element of a sum is accessed by the thread that has it; factors are accessed by pointers only.

before(A: T.Buffer((16, 8), "float32")):
    for t in T.thread_binding(32, "threadIdx.x"):
        with T.block("root"):
            T.reads()
            T.writes(A[0:16, 0:8])
            C = T.alloc_buffer((16, 8), scope="m16n8k8.matrixC")
            for i, j in T.grid(2, 2):
                C[i * 8 + t // 4, t % 4 * 2 + j] = T.float32(1)
            for i, j in T.grid(2, 2):
                A[i * 8 + t // 4, t % 4 * 2 + j] = C[i * 8 + t // 4, t % 4 * 2 + j]
after:
    for t in T.thread_binding(32, "threadIdx.x"):
        with T.block("root"):
            T.reads()
            T.writes(A[0:16, 0:8])
            C = T.alloc_buffer((1, 1, 2, 2), scope="local")
            for i, j in T.grid(2, 2):
                C[(i * 8 + t // 4) // 16, (t % 4 * 2 + j) // 8, (i * 8 + t // 4) % 16 // 8, (t % 4 * 2 + j) % 2] = T.float32(1)
            for i, j in T.grid(2, 2):
                A[i * 8 + t // 4, t % 4 * 2 + j] = C[(i * 8 + t // 4) // 16, (t % 4 * 2 + j) // 8, (i * 8 + t // 4) % 16 // 8, (t % 4 * 2 + j) % 2])")
}  // namespace tvm::tir
