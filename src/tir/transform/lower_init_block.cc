// SPDX-License-Identifier: Apache-2.0
// Makes the initialisation of reduction blocks an ordinary conditional statement.
#include "tvm/expr/op.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt_functor.h"

namespace tvm::tir {
namespace {
struct InitLowerer : Mutator<InitLowerer, BlockObj> {
  ObjectRef Rewrite(const BlockObj* op) {
    Block block = Below<Block>(op);
    if (!block->init.has_value()) return block;
    PrimExpr first = const_true();
    for (const IterVar& iv : block->iter_vars) {
      if (iv->iter_type != IterVarType::kCommReduce || IsOne(iv->dom.value()->extent)) continue;
      first = first && equal(iv->var, iv->dom.value()->min);
    }
    Stmt init = block->init.value();
    if (!IsTrue(first)) init = IfThenElse(first, init);
    auto* n = Edit(&block);
    n->body = SeqStmt::Flatten({init, n->body});
    n->init = std::nullopt;
    return block;
  }
};
}  // namespace

PrimFunc LowerInitBlock(PrimFunc func) { return RewriteBody(std::move(func), InitLowerer()); }
TVM_PASS(tir, LowerInitBlock,
         R"(Makes init of a block an ordinary statement.

before(A: T.Buffer((8,), "float32"), C: T.Buffer((1,), "float32")):
    with T.block("root"):
        for k in range(8):
            with T.block("C"):
                vk = T.axis.reduce(8, k)
                T.reads(A[vk])
                T.writes(C[0])
                with T.init():
                    C[0] = 0.0
                C[0] = C[0] + A[vk]
after:
    # with T.block("root"):
    for k in range(8):
        with T.block("C"):
            vk = T.axis.reduce(8, k)
            T.reads(A[vk])
            T.writes(C[0])
            if vk == 0:
                C[0] = T.float32(0)
            C[0] = C[0] + A[vk])")
}  // namespace tvm::tir
