// SPDX-License-Identifier: Apache-2.0
// Lowering: the passes from a function with blocks to one for code generation, top to bottom.
#include "tvm/driver/tir_pipeline.h"

#include "tvm/ir/backend.h"
#include "tvm/ir/pass_list.h"

namespace tvm::tir {
using ::tvm::transform::Pass;
using ::tvm::transform::PassList;

Pass DefaultPipeline(const Target& target) {
  PassList list;
  bool has_vectors = !target.defined() || Backend::Of(target).takes_vectors;
  constexpr const char* kAdded = "tir.add_lower_pass";
  // clang-format off
  // Passes over threads and shared memory do nothing to functions without them.
  list("tir.BindSharedExpr")
      .If(list.Is("tir.default_schedule"), "tir.DefaultSchedule")
      ("tir.CanonicalizeLoop")
      ("tir.LowerCrossThreadReduction")
      ("tir.StartAtInfinity")
      ("tir.LowerInitBlock")
      ("tir.PlanAndUpdateBufferAllocationLocation")
      ("tir.ConvertBlocksToOpaque")
      ("tir.LiftThreadBinding")
      ("tir.ManifestSharedMemoryLocalStage")
      ("tir.CompactBufferAllocation")
      ("tir.LowerAutoCopy")
      ("tir.UnifyThreadBinding")
      ("tir.LowerMatchBuffer")
      .Added(kAdded, 0)
      ("tir.Simplify")
      ("tir.InjectPermutedLayout")
      ("tir.AnnotateIrregularLoop")
      ("tir.InjectSoftwarePipeline")
      ("tir.TransformMmaBufferLayout")
      ("tir.LowerOpaqueBlock")
      ("tir.CheckDataIndices")
      ("tir.FlattenBuffer")
      ("tir.BF16ComputeLegalize")
      ("tir.NarrowDataType", {32})
      .Added(kAdded, 1)
      ("tir.LoopPartition")
      ("tir.VectorizeLoop", {has_vectors && !list.Is("tir.disable_vectorize")})
      ("tir.InjectVirtualThread")
      ("tir.InjectDoubleBuffer")
      .If(!list.Is("tir.disable_storage_rewrite"), "tir.StorageRewrite")
      ("tir.HoistIfThenElse")
      ("tir.UnrollLoop")
      ("tir.RenormalizeSplitPattern")
      ("tir.Simplify")
      ("tir.RemoveNoOp")
      ("tir.RewriteUnsafeSelect")
      .If(list.Is("tir.instrument_bound_checkers"), "tir.InstrumentBoundCheckers")
      .Added(kAdded, 2)
      .If(list.Is("tir.ptx_ldg32"), "tir.InjectPTXLDG32", {true})
      ("tir.CommonSubexprElimTIR", {!list.Is("tir.disable_cse_tir"), list.Is("tir.enable_equiv_terms_in_cse_tir")})
      .If(list.Is("tir.instrument_lwp"), "tir.InstrumentProfileIntrinsics")
      ("tir.FP8ComputeLegalize")
      ("tir.VerifyMemory")
      ("tir.AnnotateEntryFunc")
      .If(list.Is("tir.detect_global_barrier"), "tir.ThreadSync", {"global"})
      ("tir.ThreadSync", {"shared"})
      ("tir.ThreadSync", {"shared.dyn"})
      ("tir.ThreadSync", {"warp"})
      ("tir.InferFragment")
      ("tir.LowerThreadAllreduce")
      .If(list.Is("tir.use_async_copy"), "tir.InjectPTXAsyncCopy")
      .If(list.Is("tir.ptx_ldg32"), "tir.InjectPTXLDG32", {true})
      ("tir.AnnotateDeviceRegions")
      ("tir.SplitHostDevice")
      ("tir.MergeSharedMemoryAllocations")
      ("tir.MakePackedAPI")
      ("tir.FP8StorageLegalize")
      ("tir.BF16StorageLegalize")
      ("tir.LowerDeviceKernelLaunch")
      .Added(kAdded, 3);
  // clang-format on
  return list.Named("tir.pipeline.default");
}
Pass FinalizeHost() {
  PassList list;
  // clang-format off
  list.If(list.Is("tir.disable_assert"), "tir.SkipAssert")
      ("tir.LowerTVMBuiltin")
      ("tir.LowerCustomDatatypes")
      ("tir.LowerIntrin")
      ("tir.LowerDeviceStorageAccessInfo")
      ("tir.CombineContextCall");
  // clang-format on
  return list.Named("tir.pipeline.finalize_host");
}
Pass FinalizeDevice() {
  PassList list;
  // clang-format off
  list("tir.LowerWarpMemory")
      ("tir.Simplify")
      ("tir.LowerCustomDatatypes")
      ("tir.LowerDeviceStorageAccessInfo")
      ("tir.LowerIntrin");
  // clang-format on
  return list.Named("tir.pipeline.finalize_device");
}

namespace {
TVM_REGISTER() {
  Def("tir.pipeline.default", &DefaultPipeline,
      "The passes from blocks to plain functions with packed entries.", Arg("target"));
  Def("tir.pipeline.finalize_host", &FinalizeHost,
      "The last passes for functions that run on the host.");
  Def("tir.pipeline.finalize_device", &FinalizeDevice,
      "The last passes for functions that run on a device.");
}
}  // namespace
}  // namespace tvm::tir
