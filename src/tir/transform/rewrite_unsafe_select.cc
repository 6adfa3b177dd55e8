// SPDX-License-Identifier: Apache-2.0
// Makes selections evaluate only the side they choose where the other one may fail.
#include "../analyzed_mutator.h"
#include "../contents.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"

namespace tvm::tir {
namespace {
struct SelectRewriter : AnalyzedMutator<SelectRewriter, BufferObj> {
  using Base::Rewrite;

  /// Reading memory outside of its buffer and calls that do more than compute may only happen where
  /// the program says so. (Division is safe: by zero it gives 0.)
  bool IsUnsafe(const PrimExpr& e) {
    bool unsafe = false;
    PreOrderVisit(e, [&](const ObjectRef& node) {
      if (auto* load = node.as<BufferLoadObj>())
        unsafe |= !IsInBounds(&analyzer, load->buffer, load->indices);
      auto* call = node.as<CallObj>();
      if (!call || call->Is(builtin::address_of())) return !call && !unsafe;
      if (call->Is(builtin::if_then_else())) {  // guards its own values
        unsafe |= IsUnsafe(call->args[0]);
        return false;
      }
      CallEffectKind effect = EffectOf(call->op);
      unsafe |= effect != CallEffectKind::kPure && effect != CallEffectKind::kExprAnnotation;
      return !unsafe;
    });
    return unsafe;
  }
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const SelectObj* op) {
    Select select = Any(Base::Rewrite(op)).cast<Select>();
    bool is_scalar = select->condition.dtype().is_scalar();
    if (!is_scalar || (!IsUnsafe(select->true_value) && !IsUnsafe(select->false_value)))
      return select;
    return if_then_else(select->condition, select->true_value, select->false_value, op->span);
  }
};
}  // namespace

PrimFunc RewriteUnsafeSelect(PrimFunc func) {
  if (!ContentsOf(func->body).Has<SelectObj>()) return func;
  SelectRewriter rewrite;
  rewrite.LearnParams(func);
  return RewriteBody(std::move(func), rewrite);
}
TVM_PASS(tir, RewriteUnsafeSelect,
         R"(Makes selections whose sides may read outside of a buffer evaluate only the chosen one.

before(A: T.Buffer((16,), "float32"), i: T.int32):
    A[0] = T.Select(i < 16, A[i], T.float32(0))
after:
    A[0] = T.if_then_else(i < 16, A[i], T.float32(0)))")
}  // namespace tvm::tir
