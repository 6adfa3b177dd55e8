# SPDX-License-Identifier: Apache-2.0
"""The lists of passes from a graph to code of the virtual machine: by name, and by target.

`tvm.compile` and `relax.build` have a list of their own, in C++, which fuses, folds and plans more
(src/driver/relax_pipeline.cc); these are the ones that programs take apart and put together.
"""

from typing import NamedTuple

from tvm import transform
from tvm.target import Target

_FUSE = ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")
_DATAFLOW_LOWER = ("RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking")
_DATAFLOW_LOWER += ("CallTIRRewrite",)
_LOWER_MEMORY = ("LowerAllocTensor", "KillAfterLastUse", "LowerRuntimeBuiltin", "ComputePrimValue")
_LOWER_MEMORY += ("VMShapeLower", "AttachGlobalSymbol")
_FINALIZE = ("StaticPlanBlockMemory", *_LOWER_MEMORY)
_FINALIZE_CUDA = ("StaticPlanBlockMemory", "RewriteCUDAGraph", *_LOWER_MEMORY)
_DISPATCH = ("DispatchSampling", "DispatchSortScan")


# ---- schedules for GPUs --------------------------------------------------------------------------
def _gpu_schedule(target):
    from tvm import dlight

    names = ("Matmul", "GEMV", "Reduction", "GeneralReduction", "Fallback")
    return [dlight.ApplyDefaultSchedule(*(getattr(dlight.gpu, name)() for name in names))]


def _adreno_schedule(target):
    from tvm import dlight

    own = (getattr(dlight.adreno, name)() for name in ("Conv2d", "LayoutTransform", "Pool2D"))
    gpu = (getattr(dlight.gpu, name)() for name in ("Reduction", "GeneralReduction", "Fallback"))
    return [dlight.ApplyDefaultSchedule(*own), dlight.ApplyDefaultSchedule(*gpu)]


def _adreno_dispatch(target):
    if "clml" not in target.keys:
        return []
    from tvm.relax.backend.adreno import clml

    return [clml.OpenCLMLOffLoad()]


def _adreno_legalize(target):
    from tvm import tir

    from . import backend
    from . import transform as t

    passes = [tir.transform.BindTarget(target), t.DecomposeOpsForInference()]
    texture = "texture" in target.keys
    if texture:
        stay = ["relax.nn.conv2d", "relax.nn.max_pool2d", "relax.nn.adaptive_avg_pool2d"]
        passes += [
            t.ConvertLayout({"relax.nn.conv2d": ["NCHW4c", "OIHW4o", "NCHW4c"]}),
            t.Normalize(),
            t.FoldConstant(),
            t.LegalizeOps(skip_ops=stay),
            t.AnnotateTIROpPattern(),
            backend.adreno.transform.AnnotateCustomMemoryScope(target),
        ]
    passes.append(t.LegalizeOps())
    if texture:
        lowering = backend.adreno.legalize.conv2d_NCHWc_OIHWo
        passes.append(t.LegalizeOps({"relax.nn.conv2d": lowering}))
    passes += [*_made(_FUSE[1:], target), t.DeadCodeElimination()]
    if texture:
        passes += [
            backend.adreno.transform.FoldVDeviceScopeChange(),
            t.DeadCodeElimination(),
            t.SpecializePrimFuncBasedOnCallSite(),
        ]
    return [*passes, t.Normalize(), *_adreno_schedule(target)]


# ---- one row per backend -------------------------------------------------------------------------
class Stages(NamedTuple):
    """Names of passes, or functions of a target that make some, by stage."""

    library_dispatch: tuple
    legalize: tuple
    dataflow_lower: tuple
    finalize: tuple
    schedule: tuple = ()  # of GPU kernels, the end of legalize


_GPU = Stages(_DISPATCH, (*_FUSE, _gpu_schedule), _DATAFLOW_LOWER, _FINALIZE, (_gpu_schedule,))
BACKENDS = {
    "cpu_generic": Stages((), _FUSE, _DATAFLOW_LOWER, _FINALIZE),
    "gpu_generic": _GPU,
    "cuda": _GPU._replace(finalize=_FINALIZE_CUDA),
    "rocm": _GPU,
    "adreno": _GPU._replace(
        library_dispatch=(_adreno_dispatch,),
        legalize=(_adreno_legalize,),
        schedule=(_adreno_schedule,),
    ),
}
_BACKEND_OF_KIND = {"cuda": "cuda", "rocm": "rocm", "metal": "gpu_generic", "llvm": "cpu_generic"}


def _made(stage, target):
    """The passes of a stage."""
    from . import transform as relax_passes

    passes = []
    for entry in stage:
        passes += [getattr(relax_passes, entry)()] if isinstance(entry, str) else entry(target)
    return passes


def _backend(target, what, named_only=False):
    """The row for a target; `named_only` leaves out GPUs that have none of their own."""
    target = Target.canon_target(target)
    name = _BACKEND_OF_KIND.get(target.kind.name)
    if name is None and {"adreno", "opencl"} <= set(target.keys):
        name = "adreno"
    if name is None and "gpu" in target.keys and not named_only:
        name = "gpu_generic"
    if name is None:
        raise ValueError(f"Target {target.kind.name} is not yet supported by {what}.")
    return BACKENDS[name], target


