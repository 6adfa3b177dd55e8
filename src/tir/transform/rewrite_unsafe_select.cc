// SPDX-License-Identifier: Apache-2.0
// Makes selections evaluate only the side they choose where the other one may fail.
#include "tvm/arith/analyzer.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// Reading memory and calls that do more than compute may only happen where the program says so.
/// (Division is safe: by zero it gives 0.)
bool IsUnsafe(const PrimExpr& e) {
  bool unsafe = false;
  PostOrderVisit(e, [&](const ObjectRef& node) {
    auto* call = node.as<CallObj>();
    if (node.as<BufferLoadObj>()) unsafe = true;
    if (!call || call->Is(builtin::if_then_else()) || call->Is(builtin::address_of())) return;
    CallEffectKind effect = EffectOf(call->op);
    unsafe |= effect != CallEffectKind::kPure && effect != CallEffectKind::kExprAnnotation;
  });
  return unsafe;
}
struct SelectRewriter : Mutator<SelectRewriter, SelectObj, BufferObj> {
  ObjectRef Rewrite(const BufferObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const SelectObj* op) {
    Select select = Below<Select>(op);
    bool is_scalar = select->condition.dtype().is_scalar();
    bool safe = !IsUnsafe(select->true_value) && !IsUnsafe(select->false_value);
    if (safe || !is_scalar) return select;
    return if_then_else(select->condition, select->true_value, select->false_value, op->span);
  }
};
}  // namespace

PrimFunc RewriteUnsafeSelect(PrimFunc func) { return RewriteBody(std::move(func), SelectRewriter()); }
TVM_PASS(tir, RewriteUnsafeSelect,
         "Makes selections whose sides read memory evaluate only the chosen one.\n\n"
         "    T.Select(i > 0, A[i - 1], x)  ->  T.if_then_else(i > 0, A[i - 1], x)")
}  // namespace tvm::tir
