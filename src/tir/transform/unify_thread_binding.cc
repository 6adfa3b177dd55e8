// SPDX-License-Identifier: Apache-2.0
// Gives a kernel one variable for each thread index, bound outside of everything.
#include "../any_stmt.h"
#include "../text.h"
#include "tvm/arith/analyzer.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// A kernel is what is inside the outermost loop bound to a thread.
struct ThreadUnifier : Mutator<ThreadUnifier, VarObj, ForObj> {
  std::vector<For> launched;  // of the kernel, in the order they are met
  int depth = 0;
  std::unordered_map<const VarObj*, PrimExpr> values;
  arith::Analyzer analyzer;

  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const ForObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    if (!iv) return MapChildren(op, *this);
    PrimExpr min = Mutate(op->min), extent = Mutate(op->extent);
    For* known = nullptr;
    for (For& f : launched) {
      if (f->thread_binding.value()->thread_tag == iv->thread_tag) known = &f;
    }
    if (known && !analyzer.CanProveEqual((*known)->extent, extent)) {
      TVM_FFI_THROW(ValueError) << "UnifyThreadBinding: expected one extent of " << iv->thread_tag
                                << " in a kernel, got " << TextOf((*known)->extent) << " and "
                                << TextOf(extent);
    }
    if (!known) {
      Var var = op->loop_var.CopyWithSuffix("");
      IterVar index({}, iv->var.CopyWithSuffix(""), IterVarType::kThreadIndex, iv->thread_tag);
      launched.push_back(For(var, MakeZero(var.dtype()), extent, ForKind::kThreadBinding,
                             Evaluate::Nothing(), index, op->annotations, {}, op->span));
      known = &launched.back();
    } else {
      auto* n = Edit(known);
      for (const auto& [key, value] : op->annotations) n->annotations.Set(key, value);
    }
    PrimExpr index = cast(op->loop_var.dtype(), (*known)->loop_var);
    values[op->loop_var.get()] = IsZero(min) ? index : index + min;
    values[iv->var.get()] = values[op->loop_var.get()];
    ++depth;
    Stmt body = Mutate(op->body);
    if (--depth > 0) return body;
    std::vector<Stmt> nest(launched.begin(), launched.end());
    launched.clear();
    return MergeNest(nest, body);
  }
};
}  // namespace

PrimFunc UnifyThreadBinding(PrimFunc func) {
  return HasThreadLoops(func->body) ? RewriteBody(std::move(func), ThreadUnifier()) : func;
}
TVM_PASS(
    tir, UnifyThreadBinding,
    R"(Gives a kernel one variable per thread index, bound outside of everything in it. Virtual threads stay.

before(A: T.Buffer((2, 32), "float32"), B: T.Buffer((2, 32), "float32")):
    for b in T.thread_binding(2, "blockIdx.x"):
        for i in T.thread_binding(32, "threadIdx.x"):
            A[b, i] = 1.0
        for j in T.thread_binding(32, "threadIdx.x"):
            B[b, j] = A[b, j]
after:
    for b in T.thread_binding(2, "blockIdx.x"):
        for i in T.thread_binding(32, "threadIdx.x"):
            A[b, i] = 1.0
            B[b, i] = A[b, i])")
}  // namespace tvm::tir
