// SPDX-License-Identifier: Apache-2.0
// Reduction blocks whose reduction runs over threads: each thread reduces its part, then all of
// them together.
#include "../analysis/reduction.h"
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// The element of each result replaced by one of a buffer of this thread.
struct ElementReplacer : Mutator<ElementReplacer, BufferLoadObj, BufferStoreObj> {
  const std::vector<Buffer>&from, &to;
  ElementReplacer(const std::vector<Buffer>& from, const std::vector<Buffer>& to)
      : from(from), to(to) {}
  const Buffer* Find(const Buffer& buffer) const {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].same_as(buffer)) return &to[i];
    }
    return nullptr;
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    const Buffer* other = Find(op->buffer);
    return other ? ObjectRef(BufferLoad(*other, {PrimExpr(0)})) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    BufferStore store = Below<BufferStore>(op);
    const Buffer* other = Find(op->buffer);
    return other ? BufferStore(*other, store->value, {PrimExpr(0)}) : store;
  }
};

struct ReductionLowerer : Mutator<ReductionLowerer, ForObj, BlockRealizeObj, BlockObj> {
  std::vector<For> threads;  // loops around that are bound to threadIdx
  std::vector<For> shared;   // loops around, of several statements
  ffi::Map<Var, Buffer> buffer_of_data;

