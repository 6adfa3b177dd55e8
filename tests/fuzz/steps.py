# SPDX-License-Identifier: Apache-2.0
"""GPU kernels lowered pass by pass, run after each in every order of threads that it allows."""

import numpy as np
import tvm
from tvm import tir
from tvm.tir import transform as tt

from . import programs

# As in the default pipeline, up to the passes after which only a device can run kernels.
LOWERING = [
    tt.CanonicalizeLoop(),
    tt.LowerCrossThreadReduction(),
    tt.LowerInitBlock(),
    tt.PlanAndUpdateBufferAllocationLocation(),
    tt.ConvertBlocksToOpaque(),
    tt.LiftThreadBinding(),
    tt.ManifestSharedMemoryLocalStage(),
    tt.CompactBufferAllocation(),
    tt.LowerAutoCopy(),
    tt.UnifyThreadBinding(),
    tt.LowerMatchBuffer(),
    tt.Simplify(),
    tt.InjectSoftwarePipeline(),
    tt.LowerOpaqueBlock(),
    tt.FlattenBuffer(),
    tt.NarrowDataType(32),
    tt.LoopPartition(),
    tt.VectorizeLoop(),
    tt.InjectVirtualThread(),
    tt.InjectDoubleBuffer(),
    tt.StorageRewrite(),
    tt.UnrollLoop(),
    tt.Simplify(),
    tt.RemoveNoOp(),
]
SYNCHRONIZED = [
    tt.ThreadSync("shared"),
    tt.ThreadSync("shared.dyn"),
    tt.ThreadSync("warp"),
    tt.LowerThreadAllreduce(),
    tt.AnnotateDeviceRegions(),
    tt.SplitHostDevice(),
    tt.MergeSharedMemoryAllocations(),
    tt.LowerWarpMemory(),
]
# Until the loops over threads are lifted, threads may run one after the other, unless they meet.
BLOCKS = {p.info.name for p in LOWERING[:5]}


def run(program, *arrays, threads="forward"):
    copies = [a.copy() for a in arrays]
    tir.interpret(program, threads)(*copies)
    return copies


def _bound(func, target):
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    return tt.BindTarget(tvm.target.Target(target, host="c"))(mod)


def _compare(mod, inputs, expected, what, threads, rtol):
    for got, want in zip(run(mod, *inputs, threads=threads), expected, strict=True):
        name = f"{what}, threads {threads}"
        np.testing.assert_allclose(got, want, rtol=rtol, err_msg=name)


def check_every_step(func, inputs, target="opencl", rtol=1e-5, more=()):
    """The lowered module; raises where the result of a step, or of one more, differs."""
    expected, mod = run(func, *inputs), _bound(func, target)
    for step in LOWERING:
        before, mod = mod, step(mod)
        tir.analysis.verify_well_formed(mod)
        if not tvm.ir.structural_equal(before, mod):
            meet = programs.node_kinds(mod)["op tir.tvm_thread_allreduce"] > 0
            threads = "forward" if step.info.name in BLOCKS and not meet else "lockstep"
            _compare(mod, inputs, expected, step.info.name, threads, rtol)
    for step in [*SYNCHRONIZED, *more]:
        before, mod = mod, step(mod)
        if step.info.name == "tir.ThreadSync" or tvm.ir.structural_equal(before, mod):
            continue  # barriers of the other scopes are missing
        for threads in ("forward", "backward"):
            _compare(mod, inputs, expected, step.info.name, threads, rtol)
    return mod


def check_all_steps(func, inputs, target="opencl", rtol=1e-5, more=()):
    """The same for all steps together; which of them is wrong is found out only if one is."""
    expected, mod = run(func, *inputs), _bound(func, target)
    for step in [*LOWERING, *SYNCHRONIZED, *more]:
        mod = step(mod)
    tir.analysis.verify_well_formed(mod)
    try:
        for threads in ("forward", "backward"):
            _compare(mod, inputs, expected, "all steps", threads, rtol)
    except Exception:
        check_every_step(func, inputs, target, rtol, more)
        raise
    return mod
