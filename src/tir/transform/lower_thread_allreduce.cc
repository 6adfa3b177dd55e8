// SPDX-License-Identifier: Apache-2.0
// Reductions over threads: through the registers of warps, or through shared memory.
#include "../any_stmt.h"
#include "../text.h"
#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct ThreadIndex {
  ThreadTag tag;
  Var var;
  int64_t extent;
};
PrimExpr Times(const PrimExpr& e, int64_t n) { return n == 1 ? e : e * MakeConst(e.dtype(), n); }

/// One call of tvm_thread_allreduce: (number of values, values, condition, results, threads).
struct Reduction {
  CommReducer combiner;
  std::vector<PrimExpr> values;
  PrimExpr condition;
  std::vector<BufferLoad> results;
  std::vector<ThreadIndex> reduced, others;  // x first
  int64_t Count(const std::vector<ThreadIndex>& threads) const {
    int64_t count = 1;
    for (const ThreadIndex& t : threads) count *= t.extent;
    return count;
  }
  /// The number of a thread among those of one group, x fastest.
  static PrimExpr Number(const std::vector<ThreadIndex>& threads) {
    PrimExpr number = PrimExpr(0);
    int64_t stride = 1;
    for (const ThreadIndex& t : threads) {
      number = number + Times(cast(DataType::Int(32), t.var), stride);
      stride *= t.extent;
    }
    return number;
  }
};

struct AllreduceLowerer : Mutator<AllreduceLowerer, AttrStmtObj, EvaluateObj> {
  int64_t warp_size = 1;
  std::vector<ThreadIndex> threads;
  CommReducer combiner;

