# SPDX-License-Identifier: Apache-2.0
"""tvm.tir.build: PrimFuncs to a runtime module."""

from tvm._derive import function
from tvm.driver.build_module import _program
from tvm.target import Target
from tvm.transform import Pass, module_pass

from .pipeline import get_tir_pipeline

_build = function("driver.Build", __name__)


def as_pipeline(pipeline):
    """As a pass; None is the one of the target."""
    if pipeline is None or isinstance(pipeline, Pass):
        return pipeline
    if isinstance(pipeline, str):
        return None if pipeline == "default" else get_tir_pipeline(pipeline)
    if not callable(pipeline):
        raise TypeError(
            "tir_pipeline: expected a name, a pass, a function of a module and a context or None, "
            f"got {type(pipeline).__name__}"
        )
    return module_pass(pipeline, opt_level=0)


def build(mod, target=None, pipeline="default"):
    """Compiles a PrimFunc or a module of them.

    Parameters
    ----------
    mod : PrimFunc or IRModule
    target : str or Target; the current target, else this machine, if None.
    pipeline : "default", a Pass, a function (mod, ctx) -> mod, or None for the target's own.
    """
    return _build(_program(mod), Target.canon_target(target), as_pipeline(pipeline))
