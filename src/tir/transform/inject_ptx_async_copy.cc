// SPDX-License-Identifier: Apache-2.0
// Copies to shared memory that a pipeline marks as asynchronous become instructions of PTX.
#include <cmath>

#include "../analyzed_mutator.h"
#include "../any_stmt.h"
#include "tvm/expr/op.h"
#include "tvm/ir/machine.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
Stmt Do(const Op& op, Array<PrimExpr> args) {
  return Evaluate(Call(DataType::Void(), op, std::move(args)));
}
/// What a copy that is left out writes: zeros of positive sign.
bool IsPositiveZero(PrimExpr e) {
  if (auto* lanes = e.as<BroadcastObj>()) e = lanes->value;
  auto* number = e.as<FloatImmObj>();
  return number ? number->value == 0 && !std::signbit(number->value) : IsConstInt(e, 0);
}
/// Where a vector of adjacent elements begins; undefined for another one.
PrimExpr First(const PrimExpr& index) {
  auto* ramp = index.as<RampObj>();
  if (ramp) return IsOne(ramp->stride) ? ramp->base : PrimExpr();
  return index.dtype().is_scalar() ? index : PrimExpr();
}

struct AsyncCopier : AnalyzedStmtMutator<AsyncCopier, BufferStoreObj> {
  using Base::Rewrite;
  std::unordered_set<const VarObj*> params;  // memory of others, which begins anywhere
  bool is_async = false;

  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key == "async_scope") {
      bool outer = std::exchange(is_async, true);
      Stmt body = Mutate(op->body);
      is_async = outer;
      return body;
    }
    if (op->attr_key == "async_commit_queue_scope")
      return SeqStmt::Flatten({Mutate(op->body), Do(builtin::ptx_commit_group(), {})});
    if (op->attr_key == "async_wait_queue_scope") {
      auto* count = op->body.as<AttrStmtObj>();
      if (!count || count->attr_key != "async_wait_inflight_count") {
        TVM_FFI_THROW(ValueError) << "InjectPTXAsyncCopy: expected async_wait_inflight_count "
                                     "inside of async_wait_queue_scope";
      }
      // A thread has one queue of groups: those of other stages only make it wait for more. So does
      // 0, where the number differs from one iteration to the next.
      auto inflight = AsConstInt(analyzer.Simplify(count->value));
      PrimExpr left(static_cast<int>(std::max<int64_t>(0, inflight.value_or(0))));
      return SeqStmt::Flatten({Do(builtin::ptx_wait_group(), {left}), Mutate(count->body)});
    }
    return Base::Rewrite(op);
  }
  ObjectRef Rewrite(const BufferStoreObj* op) {
    Stmt store = ffi::GetRef<Stmt>(op);
    if (!is_async || op->predicate.has_value() || !IsSharedScope(ScopeOf(op->buffer->data.get())))
      return store;
    PrimExpr value = op->value, condition;
    if (auto* call = value.as<CallObj>(); call && call->Is(builtin::if_then_else())) {
      if (!IsPositiveZero(call->args[2])) return store;
      condition = call->args[0];
      value = call->args[1];
    }
    auto* load = value.as<BufferLoadObj>();
    if (!load || load->predicate.has_value() || load->buffer->dtype != op->buffer->dtype ||
        ScopeOf(load->buffer->data.get()) != "global" || load->indices.size() != 1 ||
        op->indices.size() != 1)
      return store;
    DataType element = load->buffer->dtype;
    int64_t lanes = value.dtype().lanes() / element.lanes(), size = element.bytes(),
            bytes = lanes * size;
    PrimExpr from = First(load->indices[0]), to = First(op->indices[0]);
    bool has_instruction = bytes == 4 || bytes == 8 || bytes == 16;
    if (!from.defined() || !to.defined() || !element.is_scalar() || !has_instruction) return store;
    from = from + cast(from.dtype(), load->buffer->elem_offset);
    auto is_multiple = [&](const PrimExpr& e) {
      return analyzer.CanProveEqual(floormod(e, MakeConst(e.dtype(), lanes)), MakeZero(e.dtype()));
    };
    if (!is_multiple(from) || !is_multiple(to)) return store;
    Array<PrimExpr> args{op->buffer->data, to, load->buffer->data, analyzer.Simplify(from),
                         PrimExpr(static_cast<int>(bytes))};
    if (condition.defined()) args.push_back(condition);
    Stmt copy = Evaluate(Call(element, builtin::ptx_cp_async(), args, op->span));
    if (lanes == 1 || !params.count(load->buffer->data.get())) return copy;
    DataType word = DataType::UInt(64);
    PrimExpr rest = bitwise_and(reinterpret(word, load->buffer->data), MakeConst(word, bytes - 1));
    return IfThenElse(equal(rest, MakeZero(word)), copy, store);
  }
};
}  // namespace

PrimFunc InjectPTXAsyncCopy(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (target.has_value() && !Machine::Of(target.value())->Has("async-copy")) return func;
  auto is_async = [](const AttrStmtObj* op) { return View(op->attr_key).substr(0, 6) == "async_"; };
  if (!AnyStmt<AttrStmtObj>(func->body, is_async)) return func;
  AsyncCopier copy;
  for (const auto& [param, buffer] : func->buffer_map) copy.params.insert(buffer->data.get());
  for (const Var& param : func->params) copy.params.insert(param.get());
  return RewriteBody(std::move(func), copy);
}
TVM_PASS(
    tir, InjectPTXAsyncCopy,
    R"(Makes copies from global to shared memory, of 4, 8 or 16 bytes in async_scope, instructions that run beside the program (cp.async), ends their groups where async_commit_queue_scope ends, and waits for them where async_wait_queue_scope says. Other statements there stay as they are. A copy of several elements asks whether the memory it reads is aligned. From sm_80 on; for other targets everything stays as it is.

before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    i = T.launch_thread("threadIdx.x", 32)
    S_data = T.allocate([64], "float32", "shared")
    S = T.decl_buffer((64,), data=S_data, scope="shared")
    with T.attr(0, "async_commit_queue_scope", 0):
        with T.attr(0, "async_scope", 1):
            S[i] = A[i]
            S[i + 32] = T.if_then_else(i < 30, A[i + 32], T.float32(0))
    with T.attr(0, "async_wait_queue_scope", 0):
        with T.attr(0, "async_wait_inflight_count", 0):
            B[i] = S[i]
            B[i + 32] = S[i + 32]
after:
    i = T.launch_thread("threadIdx.x", 32)
    S_data = T.allocate([64], "float32", "shared")
    S = T.decl_buffer((64,), data=S_data, scope="shared")
    T.ptx_cp_async("float32", S_data, i, A.data, i, 4)
    T.ptx_cp_async("float32", S_data, i + 32, A.data, i + 32, 4, i < 30)
    T.ptx_commit_group()
    T.ptx_wait_group(0)
    B[i] = S[i]
    B[i + 32] = S[i + 32])")
}  // namespace tvm::tir
