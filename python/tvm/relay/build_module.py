# SPDX-License-Identifier: Apache-2.0
"""Graphs to JSON, a library of kernels, and parameters."""

import tvm
from tvm import relax
from tvm._derive import function
from tvm.target import Target

# Kernels of one or several operators are all that is left of a graph.
_PASSES = ("DecomposeOpsForInference", "CanonicalizeBindings", "LegalizeOps")
_PASSES += ("AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR", "AttachGlobalSymbol")

_graph_json = function("relax.GraphJSON", __name__)
_factory = function("tvm.graph_executor_factory.create", __name__)


class GraphExecutorFactoryModule:
    """What `build` returns.

    It unpacks as (graph JSON, library, parameters); `factory["default"](device)` makes an
    executor, for graph_executor.GraphModule.
    """

    def __init__(self, graph_json, lib, params, name="default"):
        self.graph_json_str = graph_json
        self.lib = lib
        self.params = params
        self.libmod_name = name
        self.module = _factory(graph_json, lib, name, params)

    def __iter__(self):
        return iter((self.graph_json_str, self.lib, self.params))

    def __getitem__(self, item):
        return self.module[item]

    def get_graph_json(self):
        """The graph as JSON."""
        return self.graph_json_str

    get_executor_config = get_graph_json

    def get_lib(self):
        """The library of kernels."""
        return self.lib

    def get_params(self):
        """The parameters by name."""
        return self.params

    def export_library(self, file_name, **kwargs):
        """Writes graph, kernels and parameters as one library."""
        return self.module.export_library(file_name, **kwargs)


def build(mod, target=None, target_host=None, params=None, mod_name="default"):
    """Compiles a graph of static shapes for the graph executor.

    Parameters
    ----------
    mod : a module with a Relax function `main`, or such a function.
    target, target_host : str or Target
    params : values of parameters by name; they stay inputs, which the executor sets.
    mod_name : the name under which the result makes executors.
    """
    if isinstance(mod, relax.Function):
        mod = tvm.IRModule({"main": mod.with_attr("global_symbol", "main")})
    target = Target(target or Target.current() or "llvm", host=target_host)
    passes = [getattr(relax.transform, name)() for name in _PASSES]
    with target:
        lowered = tvm.transform.Sequential(passes)(mod)
    graph, constants = _graph_json(lowered)
    kernels = {v: f for v, f in lowered.functions.items() if isinstance(f, tvm.tir.PrimFunc)}
    if not kernels:
        raise ValueError("relay.build: expected a graph with operators, got none")
    lib = tvm.tir.build(tvm.IRModule(kernels), target)
    values = {name: tvm.runtime.tensor(value) for name, value in (params or {}).items()}
    return GraphExecutorFactoryModule(str(graph), lib, {**values, **dict(constants)}, mod_name)
