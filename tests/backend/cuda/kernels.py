# SPDX-License-Identifier: Apache-2.0
"""Kernels as the interpreter runs them: lowered for a GPU, with barriers and registers."""

import numpy as np
import tvm
from tvm.tir import interpret


def lowered(func, arch="sm_80", config=None):
    """What the pipeline makes of a function before host and device go apart."""
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="c")
    mod = tvm.IRModule({"main": func.with_attr("target", target)})
    with target, tvm.transform.PassContext(config=config or {}):
        for step in tvm.tir.get_default_tir_pipeline(target).passes:
            if str(step.info.name) == "tir.AnnotateDeviceRegions":
                break
            mod = step(mod)
        return tvm.tir.transform.LowerWarpMemory()(mod)


def run(mod, *arrays, **options):
    """The last of the arrays, which the program writes."""
    arrays = [np.array(a) for a in arrays]
    interpret(mod, **options)(*arrays)
    return arrays[-1]
