// SPDX-License-Identifier: Apache-2.0
// Marks what runs on the device.
#include "../contents.h"
#include "../threads.h"
#include "tvm/ir/target.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct RegionAnnotator : Mutator<RegionAnnotator, AttrStmtObj, PrimExprObj> {
  Target device;
  ObjectRef Rewrite(const PrimExprObj* op) { return ffi::GetRef<ObjectRef>(op); }
  ObjectRef Rewrite(const AttrStmtObj* op) {
    if (op->attr_key == ::tvm::attr::kTarget) return ffi::GetRef<ObjectRef>(op);
    if (op->attr_key == attr::kThreadExtent || op->attr_key == "pipeline_exec_scope" ||
        op->attr_key == attr::kDeviceScope) {
      return AttrStmt(device, ::tvm::attr::kTarget, PrimExpr(0), ffi::GetRef<Stmt>(op));
    }
    return MapChildren(op, *this);
  }
};
}  // namespace

PrimFunc AnnotateDeviceRegions(PrimFunc func) {
  auto target = func->GetAttr<Target>(::tvm::attr::kTarget);
  if (!target.has_value() || !target.value().Host().has_value()) return func;
  if (!ContentsOf(func->body).Has<AttrStmtObj>()) return func;
  RegionAnnotator annotate;
  Target device = target.value();
  Edit(&device)->host = std::nullopt;
  annotate.device = device;
  return RewriteBody(std::move(func), annotate);
}
TVM_PASS(
    tir, AnnotateDeviceRegions,
    R"(Marks each kernel, the outermost attribute thread_extent or device_scope, with the target it is for.

before(A: T.Buffer((32,), "float32")):
    T.func_attr({"target": T.target("opencl", host="c")})
    i = T.launch_thread("threadIdx.x", 32)
    A[i] = 1.0
after:
    T.func_attr({"target": T.target("opencl", host="c")})
    with T.attr(T.target("opencl"), "target", 0):
        i = T.launch_thread("threadIdx.x", 32)
        A[i] = 1.0)")
}  // namespace tvm::tir
