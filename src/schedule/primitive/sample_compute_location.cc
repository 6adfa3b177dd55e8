// SPDX-License-Identifier: Apache-2.0
// sample_compute_location: a loop that a block could be moved to.
#include <algorithm>

#include "schedule/primitive/inline.h"
#include "tvm/schedule/primitive.h"

namespace tvm::tir {
void ComputeAt(State& state, BlockId block, ComputeLocation where, bool preserve_unit_loops,
               int64_t index);

namespace {

constexpr int64_t kRoot = -1, kInline = -2;  // decisions; others are positions among the loops

/// The loops around all the consumers of a block, outermost first.
std::vector<LoopId> LoopsOfConsumers(const State& state, BlockId block) {
  NodeId common = kNoNode;
  for (const DepEdge& edge : state.scope(state.ScopeOf(block)).From(block)) {
    if (edge.kind != DepKind::kRAW) continue;
    common = common == kNoNode ? edge.dst.id : state.CommonAncestor(common, edge.dst);
  }
  if (common == kNoNode) return {};
  std::vector<LoopId> loops = state.IsBlock(common) && state.IsAncestor(common, block)
                                  ? std::vector<LoopId>()
                                  : state.LoopsAbove(common);
  if (!state.IsBlock(common)) loops.push_back({common});
  return loops;
}

template <class F>
bool Succeeds(const State& state, F&& primitive) {
  State trial = state;
  try {
    primitive(trial);
    return true;
  } catch (const Refusal&) {
    return false;
  }
}

ComputeLocation SampleComputeLocation(Sampler& self, BlockId block, Decision<int64_t>& decision) {
  const State& state = self.state;
  if (state.ScopeOf(block) == kNoNode) {
    Refuse("expected a block within another one, got a root block", {state.inner_stmt(block)});
  }
  std::vector<LoopId> loops = LoopsOfConsumers(state, block);
  auto count = static_cast<int64_t>(loops.size());
  auto fits = [&](int64_t i) {
    return Succeeds(state, [&](State& trial) {
      ComputeAt(trial, block, ComputeLocation{loops[i]}, false, -1);
    });
  };
  if (!decision.value) {
    std::vector<int64_t> candidates{kRoot};
    if (Succeeds(state, [&](State& trial) { ComputeInline(trial, block); })) {
      candidates.push_back(kInline);
    }
    for (int64_t i = 0; i < count; ++i) {
      if (fits(i)) candidates.push_back(i);
    }
    decision.value = candidates[self.Below(static_cast<int64_t>(candidates.size()))];
  } else if (*decision.value >= 0) {
    // A trace of another program: the next place outwards that the block can be moved to.
    int64_t place = std::min(*decision.value, count - 1);
    while (place >= 0 && !fits(place)) --place;
    decision.value = place < 0 ? kRoot : place;
  }
  if (*decision.value == kRoot) return {kRootMark};
  if (*decision.value == kInline) return {kInlineMark};
  if (*decision.value < 0) {
    Refuse(Text("expected a decision from -2 on, got ", *decision.value),
           {state.inner_stmt(block)});
  }
  return {loops[*decision.value]};
}

TVM_REGISTER() {
  DefPrimitive("SampleComputeLocation", "sample_compute_location", &SampleComputeLocation,
               &Schedule::SampleComputeLocation,
               "A place for compute_at: one of the loops around the consumers of a block that it "
               "can be moved to, the place where it is (decision -1), or none because it is "
               "inlined (-2).",
               {R"(
def before(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0)",
                R"(loop = sch.sample_compute_location("B", decision=0)
sch.compute_at("B", loop))"},
               Arg("block"), Arg("decision", nullptr));
}

}  // namespace
}  // namespace tvm::tir
