# SPDX-License-Identifier: Apache-2.0
"""Known architectures through torch.onnx: python -m tests.frontend.onnx.architectures [pattern]

Each is exported with dynamic batch and length, compiled once, and compared with PyTorch for two
sizes; where PyTorch cannot export it so, with the sizes of the example. `--update` writes the table
of docs/import.md."""

import argparse
import contextlib
import inspect
import io
import logging
import pathlib
import re
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
import tvm
from torch.utils import _pytree
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from ..architectures import NETWORKS, has

PAGE = pathlib.Path(__file__).parents[3] / "docs/import.md"
TOLERANCE = 1e-4
SIZES = ((2, 8), (3, 12))  # batches and lengths


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


def compare(network, model, path, sizes):
    """The largest difference over the sizes, and the seconds of import and compilation."""
    begin = time.time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of inputs
        mod = from_onnx(path)
    imported = time.time()
    vm = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    seconds = imported - begin, time.time() - imported
    worst = 0.0
    for size in sizes:
        args = inputs(network, size)
        with torch.no_grad():
            expected = model(*args)
        # An input of which nothing depends is not in the file.
        args = args[: len(mod["main"].params)]
        got = vm["main"](*(tvm.runtime.tensor(a.numpy()) for a in args))
        worst = max(worst, difference(got, expected))
    return worst, seconds


def outcome(name):
    """(whether it agrees, a text): with dynamic sizes where PyTorch exports them."""
    network = NETWORKS[name]
    model = model_of(network)
    with tempfile.TemporaryDirectory() as folder:
        refusal = None
        try:
            path, sizes = exported(network, model, folder, True), SIZES
        except Exception as error:
            refusal = _first_line(error)
            try:
                path, sizes = exported(network, model, folder, False), SIZES[:1]
            except Exception as again:
                return False, f"PyTorch does not export it: {_first_line(again)}"
        try:
            worst, (imported, compiled) = compare(network, model, path, sizes)
        except Exception as error:
            return False, _first_line(error)
    kind = "dynamic" if refusal is None else f"static (export: {refusal})"
    text = f"{worst:.1e}, import {imported:.2f} s, compile {compiled:.1f} s, {kind}"
    return worst <= TOLERANCE, text


def _first_line(error):
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def table(outcomes):
    """The outcomes for the documentation."""
    good = [name for name, (agrees, _) in outcomes.items() if agrees]
    dynamic = [name for name in good if outcomes[name][1].endswith("dynamic")]
    static = [name for name in good if name not in dynamic]
    bad = {name: text for name, (agrees, text) in outcomes.items() if not agrees}
    lines = [
        f"{len(good)} of {len(outcomes)} agree with PyTorch, {len(dynamic)} with a dynamic batch "
        "and length from one compilation:",
        ", ".join(dynamic) + ".",
    ]
    if static:
        lines += ["", "With the sizes they were exported with: " + ", ".join(static) + "."]
    if bad:
        lines += ["", "| does not agree | |", "| --- | --- |"]
        lines += [f"| {name} | {text.replace('|', '/')[:120]} |" for name, text in bad.items()]
    return "\n".join(lines)


def update(text):
    """Writes the table between its marks."""
    page = PAGE.read_text()
    marked = r"(<!-- ONNX architectures -->\n).*?(<!-- end -->)"
    PAGE.write_text(re.sub(marked, lambda m: m[1] + text + "\n" + m[2], page, flags=re.S))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--update", action="store_true", help="write the table of docs/import.md")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    outcomes = {}
    for name, network in NETWORKS.items():
        if not re.search(options.pattern, name):
            continue
        missing = [p for p in (network.package, "onnxscript") if not has(p)]
        if missing:
            print(f"left out {name}: {' and '.join(missing)} cannot be imported")
            continue
        outcomes[name] = outcome(name)
        print(f"{'ok  ' if outcomes[name][0] else 'FAIL'} {name}: {outcomes[name][1]}", flush=True)
    print("\n" + table(outcomes))
    if options.update:
        update(table(outcomes))
    return not all(agrees for agrees, _ in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
