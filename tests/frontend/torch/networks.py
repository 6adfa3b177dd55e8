# SPDX-License-Identifier: Apache-2.0
"""Networks of the field against PyTorch, through torch.export and through torch.compile, with fixed
and with symbolic sizes: `python -m tests.frontend.torch.networks [resnet18/export …]`."""

import logging
import sys
import warnings

import torch
import tvm
from torch.export import Dim, export
from tvm.relax.frontend.torch import from_exported_program, relax_dynamo

from .. import scoreboard
from ..architectures import NETWORKS, has
from .run import assert_same, compiled

WAYS = ("export", "export-dynamic", "export-bfloat16", "compile", "compile-dynamic")
ONE, OTHER = (2, 8), (3, 12)  # batch and length


def dynamic_dims(network):
    """By input: the dimensions that follow batch or length."""
    pairs = zip(network.inputs(*ONE), network.inputs(*OTHER), strict=True)
    return [
        [i for i, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n]
        for a, b in pairs
    ]


def _is_symbolic(function, dims):
    """Whether PyTorch left these dimensions of the inputs symbolic."""
    return all(
        not isinstance(var.struct_info.shape[i], tvm.tir.IntImm)
        for var, axes in zip(function.params, dims, strict=True)
        for i in axes
    )


def _narrow(values):
    return tuple(v.bfloat16() if v.is_floating_point() else v for v in values)


def imported(network, model, dynamic, narrow=False):
    """The module of a network, and inputs for it."""
    args = network.inputs(*ONE)
    if narrow:
        args = _narrow(args)
    if not dynamic:
        return from_exported_program(export(model, args)), [args]
    dims = dynamic_dims(network)
    hints = tuple({i: Dim.AUTO for i in axes} for axes in dims)
    takes_any = "args" in model.forward.__code__.co_varnames
    program = export(model, args, dynamic_shapes=(hints,) if takes_any else hints)
    mod = from_exported_program(program)
    if not _is_symbolic(mod["main"], dims):
        raise NotImplementedError("PyTorch makes a constant of batch or length")
    return mod, [args, network.inputs(*OTHER)]


def check(name):
    """Raises where a network does not give PyTorch's results that way."""
    network_name, way = name.split("/")
    network = NETWORKS[network_name]
    if not has(network.package):
        return f"skipped: needs {network.package}"
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    model = network.model()
    dynamic, narrow = way.endswith("-dynamic"), way.endswith("-bfloat16")
    if narrow:
        model = model.bfloat16()
    with torch.no_grad():
        if way.startswith("export"):
            mod, inputs = imported(network, model, dynamic, narrow)
            function = compiled(mod)
        else:
            torch._dynamo.config.allow_rnn = True
            # What PyTorch would have to run is an error here.
            warnings.filterwarnings("error", message=".*PyTorch runs")
            inputs = [network.inputs(*ONE)] + ([network.inputs(*OTHER)] if dynamic else [])
            function = torch.compile(model, backend=relax_dynamo(), dynamic=dynamic, fullgraph=True)
        for args in inputs:
            assert_same(function(*args), model(*args), 2e-2 if narrow else 1e-4)
    return None


def networks(results):
    """The scoreboard: how many networks pass each way, and which do not."""
    lines = ["| way | run | pass | do not |", "| --- | --- | --- | --- |"]
    for way in WAYS:
        run = [n for n in NETWORKS if f"{n}/{way}" in results]
        rest = [n for n in run if results[f"{n}/{way}"] is not None]
        counts = f"{len(run)} of {len(NETWORKS)} | {len(run) - len(rest)}"
        lines.append(f"| {way} | {counts} | {', '.join(rest)} |")
    return lines


if __name__ == "__main__":
    every = [f"{name}/{way}" for way in WAYS for name in NETWORKS]
    outcome = scoreboard.main(__doc__, every, check, table=networks)
    sys.exit(any(r and not r.startswith("skipped") for r in outcome.values()))
