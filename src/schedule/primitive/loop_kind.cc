// SPDX-License-Identifier: Apache-2.0
// parallel, vectorize, unroll: how a loop runs.
#include "schedule/dependence.h"
#include "schedule/loops.h"
#include "schedule/primitive/examples.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

void SetKind(State& self, LoopId id, ForKind kind) {
  For loop = ffi::GetRef<For>(self.loop(id));
  if (!loop->HasTrivialStep()) {
    Refuse(Text("expected a loop with steps of 1, got ", loop->loop_var->name_hint), {loop});
  }
  if (kind == ForKind::kVectorized && UsesVar(loop->extent, [](const VarObj*) { return true; })) {
    Refuse(Text("expected a loop with a constant extent (or one of vscale), got ", loop->extent),
           {loop});
  }
  if (kind != ForKind::kUnrolled) RequireIndependent(self, {id}, false);
  auto* n = Edit(&loop);
  n->kind = kind;
  n->thread_binding = Optional<IterVar>();
  self.Replace(id, loop);
}
void Parallel(State& self, LoopId loop) { SetKind(self, loop, ForKind::kParallel); }
void Vectorize(State& self, LoopId loop) { SetKind(self, loop, ForKind::kVectorized); }
void Unroll(State& self, LoopId loop) { SetKind(self, loop, ForKind::kUnrolled); }

TVM_REGISTER() {
  DefPrimitive(
      "Parallel", "parallel", &Parallel, &Schedule::Parallel,
      "Runs the iterations of a loop on the threads of the pool. They must be independent: "
      "no reduction runs over the loop, every block below writes other elements in each "
      "iteration and reads only what was computed before the loop or in the same one.",
      {kGrid, R"(i, j = sch.get_loops("B")
sch.parallel(i))"},
      Arg("loop"));
  DefPrimitive("Vectorize", "vectorize", &Vectorize, &Schedule::Vectorize,
               "Makes vector operations of a loop. The iterations must be independent, as for "
               "parallel.",
               {kGrid, R"(i, j = sch.get_loops("B")
sch.vectorize(j))"},
               Arg("loop"));
  DefPrimitive("Unroll", "unroll", &Unroll, &Schedule::Unroll,
               "Writes the iterations of a loop one after the other.",
               {kGrid, R"(i, j = sch.get_loops("B")
sch.unroll(j))"},
               Arg("loop"));
}

}  // namespace
}  // namespace tvm::tir
