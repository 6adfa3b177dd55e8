# SPDX-License-Identifier: Apache-2.0
"""The passes of tvm.compile that only make graphs better: a graph runs without them, too."""

import tvm
import tvm_ffi

# What the virtual machine or a pass behind cannot do without.
REQUIRED = {
    "LambdaLift": "code is generated for global functions",
    "LegalizeOps": "operators become kernels",
    "ToNonDataflow": "calls with effects want plain blocks",
    "RemovePurityChecking": "calls with effects in functions that were pure",
    "CallTIRRewrite": "results are allocated",
    "LowerAllocTensor": "tensors lie in storages",
    "LowerRuntimeBuiltin": "builtins are called by name",
    "ComputePrimValue": "scalars are computed",
    "VMShapeLower": "shapes are computed",
    "AttachGlobalSymbol": "functions are found by name",
}


def optional_passes():
    pipeline = tvm_ffi.get_global_func("relax.pipeline._compile")(tvm.target.Target("llvm"))
    names = {each.info.name for each in pipeline.passes}
    assert set(REQUIRED) < names, "a pass that is no longer there"
    return sorted(names - set(REQUIRED))
