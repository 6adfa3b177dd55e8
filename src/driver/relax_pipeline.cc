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
/// Of small numbers, several of which are multiplied at once: what is summed up lies side by side.
Map<String, Array<String>> ChannelsLast(const Call& call, bool (*is_small)(DataType)) {
  auto* data = call->args.empty() ? nullptr : GetStructInfoAs<TensorStructInfoObj>(call->args[0]);
  if (!data || !is_small(data->dtype)) return {};
  return {{"relax.nn.conv2d", {"NHWC", "OHWI"}}};
}
Map<String, Array<String>> HalvesLast(const Call& call) {
  return ChannelsLast(call, [](DataType t) { return t.is_float() && t.bits() == 16; });
}
Map<String, Array<String>> BytesLast(const Call& call) {
  return ChannelsLast(call, [](DataType t) { return t.is_integer() && t.bits() == 8; });
}
}  // namespace

Pass DefaultPipeline(const Target& target) {
  PassList list;
  bool has_matrix_units = target.defined() && Machine::Of(target)->Has("async-copy");
  bool is_host = target.defined() && Machine::Of(target)->is_host;
  // (Matrix units have a layout of their own, which their rule makes.)
  bool packs_bytes = is_host && !Machine::Of(target)->Has("amx-int8");
  Array<String> attention;  // of these types it is one kernel
  if (is_host) attention = {"float32"};
  if (has_matrix_units) attention = {"float16", "bfloat16"};
  Map<String, Array<String>> none;
  Array<Any> halves_last{none, ffi::Function::FromTyped(&HalvesLast)};
  Array<Any> bytes_last{none, ffi::Function::FromTyped(&BytesLast)};
  // clang-format off
  list("relax.LambdaLift")
      ("relax.CanonicalizeTIRVariables")
      ("relax.CanonicalizeRelaxBindings")
      ("relax.ConvertToDataflow")
      .If(is_host, "relax.MoveChannelsFirst")  // whatever layouts somebody chose
      .If(is_host, "relax.FoldDequantize")  // before its constants are numbers of float32
      ("relax.FoldBatchnormToConv2D", {true})
      ("relax.DecomposeOpsForInference", {nullptr, true})
      ("relax.CanonicalizeRelaxBindings")  // no tuples with the moving statistics
      .If(is_host, "relax.SliceSplits")
      .If(is_host, "relax.RecoverLinear")  // their kernels take in what follows
      ("relax.PackWeights")  // before they are transposed: each weight is moved once
      .If(packs_bytes, "relax.ConvertLayout", bytes_last)
      ("relax.FoldConstant")  // weights that were scaled, or transposed
      ("relax.EliminateCommonSubexpr")  // masks that every layer makes anew
      .If(is_host, "relax.FoldQuantize")
      // Products are faster as they are spelled out, but for attention that is one kernel.
      ("relax.RecoverStructure", {false, attention})
      ("relax.BlockChannels")  // on processors
      ("relax.ApplySubPixel")  // of what is in no blocks
      ("relax.ApplyWinograd")
      .If(has_matrix_units, "relax.ConvertLayout", halves_last)
      ("relax.PackWeights")
      ("relax.PackWordWeights")
      .If(is_host, "relax.FuseTransposeMatmul")  // weights that are arguments would be copied
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
