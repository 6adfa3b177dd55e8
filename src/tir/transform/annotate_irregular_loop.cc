// SPDX-License-Identifier: Apache-2.0
// Marks loops that something may leave early.
#include "../contents.h"
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct IrregularAnnotator : Mutator<IrregularAnnotator, ForObj, WhileObj, CallObj> {
  bool jumps = false;  // a break or continue belongs to the loop being rewritten

  ObjectRef Rewrite(const CallObj* op) {
    if (op->Is(builtin::break_loop()) || op->Is(builtin::continue_loop())) jumps = true;
    return MapChildren(op, *this);
  }
  ObjectRef Rewrite(const ForObj* op) {
    bool outer = std::exchange(jumps, false);
    For loop = Below<For>(op);
    if (std::exchange(jumps, outer)) {
      if (op->kind != ForKind::kSerial) {
        TVM_FFI_THROW(ValueError)
            << "AnnotateIrregularLoop: expected break and continue in serial loops, got loop "
            << op->loop_var->name_hint << " of another kind";
      }
      Edit(&loop)->annotations.Set("irregular_loop_mark", 1);
    }
    return loop;
  }
  ObjectRef Rewrite(const WhileObj* op) {
    bool outer = std::exchange(jumps, false);
    ObjectRef loop = MapChildren(op, *this);
    jumps = outer;
    return loop;
  }
};
}  // namespace

PrimFunc AnnotateIrregularLoop(PrimFunc func) {
  const Contents& contents = ContentsOf(func->body);
  if (!contents.Calls(builtin::break_loop()) && !contents.Calls(builtin::continue_loop()))
    return func;
  return RewriteBody(std::move(func), IrregularAnnotator());
}
TVM_PASS(
    tir, AnnotateIrregularLoop,
    R"(Marks loops with break or continue by the annotation irregular_loop_mark, so that no pass reorders them.

before(A: T.Buffer((16,), "float32")):
    for i in T.serial(16, annotations={"pragma_loop_partition_hint": 1}):
        if A[i] > 0.0:
            T.break_loop()
        A[i] = 1.0
after:
    for i in T.serial(16, annotations={"irregular_loop_mark": 1, "pragma_loop_partition_hint": 1}):
        if A[i] > T.float32(0):
            break
        A[i] = T.float32(1))")
}  // namespace tvm::tir
