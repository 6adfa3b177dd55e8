// SPDX-License-Identifier: Apache-2.0
// Copies between memories that all threads see are shared out among the threads of a kernel.
#include <numeric>

#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
constexpr const char *kMark = "auto_copy", *kVectorBytes = "vector_bytes";

/// The loops over threadIdx.z, .y and .x in a kernel, in this order; null where there is none.
struct Threads : Visitor<Threads, ForObj> {
  const ForObj* loops[3] = {};
  std::vector<const VarObj*> vars;
  void Visit(const ForObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    if (iv && ThreadTag(iv->thread_tag).kind == ThreadTag::kThread) {
      loops[2 - ThreadTag(iv->thread_tag).dim] = op;
      vars.push_back(op->loop_var.get());
      vars.push_back(iv->var.get());
    }
    VisitChildren(op, *this);
  }
  bool Uses(const Stmt& stmt) const {
    return UsesVar(stmt, [&](const VarObj* v) {
      return std::find(vars.begin(), vars.end(), v) != vars.end();
    });
  }
};

struct CopySharer : Mutator<CopySharer, ForObj, BlockObj> {
  std::optional<Threads> threads;  // of the kernel around

  ObjectRef Rewrite(const ForObj* op) {
    if (threads || !LaunchedThread(op)) return MapChildren(op, *this);
    threads.emplace();
    (*threads)(ffi::GetRef<Stmt>(op));
    ObjectRef result = MapChildren(op, *this);
    threads.reset();
    return result;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    if (!op->annotations.count(kMark)) return MapChildren(op, *this);
    if (!op->iter_vars.empty()) {
      TVM_FFI_THROW(ValueError) << "LowerAutoCopy: expected block " << op->name_hint
                                << " without iterators, run ConvertBlocksToOpaque first";
    }
    Block block = ffi::GetRef<Block>(op);
    auto* n = Edit(&block);
    int64_t vector_bytes = 0;
    if (auto bytes = op->annotations.Get(kVectorBytes)) {
      vector_bytes = AsConstInt(bytes->cast<PrimExpr>()).value_or(0);
    }
    n->annotations.erase(kMark);
    n->annotations.erase(kVectorBytes);
    n->body = Shared(op, vector_bytes);
    return block;
  }

