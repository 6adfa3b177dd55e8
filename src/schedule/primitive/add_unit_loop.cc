// SPDX-License-Identifier: Apache-2.0
// add_unit_loop: a loop that runs once round a block or loop.
#include "schedule/primitive/examples.h"
#include "tvm/expr/op.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
namespace {

LoopId AddUnitLoop(State& self, BlockOrLoopId id) {
  if (self.parent(id) == kNoNode) {
    Refuse("expected a loop or a block within another one, got a root block",
           {self.inner_stmt(id)});
  }
  DataType dtype = DataType::Int(32);
  if (!self.IsBlock(id)) {
    dtype = self.loop({id})->loop_var.dtype();
  } else if (!self.block({id})->iter_vars.empty()) {
    dtype = self.block({id})->iter_vars[0]->var.dtype();
  }
  Var var("u", dtype);
  self.Replace(id, For(var, MakeZero(dtype), MakeConst(dtype, 1), ForKind::kSerial, self.stmt(id)));
  return self.FindLoop(var);
}

TVM_REGISTER() {
  DefPrimitive("AddUnitLoop", "add_unit_loop", &AddUnitLoop, &Schedule::AddUnitLoop,
               "Puts a loop that runs once round a block or loop, for instance to have something "
               "to bind to a thread.",
               {kOneStage, R"(u = sch.add_unit_loop(sch.get_block("B")))"}, Arg("block_or_loop"));
}

}  // namespace
}  // namespace tvm::tir
