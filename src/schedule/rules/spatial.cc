// SPDX-License-Identifier: Apache-2.0
// Blocks whose iterations are independent: elementwise, broadcasting, transposing.
#include "schedule/rules/look.h"
#include "tvm/arith/analyzer.h"
#include "tvm/expr/op.h"

namespace tvm::tir {
namespace {
/// Whether every access moves along the two axes as along one: outer steps are whole runs of inner
/// ones.
bool Collapses(const BlockLook& look, size_t outer) {
  arith::Analyzer analyzer;
  for (const Access& access : look.accesses) {
    if (!access.linear) return false;
    if (!analyzer.CanProveEqual(access.steps[outer],
                                access.steps[outer + 1] * look.axes[outer + 1].extent))
      return false;
  }
  return true;
}
/// The axis along which the result is contiguous, or the last one.
size_t ContiguousAxis(const BlockLook& look) {
  const Access& store = look.Store();
  for (size_t i = look.axes.size(); i-- > 0;) {
    if (store.StepsBy(i, 1) && look.axes[i].size != 1) return i;
  }
  return look.axes.size() - 1;
}
LoopRV FuseAll(const Schedule& sch, const std::vector<LoopRV>& loops) {
  return loops.size() == 1 ? loops[0] : sch.Fuse(Array<LoopRV>(loops.begin(), loops.end()));
}
}  // namespace

void ScheduleSpatial(const Schedule& sch, const BlockRV& block, const Machine& machine) {
  BlockLook look = LookAt(sch, block);
  if (look.axes.empty()) return;
  std::optional<double> work;
  if (auto size = look.Size()) work = look.work * static_cast<double>(*size);

  size_t inner = ContiguousAxis(look);
  if (inner + 1 < look.axes.size()) {
    bool done = Attempt(sch, [&] {
      Array<LoopRV> order;
      for (size_t i = 0; i < look.axes.size(); ++i) {
        if (i != inner) order.push_back(look.axes[i].loop);
      }
      order.push_back(look.axes[inner].loop);
      sch.Reorder(order);
      return true;
    });
    if (done) look = LookAt(sch, block);
  }
  // The loops that are one run of memory for every access become one: no rest at the end of rows.
  size_t first = look.axes.size() - 1;
  while (first > 0 && Collapses(look, first - 1)) --first;
  std::vector<LoopRV> outer_loops, inner_loops;
  for (size_t i = 0; i < look.axes.size(); ++i) {
    (i < first ? outer_loops : inner_loops).push_back(look.axes[i].loop);
  }
  LoopRV run = FuseAll(sch, inner_loops);
  bool contiguous = look.simple && machine.vector_bits > 0;
  for (const Access& access : look.accesses) {
    contiguous &=
        access.StepsBy(look.axes.size() - 1, 0) || access.StepsBy(look.axes.size() - 1, 1);
  }
  LoopRV around = run;
  if (contiguous) {
    Attempt(sch, [&] {
      around = Vectorized(sch, run, machine.Lanes(look.widest_bits));
      return true;
    });
  }
  if (!outer_loops.empty()) {
    LoopRV rows = FuseAll(sch, outer_loops);
    auto count = AsConstInt(sch.Get(rows)->extent);
    // Few rows: threads share the vectors of a row, too.
    if (count && *count < 4 * machine.cores && around.defined() &&
        Attempt(
            sch,
            [&] {
              rows = sch.Fuse({rows, around});
              return true;
            })) {
    }
    around = rows;
  }
  if (around.defined()) ParallelIfWorth(sch, around, machine, work);
}
}  // namespace tvm::tir
