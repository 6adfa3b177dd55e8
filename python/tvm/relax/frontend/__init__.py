# SPDX-License-Identifier: Apache-2.0
"""Models of other frameworks as programs of the graph language, and models written in it."""

import importlib

from tvm._derive import fill

from .common import detach_params

_derived, __dir__ = fill(__name__)


def __getattr__(name):
    return importlib.import_module(f"{__name__}.nn") if name == "nn" else _derived(name)
