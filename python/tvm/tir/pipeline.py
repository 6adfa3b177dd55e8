# SPDX-License-Identifier: Apache-2.0
"""The lists of passes between a program and code generation."""

from tvm._derive import function
from tvm.target import Target

_default, finalize_host_passes, finalize_device_passes = (
    function("tir.pipeline." + name, __name__)
    for name in ("default", "finalize_host", "finalize_device")
)
_default_host = function("target.default_host", __name__)


def default_tir_pipeline():
    """The passes of the current target, else of this machine."""
    return _default(Target.current() or _default_host())


default_s_tir_pipeline = default_tir_pipeline  # since 0.27
PIPELINE_MAP = {"default": default_tir_pipeline, "s_tir": default_s_tir_pipeline}


def get_tir_pipeline(name="default", **kwargs):
    """A pipeline by name."""
    if name not in PIPELINE_MAP:
        raise ValueError(f"get_tir_pipeline: expected one of {sorted(PIPELINE_MAP)}, got '{name}'")
    return PIPELINE_MAP[name](**kwargs)


def get_default_tir_pipeline(target):
    """The pipeline of a target."""
    return _default(Target.canon_target(target))
