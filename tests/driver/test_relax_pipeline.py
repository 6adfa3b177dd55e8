# SPDX-License-Identifier: Apache-2.0
"""The lists of passes by target and by name."""

import pytest
import tvm
from tvm import relax
from tvm.relax import pipeline
from tvm.target import Target

FUSE = ["LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR"]
LOWER = ["RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite"]
MEMORY = ["LowerAllocTensor", "KillAfterLastUse", "LowerRuntimeBuiltin", "ComputePrimValue"]
MEMORY += ["VMShapeLower", "AttachGlobalSymbol"]
DISPATCH = ["DispatchSampling", "DispatchSortScan"]
PLAN = "StaticPlanBlockMemory"


def names(passes):
    return [str(p.info.name) for p in passes]


STAGES = {
    "library_dispatch_passes": ([], DISPATCH, DISPATCH),
    "dataflow_lower_passes": (LOWER, LOWER, LOWER),
    "finalize_passes": ([PLAN, *MEMORY], [PLAN, "RewriteCUDAGraph", *MEMORY], [PLAN, *MEMORY]),
}


@pytest.mark.parametrize("stage", STAGES)
def test_the_lists(stage):
    of = getattr(pipeline, stage)
    for target, expected in zip(("llvm", "cuda", "metal"), STAGES[stage], strict=True):
        assert names(of(Target(target))) == expected


def test_legalize_schedules_what_runs_on_a_gpu():
    assert names(pipeline.legalize_passes(Target("llvm"))) == FUSE
    assert names(pipeline.legalize_passes(Target("cuda")))[:5] == FUSE
    assert names(pipeline.legalize_passes(Target("cuda")))[5:] == ["ApplyDefaultSchedule"]
    assert pipeline.legalize_ops is pipeline.legalize_passes
    assert names(pipeline.lower_gpu_kernel(Target("cuda"))) == ["ApplyDefaultSchedule"]
    with pytest.raises(ValueError, match="expected a target of a GPU, got llvm"):
        pipeline.lower_gpu_kernel(Target("llvm"))


def test_finalize_takes_five_kinds_of_target():
    for target in ("cuda", "rocm", "metal", "llvm", "opencl -device=adreno"):
        assert names(pipeline.finalize_passes(Target(target)))[0] == PLAN
    with pytest.raises(ValueError) as error:
        pipeline.finalize_passes(Target("vulkan"))
    assert str(error.value) == "Target vulkan is not yet supported by finalization passes."


def test_other_stages_take_every_gpu():
    for target in ("opencl", "vulkan", "webgpu"):
        assert names(pipeline.library_dispatch_passes(Target(target))) == DISPATCH
        assert names(pipeline.legalize_passes(Target(target)))[:5] == FUSE
        assert names(pipeline.dataflow_lower_passes(Target(target))) == LOWER
        assert relax.get_default_pipeline(Target(target)) is not None


@pytest.mark.parametrize(
    ("stage", "what"),
    [
        ("library_dispatch_passes", "library dispatch passes"),
        ("legalize_passes", "legalize passes"),
        ("dataflow_lower_passes", "dataflow lowering passes"),
        ("finalize_passes", "finalization passes"),
        ("get_default_pipeline", "default pipeline"),
    ],
)
def test_targets_without_a_pipeline(stage, what):
    with pytest.raises(ValueError, match=f"^Target c is not yet supported by {what}.$"):
        getattr(pipeline, stage)(Target("c"))


@pytest.mark.parametrize("backend", ["cpu_generic", "gpu_generic", "cuda", "rocm", "adreno"])
def test_backends_export_all_stages(backend):
    module = getattr(relax.backend, backend)
    target = Target("llvm") if backend == "cpu_generic" else Target("cuda")
    assert names(module.dataflow_lower_passes(target)) == LOWER
    for stage in ("library_dispatch_passes", "finalize_passes", "get_default_pipeline"):
        getattr(module, stage)(target)


def test_an_empty_module_passes():
    """The documented way to use the lists, as it stands."""
    mod = tvm.IRModule()
    final_passes = pipeline.finalize_passes(Target("cuda"))
    with tvm.transform.PassContext(opt_level=3):
        optimized = tvm.transform.Sequential(final_passes)(mod)
    tvm.ir.assert_structural_equal(optimized, mod)


def test_pipelines_by_name():
    for name in ("zero", "default", "default_build"):
        assert isinstance(relax.get_pipeline(name), tvm.transform.Pass)
    with pytest.raises(ValueError, match="Unknown pre-built pipeline no such"):
        relax.get_pipeline("no such")


def test_pipelines_of_users():
    with pytest.raises(ValueError, match="already"):
        relax.register_pipeline("zero")(lambda: None)

    @relax.register_pipeline("test.mine")
    def mine(level=1):
        return tvm.transform.Sequential([relax.transform.Normalize()] * level)

    try:
        assert len(relax.get_pipeline("test.mine", level=2).passes) == 2
    finally:
        del pipeline.PIPELINE_MAP["test.mine"]