  static bool IsThread(const ForObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    return iv && ThreadTag(iv->thread_tag).kind == ThreadTag::kThread;
  }
  /// The iterators of reductions use some of the variables.
  static bool ReducesOver(const BlockRealizeObj* op, const Var& var) {
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      if (op->block->iter_vars[i]->iter_type == IterVarType::kCommReduce &&
          UsesVar(op->iter_values[i], [&](const VarObj* v) { return v == var.get(); }))
        return true;
    }
    return false;
  }
  ObjectRef Rewrite(const BlockObj* op) {
    for (const Buffer& b : op->alloc_buffers) buffer_of_data.Set(b->data, b);
    for (const MatchBufferRegion& m : op->match_buffers)
      buffer_of_data.Set(m->buffer->data, m->buffer);
    return MapChildren(op, *this);
  }
  /// A nest of loops, each with the next as its only statement, down to a block.
  ObjectRef Rewrite(const ForObj* op) {
    std::vector<For> chain;
    Stmt at = ffi::GetRef<Stmt>(op);
    while (auto* loop = at.as<ForObj>()) {
      chain.push_back(ffi::GetRef<For>(loop));
      at = loop->body;
    }
    size_t outer = threads.size();
    for (const For& loop : chain) {
      if (IsThread(loop.get())) threads.push_back(loop);
    }
    Stmt result;
    if (auto* realize = at.as<BlockRealizeObj>(); realize && IsCrossThread(realize))
      result = Lower(realize, chain);
    threads.resize(outer);
    if (result.defined()) return result;
    std::vector<For>& known = IsThread(op) ? threads : shared;
    known.push_back(ffi::GetRef<For>(op));
    ObjectRef loop = MapChildren(op, *this);
    known.pop_back();
    return loop;
  }
  ObjectRef Rewrite(const BlockRealizeObj* op) {
    if (IsCrossThread(op)) return Lower(op, {});
    return MapChildren(op, *this);
  }
  bool IsCrossThread(const BlockRealizeObj* op) const {
    return op->block->init.has_value() &&
           std::any_of(threads.begin(), threads.end(),
                       [&](const For& t) { return ReducesOver(op, t->loop_var); });
  }
  /// A block without regions gets those of its body.
  Stmt Realize(Array<IterVar> iter_vars, Array<PrimExpr> values, PrimExpr predicate,
               const String& name, Stmt body, Array<Buffer> alloc_buffers = {}) {
    Block block(iter_vars, {}, {}, name, body, {}, alloc_buffers);
    for (const Buffer& b : alloc_buffers) buffer_of_data.Set(b->data, b);
    Array<Array<BufferRegion>> access = GetBlockReadWriteRegion(block, buffer_of_data);
    auto* n = Edit(&block);
    n->reads = access[0];
    n->writes = access[1];
    return BlockRealize(values, predicate, block);
  }
  /// Fresh iterators: a block that is made from another one must not share them.
  static Stmt Fresh(const Stmt& stmt) {
    PrimFunc copy = RenewDefs(PrimFunc({}, stmt));
    return copy->body;
  }
  Stmt Lower(const BlockRealizeObj* op, const std::vector<For>& chain) {
    Reduction r;
    if (std::string why = WhyNoReducer(op->block.get(), &r); !why.empty()) {
      TVM_FFI_THROW(ValueError)
          << "LowerCrossThreadReduction: expected block " << op->block->name_hint
          << ", which reduces over threads, to combine a value with each element it writes, as "
             "B[i] = B[i] + v; "
          << why;
    }
    for (const For& loop : shared) {
      if (!ReducesOver(op, loop->loop_var)) continue;
      TVM_FFI_THROW(ValueError) << "LowerCrossThreadReduction: expected block "
                                << op->block->name_hint
                                << ", which reduces over threads, to be alone in the loops that it "
                                   "reduces over, but loop "
                                << loop->loop_var->name_hint << " has other statements, too";
    }
    std::vector<For> around, serial;  // what stays outside; what one thread does alone
    for (const For& loop : chain) {
      bool alone = !IsThread(loop.get()) && ReducesOver(op, loop->loop_var);
      (alone ? serial : around).push_back(loop);
    }
    auto local = [&](const char* prefix) {
      std::vector<Buffer> result;
      for (const Buffer& b : r.buffers)
        result.push_back(
            Buffer::Decl({PrimExpr(1)}, b->dtype, prefix + std::string(b->name), "local"));
      return result;
    };
    std::vector<Buffer> all = local("cross_thread_"), own = local("in_thread_");
    auto loads = [](const std::vector<Buffer>& buffers) {
      Array<PrimExpr> result;
      for (const Buffer& b : buffers) result.push_back(BufferLoad(b, {PrimExpr(0)}));
      return result;
    };
    Array<Stmt> seq;
    if (!serial.empty()) {
      Array<Stmt> init;
      for (size_t i = 0; i < own.size(); ++i)
        init.push_back(BufferStore(own[i], r.reducer->identity_element[i], {PrimExpr(0)}));
      Stmt first = SeqStmt::Flatten(init);
      seq.push_back(Realize({}, {}, const_true(), op->block->name_hint + String("_init"), first));
      std::vector<Buffer> results(r.buffers.begin(), r.buffers.end());
      ElementReplacer replace(results, own);
      Stmt body =
          Realize(op->block->iter_vars, op->iter_values, op->predicate,
                  op->block->name_hint + String("_in_thread"), replace.Mutate(op->block->body));
      seq.push_back(MergeNest(std::vector<Stmt>(serial.begin(), serial.end()), Fresh(body)));
    }
    // All threads take part in the exchange, also those that have nothing to add.
    Array<PrimExpr> args{MakeConst(DataType::UInt(32), static_cast<int>(all.size()))};
    for (const PrimExpr& v : serial.empty() ? r.sources : loads(own)) args.push_back(v);
    args.push_back(serial.empty() ? op->predicate : const_true());
    for (const PrimExpr& v : loads(all)) args.push_back(v);
    PrimExpr is_first = const_true();
    for (const For& t : threads) {
      if (!ReducesOver(op, t->loop_var)) continue;
      args.push_back(t->loop_var);
      is_first = is_first && equal(t->loop_var, t->min);
    }
    Stmt exchange = AttrStmt(
        r.reducer, "reduce_scope",
        Call(DataType::Handle(), builtin::reinterpret(), {MakeConst(DataType::UInt(64), 0)}),
        Evaluate(Call(DataType::Handle(), builtin::tvm_thread_allreduce(), args)));
    String name = op->block->name_hint + String("_cross_thread");
    // It names the threads, so it has no iterators, but what they stand for.
    Map<Var, PrimExpr> values_of_iters;
    for (size_t i = 0; i < op->iter_values.size(); ++i)
      values_of_iters.Set(op->block->iter_vars[i]->var, op->iter_values[i]);
    seq.push_back(Realize({}, {}, const_true(), name, Substitute(exchange, values_of_iters)));

    Array<Stmt> stores;
    bool is_private = true;
    for (size_t i = 0; i < all.size(); ++i) {
      stores.push_back(BufferStore(r.buffers[i], BufferLoad(all[i], {PrimExpr(0)}), r.indices));
      is_private &= r.buffers[i].scope() == "local";
    }
    Array<IterVar> spatial;
    Array<PrimExpr> values;
    for (size_t i = 0; i < op->iter_values.size(); ++i) {
      if (op->block->iter_vars[i]->iter_type == IterVarType::kCommReduce) continue;
      spatial.push_back(op->block->iter_vars[i]);
      values.push_back(op->iter_values[i]);
    }
    // Memory of a thread is written by each of them, other memory by the first.
    PrimExpr writes = is_private ? const_true() : is_first;
    seq.push_back(
        Fresh(Realize(spatial, values, writes && SpatialPart(op->predicate, op),
                      op->block->name_hint + String("_write_back"), SeqStmt::Flatten(stores))));
    Array<Buffer> allocated(all.begin(), all.end());
    if (!serial.empty())
      for (const Buffer& b : own) allocated.push_back(b);
    Stmt body = Realize({}, {}, const_true(), "", SeqStmt::Flatten(seq), allocated);
    return MergeNest(std::vector<Stmt>(around.begin(), around.end()), body);
  }
  /// The conditions of a predicate that do not depend on what is reduced over.
  PrimExpr SpatialPart(const PrimExpr& predicate, const BlockRealizeObj* op) {
    if (auto* both = predicate.as<AndObj>())
      return SpatialPart(both->a, op) && SpatialPart(both->b, op);
    bool reduced =
        UsesVar(predicate, [&](const VarObj* v) { return ReducesOver(op, ffi::GetRef<Var>(v)); });
    return reduced ? const_true() : predicate;
  }
};
}  // namespace