  /// The copy in which each thread has its part; as it is where every thread copies what is its
  /// own.
  Stmt Shared(const BlockObj* op, int64_t vector_bytes) {
    std::vector<For> loops;
    Stmt leaf = op->body;
    while (auto* loop = leaf.as<ForObj>()) {
      if (loop->kind != ForKind::kSerial || !loop->HasTrivialStep()) break;
      loops.push_back(ffi::GetRef<For>(loop));
      leaf = loop->body;
    }
    auto* branch = leaf.as<IfThenElseObj>();  // what the copied region has beyond the buffer
    bool conditional = branch && !branch->else_case.has_value();
    auto* store = (conditional ? branch->then_case : leaf).as<BufferStoreObj>();
    if (!store || store->predicate.has_value() || !ReadsOthers(store)) {
      TVM_FFI_THROW(ValueError) << "LowerAutoCopy: expected block " << op->name_hint
                                << " to be loops over one store that copies from other buffers";
    }
    String scope = ScopeOf(store->buffer->data.get());
    bool seen_by_all = scope == "global" || IsSharedScope(scope);
    if (!threads || loops.empty() || !seen_by_all || threads->Uses(op->body)) return op->body;
    DataType index = loops.back()->loop_var.dtype();
    int64_t lanes = conditional ? 1 : VectorLanes(loops.back(), store->buffer->dtype, vector_bytes);
    PrimExpr total = MakeConst(index, 1), every = MakeConst(index, lanes);
    for (const For& loop : loops) total = total * cast(index, loop->extent);
    for (const ForObj* loop : threads->loops) {
      if (loop) every = every * cast(index, loop->extent);
    }
    Var round("copy", index), lane("vec", index);
    std::vector<Stmt> nest = {
        For(round, MakeZero(index), ceildiv(total, every), ForKind::kSerial, Evaluate::Nothing())};
    PrimExpr place = round;
    for (const ForObj* loop : threads->loops) {
      if (!loop) continue;
      Var thread = loop->loop_var.CopyWithSuffix("");
      IterVar bound({}, Var("", thread.dtype()), IterVarType::kThreadIndex,
                    loop->thread_binding.value()->thread_tag);
      nest.push_back(For(thread, MakeZero(thread.dtype()), loop->extent, ForKind::kThreadBinding,
                         Evaluate::Nothing(), bound));
      place = place * cast(index, loop->extent) + cast(index, thread);
    }
    PrimExpr first = place * MakeConst(index, lanes);  // of this thread's vector
    if (!AsConstInt(total) || !AsConstInt(every) || *AsConstInt(total) % *AsConstInt(every) != 0) {
      nest.push_back(IfThenElse(first < total, Evaluate::Nothing()));
    }
    if (lanes > 1) {
      nest.push_back(For(lane, MakeZero(index), MakeConst(index, lanes), ForKind::kVectorized,
                         Evaluate::Nothing()));
      place = first + lane;
    }
    Map<Var, PrimExpr> values;
    for (size_t i = loops.size(); i-- > 0;) {
      PrimExpr extent = cast(index, loops[i]->extent);
      PrimExpr here = i == 0 ? place : floormod(place, extent);
      values.Set(loops[i]->loop_var, cast(loops[i]->loop_var.dtype(), here) + loops[i]->min);
      place = floordiv(place, extent);
    }
    return MergeNest(nest, Substitute(leaf, values));
  }
  static bool ReadsOthers(const BufferStoreObj* store) {
    bool reads = false, itself = false;
    PostOrderVisit(store->value, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>()) {
        reads = true;
        itself |= load->buffer->data.same_as(store->buffer->data);
      }
    });
    return reads && !itself;
  }
  /// As many elements as were asked for, or fewer so that vectors do not cross the end of a row.
  static int64_t VectorLanes(const For& last, DataType dtype, int64_t vector_bytes) {
    auto row = AsConstInt(last->extent);
    int64_t lanes = vector_bytes / dtype.bytes();
    return row && *row > 0 && lanes > 1 ? std::gcd(*row, lanes) : 1;
  }
};
}  // namespace

PrimFunc LowerAutoCopy(PrimFunc func) {
  auto marked = [](const BlockObj* op) { return op->annotations.count(kMark) > 0; };
  return AnyStmt<BlockObj>(func->body, marked) ? RewriteBody(std::move(func), CopySharer()) : func;
}
TVM_PASS(
    tir, LowerAutoCopy,
    R"(Shares copies, in blocks with the annotation auto_copy, out among the threads of the kernel around. Neighbouring threads copy neighbouring elements, vectors of `vector_bytes` bytes where the block asks for them. A copy that differs between threads, or that goes to memory of one thread, stays as it is.

before(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for b in T.thread_binding(8, "blockIdx.x"):
        with T.block(""):
            shared = T.alloc_buffer((64,), "float32", scope="shared")
            with T.block("copy"):
                T.reads(A[b, 0:64])
                T.writes(shared[0:64])
                T.block_attr({"auto_copy": 1, "vector_bytes": 8})
                for i in range(64):
                    shared[i] = A[b, i]
            for t in T.thread_binding(32, "threadIdx.x"):
                B[b, t * 2] = shared[63 - t * 2]
after:
    for b in T.thread_binding(8, "blockIdx.x"):
        with T.block(""):
            shared = T.alloc_buffer((64,), "float32", scope="shared")
            with T.block("copy"):
                T.reads(A[b, 0:64])
                T.writes(shared[0:64])
                for copy in range(1):
                    for t in T.thread_binding(32, "threadIdx.x"):
                        for vec in T.vectorized(2):
                            shared[(copy * 32 + t) * 2 + vec] = A[b, (copy * 32 + t) * 2 + vec]
            for t in T.thread_binding(32, "threadIdx.x"):
                B[b, t * 2] = shared[63 - t * 2])")
}  // namespace tvm::tir
