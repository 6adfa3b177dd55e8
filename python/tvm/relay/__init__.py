# SPDX-License-Identifier: Apache-2.0
"""The older door to graphs: `relay.build`, over Relax. tvm.compile is the one to use."""

from tvm._aliases import no_attribute
from tvm.runtime import load_param_dict, save_param_dict

from . import build_module, graph_executor
from .build_module import build

__all__ = ["build", "build_module", "graph_executor", "load_param_dict", "save_param_dict"]


def __getattr__(name):
    raise no_attribute(__name__, name, lambda: __all__)