  static Stmt Sync(const char* scope) {
    return Evaluate(Call(DataType::Int(32), builtin::tvm_storage_sync(), {StringImm(scope)}));
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key == "reduce_scope") {
      CommReducer outer = std::exchange(combiner, op->node.cast<CommReducer>());
      Stmt body = Mutate(op->body);
      combiner = outer;
      return body;
    }
    const IterVarObj* iv = LaunchedThread(op);
    if (!iv || ThreadTag(iv->thread_tag).kind != ThreadTag::kThread) return MapChildren(op, *this);
    threads.push_back({ThreadTag(iv->thread_tag), iv->var, AsConstInt(op->value).value_or(-1)});
    ObjectRef result = MapChildren(op, *this);
    threads.pop_back();
    return result;
  }
  ObjectRef Rewrite(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    if (!call || !call->Is(builtin::tvm_thread_allreduce())) return ffi::GetRef<ObjectRef>(op);
    if (!combiner.defined()) {
      TVM_FFI_THROW(ValueError) << "LowerThreadAllreduce: expected tvm_thread_allreduce inside an "
                                   "attribute reduce_scope with its CommReducer";
    }
    Reduction r = Parse(call);
    return IsLanes(r) ? ThroughShuffles(r) : ThroughMemory(r);
  }
  Reduction Parse(const CallObj* call) {
    Reduction r;
    r.combiner = combiner;
    size_t n = AsConstInt(call->args[0]).value_or(0);
    if (n != combiner->lhs.size() || call->args.size() < 2 + 2 * n) {
      TVM_FFI_THROW(ValueError) << "LowerThreadAllreduce: expected " << combiner->lhs.size()
                                << " values to reduce, got " << n;
    }
    for (size_t i = 0; i < n; ++i) {
      r.values.push_back(call->args[1 + i]);
      auto* result = call->args[2 + n + i].as<BufferLoadObj>();
      if (!result) {
        TVM_FFI_THROW(TypeError)
            << "LowerThreadAllreduce: expected an element of a buffer for result " << i << ", got "
            << TextOf(call->args[2 + n + i]);
      }
      r.results.push_back(ffi::GetRef<BufferLoad>(result));
    }
    r.condition = call->args[1 + n];
    for (const ThreadIndex& t : threads) {
      if (t.extent < 1) {
        TVM_FFI_THROW(ValueError) << "LowerThreadAllreduce: expected a constant number of threads "
                                     "for "
                                  << t.var->name_hint;
      }
      bool is_reduced = false;
      for (size_t i = 2 + 2 * n; i < call->args.size(); ++i)
        is_reduced |= call->args[i].same_as(t.var);
      (is_reduced ? r.reduced : r.others).push_back(t);
    }
    auto by_dim = [](const ThreadIndex& a, const ThreadIndex& b) { return a.tag.dim < b.tag.dim; };
    std::sort(r.reduced.begin(), r.reduced.end(), by_dim);
    std::sort(r.others.begin(), r.others.end(), by_dim);
    return r;
  }
  /// Whether each group of threads that reduce together is a run of lanes of one warp, or of whole
  /// warps that one has enough lanes for.
  bool IsLanes(const Reduction& r) const {
    int64_t count = r.Count(r.reduced);
    if (warp_size <= 1 || r.reduced.empty() || (count & (count - 1)) != 0 ||
        count > warp_size * warp_size)
      return false;
    // The indices that are reduced run faster than all others, so that groups follow each other.
    for (const ThreadIndex& other : r.others) {
      if (other.extent > 1 && other.tag.dim < r.reduced.back().tag.dim) return false;
    }
    for (const PrimExpr& v : r.values) {
      if (v.dtype().bits() != 32 || !v.dtype().is_scalar()) return false;
    }
    return count * r.Count(r.others) % warp_size == 0;  // whole warps only
  }
  std::vector<PrimExpr> Contributions(const Reduction& r) const {
    std::vector<PrimExpr> result;
    for (size_t i = 0; i < r.values.size(); ++i) {
      result.push_back(IsTrue(r.condition) ? r.values[i]
                                           : if_then_else(r.condition, r.values[i],
                                                          r.combiner->identity_element[i]));
    }
    return result;
  }
  struct Memory {
    std::vector<Buffer> buffers;
    Memory(const std::vector<PrimExpr>& values, int64_t count, const char* name,
           const char* scope) {
      for (const PrimExpr& v : values)
        buffers.push_back(
            Buffer::Decl({PrimExpr(static_cast<int>(count))}, v.dtype(), name, scope));
    }
    Array<PrimExpr> At(const PrimExpr& index) const {
      Array<PrimExpr> result;
      for (const Buffer& b : buffers) result.push_back(BufferLoad(b, {index}));
      return result;
    }
    /// buffers[index] = values, all values read before the first is written.
    Stmt Set(const PrimExpr& index, const Array<PrimExpr>& values) const {
      Array<Stmt> stores;
      std::vector<Var> kept;
      bool one = buffers.size() == 1;
      for (size_t i = 0; i < buffers.size(); ++i) {
        kept.emplace_back("value", values[i].dtype());
        stores.push_back(BufferStore(buffers[i], one ? values[i] : PrimExpr(kept[i]), {index}));
      }
      Stmt result = SeqStmt::Flatten(stores);
      for (size_t i = buffers.size(); !one && i > 0; --i)
        result = LetStmt(kept[i - 1], values[i - 1], result);
      return result;
    }
    Stmt Allocated(Stmt body) const {
      for (size_t i = buffers.size(); i > 0; --i) {
        const Buffer& b = buffers[i - 1];
        body = Allocate(b->data, b->dtype, b->shape, const_true(), DeclBuffer(b, body));
      }
      return body;
    }
  };
  Stmt Results(const Reduction& r, const Array<PrimExpr>& values) const {
    Array<Stmt> stores;
    for (size_t i = 0; i < r.results.size(); ++i)
      stores.push_back(BufferStore(r.results[i]->buffer, values[i], r.results[i]->indices));
    return SeqStmt::Flatten(stores);
  }
  /// Halves the number of values in each step; threads of a group have adjacent elements.
  Stmt ThroughMemory(const Reduction& r) const {
    int64_t count = r.Count(r.reduced);
    std::vector<PrimExpr> values = Contributions(r);
    if (count == 1) return Results(r, Array<PrimExpr>(values.begin(), values.end()));
    Memory memory(values, count * r.Count(r.others), "red_buf", "shared");
    PrimExpr mine = Reduction::Number(r.reduced);
    PrimExpr begin = Times(Reduction::Number(r.others), count), at = begin + mine;
    Array<Stmt> seq{memory.Set(at, Array<PrimExpr>(values.begin(), values.end())), Sync("shared")};
    int64_t step = 1;
    while (step * 2 < count) step *= 2;
    for (int64_t n = count; step >= 1; n = step, step /= 2) {
      PrimExpr distance(static_cast<int>(step));
      Stmt combine = memory.Set(at, r.combiner->Combine(memory.At(at), memory.At(at + distance)));
      seq.push_back(IfThenElse(mine < PrimExpr(static_cast<int>(n - step)), combine));
      seq.push_back(Sync("shared"));
    }
    seq.push_back(Results(r, memory.At(begin)));
    // The memory may be used again before the last thread has read its result.
    seq.push_back(Sync("shared"));
    return memory.Allocated(SeqStmt::Flatten(seq));
  }
  /// Within warps, then what these have: one result for all of them to read.
  Stmt ThroughShuffles(const Reduction& r) const {
    int64_t count = r.Count(r.reduced), lanes = std::min(count, warp_size), warps = count / lanes;
    std::vector<PrimExpr> values = Contributions(r);
    Memory mine(values, 1, "red", "local"), theirs(values, 1, "red_other", "local");
    Memory sums(values, warps * r.Count(r.others), "red_warps", "shared");
    Var mask("mask", DataType::UInt(32));
    PrimExpr zero(0), warp(static_cast<int>(warp_size));
    Array<Stmt> seq{mine.Set(zero, Array<PrimExpr>(values.begin(), values.end()))};
    auto reduce = [&](int64_t width) {
      auto shuffled = [&](const Op& op, int64_t lane) {
        Array<PrimExpr> result;
        for (const PrimExpr& v : mine.At(zero)) {
          result.push_back(Call(v.dtype(), op,
                                {mask, v, PrimExpr(static_cast<int>(lane)),
                                 PrimExpr(static_cast<int>(width)), warp}));
        }
        return result;
      };
      for (int64_t step = width / 2; step >= 1; step /= 2) {
        seq.push_back(theirs.Set(zero, shuffled(builtin::tvm_warp_shuffle_down(), step)));
        seq.push_back(mine.Set(zero, r.combiner->Combine(mine.At(zero), theirs.At(zero))));
      }
      seq.push_back(mine.Set(zero, shuffled(builtin::tvm_warp_shuffle(), 0)));
    };
    reduce(lanes);
    if (warps > 1) {
      PrimExpr number = Reduction::Number(r.reduced);
      PrimExpr begin = Times(Reduction::Number(r.others), warps);
      Stmt store = sums.Set(begin + floordiv(number, warp), mine.At(zero));
      seq.push_back(IfThenElse(equal(floormod(number, warp), zero), store));
      seq.push_back(Sync("shared"));
      PrimExpr own = floormod(number, PrimExpr(static_cast<int>(warps)));
      seq.push_back(mine.Set(zero, sums.At(begin + own)));
      reduce(warps);
    }
    seq.push_back(Results(r, mine.At(zero)));
    // The memory may be used again before the last thread has read it.
    if (warps > 1) seq.push_back(Sync("shared"));
    Stmt body = LetStmt(mask, Call(DataType::UInt(32), builtin::tvm_warp_activemask(), {}),
                        SeqStmt::Flatten(seq));
    body = mine.Allocated(theirs.Allocated(body));
    return warps > 1 ? sums.Allocated(body) : body;
  }
};
}  // namespace

