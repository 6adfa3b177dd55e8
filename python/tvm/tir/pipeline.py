# SPDX-License-Identifier: Apache-2.0
"""Lowering pipelines by name. The default one is the list in C++."""

import tvm
from tvm._derive import fill

__getattr__, __dir__ = fill(__name__)
_PIPELINES = {}


def default_tir_pipeline():
    """The passes from blocks to plain functions with packed entries."""
    return __getattr__("default")()


def get_tir_pipeline(name="default", **kwargs):
    """The pipeline of that name, as a pass."""
    if name == "default":
        return default_tir_pipeline(**kwargs)
    if name not in _PIPELINES:
        known = ", ".join(sorted(["default", *_PIPELINES]))
        raise ValueError(f"get_tir_pipeline: expected one of {known}, got {name!r}")
    return _PIPELINES[name](**kwargs)


def register_tir_pipeline(name, factory):
    """Makes `factory(**kwargs)`, which returns a pass, known to get_tir_pipeline."""
    if name == "default" or name in _PIPELINES:
        raise ValueError(f"register_tir_pipeline: expected a new name, got {name!r}")
    _PIPELINES[name] = factory
    return factory


def get_default_tir_pipeline(target):
    """The pipeline for a target."""
    tvm.target.Target(target)
    return default_tir_pipeline()