def _composed(stages, target):
    passes = [*stages.library_dispatch, *stages.legalize, *stages.dataflow_lower, *stages.finalize]

    def run(mod, ctx):
        with target:
            return transform.Sequential(_made(passes, target))(mod)

    return transform.module_pass(run, opt_level=0, name="default_pipeline")


def backend_functions(name):
    """The functions that `relax.backend.<name>` exports."""
    stages = BACKENDS[name]

    def stage_function(field):
        def passes(target):
            return _made(getattr(stages, field), Target.canon_target(target))

        passes.__name__ = passes.__qualname__ = f"{field}_passes"
        passes.__doc__ = f"The passes of the stage {field} for {name}."
        return passes

    def get_default_pipeline(target):
        """All stages, one after the other, as one pass."""
        return _composed(stages, Target.canon_target(target))

    functions = [stage_function(field) for field in Stages._fields[:4]]
    return {f.__name__: f for f in (*functions, get_default_pipeline)}


def library_dispatch_passes(target):
    """The passes that hand operators to libraries."""
    stages, target = _backend(target, "library dispatch passes")
    return _made(stages.library_dispatch, target)


def legalize_passes(target):
    """The passes from operators to fused kernels, with schedules where the target needs them."""
    stages, target = _backend(target, "legalize passes")
    return _made(stages.legalize, target)


legalize_ops = legalize_passes


def lower_gpu_kernel(target):
    """The passes that schedule kernels for a GPU."""
    stages, target = _backend(target, "GPU scheduling passes")
    if not stages.schedule:
        raise ValueError(f"lower_gpu_kernel: expected a target of a GPU, got {target.kind.name}")
    return _made(stages.schedule, target)


def dataflow_lower_passes(target):
    """The passes from dataflow blocks to calls with allocated results."""
    stages, target = _backend(target, "dataflow lowering passes")
    return _made(stages.dataflow_lower, target)


def finalize_passes(target):
    """The passes from calls with allocated results to what the virtual machine runs."""
    stages, target = _backend(target, "finalization passes", named_only=True)
    return _made(stages.finalize, target)


def get_default_pipeline(target):
    """All stages for a target, one after the other, as one pass."""
    return _composed(*_backend(target, "default pipeline"))


# ---- pipelines by name ---------------------------------------------------------------------------
def _apply_database():
    from tvm import meta_schedule

    from . import transform as relax_passes

    if meta_schedule.Database.current() is None:
        return []
    return [relax_passes.MetaScheduleApplyDatabase()]


def zero_pipeline(*, enable_warning=False):
    """Lowers and fuses; schedules come from the database that is in scope, if any."""

    def run(mod, ctx):
        from . import transform as relax_passes

        passes = [relax_passes.LegalizeOps(enable_warning=enable_warning)]
        passes += [*_made(_FUSE[1:], None), *_apply_database()]
        return transform.Sequential(passes)(mod)

    return transform.module_pass(run, opt_level=0, name="zero_pipeline")


def default_build_pipeline():
    """Lowers without fusion, for any target."""
    names = (*_DISPATCH, "LegalizeOps", *_DATAFLOW_LOWER, *_FINALIZE_CUDA)

    def run(mod, ctx):
        return transform.Sequential(_made(names, None))(mod)

    return transform.module_pass(run, opt_level=0, name="default_build_pipeline")


def static_shape_tuning_pipeline(
    total_trials,
    target,
    work_dir="tuning_logs",
    cpu_weight_prepack=False,
    max_trials_per_task=None,
):
    """Lowers, fuses and tunes a graph of static shapes.

    With `cpu_weight_prepack` weights change their layout; the function that does it,
    `main_transform_params`, is to be run on them first. 0 trials: what the database in `work_dir`
    has is applied.
    """
    target = Target.canon_target(target)

    def run(mod, ctx):
        from . import transform as t

        passes = [t.DecomposeOpsForInference(), t.CanonicalizeBindings(), zero_pipeline()]
        if cpu_weight_prepack:
            passes.append(t.AttachAttrLayoutFreeBuffers())
        if total_trials > 0:
            passes.append(t.MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task))
        passes.append(t.MetaScheduleApplyDatabase(work_dir))
        if cpu_weight_prepack:
            passes += [t.SplitLayoutRewritePreproc(), t.LiftTransformParams(), t.FoldConstant()]
        with target:
            return transform.Sequential(passes)(mod)

    return transform.module_pass(run, opt_level=0, name="static_shape_tuning_pipeline")


PIPELINE_MAP = {
    "zero": zero_pipeline,
    "default": default_build_pipeline,
    "default_build": default_build_pipeline,
    "static_shape_tuning": static_shape_tuning_pipeline,
}


def get_pipeline(name="zero", **kwargs):
    """A pipeline by name; the rest are its options."""
    if name not in PIPELINE_MAP:
        raise ValueError(
            f"Unknown pre-built pipeline {name}, expected one of {sorted(PIPELINE_MAP)}"
        )
    return PIPELINE_MAP[name](**kwargs)


def register_pipeline(name):
    """A decorator of functions that make a pipeline, found under the name from then on."""
    if name in PIPELINE_MAP:
        raise ValueError(f"Pipeline {name} has already been registered")

    def register(func):
        PIPELINE_MAP[name] = func
        return func

    return register
