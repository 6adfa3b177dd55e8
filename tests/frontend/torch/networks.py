# SPDX-License-Identifier: Apache-2.0
"""Networks of the field against PyTorch, through torch.export and through torch.compile, with fixed
and with symbolic sizes: `python -m tests.frontend.torch.networks [resnet18/export …]`."""

import logging
import sys
import warnings

import torch
import tvm
from torch.export import Dim, export
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program, relax_dynamo

from ..architectures import NETWORKS, has
from . import scoreboard
from .run import assert_same

WAYS = ("export", "export-dynamic", "compile", "compile-dynamic")
ONE, OTHER = (2, 8), (3, 12)  # batch and length


def dynamic_dims(network):
    """By input: the dimensions that follow batch or length."""
    pairs = zip(network.inputs(*ONE), network.inputs(*OTHER), strict=True)
    return [
        [i for i, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n]
        for a, b in pairs
    ]


def _symbolic(program, dims):
    """Whether export left these dimensions of the user's inputs symbolic."""
    values = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    inputs = [values[name] for name in program.graph_signature.user_inputs]
    return all(
        isinstance(value.shape[i], torch.SymInt)
        for value, axes in zip(inputs, dims, strict=True)
        for i in axes
    )


def exported(network, model, dynamic):
    args = network.inputs(*ONE)
    if not dynamic:
        return export(model, args), [args]
    dims = dynamic_dims(network)
    hints = tuple({i: Dim.AUTO for i in axes} for axes in dims)
    takes_any = isinstance(model, torch.nn.Module) and "args" in model.forward.__code__.co_varnames
    program = export(model, args, dynamic_shapes=(hints,) if takes_any else hints)
    if not _symbolic(program, dims):
        raise NotImplementedError("torch.export makes a constant of batch or length")
    return program, [args, network.inputs(*OTHER)]


def check(name):
    """Raises where a network does not give PyTorch's results that way."""
    network_name, way = name.split("/")
    network = NETWORKS[network_name]
    if not has(network.package):
        return f"skipped: needs {network.package}"
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    model = network.model()
    dynamic = way.endswith("-dynamic")
    with torch.no_grad():
        if way.startswith("export"):
            program, inputs = exported(network, model, dynamic)
            executable = tvm.compile(from_exported_program(program), target="llvm")
            function = relax.VirtualMachine(executable, tvm.cpu())["main"]
        else:
            # What PyTorch would have to run is an error here.
            warnings.filterwarnings("error", message=".*PyTorch runs")
            inputs = [network.inputs(*ONE)] + ([network.inputs(*OTHER)] if dynamic else [])
            function = torch.compile(model, backend=relax_dynamo(), dynamic=dynamic, fullgraph=True)
        for args in inputs:
            assert_same(function(*args), model(*args))
    return None


if __name__ == "__main__":
    every = [f"{name}/{way}" for way in WAYS for name in NETWORKS]
    outcome = scoreboard.main(__doc__, every, check)
    sys.exit(any(r and not r.startswith("skipped") for r in outcome.values()))
