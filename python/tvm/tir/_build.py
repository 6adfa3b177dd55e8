# SPDX-License-Identifier: Apache-2.0
"""tvm.tir.build: PrimFuncs to a runtime module."""

from tvm._derive import function
from tvm.driver.build_module import _program
from tvm.target import Target
from tvm.transform import Pass, module_pass

from .pipeline import get_tir_pipeline

_build = function("driver.Build", __name__)


def build(mod, target=None, pipeline="default"):
    """Compiles a PrimFunc or a module of them.

    Parameters
    ----------
    mod : PrimFunc or IRModule
    target : str or Target; the current target, else this machine, if None.
    pipeline : "default", a Pass, a function (mod, ctx) -> mod, or None for the target's own.
    """
    if isinstance(pipeline, str):
        pipeline = None if pipeline == "default" else get_tir_pipeline(pipeline)
    elif pipeline is not None and not isinstance(pipeline, Pass):
        pipeline = module_pass(pipeline, opt_level=0)
    return _build(_program(mod), Target.canon_target(target), pipeline)
