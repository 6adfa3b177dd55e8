// SPDX-License-Identifier: Apache-2.0
// Rows of shared memory are stored with their pieces in another order, so that columns of them lie
// in different banks.
#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
constexpr const char* kMark = "permuted_layout";
constexpr int64_t kPieceBytes = 16;  // what ldmatrix reads at once

bool IsMarked(const BlockObj* op) {
  auto mark = op->annotations.Get(kMark);
  if (!mark) return false;
  if (auto text = mark->try_cast<String>()) return !text->empty();
  if (auto number = mark->try_cast<int64_t>()) return *number != 0;
  auto value = mark->try_cast<PrimExpr>();
  auto* text = value ? value->as<StringImmObj>() : nullptr;
  return text ? !text->value.empty() : !value || !IsConstInt(*value, 0);
}
/// Shared buffers, by whether blocks with the mark use them or others do.
struct SharedFinder : Visitor<SharedFinder, BlockObj, BufferLoadObj, BufferStoreObj, VarObj> {
  bool is_marked = false;
  std::unordered_map<const VarObj*, Buffer> buffers;
  std::unordered_set<const VarObj*> marked, others;

  void Add(const VarObj* data) {
    if (IsSharedScope(ScopeOf(data))) (is_marked ? marked : others).insert(data);
  }
  void Visit(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) buffers[b->data.get()] = b;
    bool outer = std::exchange(is_marked, is_marked || IsMarked(op));
    if (op->init.has_value()) (*this)(op->init.value());
    (*this)(op->body);
    is_marked = outer;
  }
  void Visit(const BufferLoadObj* op) {
    Add(op->buffer->data.get());
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const BufferStoreObj* op) {
    Add(op->buffer->data.get());
    (*this)(op->value);
    for (const PrimExpr& i : op->indices) (*this)(i);
  }
  void Visit(const VarObj* op) { Add(op); }
};

struct Permuter : AnalyzedStmtMutator<Permuter, BlockObj, BufferLoadObj, BufferStoreObj, CallObj> {
  using Base::Rewrite;
  const SharedFinder& shared;
  explicit Permuter(const SharedFinder& shared) : shared(shared) {}

  /// The buffer whose rows are permuted; null for other memory.
  const BufferObj* Find(const VarObj* data) const {
    if (!shared.marked.count(data)) return nullptr;
    auto it = shared.buffers.find(data);
    if (it == shared.buffers.end() || it->second->shape.size() < 2 || !it->second->strides.empty())
      return nullptr;
    return PiecesOf(it->second.get()) > 1 ? it->second.get() : nullptr;
  }
  static int64_t PerPiece(const BufferObj* b) { return kPieceBytes * 8 / b->dtype.bits(); }
  /// How many pieces of a row change places with each other: 8, 4 or 2, or 1 for none.
  static int64_t PiecesOf(const BufferObj* b) {
    int64_t width = AsConstInt(b->shape.back()).value_or(0), each = PerPiece(b);
    if (width <= 0 || width % each != 0) return 1;
    for (int64_t pieces : {8, 4, 2}) {
      if (width / each % pieces == 0) return pieces;
    }
    return 1;
  }
  /// Where the element of a column lies in its row. Rows of fewer than 8 pieces share a line of all
  /// banks, so that only every second or fourth row has another order.
  PrimExpr Place(const BufferObj* b, const PrimExpr& row, const PrimExpr& column) {
    DataType t = column.dtype();
    auto number = [&](int64_t v) { return MakeConst(t, v); };
    int64_t pieces = PiecesOf(b);
    PrimExpr key = floormod(floordiv(cast(t, row), number(8 / pieces)), number(pieces));
    PrimExpr piece = floordiv(column, number(PerPiece(b)));
    PrimExpr within = floormod(piece, number(pieces)), group = piece - within;
    PrimExpr moved = group + bitwise_xor(within, key);
    return analyzer.Simplify(moved * number(PerPiece(b)) + floormod(column, number(PerPiece(b))));
  }
  Array<PrimExpr> Permuted(const BufferObj* b, Array<PrimExpr> indices) {
    PrimExpr row = indices[0];
    for (size_t i = 1; i + 1 < indices.size(); ++i)
      row = row * cast(row.dtype(), b->shape[i]) + indices[i];
    indices.Set(indices.size() - 1, Place(b, row, indices.back()));
    return indices;
  }
  ObjectRef Rewrite(const BlockObj* op) { return MapChildren(op, *this); }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    BufferLoad load = Below<BufferLoad>(op);
    const BufferObj* b = Find(op->buffer->data.get());
    if (!b) return load;
    return BufferLoad(load->buffer, Permuted(b, load->indices), load->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Below<BufferStore>(op);
    const BufferObj* b = Find(op->buffer->data.get());
    if (!b) return store;
    return BufferStore(store->buffer, store->value, Permuted(b, store->indices), store->predicate,
                       op->span);
  }
  ObjectRef Rewrite(const CallObj* op) {
    // (trans, num, type, local_ptr, local_offset, smem_ptr, smem_offset): rows of a matrix are
    // pieces, each with an address of its own.
    if (op->Is(builtin::ptx_ldmatrix())) {
      auto* pointer = op->args[5].as<CallObj>();
      bool is_access = pointer && pointer->Is(builtin::tvm_access_ptr());
      auto* data = (is_access ? pointer->args[1] : op->args[5]).as<VarObj>();
      const BufferObj* b = data ? Find(data) : nullptr;
      if (b) {
        Array<PrimExpr> args = op->args.Map([&](const PrimExpr& e) { return Mutate(e, b); });
        PrimExpr offset = args[6];
        if (is_access) {
          offset = cast(offset.dtype(), pointer->args[2]) + offset;
          Array<PrimExpr> access = pointer->args;
          access.Set(2, MakeZero(access[2].dtype()));
          args.Set(5, Call(pointer->dtype, pointer->op, access, pointer->span));
        }
        PrimExpr width = cast(offset.dtype(), b->shape.back());
        PrimExpr row = analyzer.Simplify(floordiv(offset, width));
        PrimExpr column = analyzer.Simplify(floormod(offset, width));
        args.Set(6, analyzer.Simplify(row * width + Place(b, row, column)));
        return Call(op->dtype, op->op, args, op->span);
      }
    }
    if (op->Is(builtin::tvm_access_ptr())) {
      auto* data = op->args[1].as<VarObj>();
      if (const BufferObj* b = data ? Find(data) : nullptr) {
        TVM_FFI_THROW(ValueError) << "InjectPermutedLayout: expected buffer " << b->name
                                  << " to be used by its elements and ptx_ldmatrix only, since "
                                     "its rows do not lie in order";
      }
    }
    return MapChildren(op, *this);
  }
  using Base::Mutate;
  PrimExpr Mutate(const PrimExpr& e, const BufferObj* b) {
    auto* pointer = e.as<CallObj>();
    bool is_own =
        pointer && pointer->Is(builtin::tvm_access_ptr()) && pointer->args[1].same_as(b->data);
    return is_own ? e : Base::Mutate(e);
  }
};
}  // namespace

