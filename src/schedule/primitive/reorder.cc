// SPDX-License-Identifier: Apache-2.0
// reorder: the loops of a nest in another order.
#include "schedule/dependence.h"
#include "schedule/loops.h"
#include "schedule/primitive/examples.h"
#include "tvm/expr/substitute.h"

namespace tvm::tir {
namespace {

void Reorder(State& self, const std::vector<LoopId>& order) {
  std::vector<LoopId> nest = RequireOneNest(self, order);
  std::vector<LoopId> result = nest;
  size_t next = 0;
  for (LoopId& id : result) {
    if (std::find(order.begin(), order.end(), id) != order.end()) id = order[next++];
  }
  if (std::equal(nest.begin(), nest.end(), result.begin())) return;
  for (size_t outer = 0; outer < result.size(); ++outer) {
    for (size_t inner = outer + 1; inner < result.size(); ++inner) {
      const ForObj* loop = self.loop(result[outer]);
      const VarObj* var = self.loop(result[inner])->loop_var.get();
      auto is_var = [&](const VarObj* v) { return v == var; };
      if (UsesVar(loop->min, is_var) || UsesVar(loop->extent, is_var)) {
        Refuse(Text("expected loop ", var->name_hint, " to stay outside of loop ",
                    loop->loop_var->name_hint, ", whose bounds depend on it"),
               {self.stmt(result[outer]), self.stmt(result[inner])});
      }
    }
  }
  // Only what lies between the first and the last loop that moves changes its order.
  size_t first = 0, last = nest.size() - 1;
  while (nest[first] == result[first]) ++first;
  while (nest[last] == result[last]) --last;
  std::vector<LoopId> moved(nest.begin() + first, nest.begin() + last + 1);
  RequireIndependent(self, moved, true);
  Stmt body = self.loop(nest.back())->body;
  for (size_t i = result.size(); i-- > 0;) {
    For loop = ffi::GetRef<For>(self.loop(result[i]));
    Edit(&loop)->body = body;
    body = loop;
  }
  self.Replace(nest[0], body);
}

TVM_REGISTER() {
  DefPrimitive("Reorder", "reorder", &Reorder, &Schedule::Reorder,
               "Puts loops of one nest in another order; loops of the nest that are not named stay "
               "where they are.",
               {kGrid,
                R"(i, j = sch.get_loops("B")
sch.reorder(j, i))"},
               Arg("*ordered_loops"));
}

}  // namespace
}  // namespace tvm::tir