PrimFunc LowerThreadAllreduce(PrimFunc func) {
  auto reduces = [](const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    return call && call->Is(builtin::tvm_thread_allreduce());
  };
  if (!HasStmt<AttrStmtObj>(func->body) && !AnyStmt<EvaluateObj>(func->body, reduces)) return func;
  AllreduceLowerer lower;
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (target.has_value() && target.value()->HasKey("gpu"))
    lower.warp_size = Machine::Of(target.value())->warp;
  func = RewriteBody(std::move(func), lower);
  return func;
}
TVM_PASS(
    tir, LowerThreadAllreduce,
    R"(Lowers reductions over threads. Groups of a power of two threads that are lanes of one warp, or whole warps, exchange 32-bit values by shuffles if the target's thread_warp_size allows; others use shared memory, half as many threads in each step. Every thread gets the result.

before(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32")):
    i = T.launch_thread("threadIdx.x", 4)
    R_data = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), data=R_data, scope="local")
    with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
        T.tvm_thread_allreduce(1, A[i], True, R[0], i)
    B[0] = R[0]
after:
    i = T.launch_thread("threadIdx.x", 4)
    R_data = T.allocate([1], "float32", "local")
    R = T.decl_buffer((1,), data=R_data, scope="local")
    with T.allocate([4], "float32", "shared") as red_data:
        red = T.decl_buffer((4,), data=red_data, scope="shared")
        red[i] = A[i]
        T.tvm_storage_sync("shared")
        if i < 2:
            red[i] = red[i] + red[i + 2]
        T.tvm_storage_sync("shared")
        if i < 1:
            red[i] = red[i] + red[i + 1]
        T.tvm_storage_sync("shared")
        R[0] = red[0]
        T.tvm_storage_sync("shared")
    B[0] = R[0])")
}  // namespace tvm::tir
