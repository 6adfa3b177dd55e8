# SPDX-License-Identifier: Apache-2.0
"""TIR: programs of loops over buffers. What has no Python behaviour derives from the registry."""

import importlib

from tvm._derive import fill, public_names
from tvm.ir import PrimExpr

from . import expr, op
from .buffer import Buffer, DataProducer, decl_buffer
from .expr import *  # noqa: F403
from .function import PrimFunc, TensorIntrin
from .op import *  # noqa: F403
from .stmt import *  # noqa: F403

_, _derived = fill(__name__)
_SUBMODULES = (
    "analysis",
    "functor",
    "generic",
    "interpreter",
    "ir_builder",
    "schedule",
    "stmt_functor",
)
_MOVED = {
    "interpret": "interpreter",
    "PyStmtExprVisitor": "functor",
    "PyStmtExprMutator": "functor",
    "build": "_build",
    "get_tir_pipeline": "pipeline",
    "get_default_tir_pipeline": "pipeline",
    "IndexMap": "index_map",
    "Layout": "data_layout",
    "BijectiveLayout": "data_layout",
    "layout": "data_layout",
    "bijective_layout": "data_layout",
    "Schedule": "schedule",
    "ScheduleError": "schedule",
}


def __getattr__(name):
    if name == "__all__":
        return public_names(__name__)
    if name in _SUBMODULES or name in ("transform", "pipeline", "index_map", "data_layout"):
        return importlib.import_module("tvm.tir." + name)
    if name in _MOVED:
        module = importlib.import_module("tvm.tir." + _MOVED[name])
        value = globals()[name] = getattr(module, name)
        return value
    return getattr(op, name)


def __dir__():
    return sorted({*_derived(), *_MOVED})
