// SPDX-License-Identifier: Apache-2.0
// enter_postproc: what follows in the trace is left out on request.
#include "schedule/primitive/examples.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

void EnterPostproc(State&) {}

TVM_REGISTER() {
  DefPrimitive("EnterPostproc", "enter_postproc", &EnterPostproc, &Schedule::EnterPostproc,
               "Changes nothing. What follows in the trace counts as post-processing, which "
               "`remove_postproc` leaves out.",
               {kOneStage, R"(sch.enter_postproc())"});
}

}  // namespace
}  // namespace tvm::tir
