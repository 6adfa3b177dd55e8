// SPDX-License-Identifier: Apache-2.0
// Launches kernels with other thread indices.
#include "../threads.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct AxisRemapper : Mutator<AxisRemapper, VarObj, AttrStmtObj> {
  const ffi::Map<String, IterVar>& axis_map;
  std::unordered_map<const VarObj*, PrimExpr> values;
  explicit AxisRemapper(const ffi::Map<String, IterVar>& axis_map) : axis_map(axis_map) {}

  ObjectRef Rewrite(const VarObj* op) {
    auto it = values.find(op);
    return it == values.end() ? ffi::GetRef<ObjectRef>(op) : ObjectRef(it->second);
  }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    const IterVarObj* iv = LaunchedThread(op);
    auto it = iv ? axis_map.find(iv->thread_tag) : axis_map.end();
    if (it == axis_map.end()) return MapChildren(op, *this);
    IterVar other = (*it).second;
    if (!other->dom.has_value()) Edit(&other)->dom = iv->dom;
    values[iv->var.get()] = cast(iv->var.dtype(), other->var);
    return AttrStmt(other, op->attr_key, Mutate(op->value), Mutate(op->body), op->span);
  }
};
}  // namespace

PrimFunc RemapThreadAxis(PrimFunc func, Map<String, IterVar> axis_map) {
  func = RewriteBody(std::move(func), AxisRemapper(axis_map));
  auto params = func->GetAttr<Array<String>>("tir.kernel_launch_params");
  if (!params.has_value()) return func;
  Array<String> renamed = params.value().Map([&](const String& tag) {
    auto it = axis_map.find(tag);
    return it == axis_map.end() ? tag : (*it).second->thread_tag;
  });
  return WithAttr(func, "tir.kernel_launch_params", renamed);
}
TVM_PASS(tir, RemapThreadAxis,
         R"(Replaces thread indices by others: axis_map has the index for each tag.

options: axis_map={"threadIdx.x": tir.IterVar(None, tir.Var("j", "int32"), tir.IterVar.ThreadIndex, "threadIdx.y")}
before(A: T.Buffer((32,), "float32")):
    i = T.launch_thread("threadIdx.x", 32)
    A[i] = 1.0
after:
    j = T.launch_thread("threadIdx.y", 32)
    A[j] = 1.0)",
         Arg("axis_map"))
}  // namespace tvm::tir
