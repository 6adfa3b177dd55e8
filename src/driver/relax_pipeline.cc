// SPDX-License-Identifier: Apache-2.0
// From a graph to what the virtual machine runs: the passes, top to bottom.
#include "tvm/driver/relax_pipeline.h"

#include "tvm/ir/pass_list.h"

namespace tvm::relax {
using ::tvm::transform::Pass;
using ::tvm::transform::PassList;

Pass DefaultPipeline(const Target&) {
  PassList list;
  // clang-format off
  list("relax.LambdaLift")
      ("relax.CanonicalizeTIRVariables")
      ("relax.CanonicalizeRelaxBindings")
      ("relax.ConvertToDataflow")
      ("relax.FoldBatchnormToConv2D", {true})
      ("relax.DecomposeOpsForInference", {nullptr, true})
      ("relax.FoldConstant")  // weights that were scaled
      ("relax.RecoverStructure", {false})  // attention: two products are faster than its kernel
      ("relax.BlockChannels")
      ("relax.PackWeights")
      ("relax.DispatchSampling")
      ("relax.DispatchSortScan")
      ("relax.StableNormalization")
      ("relax.LegalizeOps")
      ("relax.AnnotateTIROpPattern")
      ("relax.FoldConstant")
      ("relax.FuseOps")
      ("relax.FuseTIR")
      ("relax.DeadCodeElimination")
      ("relax.RewriteDataflowReshape")
      ("relax.ToNonDataflow")
      ("relax.RemovePurityChecking")
      ("relax.CallTIRRewrite")
      ("relax.StaticPlanBlockMemory")
      ("relax.RewriteCUDAGraph")  // does nothing unless the context asks for it
      ("relax.PackStorages")
      ("relax.LowerAllocTensor")
      ("relax.KillAfterLastUse")
      ("relax.LowerRuntimeBuiltin")
      ("relax.ComputePrimValue")
      ("relax.VMShapeLower")
      ("relax.AttachGlobalSymbol");
  // clang-format on
  return list.Named("relax.pipeline.compile");
}

namespace {
TVM_REGISTER() {
  Def("relax.pipeline._compile", &DefaultPipeline,
      "The passes of tvm.compile and relax.build for a target.", Arg("target"));
}
}  // namespace
}  // namespace tvm::relax
