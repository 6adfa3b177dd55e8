// SPDX-License-Identifier: Apache-2.0
// parallel, vectorize, unroll: how a loop runs.
#include "schedule/dependence.h"
#include "schedule/loops.h"
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

constexpr const char* kProgram = R"(
def before(A: T.Buffer((16, 8), "float32"), B: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0)";

TVM_REGISTER() {
  DefPrimitive(
      "Parallel", "parallel", &Parallel,
      "Runs the iterations of a loop on the threads of the pool. They must be independent: "
      "no reduction runs over the loop, every block below writes other elements in each "
      "iteration and reads only what was computed before the loop or in the same one.",
      {kProgram, R"(i, j = sch.get_loops("B")
sch.parallel(i))"},
      Arg("loop"));
  DefPrimitive("Vectorize", "vectorize", &Vectorize,
               "Makes vector operations of a loop. The iterations must be independent, as for "
               "parallel.",
               {kProgram, R"(i, j = sch.get_loops("B")
sch.vectorize(j))"},
               Arg("loop"));
  DefPrimitive("Unroll", "unroll", &Unroll, "Writes the iterations of a loop one after the other.",
               {kProgram, R"(i, j = sch.get_loops("B")
sch.unroll(j))"},
               Arg("loop"));
}

}  // namespace
}  // namespace tvm::tir