PrimFunc LowerCrossThreadReduction(PrimFunc func) {
  if (!HasThreadLoops(func->body)) return func;
  ReductionLowerer lower;
  for (const auto& [param, buffer] : func->buffer_map)
    lower.buffer_of_data.Set(buffer->data, buffer);
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(
    tir, LowerCrossThreadReduction,
    R"(Lowers blocks whose reduction runs over threads: each thread reduces its part into memory of its own, tvm_thread_allreduce combines the parts, and the first thread writes the result (all of them, if the result is local to a thread).

before(A: T.Buffer((2, 64), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        for k in range(2):
            for t in T.thread_binding(32, "threadIdx.x"):
                with T.block("B"):
                    vi = T.axis.spatial(2, i)
                    vk = T.axis.reduce(64, k * 32 + t)
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi, vk]
after:
    for i in range(2):
        for t in T.thread_binding(32, "threadIdx.x"):
            with T.block(""):
                T.reads(A[i, t:t + 33])
                T.writes(B[i])
                all = T.alloc_buffer((1,), scope="local")
                own = T.alloc_buffer((1,), scope="local")
                with T.block("B_init"):
                    own[0] = 0.0
                for k in range(2):
                    with T.block("B_in_thread"):
                        vi = T.axis.spatial(2, i)
                        vk = T.axis.reduce(64, k * 32 + t)
                        own[0] = own[0] + A[vi, vk]
                with T.block("B_cross_thread"):
                    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
                        T.tvm_thread_allreduce(T.uint32(1), own[0], True, all[0], t)
                with T.block("B_write_back"):
                    vi = T.axis.spatial(2, i)
                    T.where(t == 0)
                    B[vi] = all[0])")
}  // namespace tvm::tir
