// SPDX-License-Identifier: Apache-2.0
// Asks for the thread's context once in each body instead of at each use.
#include "tvm/expr/op.h"
#include "tvm/ir/structural.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct ContextCombiner : Mutator<ContextCombiner, CallObj, ForObj, AttrStmtObj> {
  std::vector<std::pair<PrimExpr, Var>> found;  // in the body being rewritten

  ObjectRef Rewrite(const CallObj* op) {
    if (!op->Is(builtin::tvm_thread_context())) return MapChildren(op, *this);
    const PrimExpr& context = op->args[0];
    for (const auto& [known, var] : found) {
      if (StructuralEqual(known, context)) return var;
    }
    found.emplace_back(context, Var("ctx_cache_", context.dtype()));
    return found.back().second;
  }
  Stmt Body(const Stmt& body) {
    auto outer = std::exchange(found, {});
    Stmt result = Mutate(body);
    for (const auto& [context, var] : found) result = LetStmt(var, context, result);
    found = std::move(outer);
    return result;
  }
  /// Another thread has another context.
  ObjectRef Rewrite(const ForObj* op) {
    if (op->kind != ForKind::kParallel) return MapChildren(op, *this);
    For loop = ffi::GetRef<For>(op);
    Stmt body = Body(op->body);
    if (!body.same_as(op->body)) Edit(&loop)->body = body;
    return loop;
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key != attr::kThreadExtent) return MapChildren(op, *this);
    return AttrStmt(op->node, op->attr_key, op->value, Body(op->body), op->span);
  }
};
}  // namespace

PrimFunc CombineContextCall(PrimFunc func) {
  Stmt body = ContextCombiner().Body(func->body);
  return WithBody(std::move(func), body);
}
TVM_PASS(tir, CombineContextCall,
         R"(Binds each tvm_thread_context once.

before(A: T.Buffer((1,), "float32")):
    T.call_packed("f", T.call_intrin("handle", "tir.tvm_thread_context", T.call_extern("handle", "context")))
    T.call_packed("g", T.call_intrin("handle", "tir.tvm_thread_context", T.call_extern("handle", "context")))
after:
    ctx_cache_: T.handle = T.call_extern("handle", "context")
    T.tvm_call_packed("f", ctx_cache_)
    T.tvm_call_packed("g", ctx_cache_))")
}  // namespace tvm::tir
