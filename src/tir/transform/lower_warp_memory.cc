// SPDX-License-Identifier: Apache-2.0
// Memory of a warp lives in the registers of its threads.
#include "../analyzed_mutator.h"
#include "../text.h"
#include "../threads.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Memory of `width` threads: element e belongs to lane (e / run) % width, which holds it in
/// element e % run + run * (e / (run * width)) of its registers.
struct WarpMemory {
  int64_t size = 0, run = 0, width = 0;
  Buffer local;
};
/// Arguments of an operator that are pointers to what a thread holds of a matrix of its warp; each
/// is followed by an offset.
std::vector<size_t> RegisterArgs(const CallObj* op) {
  if (op->Is(builtin::ptx_mma())) return {6, 8, 10};
  if (op->Is(builtin::ptx_mma_sp())) return {6, 8, 10, 12};
  if (op->Is(builtin::ptx_ldmatrix()) || op->Is(builtin::mma_store())) return {3};
  if (op->Is(builtin::mma_fill())) return {1};
  return {};
}
struct WarpLowerer : AnalyzedStmtMutator<WarpLowerer, AllocateObj, DeclBufferObj, BufferLoadObj,
                                         BufferStoreObj, CallObj, VarObj> {
  using Base::Rewrite;
  int64_t warp_size = 1, extent = 0;
  Var thread;
  bool is_divergent = false;  // inside of a branch that some threads of a warp may not take
  std::unordered_map<const VarObj*, WarpMemory> memory;
  std::unordered_map<const VarObj*, PrimExpr> names;  // for parts of indices

  void Collect(const Stmt& body) {
    PostOrderVisit(body, [&](const ObjectRef& node) {
      auto* let = node.as<LetStmtObj>();
      if (let && SideEffect(let->value) <= CallEffectKind::kPure)
        names.emplace(let->var.get(), let->value);
    });
  }
  /// An index in terms of loops and threads.
  PrimExpr Spelled(const PrimExpr& index) const {
    if (names.empty()) return index;
    return Substitute(index, [&](const Var& v) {
      auto it = names.find(v.get());
      return it == names.end() ? PrimExpr() : Spelled(it->second);
    });
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    if (iv && iv->thread_tag == "threadIdx.x") {
      thread = iv->var;
      extent = AsConstInt(op->value).value_or(0);
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const IfThenElseObj* op) {
    bool outer = is_divergent;
    is_divergent |= thread.defined() && UsesVar(Spelled(op->condition),
                                                [&](const VarObj* v) { return v == thread.get(); });
    ObjectRef result = Base::Rewrite(op);
    is_divergent = outer;
    return result;
  }
  [[noreturn]] static void Refuse(const String& name, const std::string& expected) {
    TVM_FFI_THROW(ValueError) << "LowerWarpMemory: expected warp memory " << name << " "
                              << expected;
  }
  ObjectRef Rewrite(const AllocateObj* op) {
    if (ScopeOf(op->buffer_var.get()) != "warp") return MapChildren(op, *this);
    const String& name = op->buffer_var->name_hint;
    if (!thread.defined() || extent < 1)
      Refuse(name, "inside a launch with a constant number of threads threadIdx.x");
    WarpMemory& m = memory[op->buffer_var.get()];
    m.size = op->ConstantSize();
    m.width = std::min(warp_size, extent);
    if (extent % m.width != 0 || (m.width & (m.width - 1)) != 0)
      Refuse(name, "in blocks of whole warps or of a power of two threads, got " +
                       std::to_string(extent));
    m.run = FindRun(op);
    int64_t count = m.run * m.width;
    if (m.size < 1 || m.size % count != 0)
      Refuse(name, "of a multiple of " + std::to_string(count) + " elements, got " +
                       std::to_string(m.size));
    PointerType type(PrimType(op->dtype), "local");
    int64_t own = m.size / m.width;
    m.local =
        Buffer(Var(name, type), op->dtype, {PrimExpr(static_cast<int>(own))}, {}, PrimExpr(), name);
    Stmt body = Mutate(op->body);
    return Allocate(m.local->data, op->dtype, m.local->shape, op->condition,
                    DeclBuffer(m.local, body), op->annotations, op->span);
  }
  /// How many elements in a row each thread writes: the coefficient of the thread's index.
  int64_t FindRun(const AllocateObj* op) {
    int64_t run = 0;
    PostOrderVisit(op->body, [&](const ObjectRef& node) {
      if (auto* call = node.as<CallObj>()) {
        for (size_t i : RegisterArgs(call)) {
          if (call->args[i].same_as(op->buffer_var) && UsesThread(call->args[i + 1]))
            Learn(op, call->args[i + 1], &run);
        }
      }
      auto* store = node.as<BufferStoreObj>();
      if (store && store->buffer->data.same_as(op->buffer_var)) Learn(op, store->indices[0], &run);
    });
    if (run == 0) Refuse(op->buffer_var->name_hint, "to be written");
    return run;
  }
  bool UsesThread(const PrimExpr& e) const {
    return UsesVar(Spelled(e), [&](const VarObj* v) { return v == thread.get(); });
  }
  void Learn(const AllocateObj* op, const PrimExpr& written, int64_t* run) {
    PrimExpr index = Spelled(written);
    if (auto* ramp = index.as<RampObj>()) index = ramp->base;
    auto at = [&](const PrimExpr& t) {
      return Substitute(index, [&](const Var& v) { return v.same_as(thread) ? t : PrimExpr(); });
    };
    auto step =
        AsConstInt(analyzer.Simplify(at(thread + MakeConst(thread.dtype(), 1)) - at(thread)));
    if (auto first = AsConstInt(
            analyzer.Simplify(at(MakeConst(thread.dtype(), 1)) - at(MakeZero(thread.dtype()))));
        !step && first)
      step = first;  // thread % width: the same inside of a warp
    if (!step || *step < 1 || (*run && *run != *step))
      Refuse(op->buffer_var->name_hint,
             "to be written at multiples of threadIdx.x, got index " + TextOf(written));
    *run = *step;
  }
  const WarpMemory* Find(const VarObj* data) const {
    auto it = memory.find(data);
    return it == memory.end() ? nullptr : &it->second;
  }
  /// (element of the registers, lane) of an index.
  std::pair<PrimExpr, PrimExpr> Split(const WarpMemory& m, PrimExpr index) {
    index = Spelled(index);
    auto* ramp = index.as<RampObj>();
    if (ramp && !IsOne(ramp->stride)) Refuse(m.local->name, "with vectors of adjacent elements");
    PrimExpr base = ramp ? ramp->base : index;
    auto number = [&](int64_t v) { return MakeConst(base.dtype(), v); };
    PrimExpr lane = analyzer.Simplify(floormod(floordiv(base, number(m.run)), number(m.width)));
    PrimExpr slot = analyzer.Simplify(floormod(base, number(m.run)) +
                                      floordiv(base, number(m.run * m.width)) * number(m.run));
    if (ramp) slot = Ramp(slot, ramp->stride, ramp->lanes);
    return {slot, lane};
  }
  bool IsOwn(const WarpMemory& m, const PrimExpr& lane) {
    return analyzer.CanProveEqual(
        lane, floormod(cast(lane.dtype(), thread), MakeConst(lane.dtype(), m.width)));
  }
  ObjectRef Rewrite(const DeclBufferObj* op) {
    return Find(op->buffer->data.get()) ? ObjectRef(Mutate(op->body)) : MapChildren(op, *this);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    const WarpMemory* m = Find(op->buffer->data.get());
    if (!m) return MapChildren(op, *this);
    auto [slot, lane] = Split(*m, Mutate(op->indices[0]));
    if (!IsOwn(*m, lane))
      Refuse(op->buffer->name,
             "to be written by the thread it belongs to, got index " + TextOf(op->indices[0]));
    return BufferStore(m->local, Mutate(op->value), {slot}, op->predicate, op->span);
  }
  ObjectRef Rewrite(const BufferLoadObj* op) {
    const WarpMemory* m = Find(op->buffer->data.get());
    if (!m) return MapChildren(op, *this);
    auto [slot, lane] = Split(*m, Mutate(op->indices[0]));
    BufferLoad own(m->local, {slot}, op->predicate, op->span);
    if (IsOwn(*m, lane)) return own;
    // The registers of another thread are read at one place for all.
    if (UsesVar(slot, [&](const VarObj* v) { return v == thread.get(); }))
      Refuse(op->buffer->name,
             "to be read at the same element of each thread's registers, got index " +
                 TextOf(op->indices[0]));
    if (is_divergent)
      Refuse(op->buffer->name,
             "to be read by all threads of a warp, got a read in a branch of some");
    PrimExpr mask = Call(DataType::UInt(32), builtin::tvm_warp_activemask(), {});
    return Call(own.dtype(), builtin::tvm_warp_shuffle(),
                {mask, own, lane, PrimExpr(static_cast<int>(m->width)),
                 PrimExpr(static_cast<int>(warp_size))});
  }
  /// Each thread of a warp gives its registers. An offset that does not name the thread is that of
  /// the matrix.
  ObjectRef Rewrite(const CallObj* op) {
    std::vector<size_t> registers = RegisterArgs(op);
    if (registers.empty()) return MapChildren(op, *this);
    Array<PrimExpr> args;
    for (size_t i = 0; i < op->args.size(); ++i) {
      auto* data = op->args[i].as<VarObj>();
      bool is_register = std::find(registers.begin(), registers.end(), i) != registers.end();
      const WarpMemory* m = data && is_register ? Find(data) : nullptr;
      if (!m) {
        args.push_back(Mutate(op->args[i]));
        continue;
      }
      const PrimExpr& offset = op->args[++i];
      auto [slot, lane] = Split(*m, Mutate(offset));
      if (UsesThread(offset) && !IsOwn(*m, lane))
        Refuse(m->local->name,
               "to be used by the thread it belongs to, got offset " + TextOf(offset));
      args.push_back(m->local->data);
      args.push_back(slot);
    }
    return Call(op->dtype, op->op, args, op->span);
  }
  ObjectRef Rewrite(const VarObj* op) {
    if (Find(op))
      Refuse(op->name_hint, "to be used by its elements only: registers have no address");
    return ffi::GetRef<ObjectRef>(op);
  }
};
}  // namespace

PrimFunc LowerWarpMemory(PrimFunc func) {
  WarpLowerer lower;
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  lower.warp_size = target.has_value() ? Machine::Of(target.value())->warp : 1;
  lower.Collect(func->body);
  return RewriteBody(std::move(func), lower);
}
TVM_PASS(
    tir, LowerWarpMemory,
    R"(Keeps memory of scope warp in the registers of the threads that write it; reads of another thread's elements become shuffles.

before(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    T.func_attr({"target": T.target("cuda")})
    i = T.launch_thread("threadIdx.x", 32)
    W_data = T.allocate([32], "float32", "warp")
    W = T.decl_buffer((32,), data=W_data, scope="warp")
    W[i] = A[i]
    B[i] = W[(i + 1) % 32]
after:
    T.func_attr({"target": T.target("cuda")})
    i = T.launch_thread("threadIdx.x", 32)
    W_data = T.allocate([1], "float32", "local")
    W = T.decl_buffer((1,), data=W_data, scope="local")
    W[0] = A[i]
    B[i] = T.tvm_warp_shuffle(T.tvm_warp_activemask(), W[0], (i + 1) % 32, 32, 32))")
}  // namespace tvm::tir
