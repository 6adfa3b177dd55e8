// SPDX-License-Identifier: Apache-2.0
// The plainest schedule for a GPU: iterations that may run in any order are threads.
#include <algorithm>

#include "schedule/rules/look.h"
#include "tvm/ir/transform.h"
#include "tvm/tir/stmt.h"

namespace tvm::tir {
namespace {
constexpr int kBlocks = 256;  // of threads, where the number of iterations is not known

bool BindThreads(const Schedule& sch, const BlockRV& block, int64_t threads) {
  Array<LoopRV> order, reduced;
  for (const Axis& axis : LookAt(sch, block).axes) {
    // Under the loops of another block, which has its threads.
    if (sch.Get(axis.loop)->kind == ForKind::kThreadBinding) return false;
    (axis.spatial && !axis.reduce ? order : reduced).push_back(axis.loop);
  }
  LoopRV all;
  if (order.empty()) {
    all = sch.AddUnitLoop(reduced.empty() ? ObjectRef(block) : ObjectRef(reduced[0]));
  } else {
    Array<LoopRV> spatial = order;
    for (const LoopRV& loop : reduced) order.push_back(loop);
    if (order.size() > 1) sch.Reorder(order);
    all = spatial.size() == 1 ? spatial[0] : sch.Fuse(spatial);
  }
  auto size = AsConstInt(sch.Get(all)->extent);
  if (size) threads = std::clamp<int64_t>(*size, 1, threads);
  PrimExpr width(static_cast<int>(threads));
  Array<LoopRV> parts;
  if (size) {
    parts = sch.Split(all, {std::nullopt, width});
  } else {  // a grid of fixed size, which takes as many rounds as are needed
    Array<LoopRV> three = sch.Split(all, {std::nullopt, PrimExpr(kBlocks), width});
    parts = {three[1], three[2]};
    sch.Reorder({three[1], three[2], three[0]});
  }
  sch.Bind(parts[0], "blockIdx.x");
  sch.Bind(parts[1], "threadIdx.x");
  return true;
}

IRModule DefaultGPUSchedule(const IRModule& mod) {
  Map<GlobalVar, BaseFunc> functions = mod->functions;
  for (const auto& [var, func] : mod->functions) {
    auto* prim = func.as<PrimFuncObj>();
    if (!prim || IsScheduled(ffi::GetRef<PrimFunc>(prim))) continue;
    Target target = prim->GetAttr<Target>(::tvm::attr::kTarget).value_or(Target::Current());
    if (!target.defined() || target->DeviceType() == kDLCPU) continue;
    Schedule sch(IRModule({{var, func}}), /*seed=*/0, /*debug_mask=*/0, ErrorRenderLevel::kNone);
    BlockId root = sch.state().Root(var->name_hint);
    if (root == kNoNode) continue;
    for (const BlockRV& block : sch.GetChildBlocks(sch.NewBlockRV(root))) {
      Attempt(sch, [&] { return BindThreads(sch, block, Machine::Of(target)->max_threads); });
    }
    auto result = Any(sch.mod()->Lookup(var)).cast<PrimFunc>();
    functions.Set(var, WithAttr(std::move(result), attr::kIsScheduled, true));
  }
  return IRModule(functions, mod->attrs, mod->global_infos);
}
}  // namespace
TVM_PASS(
    tir, DefaultGPUSchedule,
    R"(Gives the blocks of functions that nobody scheduled threads of a GPU, if that is their target.

A block whose loops other blocks share, so that they cannot be its threads, stays as it is.

before(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80", "max_threads_per_block": 128})})
    for i, j in T.grid(8, 64):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + 1.0
after:
    T.func_attr({"target": T.target({"kind": "cuda", "arch": "sm_80", "max_threads_per_block": 128}), "tir.is_scheduled": True})
    for i_j_fused_0 in T.thread_binding(4, "blockIdx.x"):
        for i_j_fused_1 in T.thread_binding(128, "threadIdx.x"):
            with T.block("B"):
                vi = T.axis.spatial(8, (i_j_fused_0 * 128 + i_j_fused_1) // 64)
                vj = T.axis.spatial(64, (i_j_fused_0 * 128 + i_j_fused_1) % 64)
                B[vi, vj] = A[vi, vj] + 1.0)")
}  // namespace tvm::tir
