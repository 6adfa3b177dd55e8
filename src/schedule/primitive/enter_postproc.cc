// SPDX-License-Identifier: Apache-2.0
// enter_postproc: what follows in the trace is left out on request.
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void EnterPostproc(State&) {}

TVM_REGISTER() {
  DefPrimitive("EnterPostproc", "enter_postproc", &EnterPostproc,
               "Changes nothing. What follows in the trace counts as post-processing, which "
               "`remove_postproc` leaves out.",
               {R"(
def before(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * 2.0)",
                R"(sch.enter_postproc())"});
}

}  // namespace
}  // namespace tvm::tir
