// SPDX-License-Identifier: Apache-2.0
// Puts the bodies of private functions where they are called.
#include <functional>
#include <unordered_set>

#include "tvm/expr/op.h"
#include "tvm/expr/substitute.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/analysis.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
/// What can be inlined: a private function without result and without buffers to be made from
/// handles, which does not call itself.
bool CanInline(const PrimFunc& func, const GlobalVar& self) {
  if (func->attrs.Has(::tvm::attr::kGlobalSymbol) || !IsVoidType(func->ret_type) ||
      !func->buffer_map.empty())
    return false;
  bool ok = true;
  PostOrderVisit(func->body, [&](const ObjectRef& node) {
    auto* call = node.as<CallObj>();
    if (call && (call->Is(builtin::ret()) || call->op.same_as(self))) ok = false;
  });
  return ok;
}
struct Inliner : Mutator<Inliner, EvaluateObj> {
  std::function<PrimFunc(const GlobalVar&)> callee;
  ObjectRef Rewrite(const EvaluateObj* op) {
    auto* call = op->value.as<CallObj>();
    auto* var = call ? call->op.as<GlobalVarObj>() : nullptr;
    PrimFunc func = var ? callee(ffi::GetRef<GlobalVar>(var)) : PrimFunc();
    if (!func.defined()) return ffi::GetRef<ObjectRef>(op);
    if (func->params.size() != call->args.size()) {
      TVM_FFI_THROW(TypeError) << "InlinePrivateFunctions: expected " << func->params.size()
                               << " arguments for " << var->name_hint << ", got "
                               << call->args.size();
    }
    func = RenewDefs(func);
    // Memory is named by variables, and what is read must be read before the body writes: such
    // arguments keep the parameter's name.
    ffi::Map<Var, PrimExpr> values;
    std::vector<size_t> named;
    for (size_t i = 0; i < call->args.size(); ++i) {
      const PrimExpr& arg = call->args[i];
      bool is_address = arg.dtype().is_handle() && !arg.as<VarObj>();
      if (is_address || SideEffect(arg) > CallEffectKind::kPure)
        named.push_back(i);
      else
        values.Set(func->params[i], arg);
    }
    Stmt body = Substitute(func->body, values);
    for (auto i = named.rbegin(); i != named.rend(); ++i)
      body = LetStmt(func->params[*i], call->args[*i], body);
    return body;
  }
};
}  // namespace

IRModule InlinePrivateFunctions(IRModule mod) {
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  std::unordered_map<const Object*, PrimFunc> done;
  std::unordered_set<const Object*> active;
  Map<GlobalVar, BaseFunc> inlined;
  // Callees first; functions that call each other stay.
  std::function<PrimFunc(const GlobalVar&)> body_of = [&](const GlobalVar& var) -> PrimFunc {
    auto it = functions.find(var);
    auto* f = it == functions.end() ? nullptr : (*it).second.as<PrimFuncObj>();
    if (!f || active.count(var.get()) || !CanInline(ffi::GetRef<PrimFunc>(f), var))
      return PrimFunc();
    auto known = done.find(var.get());
    if (known == done.end()) {
      active.insert(var.get());
      Inliner inliner;
      inliner.callee = body_of;
      known = done.emplace(var.get(), RewriteBody(ffi::GetRef<PrimFunc>(f), inliner)).first;
      active.erase(var.get());
    }
    return known->second;
  };
  Map<GlobalVar, BaseFunc> result;
  std::unordered_set<const Object*> called;
  for (const auto& [var, func] : functions) {
    auto* f = func.as<PrimFuncObj>();
    if (!f) {
      result.Set(var, func);
      continue;
    }
    Inliner inliner;
    inliner.callee = body_of;
    active.insert(var.get());
    PrimFunc rewritten = RewriteBody(ffi::GetRef<PrimFunc>(f), inliner);
    active.erase(var.get());
    PostOrderVisit(rewritten->body, [&](const ObjectRef& node) {
      if (auto* call = node.as<CallObj>()) called.insert(call->op.get());
    });
    result.Set(var, rewritten);
  }
  for (const auto& [var, func] : functions) {
    if (done.count(var.get()) && !called.count(var.get())) result.erase(var);
  }
  return IRModule(result, mod->attrs, mod->global_infos);
}
TVM_PASS(tir, InlinePrivateFunctions,
         R"(Puts the bodies of private functions where they are called, and removes them.

before:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            Module.set(A.data, i)

    @T.prim_func(private=True)
    def set(A_data: T.handle("float32"), i: T.int32):
        A = T.decl_buffer((16,), data=A_data)
        A[i] = 1.0
after:
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A_1 = T.decl_buffer((16,), "float32", data=A.data)
            A_1[i] = T.float32(1))")
}  // namespace tvm::tir
