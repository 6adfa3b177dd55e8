// SPDX-License-Identifier: Apache-2.0
// From a graph to what the virtual machine runs: the passes, top to bottom.
#include "tvm/driver/relax_pipeline.h"

#include "tvm/ir/machine.h"
#include "tvm/ir/pass_list.h"
#include "tvm/relax/expr.h"

namespace tvm::relax {
using ::tvm::transform::Pass;
using ::tvm::transform::PassList;

namespace {
/// Of small floats, whose products run on matrix units: what is summed up lies side by side.
Map<String, Array<String>> ChannelsLast(const Call& call) {
  auto* data = call->args.empty() ? nullptr : GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  if (!data || !data->dtype.is_float() || data->dtype.bits() != 16) return {};
  return {{"relax.nn.conv2d", {"NHWC", "OHWI"}}};
}
}  // namespace

Pass DefaultPipeline(const Target& target) {
  PassList list;
  bool has_matrix_units = target.defined() && Machine::Of(target)->Has("async-copy");
  bool is_host = target.defined() && Machine::Of(target)->is_host;
  Array<String> attention;  // of these types it is one kernel
  if (is_host) attention = {"float32"};
  if (has_matrix_units) attention = {"float16", "bfloat16"};
  Array<Any> layouts{Map<String, Array<String>>(), ffi::Function::FromTyped(&ChannelsLast)};
  // clang-format off
  list("relax.LambdaLift")
      ("relax.CanonicalizeTIRVariables")
      ("relax.CanonicalizeRelaxBindings")
      ("relax.ConvertToDataflow")
      .If(is_host, "relax.FoldDequantize")  // before its constants are numbers of float32
      ("relax.FoldBatchnormToConv2D", {true})
      ("relax.DecomposeOpsForInference", {nullptr, true})
      ("relax.PackWeights")  // before they are transposed: each weight is moved once
      ("relax.FoldConstant")  // weights that were scaled
      // Products are faster as they are spelled out, but for attention that is one kernel.
      ("relax.RecoverStructure", {false, attention})
      ("relax.BlockChannels")  // on processors
      .If(has_matrix_units, "relax.ConvertLayout", layouts)
      ("relax.PackWeights")
      ("relax.DispatchSampling")
      ("relax.DispatchSortScan")
      ("relax.StableNormalization")
      ("relax.LegalizeOps")
      ("relax.AnnotateTIROpPattern")
      ("relax.FoldConstant")
      ("relax.FuseOps", {-1, true})  // by cost
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
