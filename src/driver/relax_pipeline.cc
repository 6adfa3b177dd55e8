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
  list("relax.LegalizeOps")
      ("relax.RewriteDataflowReshape")
      ("relax.ToNonDataflow")
      ("relax.RemovePurityChecking")
      ("relax.CallTIRRewrite")
      ("relax.LowerAllocTensor")
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
