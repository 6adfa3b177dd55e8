// SPDX-License-Identifier: Apache-2.0
// get_loops: the loops around a block.
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

std::vector<LoopId> GetLoops(const State& self, BlockId block) { return self.LoopsAbove(block); }

TVM_REGISTER() {
  DefPrimitive("GetLoops", "get_loops", &GetLoops, &Schedule::GetLoops,
               "The loops around a block within its scope, from the outermost in.",
               {R"(
def before(A: T.Buffer((128, 64), "float32"), B: T.Buffer((128, 64), "float32")):
    for i, j in T.grid(128, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0)",
                R"(i, j = sch.get_loops("B"))"},
               Arg("block"));
}

}  // namespace
}  // namespace tvm::tir
