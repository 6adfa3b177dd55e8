# SPDX-License-Identifier: Apache-2.0
"""Known architectures through torch.onnx, with fixed sizes, and with dynamic batch and length from
one compilation: python -m tests.frontend.onnx.architectures [resnet18/dynamic …]

Each is compared with PyTorch. Shares run side by side with --shard i/n --results FILE; --docs
docs/import.md writes the table there."""

import contextlib
import inspect
import io
import logging
import pathlib
import sys
import tempfile
import warnings

import numpy as np
import torch
import tvm
from torch.utils import _pytree
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from .. import scoreboard
from ..architectures import NETWORKS, has

TOLERANCE = 1e-4
SIZES = ((2, 8), (3, 12))  # batches and lengths
WAYS = {"static": SIZES[:1], "dynamic": SIZES}
NO_EXPORT = "PyTorch does not export it"


def inputs(network, size):
    torch.manual_seed(1)
    return network.inputs(*size)


def model_of(network):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return network.model()


def exported(network, model, folder, dynamic):
    """The path of the model's file."""
    path = str(pathlib.Path(folder) / "model.onnx")
    small, large = (inputs(network, size) for size in SIZES)
    shapes = None
    if dynamic:
        auto = torch.export.Dim.DYNAMIC
        shapes = tuple(
            {i: auto for i, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n}
            for a, b in zip(small, large, strict=True)
        )
        kinds = [p.kind for p in inspect.signature(model.forward).parameters.values()]
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            shapes = (shapes,)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(model, small, path, dynamo=True, dynamic_shapes=shapes, verbose=False)
    return path


def difference(got, expected):
    """max|a - b| / max|b| of the outputs."""
    expected = _pytree.tree_leaves(expected)
    got = [got] if isinstance(got, tvm.runtime.Tensor) else list(got)
    assert len(got) == len(expected), f"{len(got)} outputs instead of {len(expected)}"
    worst = 0.0
    for a, b in zip(got, expected, strict=True):
        a, b = a.numpy(), b.numpy()
        assert a.shape == b.shape, f"{a.shape} instead of {b.shape}"
        assert a.dtype == b.dtype, f"{a.dtype} instead of {b.dtype}"
        a, b = a.astype("float64"), b.astype("float64")
        worst = max(worst, float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)))
    return worst


def worst_difference(network, model, path, sizes):
    """The largest difference over the sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of inputs
        mod = from_onnx(path)
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    worst = 0.0
    for size in sizes:
        args = inputs(network, size)
        with torch.no_grad():
            expected = model(*args)
        # An input of which nothing depends is not in the file.
        args = args[: len(mod["main"].params)]
        got = vm["main"](*(tvm.runtime.tensor(a.numpy()) for a in args))
        worst = max(worst, difference(got, expected))
    return worst


def check(name):
    """What is wrong with a network that way, or None."""
    network_name, way = name.split("/")
    network = NETWORKS[network_name]
    missing = [p for p in (network.package, "onnxscript") if not has(p)]
    if missing:
        return f"skipped: needs {' and '.join(missing)}"
    logging.disable(logging.WARNING)
    model = model_of(network)
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = exported(network, model, folder, way == "dynamic")
        except Exception as error:
            while error.__cause__ is not None:
                error = error.__cause__
            return f"{NO_EXPORT}: {scoreboard.reason_of(error)}"
        worst = worst_difference(network, model, path, WAYS[way])
    return None if worst <= TOLERANCE else f"max|a - b| = {worst:.1e} max|b|"


def onnx_architectures(results):
    """The outcomes for the documentation."""
    ways = {}
    for name, reason in results.items():
        network, way = name.split("/")
        ways.setdefault(network, {})[way] = reason
    good = [n for n, found in ways.items() if None in found.values()]
    dynamic = [n for n in good if ways[n].get("dynamic", "") is None]
    static = [n for n in good if n not in dynamic]
    lines = [
        f"{len(good)} of {len(ways)} agree with PyTorch, {len(dynamic)} of them with a dynamic "
        f"batch and length from one compilation: {', '.join(dynamic)}."
    ]
    if static:
        lines += ["", "With the sizes they were exported with: " + ", ".join(static) + "."]
    whys = [
        f"| {n} | {way} | {reason.replace('|', '/')[:120]} |"
        for n, found in ways.items()
        for way, reason in found.items()
        if reason is not None
    ]
    return lines + (["", "| does not agree | | |", "| --- | --- | --- |", *whys] if whys else [])


def main():
    every = [f"{name}/{way}" for name in NETWORKS for way in WAYS]
    results = scoreboard.main(__doc__, every, check, table=onnx_architectures)
    print("\n".join(onnx_architectures(results)))
    excused = ("skipped", NO_EXPORT)
    return any(reason and not reason.startswith(excused) for reason in results.values())


if __name__ == "__main__":
    sys.exit(main())