PrimFunc InjectPermutedLayout(PrimFunc func) {
  auto marked = [](const BlockObj* op) { return op->annotations.count(kMark) > 0; };
  if (!AnyStmt<BlockObj>(func->body, marked)) return func;
  SharedFinder shared;
  shared(func->body);
  for (const VarObj* data : shared.marked) {
    if (shared.others.count(data)) {
      TVM_FFI_THROW(ValueError) << "InjectPermutedLayout: expected all blocks that use "
                                << data->name_hint << " to have the annotation " << kMark
                                << ", got some without it";
    }
  }
  Permuter permute(shared);
  permute.LearnParams(func);
  return RewriteBody(std::move(func), permute);
}
TVM_PASS(
    tir, InjectPermutedLayout,
    R"(Stores the rows of shared buffers that blocks with the annotation permuted_layout use with their pieces of 16 bytes in another order: piece p of row r is where p ^ (r % 8) would be, in rows of a multiple of 8 pieces. Threads that read a column of pieces (ptx_ldmatrix) then read from different banks. All blocks that use a buffer must have the annotation.

before(A: T.Buffer((8, 64), "float16"), B: T.Buffer((8, 64), "float16")):
    for i in T.thread_binding(8, "threadIdx.x"):
        with T.block("root"):
            S = T.alloc_buffer((8, 64), "float16", scope="shared")
            with T.block("write"):
                T.block_attr({"permuted_layout": "g2s_A"})
                for j in range(64):
                    S[i, j] = A[i, j]
            with T.block("read"):
                T.block_attr({"permuted_layout": "s2l_A"})
                for j in range(64):
                    B[i, j] = S[i, j]
after:
    for i in T.thread_binding(8, "threadIdx.x"):
        with T.block("root"):
            S = T.alloc_buffer((8, 64), "float16", scope="shared")
            with T.block("write"):
                T.block_attr({"permuted_layout": "g2s_A"})
                for j in range(64):
                    S[i, T.bitwise_xor(j // 8, i) * 8 + j % 8] = A[i, j]
            with T.block("read"):
                T.block_attr({"permuted_layout": "s2l_A"})
                for j in range(64):
                    B[i, j] = S[i, T.bitwise_xor(j // 8, i) * 8 + j % 8])")
}  // namespace tvm::tir
